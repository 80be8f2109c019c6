#pragma once

#include "odecast/core/isa.hpp"

// A kernel is a function of a job of plain numbers and pointers, compiled once per instruction set.
// ODECAST_KERNEL(run, Job) beside the job declares run(job), which calls the one for this machine,
// and all of those: sse2::run(job), …; detail/NAME_kernel.hpp defines ODECAST_THIS_ISA::run(job),
// and CMake makes the sources from the word NAME among a room's KERNELS.

#define ODECAST_KERNEL_OF(isa, has, name, Job) \
  namespace isa {                              \
  void name(Job& job);                         \
  }
#define ODECAST_KERNEL_ADDRESS(isa, has, name, Job) &isa::name,

#define ODECAST_KERNEL(name, Job)                                                            \
  ODECAST_ISAS(ODECAST_KERNEL_OF, name, Job)                                                 \
  inline void name(Job& job) {                                                               \
    static constexpr void (*of[])(Job&) = {ODECAST_ISAS(ODECAST_KERNEL_ADDRESS, name, Job)}; \
    of[static_cast<int>(active_isa())](job);                                                 \
  }
