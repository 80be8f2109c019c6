#pragma once

#include <memory>
#include <new>

namespace odecast {

/// Work space for the kernels: doubles aligned to 64 bytes, not initialised.
struct FreeAligned {
  void operator()(double* p) const { ::operator delete(p, std::align_val_t{64}); }
};
using AlignedDoubles = std::unique_ptr<double, FreeAligned>;

inline AlignedDoubles aligned_doubles(long count) {
  return AlignedDoubles(static_cast<double*>(
      ::operator new(static_cast<std::size_t>(count) * sizeof(double), std::align_val_t{64})));
}

}  // namespace odecast
