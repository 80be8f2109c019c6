#include "odecast/report/page_data.hpp"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "odecast/core/encoding.hpp"

namespace odecast {
namespace {

using Json = nlohmann::ordered_json;
using Whole = std::vector<std::int64_t>;

/// Whole numbers in the order of the doubles.
std::int64_t ordered_bits(double value) {
  const auto bits = std::bit_cast<std::int64_t>(value);
  return bits >= 0 ? bits : std::numeric_limits<std::int64_t>::min() - bits;
}

std::int64_t wrapped_minus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

/// Differences of some order; the first numbers stand as they are. Overflow wraps, as it does when
/// they are summed up again.
Whole differences(Whole numbers, int order) {
  for (int pass = 0; pass < order; ++pass)
    for (std::size_t i = numbers.size(); i-- > static_cast<std::size_t>(pass) + 1;)
      numbers[i] = wrapped_minus(numbers[i], numbers[i - 1]);
  return numbers;
}

std::uint64_t zigzag(std::int64_t n) {
  return static_cast<std::uint64_t>(n) << 1 ^ static_cast<std::uint64_t>(n >> 63);
}

double cost(const Whole& residuals) {
  double bits = 0;
  for (const std::int64_t r : residuals) bits += static_cast<double>(std::bit_width(zigzag(r)));
  return bits;
}

void append_numbers(std::string& bytes, const Whole& numbers) {
  for (const std::int64_t n : numbers) {
    std::uint64_t rest = zigzag(n);
    for (; rest >= 0x80; rest >>= 7) bytes += static_cast<char>(rest | 0x80);
    bytes += static_cast<char>(rest);
  }
}

/// The best order of differences, tried on the numbers themselves.
Whole shortest_differences(const Whole& numbers, int& order) {
  Whole best = numbers;
  order = 0;
  double least = cost(best);
  for (int k = 1; k <= 4; ++k) {
    Whole candidate = differences(numbers, k);
    if (const double c = cost(candidate); c < least) {
      least = c;
      best = std::move(candidate);
      order = k;
    }
  }
  return best;
}

struct DecimalStep {
  int multiple = 1, decimals = 0;

  /// Correctly rounded, hence the double nearest to the decimal; page.js does the same.
  double value(std::int64_t k) const {
    const double whole = static_cast<double>(k) * multiple;
    return decimals >= 0 ? whole / std::pow(10.0, decimals) : whole * std::pow(10.0, -decimals);
  }
  double step() const { return value(1); }
};

/// The largest 1, 2 or 5 × 10^-d up to `finest`.
DecimalStep decimal_step(double finest) {
  const int exponent = static_cast<int>(std::floor(std::log10(finest)));
  const double lead = finest / std::pow(10.0, exponent);
  return {lead >= 5 ? 5 : lead >= 2 ? 2 : 1, -exponent};
}

/// Rounded to decimals, or nothing where that cannot be: no range, or numbers too large for it.
bool add_decimals(const std::vector<double>& values, int bits, const std::vector<double>* centre,
                  const std::vector<double>* other, std::vector<double>& rounded,
                  std::string& bytes, Json& header) {
  double lo = std::numeric_limits<double>::infinity(), hi = -lo;
  for (const double v : values)
    if (std::isfinite(v)) lo = std::min(lo, v), hi = std::max(hi, v);
  if (!(lo < hi)) return false;
  const double finest = (hi - lo) / std::pow(2.0, bits);
  if (!(finest > 1e-290) || !std::isfinite(hi - lo)) return false;
  const DecimalStep step = decimal_step(finest);
  if (std::abs(step.decimals) > 22 || std::max(std::abs(lo), std::abs(hi)) / step.step() > 1e14)
    return false;

  Whole numbers, against;
  Json gaps = Json::array();  // [first, count, kind]: kind 0 NaN, 1 and -1 infinities
  std::int64_t last = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double v = values[i];
    if (std::isfinite(v)) {
      last = std::llround(v / step.step());
    } else {
      const int kind = std::isnan(v) ? 0 : v > 0 ? 1 : -1;
      if (!gaps.empty() && gaps.back()[0].get<std::size_t>() + gaps.back()[1].get<std::size_t>() == i &&
          gaps.back()[2] == kind)
        gaps.back()[1] = gaps.back()[1].get<std::size_t>() + 1;
      else
        gaps.push_back({i, 1, kind});
    }
    numbers.push_back(last);
    rounded.push_back(std::isfinite(v) ? step.value(last) : v);
  }
  int order = 0;
  Whole best = shortest_differences(numbers, order);
  bool mirrored = centre && other;
  if (mirrored) {
    for (std::size_t i = 0; i < numbers.size() && mirrored; ++i) {
      const double guess = (2 * (*centre)[i] - (*other)[i]) / step.step();
      mirrored = std::abs(guess) < 4e15;
      if (mirrored) against.push_back(numbers[i] - static_cast<std::int64_t>(std::floor(guess + 0.5)));
    }
    mirrored = mirrored && cost(against) < cost(best);
    if (mirrored) best = std::move(against);
  }
  header["m"] = step.multiple;
  header["d"] = step.decimals;
  if (!gaps.empty()) header["gaps"] = gaps;
  if (!mirrored) header["order"] = order;
  header["mirror"] = mirrored;
  append_numbers(bytes, best);
  return true;
}

std::string deflated(const std::string& bytes, int level) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string out(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uLong>(bytes.size()),
                level) != Z_OK)
    throw std::bad_alloc();
  out.resize(size);
  return out;
}

