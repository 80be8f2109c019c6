#include "odecast/core/isa.hpp"

#include <cstdlib>
#include <string>

#include "odecast/core/error.hpp"
#include "odecast/core/text.hpp"

namespace odecast {
namespace {

Isa best_isa() {
  // What x86-64-v4 and v3 mean, which is what the kernels are compiled for.
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
                  __builtin_cpu_supports("fma");
  const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return v3 && v4 ? Isa::avx512 : v3 ? Isa::avx2 : Isa::sse2;
}

Isa choose() {
  const Isa best = best_isa();
  const char* wanted = std::getenv("ODECAST_ISA");
  if (!wanted || !*wanted) return best;
  for (const Isa isa : {Isa::sse2, Isa::avx2, Isa::avx512})
    if (isa_name(isa) == wanted && isa <= best) return isa;
  throw_usage({"environment variable ODECAST_ISA", shown(wanted),
               "sse2, avx2 or avx512, at most " + std::string(isa_name(best)) + " here",
               "Unset it to let odecast choose."});
}

}  // namespace

Isa active_isa() {
  static const Isa isa = choose();
  return isa;
}

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::sse2: return "sse2";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
  }
  return "";
}

}  // namespace odecast
