// The loops over time of a CfC: what lrcnet/cells/cfc_sequence.py does in a loop of torch operations, sample by sample.
// Every width is a multiple of a vector. Rows of one sample lie together; sums are (T, B, width), half states
// (T + 1, B, m). A task carries its samples through all steps.
#pragma once

#include "math.h"
#include "matmul.h"
#include "simd.h"

namespace {

using lrcnet::CfC;

// c (rows, columns) += a (rows, depth) b (depth, columns), all contiguous. A strip of b stays in the nearest cache
// while all rows pass it.
template <class T>
void multiply_add(const T* a, index_t rows, const T* b, index_t depth, T* c, index_t columns) {
  constexpr index_t W = kLanes<T>;
  for (index_t v = 0; v < columns; v += 2 * W) {
    const bool pair = v + 2 * W <= columns;
    index_t r = 0;
    for (; r + 4 <= rows; r += 4)
      if (pair)
        matmul_block<T, 4, 2>(a + r * depth, depth, 1, b + v, columns, depth, c + r * columns + v, columns);
      else
        matmul_block<T, 4, 1>(a + r * depth, depth, 1, b + v, columns, depth, c + r * columns + v, columns);
    for (; r < rows; ++r)
      if (pair)
        matmul_block<T, 1, 2>(a + r * depth, depth, 1, b + v, columns, depth, c + r * columns + v, columns);
      else
        matmul_block<T, 1, 1>(a + r * depth, depth, 1, b + v, columns, depth, c + r * columns + v, columns);
  }
}

// tanh(z) / 2, given 2 z.
template <class T>
LRCNET_INLINE Vec<T> half_tanh(Vec<T> doubled) {
  return T(0.5) * hyperbolic_tangent<T>(T(0.5) * doubled, sigmoid<T>(-absolute<T>(doubled)));
}

template <class T>
struct CfCLoops {
  const CfC& call;
  static constexpr index_t W = kLanes<T>;
  static constexpr index_t kSteps = 16;  // between two looks for signals

  T* sums(int layer, index_t t, index_t row) const {
    return static_cast<T*>(call.sums[layer]) + (t * call.B + row) * call.widths[layer];
  }
  T* half_states(index_t t, index_t row) const {
    return static_cast<T*>(call.half_states) + (t * call.B + row) * call.m;
  }
  T* of_sums(int layer, index_t t, index_t row) const {
    return static_cast<T*>(call.of_sums[layer]) + (t * call.B + row) * call.widths[layer];
  }
  T gap(index_t t, index_t row) const { return static_cast<const T*>(call.dt)[t * call.B + row]; }

  void forward(index_t first, index_t rows) const {
    const int last = call.layers - 1;
    for (index_t t = 0; t < call.T; ++t) {
      if (t % kSteps == 0 && call.interrupted()) return;
      multiply_add(half_states(t, first), rows, static_cast<const T*>(call.weights[0]), call.m, sums(0, t, first),
                   call.widths[0]);
      for (int layer = 0; layer < last; ++layer) {
        T *z = sums(layer, t, first), *result = sums(layer + 1, t, first);
        const index_t width = call.widths[layer], columns = call.widths[layer + 1];
        for (index_t i = 0; i < rows * width; i += W) store(z + i, half_tanh<T>(load(z + i)));
        const T* offset = static_cast<const T*>(call.offsets[layer + 1]);
        for (index_t r = 0; r < rows; ++r)
          for (index_t i = 0; i < columns; i += W)
            store(result + r * columns + i, offset ? load(offset + i) : Vec<T>{});
        multiply_add(z, rows, static_cast<const T*>(call.weights[layer + 1]), width, result, columns);
      }
      for (index_t r = first; r < first + rows; ++r) finish(sums(last, t, r), half_states(t + 1, r), t, r);
    }
  }

  // From the heads of one sample to half its state.
  void finish(T* heads, T* half_state, index_t t, index_t row) const {
    const index_t m = call.m;
    for (index_t i = 0; i < m; i += W) {
      Vec<T> argument = load(heads + 2 * m + i);
      if (call.dt) argument += load(heads + 3 * m + i) * gap(t, row);
      const Vec<T> start = half_tanh<T>(load(heads + i)), end = half_tanh<T>(load(heads + m + i)),
                   gate = sigmoid<T>(argument);
      // sigma(2 z) = 1/2 + tanh(z) / 2.
      store(heads + i, start + T(0.5)), store(heads + m + i, end + T(0.5)), store(heads + 2 * m + i, gate);
      store(half_state + i, start + gate * (call.mixed ? end - start : end));
    }
  }

  void backward(index_t first, index_t rows) const {
    const int last = call.layers - 1;
    const index_t m = call.m;
    T* g = static_cast<T*>(call.of_start) + first * m;
    for (index_t t = call.T - 1; t >= 0; --t) {
      if (t % kSteps == 0 && call.interrupted()) return;
      for (index_t r = 0; r < rows; ++r) {
        const T* given = static_cast<const T*>(call.of_states) + t * call.of_time + (first + r) * call.of_batch;
        for (index_t i = 0; i < m; i += W) store(g + r * m + i, load(g + r * m + i) + load(given + i));
        spread(g + r * m, sums(last, t, first + r), of_sums(last, t, first + r), t, first + r);
      }
      for (int layer = last - 1; layer >= 0; --layer) {
        const index_t width = call.widths[layer];
        T* to = of_sums(layer, t, first);
        const T* a = sums(layer, t, first);
        std::memset(to, 0, static_cast<std::size_t>(rows * width) * sizeof(T));
        multiply_add(of_sums(layer + 1, t, first), rows, static_cast<const T*>(call.weights[layer + 1]),
                     call.widths[layer + 1], to, width);
        // 1 - tanh^2, with half of the tanh kept.
        for (index_t i = 0; i < rows * width; i += W) {
          const Vec<T> half = load(a + i);
          store(to + i, load(to + i) * (T(1) - T(4) * half * half));
        }
      }
      std::memset(g, 0, static_cast<std::size_t>(rows * m) * sizeof(T));
      multiply_add(of_sums(0, t, first), rows, static_cast<const T*>(call.weights[0]), call.widths[0], g, m);
    }
  }

  // From the gradient of one sample's state to those of its heads: p (1 - p) is the slope of a sigmoid.
  void spread(const T* g, const T* heads, T* to, index_t t, index_t row) const {
    const index_t m = call.m;
    for (index_t i = 0; i < m; i += W) {
      const Vec<T> start = load(heads + i), end = load(heads + m + i), gate = load(heads + 2 * m + i);
      const Vec<T> given = load(g + i), shut = T(1) - gate, slope = given * T(4) * start * (T(1) - start);
      store(to + i, call.mixed ? slope * shut : slope);
      store(to + m + i, given * T(4) * gate * end * (T(1) - end));
      const Vec<T> change = call.mixed ? end - start : end - T(0.5);
      const Vec<T> of_gate = given * T(2) * change * gate * shut;
      store(to + 2 * m + i, of_gate);
      if (call.dt) store(to + 3 * m + i, of_gate * gap(t, row));
    }
  }
};

// Task `index` of a call: a share of the samples.
template <class T>
void cfc_task(void* context, int index) {
  const CfC& call = *static_cast<const CfC*>(context);
  const index_t first = call.B * index / call.threads, end = call.B * (index + 1) / call.threads;
  const CfCLoops<T> loops{call};
  if (call.of_states)
    loops.backward(first, end - first);
  else
    loops.forward(first, end - first);
}

}  // namespace
