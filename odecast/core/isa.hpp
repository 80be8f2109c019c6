#pragma once

#include <string_view>

/// The instruction sets that kernels are compiled for, worst first: X(name, whether this processor
/// has it, …). cmake/rooms.cmake has the compiler's options for each name.
#define ODECAST_ISAS(X, ...)                                                      \
  X(sse2, true, __VA_ARGS__)                                                      \
  X(avx2, /* x86-64-v3 */                                                         \
    __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&           \
        __builtin_cpu_supports("fma"),                                            \
    __VA_ARGS__)                                                                  \
  X(avx512, /* x86-64-v4 */                                                       \
    __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&    \
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"), \
    __VA_ARGS__)

namespace odecast {

/// In the order of ODECAST_ISAS.
#define ODECAST_ISA_NAME(isa, has, ...) isa,
enum class Isa { ODECAST_ISAS(ODECAST_ISA_NAME, ) };
#undef ODECAST_ISA_NAME

/// The best one this processor has, or the one named by the environment variable ODECAST_ISA.
/// Throws Error (usage) when the variable names anything else or more than the processor can do.
/// Read once.
Isa active_isa();

std::string_view isa_name(Isa isa);

}  // namespace odecast
