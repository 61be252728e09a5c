// The sums of synapses.h and their gradients for a wiring, from a list of the synapses that exist. The lanes of a vector
// are points here, not units: one synapse is one number of each weight for all points, so that a missing one costs
// nothing, however the others are spread. Arrays are therefore transposed: (rows or units, points), and the points of a
// row are padded to whole vectors.
#pragma once

#include "synapses.h"
#include "transpose.h"

namespace {

// The planes of one synapse: those of synapses.h, then o.
constexpr int kO = kPlanes, kWirePlanes = kPlanes + 1;

// The synapses that exist in a block of rows (the states' or the inputs'), ordered by unit, then by row.
template <class T>
struct Wires {
  index_t rows, units, count;
  index_t* first;  // [unit]: the unit's first synapse; [units]: count
  std::int32_t* source;  // [synapse]: its row
  T* weights;            // [synapse][plane]
  T *a_bound, *b_bound;  // [row]: max |a|, max |b|

  template <class Arena>
  void lay_out(Arena& arena, index_t row_count, index_t unit_count, index_t synapses) {
    rows = row_count, units = unit_count, count = synapses;
    first = arena.template take<index_t>(units + 1);
    source = arena.template take<std::int32_t>(count);
    weights = arena.template take<T>(count * kWirePlanes);
    a_bound = arena.template take<T>(rows), b_bound = arena.template take<T>(rows);
  }

