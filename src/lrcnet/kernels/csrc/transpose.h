// Transposition of matrices, and the sums over the lanes of several vectors, in registers.
#pragma once

#include <utility>

#include "simd.h"

namespace {

// One stage of a transposition in registers: swaps the lanes of a with bit Half set for those of b without it.
template <class T, std::size_t Half, std::size_t... L>
LRCNET_INLINE void exchange(Vec<T>& a, Vec<T>& b, std::index_sequence<L...>) {
  constexpr std::size_t W = sizeof...(L);
#if defined(__clang__) || __GNUC__ >= 12
  const Vec<T> low = __builtin_shufflevector(a, b, (L & Half ? W + L - Half : L)...);
  const Vec<T> high = __builtin_shufflevector(a, b, (L & Half ? W + L : L + Half)...);
#else
  const Vec<T> low = __builtin_shuffle(a, b, IVec<T>{(L & Half ? W + L - Half : L)...});
  const Vec<T> high = __builtin_shuffle(a, b, IVec<T>{(L & Half ? W + L : L + Half)...});
#endif
  a = low, b = high;
}

template <class T, std::size_t Half>
LRCNET_INLINE void transpose_lanes(Vec<T>* rows) {
  constexpr std::size_t W = static_cast<std::size_t>(kLanes<T>);
#pragma GCC unroll 16
  for (std::size_t r = 0; r < W; ++r)
    if (!(r & Half)) exchange<T, Half>(rows[r], rows[r + Half], std::make_index_sequence<W>{});
  if constexpr (Half > 1) transpose_lanes<T, Half / 2>(rows);
}

// to[c][r] (+)= from[r][c]. Reads whole vectors of columns and, where `from` has fewer rows, zeros; writes `columns`
// rows, each a whole number of vectors.
template <class T, bool Add = false>
void transpose(const T* from, index_t from_stride, index_t rows, index_t columns, T* to, index_t to_stride) {
  constexpr index_t W = kLanes<T>;
  for (index_t r = 0; r < rows; r += W)
    for (index_t c = 0; c < columns; c += W) {
      Vec<T> block[W];
      for (index_t i = 0; i < W; ++i) block[i] = r + i < rows ? load(from + (r + i) * from_stride + c) : Vec<T>{};
      transpose_lanes<T, static_cast<std::size_t>(W / 2)>(block);
      for (index_t i = 0; i < W && c + i < columns; ++i) {
        T* into = to + (c + i) * to_stride + r;
        store(into, Add ? load(into) + block[i] : block[i]);
      }
    }
}

// The sums a[l] + a[l + Half] in the lanes l without bit Half, b[l - Half] + b[l] in the others. Each lane stays where it
// is in one of the terms: choosing by lane costs less than moving.
template <class T, std::size_t Half, std::size_t... L>
LRCNET_INLINE Vec<T> sum_halves(Vec<T> a, Vec<T> b, std::index_sequence<L...>) {
  constexpr std::size_t W = sizeof...(L);
#if defined(__clang__) || __GNUC__ >= 12
  const Vec<T> here = __builtin_shufflevector(a, b, (L & Half ? W + L : L)...);
  const Vec<T> there = __builtin_shufflevector(a, b, (L & Half ? W + L - Half : L + Half)...);
#else
  const Vec<T> here = __builtin_shuffle(a, b, IVec<T>{(L & Half ? W + L : L)...});
  const Vec<T> there = __builtin_shuffle(a, b, IVec<T>{(L & Half ? W + L - Half : L + Half)...});
#endif
  return here + there;
}

// The sums over the lanes of W vectors, as the lanes of one; in the order of additions of sum_lanes.
template <class T, std::size_t Half = static_cast<std::size_t>(kLanes<T>) / 2>
LRCNET_INLINE Vec<T> sum_each(Vec<T>* vectors) {
  constexpr std::size_t W = static_cast<std::size_t>(kLanes<T>);
#pragma GCC unroll 16
  for (std::size_t r = 0; r < Half; ++r)
    vectors[r] = sum_halves<T, Half>(vectors[r], vectors[r + Half], std::make_index_sequence<W>{});
  if constexpr (Half > 1)
    return sum_each<T, Half / 2>(vectors);
  else
    return vectors[0];
}

}  // namespace
