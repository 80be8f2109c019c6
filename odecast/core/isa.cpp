#include "odecast/core/isa.hpp"

#include <array>
#include <cstdlib>
#include <string>

#include "odecast/core/error.hpp"
#include "odecast/core/text.hpp"

namespace odecast {
namespace {

#define ODECAST_ISA_TEXT(isa, has, ...) std::string_view(#isa),
constexpr std::array kNames = {ODECAST_ISAS(ODECAST_ISA_TEXT, )};
#undef ODECAST_ISA_TEXT

/// How many of them, from the first on, this processor has.
std::size_t available() {
#define ODECAST_ISA_TEST(isa, has, ...) static_cast<bool>(has),
  const bool has[] = {ODECAST_ISAS(ODECAST_ISA_TEST, )};
#undef ODECAST_ISA_TEST
  std::size_t count = 1;
  while (count < kNames.size() && has[count]) ++count;
  return count;
}

Isa choose() {
  const std::size_t count = available();
  const char* wanted = std::getenv("ODECAST_ISA");
  if (!wanted || !*wanted) return static_cast<Isa>(count - 1);
  std::string names;
  for (std::size_t i = 0; i < count; ++i) {
    if (kNames[i] == wanted) return static_cast<Isa>(i);
    names += (i == 0 ? "" : i + 1 == count ? " or " : ", ") + std::string(kNames[i]);
  }
  throw_usage({"environment variable ODECAST_ISA", shown(wanted), names + " on this machine",
               "Unset it to let odecast choose."});
}

}  // namespace

Isa active_isa() {
  static const Isa isa = choose();
  return isa;
}

std::string_view isa_name(Isa isa) { return kNames[static_cast<std::size_t>(isa)]; }

}  // namespace odecast
