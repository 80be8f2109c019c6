#include "odecast/report/detail/page_data.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

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

/// Adaptive binary range coder, as in LZMA: a probability of 11 bits for every kind of decision,
/// moved by 1/32 of what is left with every one made.
class RangeCoder {
 public:
  using Probability = std::uint16_t;
  static constexpr Probability kEven = 1024;

  void code(Probability& zero, bool bit) {
    const std::uint32_t bound = (range_ >> 11) * zero;
    if (bit) {
      low_ += bound;
      range_ -= bound;
      zero = static_cast<Probability>(zero - (zero >> 5));
    } else {
      range_ = bound;
      zero = static_cast<Probability>(zero + ((2048 - zero) >> 5));
    }
    while (range_ < 1u << 24) shift();
  }
  void code_plain(std::uint64_t value, int bits) {
    while (bits-- > 0) {
      range_ >>= 1;
      if (value >> bits & 1) low_ += range_;
      while (range_ < 1u << 24) shift();
    }
  }
  std::string finish() {
    for (int i = 0; i < 5; ++i) shift_low();
    return std::move(bytes_);
  }

 private:
  void shift() {
    range_ <<= 8;
    shift_low();
  }
  /// Bytes wait while a carry may still change them.
  void shift_low() {
    if (low_ < 0xff000000u || low_ > 0xffffffffu) {
      const auto carry = static_cast<unsigned char>(low_ >> 32);
      for (; waiting_ > 0; --waiting_) {
        bytes_ += static_cast<char>(cache_ + carry);
        cache_ = 0xff;
      }
      cache_ = static_cast<unsigned char>(low_ >> 24 & 0xff);
    }
    ++waiting_;
    low_ = (low_ & 0x00ffffff) << 8;
  }

  std::uint64_t low_ = 0;
  std::uint32_t range_ = 0xffffffff;
  unsigned char cache_ = 0;
  std::uint64_t waiting_ = 1;
  std::string bytes_;
};

/// A column: the width of each number in bits in unary, given the widths of the two before it; its
/// two bits below the leading one; the rest as it is.
void code_numbers(RangeCoder& coder, const Whole& numbers) {
  constexpr int kContexts = 25;
  std::array<std::array<RangeCoder::Probability, 65>, kContexts> width_model;
  std::array<std::array<RangeCoder::Probability, 4>, 65> bit_model;
  for (auto& row : width_model) row.fill(RangeCoder::kEven);
  for (auto& row : bit_model) row.fill(RangeCoder::kEven);
  int before = 0, before_that = 0;
  for (const std::int64_t n : numbers) {
    const std::uint64_t u = zigzag(n);
    const int width = static_cast<int>(std::bit_width(u));
    auto& model =
        width_model[static_cast<std::size_t>(std::min(kContexts - 1, before + before_that))];
    for (int k = 0; k < 64 && k <= width; ++k)
      coder.code(model[static_cast<std::size_t>(k)], k < width);
    std::size_t node = 1;
    int left = width - 1;
    for (; left > 0 && node < 4; --left) {
      const bool bit = u >> (left - 1) & 1;
      coder.code(bit_model[static_cast<std::size_t>(width)][node], bit);
      node = 2 * node + bit;
    }
    if (left > 0) coder.code_plain(u & ((std::uint64_t{1} << left) - 1), left);
    before_that = before;
    before = width;
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

/// Visits every place once, coarse to fine: place, the two known neighbours at `stride`, and
/// whether the two at three strides exist. page.js goes the same way.
template <typename Visit>
void refine(std::size_t n, const Visit& visit) {
  std::size_t top = 1;
  while (top < n) top *= 2;
  for (std::size_t stride = top / 2; stride > 0; stride /= 2)
    for (std::size_t i = stride; i < n; i += 2 * stride) visit(i, stride);
}

/// From the values known so far: cubic where four are, else the mean of two, else the one before.
std::int64_t predicted(const Whole& known, std::size_t i, std::size_t stride) {
  const std::int64_t left = known[i - stride];
  if (i + stride >= known.size()) return left;
  const std::int64_t right = known[i + stride];
  if (i < 3 * stride || i + 3 * stride >= known.size()) return (left + right + 1) >> 1;
  return (9 * (left + right) - known[i - 3 * stride] - known[i + 3 * stride] + 8) >> 4;
}

constexpr std::int64_t kBin = 8;  ///< steps

/// Rounded to decimals; false where that cannot be: no range, or numbers too large for it.
bool add_decimals(const std::vector<double>& values, int bits, RangeCoder& coder, Json& header) {
  double lo = std::numeric_limits<double>::infinity(), hi = -lo;
  for (const double v : values)
    if (std::isfinite(v)) lo = std::min(lo, v), hi = std::max(hi, v);
  if (!(lo < hi) || !std::isfinite(hi - lo)) return false;
  const double finest = (hi - lo) / std::pow(2.0, bits) / (kBin / 2.0);
  if (!(finest > 1e-290)) return false;
  const DecimalStep step = decimal_step(finest);
  if (std::abs(step.decimals) > 22 || std::max(std::abs(lo), std::abs(hi)) / step.step() > 1e13)
    return false;

  Json gaps = Json::array();   // [first, count, kind]: kind 0 NaN, 1 and -1 infinities
  std::vector<double> target;  // in steps; gaps go on with the value before
  double last = lo / step.step();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double v = values[i];
    if (std::isfinite(v)) {
      last = v / step.step();
    } else {
      const int kind = std::isnan(v) ? 0 : v > 0 ? 1 : -1;
      if (!gaps.empty() &&
          gaps.back()[0].get<std::size_t>() + gaps.back()[1].get<std::size_t>() == i &&
          gaps.back()[2] == kind)
        gaps.back()[1] = gaps.back()[1].get<std::size_t>() + 1;
      else
        gaps.push_back({i, 1, kind});
    }
    target.push_back(last);
  }
  Whole known(values.size()), residuals;
  const auto add = [&](std::size_t i, std::int64_t guess) {
    const std::int64_t bins = std::llround((target[i] - static_cast<double>(guess)) / kBin);
    residuals.push_back(bins);
    known[i] = guess + kBin * bins;
  };
  add(0, 0);
  refine(values.size(),
         [&](std::size_t i, std::size_t stride) { add(i, predicted(known, i, stride)); });
  header["m"] = step.multiple;
  header["d"] = step.decimals;
  if (!gaps.empty()) header["gaps"] = gaps;
  code_numbers(coder, residuals);
  return true;
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
  RangeCoder coder;
  Json headers = Json::array();
  for (const PageColumn& c : columns) {
    const std::vector<double> values = thinned(c.values, stride);
    Json header = {{"n", values.size()}};
    if (values.size() != c.values.size()) header["of"] = c.values.size();
    if (bits > 0 && c.centre >= 0 && c.rounding != Rounding::none) {
      header["mirror"] = {c.centre, c.other};
      headers.push_back(std::move(header));
      continue;
    }
    const bool rounded =
        bits > 0 && c.rounding == Rounding::decimals && add_decimals(values, bits, coder, header);
    if (!rounded) {
      const int shift =
          bits > 0 && c.rounding == Rounding::significant ? std::max(0, 52 - bits) : 0;
      Whole numbers;
      for (const double v : values) {
        const std::int64_t n = ordered_bits(v);
        const std::int64_t half =
            shift > 0 && std::isfinite(v) ? std::int64_t{1} << (shift - 1) : 0;
        numbers.push_back((n + half) >> shift);
      }
      int order = 0;
      const Whole best = shortest_differences(numbers, order);
      header["shift"] = shift;
      header["order"] = order;
      code_numbers(coder, best);
    }
    headers.push_back(std::move(header));
  }
  PackedColumns packed;
  packed.header = headers.dump();
  packed.numbers = base64(coder.finish());
  packed.bits = bits;
  packed.stride = stride;
  return packed;
}

}  // namespace

