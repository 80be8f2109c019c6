#pragma once

#include <string_view>

namespace odecast {

/// The instruction sets the kernels are compiled for.
enum class Isa { sse2, avx2, avx512 };

/// The best one this processor has, or the one named by the environment variable ODECAST_ISA
/// (sse2, avx2, avx512). Throws Error (usage) when the variable names anything else or more than
/// the processor can do. Read once.
Isa active_isa();

std::string_view isa_name(Isa isa);

}  // namespace odecast
