// A small blocked matrix product, for the elastance's linear map and its gradients.
#pragma once

#include "simd.h"

namespace {

template <class T, int R, int N>
LRCNET_INLINE void matmul_block(const T* a, index_t a_row, index_t a_col, const T* b, index_t b_row, index_t depth,
                                const T* from, index_t from_row, T* c, index_t c_row) {
  constexpr index_t W = kLanes<T>;
  Vec<T> sum[R][N] = {};
  for (index_t k = 0; k < depth; ++k)
    for (int n = 0; n < N; ++n) {
      const Vec<T> right = load(b + k * b_row + n * W);
      for (int r = 0; r < R; ++r) sum[r][n] += right * a[r * a_row + k * a_col];
    }
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n) store(c + r * c_row + n * W, load(from + r * from_row + n * W) + sum[r][n]);
}

template <class T, int R, int N>
LRCNET_INLINE void matmul_block(const T* a, index_t a_row, index_t a_col, const T* b, index_t b_row, index_t depth,
                                T* c, index_t c_row) {
  matmul_block<T, R, N>(a, a_row, a_col, b, b_row, depth, c, c_row, c, c_row);
}

template <class T, int R>
LRCNET_INLINE void matmul_strip(const T* a, index_t a_row, index_t a_col, const T* b, index_t b_row, index_t depth,
                                const T* from, index_t from_row, T* c, index_t c_row, index_t vectors) {
  constexpr index_t W = kLanes<T>;
  index_t v = 0;
  const auto run = [&](auto several) {
    constexpr int N = decltype(several)::value;
    matmul_block<T, R, N>(a, a_row, a_col, b + v * W, b_row, depth, from + v * W, from_row, c + v * W, c_row);
    v += N;
  };
  if (kShared >= 4)  // with 16 registers the sums of four vectors would spill
    while (v + 4 <= vectors) run(Count<4>{});
  while (v + 2 <= vectors) run(Count<2>{});
  if (v < vectors) run(Count<1>{});
}

// c (rows, vectors of columns) = from + a (rows, depth; any strides) b (depth, columns); from_row is 0 if all rows start
// from the same numbers.
template <class T>
void matmul(const T* a, index_t a_row, index_t a_col, index_t rows, const T* b, index_t b_row, index_t depth,
            const T* from, index_t from_row, T* c, index_t c_row, index_t vectors) {
  index_t r = 0;
  const auto run = [&](auto several) {
    constexpr int R = decltype(several)::value;
    matmul_strip<T, R>(a + r * a_row, a_row, a_col, b, b_row, depth, from + r * from_row, from_row, c + r * c_row, c_row,
                       vectors);
    r += R;
  };
  while (r + 4 <= rows) run(Count<4>{});
  while (r < rows) run(Count<1>{});
}

// c += a b.
template <class T>
void matmul_add(const T* a, index_t a_row, index_t a_col, index_t rows, const T* b, index_t b_row, index_t depth, T* c,
                index_t c_row, index_t vectors) {
  matmul(a, a_row, a_col, rows, b, b_row, depth, c, c_row, c, c_row, vectors);
}

}  // namespace
