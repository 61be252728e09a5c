// Vectors of one register's width, by the compiler's vector extensions. The same source is compiled once per
// instruction set; everything sits in an unnamed namespace so that the linker can never mix code of two instruction
// sets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#ifndef LRCNET_VECTOR_BYTES
#if defined(__AVX512F__)
#define LRCNET_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define LRCNET_VECTOR_BYTES 32
#else
#define LRCNET_VECTOR_BYTES 16
#endif
#endif

#define LRCNET_INLINE inline __attribute__((always_inline))

namespace {

using index_t = std::ptrdiff_t;

template <class T>
struct Lanes;

template <>
struct Lanes<float> {
  typedef float V __attribute__((vector_size(LRCNET_VECTOR_BYTES)));
  typedef std::int32_t I __attribute__((vector_size(LRCNET_VECTOR_BYTES)));
};

template <>
struct Lanes<double> {
  typedef double V __attribute__((vector_size(LRCNET_VECTOR_BYTES)));
  typedef std::int64_t I __attribute__((vector_size(LRCNET_VECTOR_BYTES)));
};

template <class T>
using Vec = typename Lanes<T>::V;
template <class T>
using IVec = typename Lanes<T>::I;

template <class T>
constexpr index_t kLanes = LRCNET_VECTOR_BYTES / static_cast<index_t>(sizeof(T));

// A compile-time count as an argument.
template <int N>
struct Count {
  static constexpr int value = N;
};

// Samples that share one load of a weight: as many as there are registers for their accumulators, beside the two
// sigmoids that are being computed. With 16 registers a third sample already spills.
#ifndef LRCNET_SHARED
#if defined(__AVX512F__) || defined(__aarch64__)
#define LRCNET_SHARED 6
#else
#define LRCNET_SHARED 2
#endif
#endif
constexpr int kShared = LRCNET_SHARED;

template <class T>
constexpr index_t padded(index_t count) {
  return (count + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
}

template <class T>
LRCNET_INLINE Vec<T> splat(T value) {
  return value - Vec<T>{};
}

template <class T>
LRCNET_INLINE Vec<T> load(const T* from) {
  Vec<T> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <class T>
LRCNET_INLINE void store(T* to, Vec<T> v) {
  std::memcpy(to, &v, sizeof v);
}

// The first `count` lanes, the rest zero; count may reach or pass a full vector.
template <class T>
LRCNET_INLINE Vec<T> load_part(const T* from, index_t count) {
  if (count >= kLanes<T>) return load(from);
  Vec<T> v = {};
  std::memcpy(&v, from, static_cast<std::size_t>(count) * sizeof(T));
  return v;
}

template <class T>
LRCNET_INLINE void store_part(T* to, Vec<T> v, index_t count) {
  if (count >= kLanes<T>)
    store(to, v);
  else
    std::memcpy(to, &v, static_cast<std::size_t>(count) * sizeof(T));
}

// All-ones lanes below `count`, to keep padding at exact zero.
template <class T>
LRCNET_INLINE IVec<T> lanes_below(index_t count) {
  IVec<T> lane = {};
  for (index_t l = 0; l < kLanes<T>; ++l) lane[l] = l < count ? -1 : 0;
  return lane;
}

template <class T>
LRCNET_INLINE Vec<T> masked(Vec<T> v, IVec<T> keep) {
  IVec<T> bits;
  std::memcpy(&bits, &v, sizeof v);
  bits &= keep;
  std::memcpy(&v, &bits, sizeof v);
  return v;
}

// Bit l is the l-th byte of a mask, each 0 or 1, for one lane each; lanes from `count` on have no mask and are 0.
template <class T>
LRCNET_INLINE std::uint32_t mask_bits(const unsigned char* from, index_t count) {
  constexpr index_t W = kLanes<T>, kWord = W < 8 ? W : 8;
  std::uint32_t bits = 0;
  if (count < W) {
    for (index_t l = 0; l < count; ++l) bits |= std::uint32_t{from[l]} << l;
    return bits;
  }
  for (index_t l = 0; l < W; l += kWord) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, from + l, kWord);
    // Byte i is moved to bit 56 + i, and the other products out of the way.
    bits |= static_cast<std::uint32_t>(bytes * 0x0102040810204080u >> 56) << l;
  }
  return bits;
}

// All-ones lanes whose bit is set.
template <class T>
LRCNET_INLINE IVec<T> lanes_of(std::uint32_t bits) {
  IVec<T> lane = {};
  for (index_t l = 0; l < kLanes<T>; ++l) lane[l] = 1 << l;
  return (lane & static_cast<std::int32_t>(bits)) != 0;
}

// sum + a b in lanes whose bit is set, sum in the others, whatever a and b are there.
template <class T>
LRCNET_INLINE Vec<T> add_where(std::uint32_t bits, Vec<T> sum, Vec<T> a, Vec<T> b) {
  return sum + masked<T>(a * b, lanes_of<T>(bits));
}

#if defined(__AVX512F__) && LRCNET_VECTOR_BYTES == 64
template <>
LRCNET_INLINE Vec<float> add_where<float>(std::uint32_t bits, Vec<float> sum, Vec<float> a, Vec<float> b) {
  return (Vec<float>)_mm512_mask3_fmadd_ps((__m512)a, (__m512)b, (__m512)sum, static_cast<__mmask16>(bits));
}
#endif

// All-ones lanes where the mask has a 1; lanes from `count` on are zero.
template <class T>
LRCNET_INLINE IVec<T> load_mask(const unsigned char* from, index_t count) {
  return lanes_of<T>(mask_bits<T>(from, count));
}

// Comparisons are written so that a NaN in `v` stays a NaN. So do x86's instructions, which return their second operand
// if one is NaN; compilers write two instructions for the comparison and the choice.
template <class T>
LRCNET_INLINE Vec<T> at_most(Vec<T> v, T bound) {
  const Vec<T> b = splat(bound);
  return b < v ? b : v;
}

template <class T>
LRCNET_INLINE Vec<T> at_least(Vec<T> v, T bound) {
  const Vec<T> b = splat(bound);
  return b > v ? b : v;
}

#if defined(__AVX512F__) && LRCNET_VECTOR_BYTES == 64
#define LRCNET_X86(name, a, b) _mm512_maskz_##name(-1, a, b)
#elif defined(__AVX2__) && LRCNET_VECTOR_BYTES == 32
#define LRCNET_X86(name, a, b) _mm256_##name(a, b)
#elif defined(__SSE2__) && LRCNET_VECTOR_BYTES == 16
#define LRCNET_X86(name, a, b) _mm_##name(a, b)
#endif

#if defined(LRCNET_X86)
template <>
LRCNET_INLINE Vec<float> at_most<float>(Vec<float> v, float bound) {
  return (Vec<float>)LRCNET_X86(min_ps, splat(bound), v);
}

template <>
LRCNET_INLINE Vec<float> at_least<float>(Vec<float> v, float bound) {
  return (Vec<float>)LRCNET_X86(max_ps, splat(bound), v);
}

template <>
LRCNET_INLINE Vec<double> at_most<double>(Vec<double> v, double bound) {
  return (Vec<double>)LRCNET_X86(min_pd, splat(bound), v);
}

template <>
LRCNET_INLINE Vec<double> at_least<double>(Vec<double> v, double bound) {
  return (Vec<double>)LRCNET_X86(max_pd, splat(bound), v);
}
#endif

template <class T>
LRCNET_INLINE T sum_lanes(Vec<T> v) {
  T part[kLanes<T>];
  std::memcpy(part, &v, sizeof v);
  for (index_t half = kLanes<T> / 2; half > 0; half /= 2)
    for (index_t l = 0; l < half; ++l) part[l] += part[l + half];
  return part[0];
}

// 1 / d for finite d >= 1. A division overlaps with the other work, unless the vector is so wide that an estimate (14
// bits) and a Newton step (28 bits) take less time. On a Zen 4 they do not.
template <class T>
LRCNET_INLINE Vec<T> reciprocal(Vec<T> d) {
  return T(1) / d;
}

// LRCNET_WIDE selects the arithmetic that pays with sixteen floats to a vector: that estimate, unless
// LRCNET_FAST_DIVISION is defined, and a table of 32 numbers in two registers.
#if defined(__AVX512F__) && LRCNET_VECTOR_BYTES == 64
#define LRCNET_WIDE
LRCNET_INLINE Vec<float> estimate(Vec<float> d) { return (Vec<float>)_mm512_maskz_rcp14_ps(0xffff, (__m512)d); }

LRCNET_INLINE IVec<float> look_up(const std::int32_t (&table)[32], IVec<float> index) {
  return (IVec<float>)_mm512_permutex2var_epi32(_mm512_loadu_si512(table), (__m512i)index,
                                                _mm512_loadu_si512(table + 16));
}
#elif defined(LRCNET_WIDE)
// The same fourteen bits from a division, so that tests can run this path on a machine without that instruction.
LRCNET_INLINE Vec<float> estimate(Vec<float> d) { return (Vec<float>)((IVec<float>)(1.0f / d) & ~0x1ff); }

// The entries at the lowest five bits of each index.
LRCNET_INLINE IVec<float> look_up(const std::int32_t (&table)[32], IVec<float> index) {
  IVec<float> entries;
  for (index_t l = 0; l < kLanes<float>; ++l) entries[l] = table[index[l] & 31];
  return entries;
}
#endif

#if defined(LRCNET_WIDE) && !defined(LRCNET_FAST_DIVISION)
template <>
LRCNET_INLINE Vec<float> reciprocal<float>(Vec<float> d) {
  const Vec<float> r = estimate(d);
  const Vec<float> left = 1.0f - d * r;
  return r + r * left;
}
#endif

}  // namespace