  // Takes the synapses of rows [start, start + rows) of the (J, m) matrices, each letter times its unit.
  void fill(const lrcnet::Letters<const void*>& letters, const lrcnet::Letters<double>& unit, const unsigned char* mask,
            index_t start) {
    const auto value = [](const void* letter, index_t at, double times) {
      return letter ? static_cast<const T*>(letter)[at] * static_cast<T>(times) : T(0);
    };
    for (index_t j = 0; j < rows; ++j) a_bound[j] = b_bound[j] = T(0);
    index_t next = 0;
    for (index_t i = 0; i < units; ++i) {
      first[i] = next;
      for (index_t j = 0; j < rows; ++j) {
        const index_t at = (start + j) * units + i;
        if (!mask[at]) continue;
        T* to = weights + next * kWirePlanes;
        to[kA] = -value(letters.a, at, unit.a), to[kB] = -value(letters.b, at, unit.b);
        const T g = value(letters.g, at, unit.g);
        to[kG] = g < T(0) ? T(0) : g, to[kK] = value(letters.k, at, unit.k), to[kO] = value(letters.o, at, unit.o);
        // Written so that a NaN stays: it makes the bound fail, which selects the clamping path.
        a_bound[j] = magnitude(to[kA]) <= a_bound[j] ? a_bound[j] : magnitude(to[kA]);
        b_bound[j] = magnitude(to[kB]) <= b_bound[j] ? b_bound[j] : magnitude(to[kB]);
        source[next++] = static_cast<std::int32_t>(j);
      }
    }
    first[units] = next;
  }
};

inline index_t count_wires(const unsigned char* mask, index_t size) {
  index_t count = 0, i = 0;
  for (; i + 8 <= size; i += 8) {
    std::uint64_t bytes;
    std::memcpy(&bytes, mask + i, sizeof bytes);
    count += static_cast<index_t>(bytes * 0x0101010101010101u >> 56);  // the sum of the bytes
  }
  for (; i < size; ++i) count += mask[i] != 0;
  return count;
}

// Whether some |a y + b| may exceed the limit up to which exp needs no clamp; y is (rows, points). NaN counts as
// exceeding it.
template <class T>
bool needs_clamp(const Wires<T>& wires, const T* y, index_t stride, index_t points) {
  for (index_t j = 0; j < wires.rows; ++j) {
    int safe = 1;
    for (index_t p = 0; p < points; ++p)
      safe &= wires.a_bound[j] * magnitude(y[j * stride + p]) + wires.b_bound[j] < Exp2<T>::kLimit;
    if (!safe) return true;
  }
  return false;
}

// f, u, w of the units, each (units, points) with the same stride.
template <class T, class Pointer = T*>
struct Currents {
  Pointer f, u, w;
  index_t stride;
};

template <class T, int N, bool Clamp, bool Elastic>
LRCNET_INLINE void sum_wires_of_unit(const Wires<T>& wires, index_t i, const T* y, index_t y_stride, const T* f_from,
                                     const T* u_from, const T* w_from, T* f_to, T* u_to, T* w_to) {
  constexpr index_t W = kLanes<T>;
  Vec<T> f[N], u[N], w[N];
  for (int v = 0; v < N; ++v) {
    f[v] = load(f_from + v * W), u[v] = load(u_from + v * W);
    if (Elastic) w[v] = load(w_from + v * W);
  }
  for (index_t s = wires.first[i]; s < wires.first[i + 1]; ++s) {
    const T *weight = wires.weights + s * kWirePlanes, *from = y + wires.source[s] * y_stride;
    Vec<T> t[N];
    for (int v = 0; v < N; ++v) {
      const Vec<T> point = load(from + v * W);
      t[v] = point * weight[kA] + weight[kB];
      if (Elastic) w[v] += point * weight[kO];
    }
    sigmoid_of_minus<T, Clamp, N>(t);
    for (int v = 0; v < N; ++v) f[v] += t[v] * weight[kG], u[v] += t[v] * weight[kK];
  }
  for (int v = 0; v < N; ++v) {
    store(f_to + v * W, f[v]), store(u_to + v * W, u[v]);
    if (Elastic) store(w_to + v * W, w[v]);
  }
}

template <class T, bool Clamp, bool Elastic>
void sum_wires_of(const Wires<T>& wires, const T* y, index_t y_stride, index_t points,
                  const Currents<T, const T*>& from, const Currents<T>& to) {
  constexpr index_t W = kLanes<T>;
  const index_t end = padded<T>(points);
  for (index_t i = 0; i < wires.units; ++i) {
    index_t p = 0;
    const auto run = [&](auto vectors) {
      constexpr int N = decltype(vectors)::value;
      const index_t a = i * from.stride + p, b = i * to.stride + p;
      sum_wires_of_unit<T, N, Clamp, Elastic>(wires, i, y + p, y_stride, from.f + a, from.u + a, from.w + a, to.f + b,
                                              to.u + b, to.w + b);
      p += N * W;
    };
    constexpr int kMost = kShared >= 4 ? 4 : 2;
    while (end - p >= kMost * W) run(Count<kMost>{});
    while (end - p >= 2 * W) run(Count<2>{});
    if (p < end) run(Count<1>{});
  }
}

// to = from + the sums over the synapses of y (rows, points); from and to may be the same.
template <class T>
void sum_wires(const Wires<T>& wires, const T* y, index_t y_stride, index_t points, bool elastic,
               const Currents<T, const T*>& from, const Currents<T>& to) {
  const bool clamp = needs_clamp(wires, y, y_stride, points);
  const auto run = elastic ? (clamp ? sum_wires_of<T, true, true> : sum_wires_of<T, false, true>)
                           : (clamp ? sum_wires_of<T, true, false> : sum_wires_of<T, false, false>);
  run(wires, y, y_stride, points, from, to);
}

template <class T, int N, bool Clamp, bool Elastic, bool WantY>
LRCNET_INLINE void differentiate_wire(const T* weight, const T* y, const T* gf, const T* gu, const T* gw, T* dy,
                                      Vec<T> (&sum)[kWirePlanes]) {
  constexpr index_t W = kLanes<T>;
  Vec<T> s[N];
  for (int v = 0; v < N; ++v) s[v] = load(y + v * W) * weight[kA] + weight[kB];
  sigmoid_of_minus<T, Clamp, N>(s);
  for (int v = 0; v < N; ++v) {
    const Vec<T> point = load(y + v * W), f = load(gf + v * W), u = load(gu + v * W);
    const Vec<T> w = Elastic ? load(gw + v * W) : Vec<T>{};
    const Vec<T> ds = (f * weight[kG] + u * weight[kK]) * (s[v] - s[v] * s[v]);
    sum[kG] += f * s[v], sum[kK] += u * s[v], sum[kA] += ds * point, sum[kB] += ds;
    if (Elastic) sum[kO] += w * point;
    if (!WantY) continue;
    Vec<T> by_y = load(dy + v * W) - ds * weight[kA];
    if (Elastic) by_y += w * weight[kO];
    store(dy + v * W, by_y);
  }
}

template <class T, bool Clamp, bool Elastic, bool WantY>
void differentiate_wires_of(const Wires<T>& wires, const T* y, index_t y_stride, index_t points,
                            const Currents<T, const T*>& gradient, T* sums, T* dy, index_t dy_stride) {
  constexpr index_t W = kLanes<T>;
  constexpr int N = 2;
  const index_t end = padded<T>(points);
  for (index_t i = 0; i < wires.units; ++i) {
    const T *gf = gradient.f + i * gradient.stride, *gu = gradient.u + i * gradient.stride,
            *gw = gradient.w + i * gradient.stride;
    for (index_t s = wires.first[i]; s < wires.first[i + 1]; ++s) {
      const T *weight = wires.weights + s * kWirePlanes, *from = y + wires.source[s] * y_stride;
      T* into = WantY ? dy + wires.source[s] * dy_stride : nullptr;
      // Short sums that start from zero are added to the long sum over time, as in synapses.h.
      Vec<T> sum[kWirePlanes] = {};
      index_t p = 0;
      for (; p + N * W <= end; p += N * W)
        differentiate_wire<T, N, Clamp, Elastic, WantY>(weight, from + p, gf + p, gu + p, gw + p, WantY ? into + p : nullptr, sum);
      if (p < end)
        differentiate_wire<T, 1, Clamp, Elastic, WantY>(weight, from + p, gf + p, gu + p, gw + p, WantY ? into + p : nullptr, sum);
      T* total = sums + s * kWirePlanes * W;
      for (int plane = 0; plane < (Elastic ? kWirePlanes : kO); ++plane)
        store(total + plane * W, load(total + plane * W) + sum[plane]);
    }
  }
}

// Given gf, gu, gw (units, points), zero in the padding: adds the gradients of a, b, g, k, o to sums
// [synapse][plane][lane], and that of y to dy (rows, points) unless dy is null.
template <class T>
void differentiate_wires(const Wires<T>& wires, const T* y, index_t y_stride, index_t points, bool elastic,
                         const Currents<T, const T*>& gradient, T* sums, T* dy, index_t dy_stride) {
  const bool clamp = needs_clamp(wires, y, y_stride, points);
  const auto choose = [&](auto elastic_too) {
    constexpr bool E = decltype(elastic_too)::value != 0;
    return dy ? (clamp ? differentiate_wires_of<T, true, E, true> : differentiate_wires_of<T, false, E, true>)
              : (clamp ? differentiate_wires_of<T, true, E, false> : differentiate_wires_of<T, false, E, false>);
  };
  (elastic ? choose(Count<1>{}) : choose(Count<0>{}))(wires, y, y_stride, points, gradient, sums, dy, dy_stride);
}

}  // namespace
