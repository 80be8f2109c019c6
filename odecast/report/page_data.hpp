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
  decimals,     ///< to a multiple of 1, 2 or 5 × 10^-d, about the range / 2^bits
  significant,  ///< to so many bits of each value: for axes of powers of ten
};

struct PageColumn {
  std::vector<double> values;
  Rounding rounding = Rounding::decimals;
  /// Two earlier columns; this one is nearly 2 × centre - other, as the upper edge of a band is.
  int centre = -1, other = -1;
};

/// The columns of all figures of a page; equal ones are held once.
class ColumnPool {
 public:
  int add(std::vector<double> values, Rounding rounding, int centre = -1, int other = -1);
  const std::vector<PageColumn>& columns() const { return columns_; }

 private:
  std::vector<PageColumn> columns_;
  std::multimap<std::uint64_t, int> known_;  // hash to place
};

/// The columns as bytes.
///
/// Values become whole numbers: multiples of m 10^-d (decimals), or the bits of the double in the order of
/// the numbers, without the last `shift` ones (significant; shift 0 is exact). A column then holds the
/// differences of that order of its numbers (or what 2 × centre - other leaves of them), as
/// variable-length bytes, lowest seven bits first, signs in the lowest bit. All columns one after the
/// other are compressed with DEFLATE and written in base 64.
struct PackedColumns {
  std::string header;   ///< JSON: what each column needs to be read back
  std::string numbers;  ///< base 64
  int bits = 0;         ///< to which values are rounded; 0: exact
  int stride = 1;       ///< every so many-th row of long columns is held
};

/// The finest packing of at most `budget` characters of numbers: exact, else rounded, all rows; as the
/// last resort fewer rows of columns longer than 4096.
PackedColumns pack(const std::vector<PageColumn>& columns, std::size_t budget);

}  // namespace odecast
