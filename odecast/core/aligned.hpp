#pragma once

#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <new>

namespace odecast {

/// Work space for the kernels: doubles aligned to 64 bytes, not initialised.
struct FreeAligned {
  void operator()(double* p) const { std::free(p); }
};
using AlignedDoubles = std::unique_ptr<double[], FreeAligned>;

/// From two megabytes on, in large pages where the system has them: the first touch of 4 MB in
/// small pages costs as much as 300 trajectories.
inline AlignedDoubles aligned_doubles(std::size_t count) {
  constexpr std::size_t large = std::size_t{1} << 21;
  const std::size_t bytes = count * sizeof(double), unit = bytes < large ? 64 : large;
  const std::size_t whole = (bytes + unit - 1) / unit * unit;
  void* p = std::aligned_alloc(unit, whole == 0 ? unit : whole);
  if (!p) throw std::bad_alloc();
  if (unit == large) madvise(p, whole, MADV_HUGEPAGE);
  return AlignedDoubles(static_cast<double*>(p));
}

}  // namespace odecast
