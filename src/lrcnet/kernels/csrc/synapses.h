// The synapses' sums, f_i = sum_j g_ji s_ji and u_i = sum_j k_ji s_ji with s_ji = sigmoid(a_ji y_j + b_ji), and their
// gradients. A "point" is one sample at one time: the states' rows are summed for the points of one step, the inputs'
// rows, which do not depend on the state, for the points of a block of steps at once.
#pragma once

#include "api.h"
#include "math.h"
#include "team.h"
#include "transpose.h"

namespace {

// The planes of one vector of postsynaptic units for one row: -a log2(e) and -b log2(e), because
// s = 1 / (1 + exp(-a y - b)) = 1 / (1 + 2^(-a log2(e) y - b log2(e))), then g, k. Folding the factor into the weights
// turns two fused multiplications of each sigmoid into additions, which other pipes of the processor compute.
enum Plane { kA = 0, kB = 1, kG = 2, kK = 3, kPlanes = 4 };

// The prepared weights of a block of rows (the states' or the inputs').
template <class T>
struct Rows {
  index_t count;     // rows
  index_t vectors;   // vectors of postsynaptic units
  index_t last;      // units in the last of them
  const T* packed;   // forward: [vector][row][plane][lane]; backward: [row][vector][plane][lane], share after share
  const T* a_bound;  // [row]: the largest magnitude of the plane kA
  const T* b_bound;  // [row]: that of kB
};

template <class T>
LRCNET_INLINE T magnitude(T v) {
  return v < T(0) ? -v : v;
}

// Where the backward pass has vector v of a row. What one member of a team reads and writes lies together: rows of which
// each member touches a part would fill only a part of its caches, and make members fetch each other's memory ahead.
template <class T>
LRCNET_INLINE index_t place_in_share(Share share, index_t rows, index_t row, index_t v) {
  return (share.first * rows + row * share.count() + v - share.first) * kPlanes * kLanes<T>;
}

// Packs `some` of the rows [first, first + count) of the (rows, m) matrices a, b, g, k, each times its unit; 0 where the
// mask has no synapse. The units are divided into `shares`, 0 for the layout of the forward pass.
template <class T>
void pack_rows(Share some, index_t shares, const lrcnet::Letters<const void*>& letters,
               const lrcnet::Letters<double>& units, const unsigned char* mask, index_t first, index_t count, index_t m,
               T* packed, T* bounds) {
  const T *a = static_cast<const T*>(letters.a), *b = static_cast<const T*>(letters.b),
          *g = static_cast<const T*>(letters.g), *k = static_cast<const T*>(letters.k);
  const T a_unit = static_cast<T>(units.a) * kLog2E<T>, b_unit = static_cast<T>(units.b) * kLog2E<T>,
          g_unit = static_cast<T>(units.g), k_unit = static_cast<T>(units.k);
  constexpr index_t W = kLanes<T>;
  const index_t vectors = padded<T>(m) / W;
  for (index_t j = some.first; j < some.end; ++j) {
    const index_t row = (first + j) * m;
    Vec<T> a_most = {}, b_most = {}, nan_sum = {};
    Share share{0, 0};
    for (index_t v = 0, number = 0; v < vectors; ++v) {
      if (shares && v == share.end) share = Share::of(vectors, number++, shares);
      T* to = packed + (shares ? place_in_share<T>(share, count, j, v) : (v * count + j) * kPlanes * W);
      const index_t here = m - v * W, at = row + v * W;
      const IVec<T> exists = mask ? load_mask<T>(mask + at, here) : ~IVec<T>{};
      const Vec<T> av = masked<T>(load_part(a + at, here) * -a_unit, exists),
                   bv = masked<T>(load_part(b + at, here) * -b_unit, exists);
      const Vec<T> gv = masked<T>(load_part(g + at, here) * g_unit, exists);
      store(to + kA * W, av);
      store(to + kB * W, bv);
      store(to + kG * W, gv < T(0) ? Vec<T>{} : gv);
      store(to + kK * W, masked<T>(load_part(k + at, here) * k_unit, exists));
      a_most = absolute<T>(av) > a_most ? absolute<T>(av) : a_most;
      b_most = absolute<T>(bv) > b_most ? absolute<T>(bv) : b_most;
      // A maximum ignores a NaN; a sum keeps it. The NaN makes the bound fail, which selects the clamping path: that
      // path passes NaN on and computes the other units correctly.
      nan_sum += av * T(0) + bv * T(0);
    }
    T a_row = 0, b_row = 0;
    for (index_t l = 0; l < W; ++l) {
      if (a_most[l] > a_row) a_row = a_most[l];
      if (b_most[l] > b_row) b_row = b_most[l];
    }
    bounds[j] = a_row + sum_lanes<T>(nan_sum);
    bounds[count + j] = b_row;
  }
}

// Whether some |a y + b| may exceed the limit up to which exp needs no clamp. NaN counts as exceeding it.
template <class T>
bool needs_clamp(const Rows<T>& rows, const T* y, index_t y_stride, index_t points) {
  for (index_t p = 0; p < points; ++p) {
    int safe = 1;
    for (index_t j = 0; j < rows.count; ++j)
      safe &= rows.a_bound[j] * magnitude(y[p * y_stride + j]) + rows.b_bound[j] < Exp2<T>::kLimit * kLog2E<T>;
    if (!safe) return true;
  }
  return false;
}

template <class T, int S, bool Clamp>
LRCNET_INLINE void sum_points(const T* weights, index_t rows, const T* y, index_t y_stride, const T* f_from,
                              const T* u_from, index_t from_stride, T* f_to, T* u_to, index_t stride) {
  constexpr index_t W = kLanes<T>;
  constexpr int kPair = S % 2 == 0 ? 2 : 1;  // as many sigmoids at a time as registers allow
  Vec<T> f[S], u[S];
  for (int s = 0; s < S; ++s) f[s] = load(f_from + s * from_stride), u[s] = load(u_from + s * from_stride);
  for (index_t j = 0; j < rows; ++j, weights += kPlanes * W) {
    const Vec<T> a = load(weights + kA * W), b = load(weights + kB * W);
    const Vec<T> g = load(weights + kG * W), k = load(weights + kK * W);
#pragma GCC unroll 8
    for (int s = 0; s < S; s += kPair) {
      Vec<T> t[kPair];
      for (int i = 0; i < kPair; ++i) t[i] = a * y[(s + i) * y_stride + j] + b;
      sigmoid_of_minus<T, Clamp, kPair, kTwo>(t);
      for (int i = 0; i < kPair; ++i) f[s + i] += g * t[i], u[s + i] += k * t[i];
    }
  }
  for (int s = 0; s < S; ++s) store(f_to + s * stride, f[s]), store(u_to + s * stride, u[s]);
}

template <class T, bool Clamp>
void sum_synapses_of(const Rows<T>& rows, Share share, const T* y, index_t y_stride, index_t points, const T* f_from,
                     const T* u_from, index_t from_stride, T* f_to, T* u_to) {
  constexpr index_t W = kLanes<T>;
  const index_t stride = rows.vectors * W;
  for (index_t v = share.first; v < share.end; ++v) {
    const T* weights = rows.packed + v * rows.count * kPlanes * W;
    index_t p = 0;
    const auto run = [&](auto samples) {
      constexpr int S = decltype(samples)::value;
      const index_t at = p * stride + v * W, from = p * from_stride + v * W;
      sum_points<T, S, Clamp>(weights, rows.count, y + p * y_stride, y_stride, f_from + from, u_from + from, from_stride,
                              f_to + at, u_to + at, stride);
      p += S;
    };
    while (points - p >= kShared) run(Count<kShared>{});
    while (points - p >= 2) run(Count<2>{});
    if (p < points) run(Count<1>{});
  }
}

// f_to[p][i] = f_from[p][i] + sum_j g s, u likewise, for the units i of a share; y is (points, rows) with the given row
// stride, f_to and u_to are (points, padded m) without gaps; from_stride is 0 if all points start from the same numbers.
template <class T>
void sum_synapses(const Rows<T>& rows, Share share, const T* y, index_t y_stride, index_t points, const T* f_from,
                  const T* u_from, index_t from_stride, T* f_to, T* u_to) {
  if (needs_clamp(rows, y, y_stride, points))
    sum_synapses_of<T, true>(rows, share, y, y_stride, points, f_from, u_from, from_stride, f_to, u_to);
  else
    sum_synapses_of<T, false>(rows, share, y, y_stride, points, f_from, u_from, from_stride, f_to, u_to);
}

// What becomes of the terms of y's gradient: nothing, or they are written to, or added to, one vector per point.
enum ByInput { kIgnore, kWrite, kAdd };

// One vector of synapses at several points.
template <class T>
struct SynapseVector {
  Vec<T> a, b, g, k;
  IVec<T> exist;

