// A matrix product whose sums stay in registers: for products that are large enough to run at the processor's peak.
#pragma once

#include "simd.h"

namespace {

// A tile of sums, as many as there are registers for beside a row of the right factor and a number of the left one.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kTileRows = 6, kTileVectors = 4;
#else
constexpr int kTileRows = 6, kTileVectors = 2;
#endif

// Numbers at any two strides; a stride of 0 repeats them.
template <class T>
struct Strided {
  T* at;
  index_t row, column;

  Strided from(index_t r, index_t c) const { return {at + r * row + c * column, row, column}; }
};

// to = start + left right, for R rows and N vectors of columns; the columns of all but `left` lie side by side.
template <class T, int R, int N>
LRCNET_INLINE void multiply_tile(Strided<const T> left, Strided<const T> right, index_t depth, Strided<const T> start,
                                 Strided<T> to) {
  constexpr index_t W = kLanes<T>;
  Vec<T> sum[R][N];
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n) sum[r][n] = load(start.at + r * start.row + n * W);
  const T *number = left.at, *row = right.at;
  for (index_t k = 0; k < depth; ++k, number += left.column, row += right.row) {
    Vec<T> b[N];
    for (int n = 0; n < N; ++n) b[n] = load(row + n * W);
    for (int r = 0; r < R; ++r) {
      const Vec<T> a = splat(number[r * left.row]);
      for (int n = 0; n < N; ++n) sum[r][n] += a * b[n];
    }
  }
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n) store(to.at + r * to.row + n * W, sum[r][n]);
}

// All rows of N vectors of columns.
template <class T, int N, int R = kTileRows>
void multiply_columns(Strided<const T> left, index_t rows, Strided<const T> right, index_t depth,
                      Strided<const T> start, Strided<T> to) {
  index_t r = 0;
  for (; r + R <= rows; r += R)
    multiply_tile<T, R, N>(left.from(r, 0), right, depth, start.from(r, 0), to.from(r, 0));
  if constexpr (R > 1)
    if (r < rows)
      multiply_columns<T, N, R - 1>(left.from(r, 0), rows - r, right, depth, start.from(r, 0), to.from(r, 0));
}

// to = start + left right: rows by depth times depth by whole vectors of columns. `start` may be `to`.
template <class T, int N = kTileVectors>
void multiply(Strided<const T> left, index_t rows, Strided<const T> right, index_t depth, index_t columns,
              Strided<const T> start, Strided<T> to) {
  constexpr index_t step = N * kLanes<T>;
  index_t c = 0;
  for (; c + step <= columns; c += step)
    multiply_columns<T, N>(left, rows, right.from(0, c), depth, start.from(0, c), to.from(0, c));
  if constexpr (N > 1)
    if (c < columns)
      multiply<T, N / 2>(left, rows, right.from(0, c), depth, columns - c, start.from(0, c), to.from(0, c));
}

}  // namespace
