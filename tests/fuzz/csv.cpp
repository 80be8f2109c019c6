// Text tables of any bytes: read or refused with an Error, under every option the first byte
// chooses.
#include "odecast/observations/csv.hpp"

#include "fuzz/fuzz.hpp"
#include "odecast/core/error.hpp"
#include "odecast/observations/inspection.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace odecast;
  const fuzz::SecondAtMost limit;
  if (size == 0) return 0;
  const unsigned choice = bytes[0];
  ReadOptions o;
  o.missing = choice & 1 ? MissingRule::drop : MissingRule::error;
  o.sort = choice & 2;
  o.duplicates = static_cast<DuplicateRule>((choice >> 2) % 3);
  o.header = static_cast<HeaderRule>((choice >> 4) % 3);
  o.decimal = choice & 64 ? ',' : '\0';
  const std::string_view text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  if (text.starts_with("PK") || text.starts_with("\x93NUMPY")) return 0;  // other targets
  try {
    const Dataset data = parse_observations(text, "fuzz", o);
    fuzz::check(data);
    // What is written reads back the same.
    ReadOptions plain;
    plain.time = data.time_name;
    const Dataset back = parse_observations(format_csv(data), "back", plain);
    fuzz::require_same(back, data);
    inspect(source_of(data));
  } catch (const Error&) {
  }
  return 0;
}