int ColumnPool::add(std::vector<double> values, Rounding rounding) {
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
  columns_.push_back({.values = std::move(values), .rounding = rounding});
  return place;
}

int ColumnPool::add_upper(std::vector<double> values, Rounding rounding,
                          const std::vector<int>& centres, int lower) {
  const int place = add(std::move(values), rounding);
  PageColumn& upper = columns_[static_cast<std::size_t>(place)];
  const std::vector<double>& low = columns_[static_cast<std::size_t>(lower)].values;
  for (const int centre : centres) {
    const std::vector<double>& middle = columns_[static_cast<std::size_t>(centre)].values;
    bool mirrored = centre < place && lower < place && middle.size() == upper.values.size() &&
                    low.size() == upper.values.size();
    for (std::size_t i = 0; i < middle.size() && mirrored; ++i) {
      const double off = std::abs(low[i] + upper.values[i] - 2 * middle[i]);
      mirrored =
          off <= 1e-12 * (std::abs(low[i]) + std::abs(upper.values[i]) + std::abs(middle[i]));
    }
    if (!mirrored) continue;
    upper.centre = centre;
    upper.other = lower;
    break;
  }
  return place;
}

PackedColumns pack(const std::vector<PageColumn>& columns, std::size_t budget) {
  std::size_t values = 0;
  for (const PageColumn& c : columns) values += c.values.size();
  // Exact values of a measured or computed column take five bytes each or more, base 64 included.
  if (values < budget / 4)
    if (PackedColumns exact = pack_at(columns, 0, 1); exact.numbers.size() <= budget) return exact;
  for (int stride = 1;; stride *= 2)
    for (int bits = stride == 1 ? 26 : 10; bits >= 9;) {
      PackedColumns packed = pack_at(columns, bits, stride);
      if (packed.numbers.size() <= budget || stride >= 1 << 20) return packed;
      // A bit less saves a sixth of a character per value at most.
      const double excess = static_cast<double>(packed.numbers.size() - budget) * stride;
      bits -= std::max(1, static_cast<int>(5 * excess / static_cast<double>(values)));
    }
}

}  // namespace odecast
