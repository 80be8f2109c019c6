// Arrays of any bytes, times in the first column or made by a step.
#include "odecast/observations/npy.hpp"

#include "fuzz/fuzz.hpp"
#include "odecast/core/error.hpp"
#include "odecast/observations/reading.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace odecast;
  const fuzz::SecondAtMost limit;
  if (size == 0) return 0;
  ReadOptions o;
  o.step = bytes[0] & 1 ? 0.5 : 0;
  o.missing = bytes[0] & 2 ? MissingRule::drop : MissingRule::error;
  // The magic bytes are given, so that all effort goes into what follows them.
  std::string text = "\x93NUMPY";
  text.append(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  try {
    const Dataset data = parse_observations(text, "fuzz", o);
    fuzz::check(data);
    fuzz::require_same(parse_observations(format_npz(data), "back"), data);
  } catch (const Error&) {
  }
  return 0;
}
