// The loops over time of MGU and of the paper's GRU: what lrcnet/cells/gated_sequence.py does in a loop of torch
// operations. A task carries its samples through all steps; between steps their states are rows of whole vectors.
#pragma once

#include "math.h"
#include "product.h"
#include "simd.h"

namespace {

using lrcnet::Gated;

template <class T>
LRCNET_INLINE Vec<T> tanh_of(Vec<T> x) {
  return hyperbolic_tangent<T>(x, sigmoid<T>(T(-2) * absolute<T>(x)));
}

template <class T>
struct GatedLoops {
  static constexpr index_t W = kLanes<T>;
  static constexpr index_t kSteps = 16;  // between two looks for signals

  const Gated& call;
  const index_t first, rows, width = call.width, of_gates = call.gates * width;
  // Rows of the task's memory: states or their gradients, then a number for every gate, then two for every unit.
  T* const state = static_cast<T*>(call.scratch) + first * (call.gates + 3) * width;
  T* const gate = state + rows * width;
  T* const candidate = gate + rows * of_gates;
  T* const passed = candidate + rows * width;

  T* gates_of(index_t t, index_t r) const {
    return static_cast<T*>(call.gate_values) + (t * call.B + first + r) * call.gates * call.m;
  }
  T* candidates_of(index_t t, index_t r) const {
    return static_cast<T*>(call.candidates) + (t * call.B + first + r) * call.m;
  }
  const T* before(index_t t, index_t r) const {
    return static_cast<const T*>(call.before) + t * call.before_time + (first + r) * call.before_batch;
  }

  // to = left right, from `depth` numbers of a row to whole vectors.
  void multiply_rows(const T* left, index_t left_row, const T* right, index_t right_row, index_t columns, T* to,
                     index_t to_row, const T* start, index_t start_row) const {
    multiply<T>({left, left_row, 1}, rows, {right, right_row, 1}, call.m, columns, {start, start_row, 1},
                {to, to_row, 1});
  }

  void clear(T* memory, index_t columns) const {
    std::memset(memory, 0, static_cast<std::size_t>(rows * columns) * sizeof(T));
  }

  // Visits the vectors of all rows: visit(row, unit, number of units from there on).
  template <class Visit>
  LRCNET_INLINE void each(Visit visit) const {
    for (index_t r = 0; r < rows; ++r)
      for (index_t i = 0; i < call.m; i += W) visit(r, i, call.m - i);
  }

  // Weights: (m, gates and candidate side by side). Sums of the inputs become the values of the gates.
  void forward() const {
    const T* weights = static_cast<const T*>(call.weights);
    const index_t all = of_gates + width;
    clear(state, width), clear(passed, width);
    each([&](index_t r, index_t i, index_t count) {
      store(state + r * width + i, load_part(static_cast<const T*>(call.start) + (first + r) * call.m + i, count));
    });
    for (index_t t = 0; t < call.T; ++t) {
      if (t % kSteps == 0 && call.interrupted()) return;
      clear(gate, of_gates), clear(candidate, width);
      multiply_rows(state, width, weights, all, of_gates, gate, of_gates, gate, of_gates);
      each([&](index_t r, index_t i, index_t count) {
        T *values = gates_of(t, r) + i, *sums = gate + r * of_gates + i;
        Vec<T> open = {};
        for (index_t g = 0; g < call.gates; ++g) {
          open = sigmoid<T>(load(sums + g * width) + load_part(values + g * call.m, count));
          store(sums + g * width, open), store_part(values + g * call.m, open, count);
        }
        store(passed + r * width + i, open * load(state + r * width + i));
      });
      multiply_rows(passed, width, weights + of_gates, all, width, candidate, width, candidate, width);
      each([&](index_t r, index_t i, index_t count) {
        T *value = candidates_of(t, r) + i, *now = state + r * width + i;
        T* to = static_cast<T*>(call.states) + t * call.state_time + (first + r) * call.state_batch + i;
        const Vec<T> c = tanh_of<T>(load(candidate + r * width + i) + load_part(value, count)), h = load(now),
                     next = h + load(gate + r * of_gates + i) * (c - h);
        store(now, next), store_part(value, c, count), store_part(to, next, count);
      });
    }
  }

  // Weights: (candidate and gates one after the other, m, width). With g the gradient of the state, s = r h and a the
  // arguments: da_c = g z (1 - c^2), ds = U_c^T da_c, da_z = g (c - h) z (1 - z), da_r = ds h r (1 - r), and then
  // g (1 - z) + ds r + U_z^T da_z + U_r^T da_r is the gradient of the state before. One gate is both z and r.
  void backward() const {
    const T* weights = static_cast<const T*>(call.weights);
    T *of_candidate = candidate, *of_passed = passed, *carried = static_cast<T*>(call.of_start) + first * call.m;
    const index_t last = call.gates - 1;
    clear(state, width), clear(gate, of_gates), clear(of_candidate, width);
    each([&](index_t r, index_t i, index_t count) {
      store(state + r * width + i, load_part(carried + r * call.m + i, count));
    });
    for (index_t t = call.T - 1; t >= 0; --t) {
      if (t % kSteps == 0 && call.interrupted()) return;
      each([&](index_t r, index_t i, index_t count) {
        const T* given = static_cast<const T*>(call.of_states) + t * call.of_time + (first + r) * call.of_batch + i;
        const Vec<T> g = load(state + r * width + i) + load_part(given, count),
                     z = load_part(gates_of(t, r) + i, count), c = load_part(candidates_of(t, r) + i, count),
                     shut = T(1) - z;
        const Vec<T> argument = g * z * (T(1) - c * c);
        store(of_candidate + r * width + i, argument), store_part(of_argument(0, t, r) + i, argument, count);
        store(gate + r * of_gates + i, g * (c - load_part(before(t, r) + i, count)) * z * shut);
        store(state + r * width + i, g * shut);
      });
      clear(of_passed, width);
      multiply_rows(of_candidate, width, weights, width, width, of_passed, width, of_passed, width);
      each([&](index_t r, index_t i, index_t count) {
        const Vec<T> ds = load(of_passed + r * width + i), open = load_part(gates_of(t, r) + last * call.m + i, count),
                     h = load_part(before(t, r) + i, count);
        T *to = gate + r * of_gates + i, *g = state + r * width + i;
        const Vec<T> reset = ds * h * open * (T(1) - open);
        store(to + last * width, last ? reset : load(to) + reset);
        store(g, load(g) + ds * open);
        for (index_t q = 0; q < call.gates; ++q) store_part(of_argument(1 + q, t, r) + i, load(to + q * width), count);
      });
      for (index_t q = 0; q < call.gates; ++q)
        multiply_rows(gate + q * width, of_gates, weights + (1 + q) * call.m * width, width, width, state, width, state,
                      width);
    }
    each([&](index_t r, index_t i, index_t count) {
      store_part(carried + r * call.m + i, load(state + r * width + i), count);
    });
  }

  // The gradients of the candidate's argument (plane 0) and of the gates', each (T, B, m).
  T* of_argument(index_t plane, index_t t, index_t r) const {
    return static_cast<T*>(call.of_arguments) + plane * call.of_plane + (t * call.B + first + r) * call.m;
  }
};

// Task `index` of a call: a share of the samples.
template <class T>
void gated_task(void* context, int index) {
  const Gated& call = *static_cast<const Gated*>(context);
  const index_t first = call.B * index / call.threads, end = call.B * (index + 1) / call.threads;
  const GatedLoops<T> loops{call, first, end - first};
  call.of_states ? loops.backward() : loops.forward();
}

}  // namespace
