#pragma once

// How a page carries its numbers. Part of page.cpp, apart for its size.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace odecast {

/// How the values of a column may be rounded when the page would grow too large.
enum class Rounding {
  none,         ///< never: times
  decimals,     ///< each by no more than the range / 2^bits
  significant,  ///< to so many bits of each value: for axes of powers of ten
};

struct PageColumn {
  std::vector<double> values;
  Rounding rounding = Rounding::decimals;
  /// Two earlier columns: this one is 2 × centre - other but for round-off, as the upper edge of a
  /// band around its middle is, and need not be held where values are rounded anyway. -1: none.
  int centre = -1, other = -1;
};

/// The columns of all figures of a page; equal ones are held once.
class ColumnPool {
 public:
  int add(std::vector<double> values, Rounding rounding);
  /// The upper edge of a band; `centres` are columns that may be its middle.
  int add_upper(std::vector<double> values, Rounding rounding, const std::vector<int>& centres,
                int lower);
  const std::vector<PageColumn>& columns() const { return columns_; }

 private:
  std::vector<PageColumn> columns_;
  std::multimap<std::uint64_t, int> known_;  // hash to place
};

/// The columns as bytes.
///
/// Exact and significant: the bits of the doubles in the order of the numbers, without the last
/// `shift` ones (0: exact), as differences of some order. Decimals: whole multiples of a step m
/// 10^-d (m = 1, 2, 5), by interpolation from coarse to fine (as SZ3 does: Zhao et al., ICDE 2021).
/// The first value stands alone; then, for halving strides, the value between two known ones is
/// predicted by a cubic through four, and what is left is rounded to a multiple of 8 steps: no
/// value is off by more than 4 steps, and smooth curves cost a fraction of a bit per value. All
/// numbers, their sign in the lowest bit, go through an adaptive range coder and are written in
/// base 64.
struct PackedColumns {
  std::string header;   ///< JSON: what each column needs to be read back
  std::string numbers;  ///< base 64
  int bits = 0;         ///< to which values are rounded; 0: exact
  int stride = 1;       ///< every so many-th row of long columns is held
};

/// The finest packing of at most `budget` characters of numbers: exact, else rounded, all rows; as
/// the last resort fewer rows of columns longer than 4096.
PackedColumns pack(const std::vector<PageColumn>& columns, std::size_t budget);

}  // namespace odecast
