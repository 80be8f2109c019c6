// Model files: any bytes, and any bytes under a checksum that fits, so that what lies behind the
// checksum is reached. A model that is read must be usable.
#include <fmt/format.h>

#include "fuzz/fuzz.hpp"
#include "odecast/core/encoding.hpp"
#include "odecast/core/error.hpp"
#include "odecast/model/model_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace odecast;
  const fuzz::SecondAtMost limit;
  if (size == 0) return 0;
  std::string text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  if (bytes[0] & 1) {
    constexpr std::string_view seal = ",\n  \"checksum\": \"fnv1a64:";
    text = text.substr(0, text.rfind(seal));
    text = fmt::format("{}{}{:016x}\"\n}}\n", text, seal, fnv1a(text));
  }
  try {
    const Model model = model_from_text(text, "fuzz");
    make_posterior(model)->moments(
        Vector::Zero(static_cast<Eigen::Index>(model.arguments().size())));
    fuzz::require(model_to_text(model_from_text(model_to_text(model), "back")) ==
                  model_to_text(model));
  } catch (const Error&) {
  }
  return 0;
}
