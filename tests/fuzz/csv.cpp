// Text tables of any bytes: read or refused with an Error, under every option the first byte
// chooses.
#include "odecast/observations/csv.hpp"

#include "fuzz/fuzz.hpp"
#include "odecast/core/error.hpp"
#include "odecast/observations/inspection.hpp"
#include "odecast/observations/times.hpp"

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
    Dataset back = parse_observations(format_csv(data), "back", plain);
    if (data.calendar) {  // dates, to the digits that a double has
      back = counted_as(std::move(back), data.calendar);
      fuzz::require(back.trajectories.size() == data.trajectories.size());
      for (std::size_t k = 0; k < data.trajectories.size(); ++k) {
        auto& times = back.trajectories[k].times;
        const auto& expected = data.trajectories[k].times;
        fuzz::require(times.size() == expected.size());
        for (std::size_t i = 0; i < times.size(); ++i)
          fuzz::require(std::abs(times[i] - expected[i]) <= 1e-12 * (1 + std::abs(expected[i])));
        times = expected;
      }
    }
    fuzz::require_same(back, data);
    inspect(source_of(data));
  } catch (const Error&) {
  }
  return 0;
}
