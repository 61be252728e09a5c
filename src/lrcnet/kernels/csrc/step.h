// One step of a few samples without gradients, straight from the parameters as they are: packing them first would cost
// more than the step itself.
#pragma once

#include "prepare.h"
#include "solver.h"

namespace {

// Adds rows [first, first + count) of a, b, g, k, o to N vectors of f, u, w, from unit i on; `here` units are left there.
template <class T, int N, bool Elastic>
LRCNET_INLINE void add_rows(const Problem& q, index_t first, index_t count, const T* y, index_t i, index_t here, T* f, T* u,
                            T* w) {
  constexpr index_t W = kLanes<T>;
  const index_t m = q.m, at = first * m + i;
  const T *a = static_cast<const T*>(q.a) + at, *b = static_cast<const T*>(q.b) + at, *g = static_cast<const T*>(q.g) + at,
          *k = static_cast<const T*>(q.k) + at, *o = Elastic ? static_cast<const T*>(q.o) + at : nullptr;
  Vec<T> f_sum[N], u_sum[N], w_sum[N];
  for (int v = 0; v < N; ++v) f_sum[v] = load(f + v * W), u_sum[v] = load(u + v * W), w_sum[v] = load(w + v * W);
  // Only the last vector of a row can be partial, and it comes alone.
  const auto take = [here](const T* from) { return N == 1 ? load_part(from, here) : load(from); };
  for (index_t j = 0; j < count; ++j) {
    const T yj = y[j];
    Vec<T> s[N];
    for (int v = 0; v < N; ++v) s[v] = take(a + j * m + v * W) * -yj - take(b + j * m + v * W);
    sigmoid_of_minus<T, true, N>(s);
    for (int v = 0; v < N; ++v) {
      const Vec<T> gv = take(g + j * m + v * W);
      f_sum[v] += (gv < T(0) ? Vec<T>{} : gv) * s[v];
      u_sum[v] += take(k + j * m + v * W) * s[v];
      if (Elastic) w_sum[v] += take(o + j * m + v * W) * yj;
    }
  }
  for (int v = 0; v < N; ++v) store(f + v * W, f_sum[v]), store(u + v * W, u_sum[v]), store(w + v * W, w_sum[v]);
}

template <class T, bool Elastic>
void add_all_rows(const Problem& q, index_t first, index_t count, const T* y, T* f, T* u, T* w) {
  constexpr index_t W = kLanes<T>;
  index_t i = 0;
  for (; i + 4 * W <= q.m; i += 4 * W) add_rows<T, 4, Elastic>(q, first, count, y, i, q.m - i, f + i, u + i, w + i);
  for (; i + 2 * W <= q.m; i += 2 * W) add_rows<T, 2, Elastic>(q, first, count, y, i, q.m - i, f + i, u + i, w + i);
  for (; i < q.m; i += W) add_rows<T, 1, Elastic>(q, first, count, y, i, q.m - i, f + i, u + i, w + i);
}

// scratch holds n + 7 padded(m) numbers. x, h, out are (B, n), (B, m), (B, m); h and out contiguous.
template <class T>
void step_batch(const Problem& q, const T* h, T* out, T* scratch) {
  constexpr index_t W = kLanes<T>;
  const index_t m = q.m, n = q.n, mp = padded<T>(m);
  const Switches is{q.saturated != 0, q.elastance, q.solver};
  T *state = scratch, *inputs = state + mp, *sums = inputs + 3 * mp, *y = sums + 3 * mp;
  const T *scale = static_cast<const T*>(q.scale), *shift = static_cast<const T*>(q.shift);
  const auto add = [&](index_t first, index_t count, const T* from, T* to) {
    (q.elastance == kNone ? add_all_rows<T, false> : add_all_rows<T, true>)(q, first, count, from, to, to + mp, to + 2 * mp);
  };
  for (index_t b = 0; b < q.B; ++b) {
    const T* x = static_cast<const T*>(q.x) + b * q.x_batch;
    for (index_t j = 0; j < n; ++j)
      y[j] = x[j * q.x_channel] * (scale ? scale[j] : T(1)) + (shift ? shift[j] : T(0));
    for (index_t i = 0; i < mp; i += W) {
      const Vec<T> g_l = load_part(static_cast<const T*>(q.g_l) + i, m - i);
      const Vec<T> leak = g_l < T(0) ? Vec<T>{} : g_l;
      store(inputs + i, leak), store(inputs + mp + i, leak);
      store(inputs + 2 * mp + i, q.p ? load_part(static_cast<const T*>(q.p) + i, m - i) : Vec<T>{});
      store(state + i, h ? load_part(h + b * m + i, m - i) : Vec<T>{});
    }
    add(m, n, y, inputs);
    for (index_t k = 0; k < q.K; ++k) {
      std::memcpy(sums, inputs, static_cast<std::size_t>(3 * mp) * sizeof(T));
      add(0, m, state, sums);
      for (index_t i = 0; i < mp; i += W) {
        Vec<T> f = load(sums + i), u = load(sums + mp + i);
        const Vec<T> k_eps = q.k_eps ? load_part(static_cast<const T*>(q.k_eps) + i, m - i) : Vec<T>{};
        const Vec<T> e_l = load_part(static_cast<const T*>(q.e_l) + i, m - i);
        store(state + i, advance<T>(is, load(state + i), substep<T>(q, 0, b), f, u, load(sums + 2 * mp + i),
                                    k_eps < T(0) ? Vec<T>{} : k_eps, e_l));
      }
    }
    std::memcpy(out + b * m, state, static_cast<std::size_t>(m) * sizeof(T));
  }
}

}  // namespace