std::vector<double> thinned(const std::vector<double>& values, int stride) {
  if (stride == 1 || values.size() <= 4096) return values;
  std::vector<double> kept;
  for (std::size_t i = 0; i < values.size(); i += static_cast<std::size_t>(stride))
    kept.push_back(values[i]);
  if ((values.size() - 1) % static_cast<std::size_t>(stride) != 0) kept.push_back(values.back());
  return kept;
}

PackedColumns pack_at(const std::vector<PageColumn>& columns, int bits, int stride) {
  std::string bytes;
  Json headers = Json::array();
  std::vector<std::vector<double>> held;  // as the page will read them
  for (const PageColumn& c : columns) {
    const std::vector<double> values = thinned(c.values, stride);
    Json header = {{"n", values.size()}};
    if (values.size() != c.values.size()) header["of"] = c.values.size();
    std::vector<double> rounded;
    const auto column = [&](int i) { return i < 0 ? nullptr : &held[static_cast<std::size_t>(i)]; };
    const auto *centre = column(c.centre), *other = column(c.other);
    const bool alike = centre && other && centre->size() == values.size() && other->size() == values.size();
    if (bits > 0 && c.rounding == Rounding::decimals &&
        add_decimals(values, bits, alike ? centre : nullptr, other, rounded, bytes, header)) {
      if (header["mirror"] == true)
        header["mirror"] = {c.centre, c.other};
      else
        header.erase("mirror");
    } else {
      const int shift = bits > 0 && c.rounding == Rounding::significant ? std::max(0, 52 - bits) : 0;
      Whole numbers;
      for (const double v : values) {
        std::int64_t n = ordered_bits(v);
        if (shift > 0) {
          n = std::isfinite(v) ? (n + (std::int64_t{1} << (shift - 1))) >> shift : n >> shift;
          rounded.push_back(v);  // nothing leans on these
        }
        numbers.push_back(n);
      }
      if (shift == 0) rounded = values;
      int order = 0;
      const Whole best = shortest_differences(numbers, order);
      header["shift"] = shift;
      header["order"] = order;
      append_numbers(bytes, best);
    }
    headers.push_back(std::move(header));
    held.push_back(std::move(rounded));
  }
  PackedColumns packed;
  packed.header = headers.dump();
  packed.numbers = base64(deflated(bytes, 9));
  packed.bits = bits;
  packed.stride = stride;
  return packed;
}

}  // namespace

int ColumnPool::add(std::vector<double> values, Rounding rounding, int centre, int other) {
  std::uint64_t hash = 1469598103934665603u;
  for (const double v : values) hash = (hash ^ std::bit_cast<std::uint64_t>(v)) * 1099511628211u;
  const auto [begin, end] = known_.equal_range(hash);
  for (auto i = begin; i != end; ++i) {
    PageColumn& same = columns_[static_cast<std::size_t>(i->second)];
    if (same.values.size() != values.size() ||
        std::memcmp(same.values.data(), values.data(), 8 * values.size()) != 0)
      continue;
    if (same.rounding == rounding) return i->second;
    if (rounding == Rounding::none || same.rounding == Rounding::none) {
      same.rounding = Rounding::none;
      return i->second;
    }
  }
  const int place = static_cast<int>(columns_.size());
  known_.emplace(hash, place);
  columns_.push_back({std::move(values), rounding, centre, other});
  return place;
}

PackedColumns pack(const std::vector<PageColumn>& columns, std::size_t budget) {
  std::size_t values = 0;
  for (const PageColumn& c : columns) values += c.values.size();
  // Exact values of a measured or computed column take more than four bytes each, base 64 included.
  if (values < budget / 2)
    if (PackedColumns exact = pack_at(columns, 0, 1); exact.numbers.size() <= budget) return exact;
  PackedColumns packed;
  for (int stride = 1;; stride *= 2)
    for (const int bits : {24, 20, 17, 15, 13, 12}) {
      if (stride > 1 && bits > 13) continue;
      packed = pack_at(columns, bits, stride);
      if (packed.numbers.size() <= budget || stride >= (1 << 20)) return packed;
    }
}

}  // namespace odecast