  // The denominators 1 + 2^t of the sigmoids at S points.
  template <int S, bool Clamp>
  LRCNET_INLINE void denominators(const T* y, index_t y_stride, Vec<T> (&to)[S]) const {
    for (int i = 0; i < S; ++i) to[i] = a * y[i * y_stride] + b;
    one_plus_exp<T, Clamp, S, kTwo>(to);
  }

  // Adds the gradients at S points to sum; gf and gu are those of the first point.
  template <int S, bool Clamp, ByInput by_input>
  LRCNET_INLINE void differentiate(const Vec<T> (&denominators)[S], const T* y, index_t y_stride, const T* gf,
                                   const T* gu, index_t stride, T* lanes, Vec<T> (&sum)[kPlanes]) const {
    constexpr index_t W = kLanes<T>;
    Vec<T> s[S], ds[S];
    for (int i = 0; i < S; ++i) s[i] = reciprocal<T>(denominators[i]);
    for (int i = 0; i < S; ++i) {
      const Vec<T> f = load(gf + i * stride), u = load(gu + i * stride);
      ds[i] = (f * g + u * k) * (s[i] - s[i] * s[i]);
      sum[kG] += f * s[i];
      sum[kK] += u * s[i];
    }
    for (int i = 0; i < S; ++i) {
      sum[kA] += ds[i] * y[i * y_stride];
      sum[kB] += ds[i];
      if (by_input == kIgnore) continue;
      // An infinite y, which always clamps, leaves a NaN in the padding.
      const Vec<T> by_y = Clamp ? masked<T>(ds[i] * a, exist) : ds[i] * a;
      store(lanes + i * W, by_input == kAdd ? load(lanes + i * W) + by_y : by_y);
    }
  }
};

// The gradients of vector v of the synapses of row j at all points.
template <class T, bool Clamp, ByInput by_input>
LRCNET_INLINE void differentiate_vector(const Rows<T>& rows, Share share, index_t j, index_t v, const T* y,
                                        index_t y_stride, index_t points, const T* gf, const T* gu, T* sums, T* lanes) {
  constexpr index_t W = kLanes<T>;
  constexpr int S = 2;
  const index_t stride = rows.vectors * W, at = place_in_share<T>(share, rows.count, j, v);
  const T* weights = rows.packed + at;
  const SynapseVector<T> vector{load(weights + kA * W), load(weights + kB * W), load(weights + kG * W),
                                load(weights + kK * W), lanes_below<T>(v == rows.vectors - 1 ? rows.last : W)};
  y += j, gf += v * W, gu += v * W;
  // Short sums that start from zero are added to the long sum over time: less rounding than one running sum.
  Vec<T> sum[kPlanes] = {};
  const auto differentiate = [&](const auto& denominators) {
    constexpr int N = sizeof(denominators) / sizeof(Vec<T>);
    vector.template differentiate<N, Clamp, by_input>(denominators, y, y_stride, gf, gu, stride, lanes, sum);
    y += N * y_stride, gf += N * stride, gu += N * stride, lanes += N * W, points -= N;
  };
  // The denominators of the next points are computed beside the gradients of these, which wait for divisions. Sixteen
  // registers do not hold both.
  if (kShared >= 4 && points >= 2 * S) {
    Vec<T> here[S], ahead[S];
    vector.template denominators<S, Clamp>(y, y_stride, here);
    while (points >= 2 * S) {
      vector.template denominators<S, Clamp>(y + S * y_stride, y_stride, ahead);
      differentiate(here);
      for (int i = 0; i < S; ++i) here[i] = ahead[i];
    }
    differentiate(here);
  }
  const auto run = [&](auto samples) {
    Vec<T> here[decltype(samples)::value];
    vector.template denominators<decltype(samples)::value, Clamp>(y, y_stride, here);
    differentiate(here);
  };
  while (points >= S) run(Count<S>{});
  while (points >= 1) run(Count<1>{});
  for (int plane = 0; plane < kPlanes; ++plane)
    store(sums + at + plane * W, load(sums + at + plane * W) + sum[plane]);
}

// to[p] = scale * the sum of the lanes of vector p; writes whole vectors.
template <class T>
LRCNET_INLINE void sum_lanes_of_points(const T* lanes, index_t points, T scale, T* to) {
  constexpr index_t W = kLanes<T>;
  for (index_t p = 0; p < points; p += W) {
    // A few are faster one by one; the results are the same.
    if (points - p <= 2) {
      for (index_t i = p; i < points; ++i) to[i] = scale * sum_lanes<T>(load(lanes + i * W));
      continue;
    }
    Vec<T> block[W];
    for (index_t i = 0; i < W; ++i) block[i] = p + i < points ? load(lanes + (p + i) * W) : Vec<T>{};
    store(to + p, sum_each<T>(block) * scale);
  }
}

// Scratch of differentiate_synapses: one vector per point, and the gradient of y, (rows, padded points).
template <class T>
struct PointScratch {
  T *lanes, *dy_t;
  index_t stride;
};

template <class T, bool Clamp, bool WantY>
void differentiate_synapses_of(const Rows<T>& rows, Share share, const T* y, index_t y_stride, index_t points,
                               const T* gf, const T* gu, T* sums, const PointScratch<T>& scratch) {
  for (index_t j = 0; j < rows.count; ++j) {
    T* lanes = scratch.lanes;
    differentiate_vector<T, Clamp, WantY ? kWrite : kIgnore>(rows, share, j, share.first, y, y_stride, points, gf, gu,
                                                             sums, lanes);
    for (index_t v = share.first + 1; v < share.end; ++v)
      differentiate_vector<T, Clamp, WantY ? kAdd : kIgnore>(rows, share, j, v, y, y_stride, points, gf, gu, sums,
                                                             lanes);
    // By ln(2), because the packed a has the factor log2(e); negative, because it is -a.
    if (WantY)
      sum_lanes_of_points(lanes, points, static_cast<T>(-0.69314718055994530942),
                          scratch.dy_t + j * scratch.stride);
  }
}

// Given gf, gu (points, padded m) of the units of a share: adds the gradients of their a, b, g, k to sums, laid out as
// the rows' weights, and their part of that of y to dy (points, padded rows) unless dy is null.
template <class T>
void differentiate_synapses(const Rows<T>& rows, Share share, const T* y, index_t y_stride, index_t points, const T* gf,
                            const T* gu, T* sums, T* dy, index_t dy_stride, const PointScratch<T>& scratch) {
  const bool clamp = needs_clamp(rows, y, y_stride, points);
  const auto run =
      dy ? (clamp ? differentiate_synapses_of<T, true, true> : differentiate_synapses_of<T, false, true>)
         : (clamp ? differentiate_synapses_of<T, true, false> : differentiate_synapses_of<T, false, false>);
  run(rows, share, y, y_stride, points, gf, gu, sums, scratch);
  if (dy) transpose<T, true>(scratch.dy_t, scratch.stride, rows.count, points, dy, dy_stride);
}

}  // namespace
