// A small blocked matrix product, for the elastance's linear map and its gradients.
#pragma once

#include "simd.h"

namespace {

template <class T, int R, int N>
LRCNET_INLINE void matmul_block(const T* a, index_t a_row, index_t a_col, const T* b, index_t b_row, index_t depth,
                                T* c, index_t c_row) {
  constexpr index_t W = kLanes<T>;
  Vec<T> sum[R][N] = {};
  for (index_t k = 0; k < depth; ++k)
    for (int n = 0; n < N; ++n) {
      const Vec<T> right = load(b + k * b_row + n * W);
      for (int r = 0; r < R; ++r) sum[r][n] += right * a[r * a_row + k * a_col];
    }
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n) store(c + r * c_row + n * W, load(c + r * c_row + n * W) + sum[r][n]);
}

template <class T, int R>
LRCNET_INLINE void matmul_strip(const T* a, index_t a_row, index_t a_col, const T* b, index_t b_row, index_t depth,
                                T* c, index_t c_row, index_t vectors) {
  constexpr index_t W = kLanes<T>;
  index_t v = 0;
  if (kShared >= 4)  // with 16 registers the sums of four vectors would spill
    for (; v + 4 <= vectors; v += 4) matmul_block<T, R, 4>(a, a_row, a_col, b + v * W, b_row, depth, c + v * W, c_row);
  for (; v + 2 <= vectors; v += 2) matmul_block<T, R, 2>(a, a_row, a_col, b + v * W, b_row, depth, c + v * W, c_row);
  if (v < vectors) matmul_block<T, R, 1>(a, a_row, a_col, b + v * W, b_row, depth, c + v * W, c_row);
}

// c (rows, vectors of columns) += a (rows, depth; any strides) b (depth, columns).
template <class T>
void matmul_add(const T* a, index_t a_row, index_t a_col, index_t rows, const T* b, index_t b_row, index_t depth, T* c,
                index_t c_row, index_t vectors) {
  index_t r = 0;
  for (; r + 4 <= rows; r += 4)
    matmul_strip<T, 4>(a + r * a_row, a_row, a_col, b, b_row, depth, c + r * c_row, c_row, vectors);
  for (; r < rows; ++r) matmul_strip<T, 1>(a + r * a_row, a_row, a_col, b, b_row, depth, c + r * c_row, c_row, vectors);
}

}  // namespace
