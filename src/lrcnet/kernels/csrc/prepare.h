// What every thread shares: the parameters, packed, padded and constrained once per call; and how work is divided.
#pragma once

#include <cstdlib>

#include "api.h"
#include "synapses.h"

namespace {

using lrcnet::Gradients;
using lrcnet::Problem;

// Samples a thread carries through time together: enough to reuse a weight while it is in the nearest cache.
constexpr index_t kSamples = 32;
// Points of a block of time steps whose input synapses are summed in one sweep.
constexpr index_t kPoints = 128;
// Synapses below which a further thread costs more than it brings.
constexpr double kSynapsesPerThread = 60000;

inline index_t smaller(index_t a, index_t b) { return a < b ? a : b; }
inline index_t larger(index_t a, index_t b) { return a < b ? b : a; }

// Hands out aligned pieces of one allocation; with a null base it only measures.
struct Arena {
  char* base = nullptr;
  std::size_t used = 0;

  template <class T>
  T* take(index_t count) {
    T* piece = reinterpret_cast<T*>(base ? base + used : nullptr);
    used += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return piece;
  }
};

// Lays `scratch` out in one aligned block; false when there is no memory.
template <class S, class... Sizes>
bool allocate(S& scratch, void*& block, Sizes... sizes) {
  Arena measure;
  scratch.lay(measure, sizes...);
  block = nullptr;
  if (posix_memalign(&block, 64, measure.used + 64) != 0) return false;
  Arena arena{static_cast<char*>(block), 0};
  scratch.lay(arena, sizes...);
  return true;
}

struct Sizes {
  index_t T, B, n, m, K, mp, np, vectors, planes, parts, block, steps;

  template <class Number>
  static Sizes of(const Problem& q) {
    Sizes s;
    s.T = q.T, s.B = q.B, s.n = q.n, s.m = q.m, s.K = q.K;
    s.mp = padded<Number>(s.m), s.np = padded<Number>(s.n);
    s.vectors = s.mp / kLanes<Number>;
    s.planes = lrcnet::saved_planes(q.elastance, s.K);
    const double synapses = static_cast<double>(s.T) * s.B * (s.K * s.m + s.n) * s.m;
    const index_t useful = static_cast<index_t>(synapses / kSynapsesPerThread) + 1;
    s.parts = larger(1, smaller(smaller(q.threads, s.B), useful));
    const index_t most = (s.B + s.parts - 1) / s.parts;
    const index_t blocks = larger(1, (most + kSamples - 1) / kSamples);
    s.block = larger(1, (most + blocks - 1) / blocks);
    s.steps = larger(1, smaller(s.T, kPoints / s.block));
    return s;
  }
};

template <class T>
struct Prepared {
  Rows<T> state, input;
  T *state_packed, *input_packed, *state_bounds, *input_bounds;
  T *o, *o_t_state, *o_t_input;  // o (m+n, mp); its transposes (m, mp) and (m, np)
  T *g_l, *e_l, *p, *k_eps, *scale, *shift;

  void lay(Arena& arena, Sizes s, bool elastic, bool backward) {
    const index_t rows = s.vectors * kPlanes * kLanes<T>;
    state_packed = arena.take<T>(s.m * rows);
    input_packed = arena.take<T>(s.n * rows);
    state_bounds = arena.take<T>(2 * s.m);
    input_bounds = arena.take<T>(2 * s.n);
    o = arena.take<T>(elastic ? (s.m + s.n) * s.mp : 0);
    o_t_state = arena.take<T>(elastic && backward ? s.m * s.mp : 0);
    o_t_input = arena.take<T>(elastic && backward ? s.m * s.np : 0);
    g_l = arena.take<T>(s.mp), e_l = arena.take<T>(s.mp), p = arena.take<T>(s.mp), k_eps = arena.take<T>(s.mp);
    scale = arena.take<T>(s.np), shift = arena.take<T>(s.np);
  }

  static void copy_padded(T* to, const void* from, index_t count, index_t room, T missing) {
    const T* source = static_cast<const T*>(from);
    for (index_t i = 0; i < room; ++i) to[i] = i < count ? (source ? source[i] : missing) : T(0);
  }

  void fill(const Problem& q, Sizes s, bool backward) {
    const T *a = static_cast<const T*>(q.a), *b = static_cast<const T*>(q.b), *g = static_cast<const T*>(q.g),
            *k = static_cast<const T*>(q.k), *weights = static_cast<const T*>(q.o);
    pack_rows(state, backward, a, b, g, k, 0, s.m, s.m, state_packed, state_bounds);
    pack_rows(input, backward, a, b, g, k, s.m, s.n, s.m, input_packed, input_bounds);
    copy_padded(g_l, q.g_l, s.m, s.mp, T(0));
    copy_padded(e_l, q.e_l, s.m, s.mp, T(0));
    copy_padded(p, q.p, s.m, s.mp, T(0));
    copy_padded(k_eps, q.elastance == lrcnet::kSymmetric ? q.k_eps : nullptr, s.m, s.mp, T(0));
    copy_padded(scale, q.scale, s.n, s.np, T(1));
    copy_padded(shift, q.shift, s.n, s.np, T(0));
    for (index_t i = 0; i < s.m; ++i) {
      if (g_l[i] < T(0)) g_l[i] = 0;
      if (k_eps[i] < T(0)) k_eps[i] = 0;
    }
    if (q.elastance == lrcnet::kNone) return;
    for (index_t j = 0; j < s.m + s.n; ++j) copy_padded(o + j * s.mp, weights + j * s.m, s.m, s.mp, T(0));
    if (!backward) return;
    for (index_t i = 0; i < s.m; ++i) {
      for (index_t j = 0; j < s.mp; ++j) o_t_state[i * s.mp + j] = j < s.m ? weights[j * s.m + i] : T(0);
      for (index_t j = 0; j < s.np; ++j) o_t_input[i * s.np + j] = j < s.n ? weights[(s.m + j) * s.m + i] : T(0);
    }
  }
};

// The mapped inputs of `points` points starting at (time, sample): y[point][channel], points ordered by time, then sample.
template <class T>
void gather_inputs(const Problem& q, const Sizes& s, const Prepared<T>& w, index_t time, index_t steps, index_t sample,
                   index_t samples, T* y) {
  const T* x = static_cast<const T*>(q.x);
  for (index_t t = 0; t < steps; ++t)
    for (index_t b = 0; b < samples; ++b, y += s.np) {
      const T* from = x + (time + t) * q.x_time + (sample + b) * q.x_batch;
      for (index_t j = 0; j < s.n; ++j) y[j] = from[j * q.x_channel] * w.scale[j] + w.shift[j];
    }
}

// dt / K of one sample at one time.
template <class T>
LRCNET_INLINE T substep(const Problem& q, index_t time, index_t sample) {
  const T dt = q.dt ? static_cast<const T*>(q.dt)[time * q.dt_time + sample * q.dt_batch] : static_cast<T>(q.dt_value);
  return dt / static_cast<T>(q.K);
}

// (samples, m), rows `stride` apart, into (samples, mp) with zero padding; zeros where there is no source.
template <class T>
void gather_rows(const T* from, index_t stride, index_t samples, index_t m, index_t mp, T* to) {
  for (index_t b = 0; b < samples; ++b, to += mp) {
    if (from) std::memcpy(to, from + b * stride, static_cast<std::size_t>(m) * sizeof(T));
    for (index_t i = from ? m : 0; i < mp; ++i) to[i] = T(0);
  }
}

}  // namespace
