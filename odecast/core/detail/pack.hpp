#pragma once

// Eight doubles side by side, for the inner loops. This header is included by the kernel sources,
// which are compiled once per instruction set, and by random.cpp for what it has for one `double`;
// everything is in an unnamed namespace so that no function compiled for one instruction set can be
// taken by the linker for another.
//
// A Pack always has eight lanes, on SSE2 as four native vectors, on AVX2 as two, on AVX-512 as one.
// Sums over lanes therefore have the same order everywhere. Compilers may not contract a b + c on
// their own (-ffp-contract=off), as each would choose other places; where a kernel says fused(),
// the product is rounded once on every instruction set. So all of them give the same bits.
//
// The functions below exist for `double` too, as a pack of one lane with `bool` for its mask: an
// algorithm written with them serves a single trajectory and eight.

#include <immintrin.h>

#include <cstdint>

namespace odecast {
namespace {

#if defined(__AVX512F__)
typedef double NativeDouble __attribute__((vector_size(64)));
typedef std::int64_t NativeInt __attribute__((vector_size(64)));
constexpr int kNativeLanes = 8;
#elif defined(__AVX2__)
typedef double NativeDouble __attribute__((vector_size(32)));
typedef std::int64_t NativeInt __attribute__((vector_size(32)));
constexpr int kNativeLanes = 4;
#else
typedef double NativeDouble __attribute__((vector_size(16)));
typedef std::int64_t NativeInt __attribute__((vector_size(16)));
constexpr int kNativeLanes = 2;
#endif

constexpr int kLanes = 8;
constexpr int kParts = kLanes / kNativeLanes;

#define ODECAST_INLINE inline __attribute__((always_inline))
#define ODECAST_EACH_PART for (int part = 0; part < kParts; ++part)

struct Mask {
  NativeInt v[kParts];
};

struct Pack {
  NativeDouble v[kParts];
  Pack() = default;
  ODECAST_INLINE Pack(double x) { ODECAST_EACH_PART v[part] = x - NativeDouble{}; }
};

#define ODECAST_PACK_OPERATOR(op)                          \
  ODECAST_INLINE Pack operator op(Pack a, const Pack& b) { \
    ODECAST_EACH_PART a.v[part] = a.v[part] op b.v[part];  \
    return a;                                              \
  }
ODECAST_PACK_OPERATOR(+)
ODECAST_PACK_OPERATOR(-)
ODECAST_PACK_OPERATOR(*)
ODECAST_PACK_OPERATOR(/)
#undef ODECAST_PACK_OPERATOR

ODECAST_INLINE Pack operator-(Pack a) {
  ODECAST_EACH_PART a.v[part] = -a.v[part];
  return a;
}

/// a b + c rounded once. SSE2 has no such instruction and calls the maths library for each lane,
/// which is exact too but several times slower.
ODECAST_INLINE Pack fused(const Pack& a, const Pack& b, Pack c) {
  ODECAST_EACH_PART {
#if defined(__AVX512F__)
    c.v[part] =
        (NativeDouble)_mm512_fmadd_pd((__m512d)a.v[part], (__m512d)b.v[part], (__m512d)c.v[part]);
#elif defined(__FMA__)
    c.v[part] =
        (NativeDouble)_mm256_fmadd_pd((__m256d)a.v[part], (__m256d)b.v[part], (__m256d)c.v[part]);
#else
    for (int i = 0; i < kNativeLanes; ++i)
      c.v[part][i] = __builtin_fma(a.v[part][i], b.v[part][i], c.v[part][i]);
#endif
  }
  return c;
}

#define ODECAST_PACK_COMPARISON(op)                               \
  ODECAST_INLINE Mask operator op(const Pack& a, const Pack& b) { \
    Mask m;                                                       \
    ODECAST_EACH_PART m.v[part] = a.v[part] op b.v[part];         \
    return m;                                                     \
  }
ODECAST_PACK_COMPARISON(<)
ODECAST_PACK_COMPARISON(<=)
ODECAST_PACK_COMPARISON(>)
ODECAST_PACK_COMPARISON(==)
#undef ODECAST_PACK_COMPARISON

ODECAST_INLINE Mask operator&(Mask a, const Mask& b) {
  ODECAST_EACH_PART a.v[part] &= b.v[part];
  return a;
}

/// Lane by lane: m ? a : b.
ODECAST_INLINE Pack select(const Mask& m, const Pack& a, const Pack& b) {
  Pack r;
  ODECAST_EACH_PART r.v[part] = m.v[part] ? a.v[part] : b.v[part];
  return r;
}
ODECAST_INLINE double select(bool m, double a, double b) { return m ? a : b; }

/// a where m, zero elsewhere.
ODECAST_INLINE Pack keep(const Mask& m, Pack a) {
  ODECAST_EACH_PART a.v[part] = (NativeDouble)((NativeInt)a.v[part] & m.v[part]);
  return a;
}

ODECAST_INLINE Pack absolute(Pack a) {
  ODECAST_EACH_PART a.v[part] = (NativeDouble)((NativeInt)a.v[part] & INT64_MAX);
  return a;
}
ODECAST_INLINE double absolute(double a) { return __builtin_fabs(a); }

/// Correctly rounded, as everything here.
ODECAST_INLINE Pack square_root(Pack a) {
  ODECAST_EACH_PART for (int i = 0; i < kNativeLanes; ++i) a.v[part][i] =
      __builtin_sqrt(a.v[part][i]);
  return a;
}
ODECAST_INLINE double square_root(double a) { return __builtin_sqrt(a); }

/// The second operand where they are unordered (a NaN in either).
template <class Real>
ODECAST_INLINE Real larger(const Real& a, const Real& b) {
  return select(a > b, a, b);
}
template <class Real>
ODECAST_INLINE Real smaller(const Real& a, const Real& b) {
  return select(a < b, a, b);
}

/// |next double above t - t|.
ODECAST_INLINE Pack spacing(const Pack& t) {
  Pack r;
  ODECAST_EACH_PART {
    const NativeInt bits = (NativeInt)t.v[part];
    const NativeInt next = bits + (t.v[part] >= 0 ? NativeInt{} + 1 : NativeInt{} - 1);
    r.v[part] = (NativeDouble)next - t.v[part];
  }
  return r;
}
ODECAST_INLINE double spacing(double t) { return __builtin_nextafter(t, __builtin_inf()) - t; }

ODECAST_INLINE double lane(const Pack& a, int i) { return a.v[i / kNativeLanes][i % kNativeLanes]; }
ODECAST_INLINE double lane(double a, int) { return a; }
ODECAST_INLINE void set_lane(Pack& a, int i, double x) {
  a.v[i / kNativeLanes][i % kNativeLanes] = x;
}
ODECAST_INLINE void set_lane(double& a, int, double x) { a = x; }

/// Bit i is set where lane i of the mask is.
ODECAST_INLINE unsigned bits_of(const Mask& m) {
  unsigned bits = 0;
  ODECAST_EACH_PART {
#if defined(__AVX512F__)
    const auto signs = static_cast<unsigned>(_mm512_movepi64_mask((__m512i)m.v[part]));
#elif defined(__AVX2__)
    const auto signs = static_cast<unsigned>(_mm256_movemask_pd((__m256d)m.v[part]));
#else
    const auto signs = static_cast<unsigned>(_mm_movemask_pd((__m128d)m.v[part]));
#endif
    bits |= signs << (part * kNativeLanes);
  }
  return bits;
}
ODECAST_INLINE unsigned bits_of(bool m) { return m ? 1u : 0u; }

ODECAST_INLINE Mask mask_from_bits(unsigned bits) {
  Mask m;
  ODECAST_EACH_PART {
    NativeInt one;
    for (int i = 0; i < kNativeLanes; ++i) one[i] = std::int64_t{1} << (part * kNativeLanes + i);
    m.v[part] = ((NativeInt{} + static_cast<std::int64_t>(bits)) & one) != 0;
  }
  return m;
}

/// a where bit i of `bits` is set, zero elsewhere.
ODECAST_INLINE Pack keep_bits(unsigned bits, const Pack& a) {
#if defined(__AVX512F__)
  Pack r;
  r.v[0] = (NativeDouble)_mm512_maskz_mov_pd(static_cast<__mmask8>(bits), (__m512d)a.v[0]);
  return r;
#else
  return keep(mask_from_bits(bits), a);
#endif
}

/// Eight 32-bit numbers, each in the low half of a 64-bit lane; the high halves are not defined.
struct Words {
  NativeInt v[kParts];
};
ODECAST_INLINE NativeInt shift_right(const NativeInt& a, int bits) {
  typedef std::uint64_t Unsigned __attribute__((vector_size(sizeof(NativeInt))));
  return (NativeInt)((Unsigned)a >> bits);
}
/// Whole numbers from 0 to 2^52 - 1 as doubles: in the last bits of 2^52, which is taken off.
ODECAST_INLINE NativeDouble number_from_word(const NativeInt& a) {
  return (NativeDouble)(a | 0x4330000000000000) - 0x1p52;
}
/// x = m 2^e with m in [1/2, 1), for a positive normal number.
ODECAST_INLINE void split(double x, double& m, double& e) {
  std::uint64_t bits;
  __builtin_memcpy(&bits, &x, sizeof(x));
  e = static_cast<double>(static_cast<int>(bits >> 52) - 1022);
  bits = (bits & 0x000fffffffffffff) | 0x3fe0000000000000;
  __builtin_memcpy(&m, &bits, sizeof(m));
}
ODECAST_INLINE void split(const Pack& x, Pack& m, Pack& e) {
  ODECAST_EACH_PART {
    const NativeInt bits = (NativeInt)x.v[part];
    e.v[part] = number_from_word(shift_right(bits, 52)) - 1022;
    m.v[part] = (NativeDouble)((bits & 0x000fffffffffffff) | 0x3fe0000000000000);
  }
}

/// The 64-bit products of the low halves.
ODECAST_INLINE Words multiply(const Words& a, std::uint32_t b) {
  Words r;
  ODECAST_EACH_PART {
    const NativeInt factor = NativeInt{} + static_cast<std::int64_t>(b);
#if defined(__AVX512F__)
    r.v[part] = (NativeInt)_mm512_mul_epu32((__m512i)a.v[part], (__m512i)factor);
#elif defined(__AVX2__)
    r.v[part] = (NativeInt)_mm256_mul_epu32((__m256i)a.v[part], (__m256i)factor);
#else
    r.v[part] = (NativeInt)_mm_mul_epu32((__m128i)a.v[part], (__m128i)factor);
#endif
  }
  return r;
}

template <class Real>
constexpr int lanes_of() {
  return kLanes;
}
template <>
constexpr int lanes_of<double>() {
  return 1;
}

/// ((0+1)+(2+3)) + ((4+5)+(6+7)), the same on every instruction set.
ODECAST_INLINE double sum_of_lanes(const Pack& a) {
  double s[kLanes];
  for (int i = 0; i < kLanes; ++i) s[i] = lane(a, i);
  return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

}  // namespace
}  // namespace odecast
