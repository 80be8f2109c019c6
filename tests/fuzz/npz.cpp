// Archives: any bytes, and archives that are whole but for the arrays in them.
#include "fuzz/fuzz.hpp"
#include "odecast/core/error.hpp"
#include "odecast/observations/npy.hpp"
#include "odecast/observations/reading.hpp"
#include "odecast/observations/zip.hpp"

namespace {

/// Members t, x, y, id from pieces of the bytes, each an array without its magic bytes.
std::string archive_of(std::string_view bytes) {
  std::vector<std::pair<std::string, std::string>> members;
  for (const char* name : {"t.npy", "x.npy", "y.npy", "id.npy"}) {
    const auto end = bytes.find("\n--\n");
    members.emplace_back(name, "\x93NUMPY" + std::string(bytes.substr(0, end)));
    if (end == bytes.npos) break;
    bytes.remove_prefix(end + 4);
  }
  return odecast::format_zip(members);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace odecast;
  const fuzz::SecondAtMost limit;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  try {
    const Dataset data =
        parse_observations(text.starts_with("PK") ? std::string(text) : archive_of(text), "fuzz",
                           {.missing = MissingRule::drop});
    fuzz::check(data);
    if (data.trajectories.size() == 1)
      fuzz::require_same(parse_observations(format_npz(data), "back", {.time = data.time_name}),
                         data);
  } catch (const Error&) {
  }
  return 0;
}
