// One step of a few samples without gradients, computed from the parameters as they are stored: packing them first
// would cost more than the step itself.
#pragma once

#include "prepare.h"
#include "solver.h"

namespace {

// The letters' units, arranged so that they are applied to one number per row or step instead of to each weight.
// Dividing by a power of two is exact, and in x a + b only one product can be rounded if b's unit is left to the end,
// whatever the compiler fuses.
template <class T>
struct StepUnits {
  T a_over_b, b, g, k, o, p_over_o, g_l_over_g, g_l_over_k, scale_over_shift, one_over_shift, shift;

  explicit StepUnits(const Letters<double>& of)
      : a_over_b(static_cast<T>(of.a / of.b)),
        b(static_cast<T>(of.b)),
        g(static_cast<T>(of.g)),
        k(static_cast<T>(of.k)),
        o(static_cast<T>(of.o)),
        p_over_o(static_cast<T>(of.p / of.o)),
        g_l_over_g(static_cast<T>(of.g_l / of.g)),
        g_l_over_k(static_cast<T>(of.g_l / of.k)),
        scale_over_shift(static_cast<T>(of.input_scale / of.input_shift)),
        one_over_shift(static_cast<T>(1 / of.input_shift)),
        shift(static_cast<T>(of.input_shift)) {}
};

// Adds rows [first, first + count) of a, b, g, k, o to N vectors of f, u, w, from unit i on; `here` units remain from
// there. f is counted in the unit of g, u in that of k, w in that of o.
template <class T, int N, bool Elastic, bool Wired>
LRCNET_INLINE void add_rows(const Problem& problem, const StepUnits<T>& units, index_t first, index_t count, const T* y,
                            index_t i, index_t here, T* f, T* u, T* w) {
  constexpr index_t W = kLanes<T>;
  const index_t m = problem.m, at = first * m + i;
  const unsigned char* mask = Wired ? problem.mask + at : nullptr;
  const T *a = static_cast<const T*>(problem.letters.a) + at, *b = static_cast<const T*>(problem.letters.b) + at,
          *g = static_cast<const T*>(problem.letters.g) + at, *k = static_cast<const T*>(problem.letters.k) + at,
          *o = Elastic ? static_cast<const T*>(problem.letters.o) + at : nullptr;
  Vec<T> f_sum[N], u_sum[N], w_sum[N];
  for (int v = 0; v < N; ++v) f_sum[v] = load(f + v * W), u_sum[v] = load(u + v * W), w_sum[v] = load(w + v * W);
  // Read before the loop: a row without synapses skips the rest, which keeps the compiler from doing so.
  const T a_over_b = units.a_over_b, b_unit = units.b;
  // Only the last vector of a row can be partial, and it comes alone.
  const auto take = [here](const T* from) { return N == 1 ? load_part(from, here) : load(from); };
  for (index_t j = 0; j < count; ++j) {
    std::uint32_t bits[N] = {}, any = 0;
    for (int v = 0; Wired && v < N; ++v) any |= bits[v] = mask_bits<T>(mask + j * m + v * W, N == 1 ? here : W);
    if (Wired && !any) continue;
    const T yj = y[j], y_over_b = yj * a_over_b;
    Vec<T> s[N];
    for (int v = 0; v < N; ++v) s[v] = take(a + j * m + v * W) * -y_over_b - take(b + j * m + v * W);
    sigmoid_of_minus<T, true, N>(s, b_unit);
    for (int v = 0; v < N; ++v) {
      const index_t next = j * m + v * W;
      const Vec<T> gv = at_least(take(g + next), T(0)), kv = take(k + next);
      const Vec<T> ov = Elastic ? take(o + next) : Vec<T>{}, ys = splat(yj);
      if (Wired) {
        // Whatever a missing synapse holds, a NaN included, must not come through.
        f_sum[v] = add_where<T>(bits[v], f_sum[v], gv, s[v]), u_sum[v] = add_where<T>(bits[v], u_sum[v], kv, s[v]);
        if (Elastic) w_sum[v] = add_where<T>(bits[v], w_sum[v], ov, ys);
      } else {
        f_sum[v] += gv * s[v], u_sum[v] += kv * s[v];
        if (Elastic) w_sum[v] += ov * yj;
      }
    }
  }
  for (int v = 0; v < N; ++v) store(f + v * W, f_sum[v]), store(u + v * W, u_sum[v]), store(w + v * W, w_sum[v]);
}

template <class T, bool Elastic, bool Wired>
void add_all_rows(const Problem& problem, const StepUnits<T>& units, index_t first, index_t count, const T* y, T* f,
                  T* u, T* w) {
  constexpr index_t W = kLanes<T>;
  index_t i = 0;
  for (; i + 4 * W <= problem.m; i += 4 * W)
    add_rows<T, 4, Elastic, Wired>(problem, units, first, count, y, i, problem.m - i, f + i, u + i, w + i);
  for (; i + 2 * W <= problem.m; i += 2 * W)
    add_rows<T, 2, Elastic, Wired>(problem, units, first, count, y, i, problem.m - i, f + i, u + i, w + i);
  for (; i < problem.m; i += W)
    add_rows<T, 1, Elastic, Wired>(problem, units, first, count, y, i, problem.m - i, f + i, u + i, w + i);
}

// The unit letters of the vector of units that starts at i, times their units and constrained.
template <class T>
LRCNET_INLINE void load_unit_letters(const Problem& problem, index_t i, Vec<T> (&unit)[kUnitLetters]) {
  for (int letter = 0; letter < kUnitLetters; ++letter) {
    const T* values = static_cast<const T*>(problem.letters.*kUnit[letter].value);
    const T times = static_cast<T>(problem.units->*kUnit[letter].unit);
    const Vec<T> value = values ? load_part(values + i, problem.m - i) * times : Vec<T>{};
    unit[letter] = kUnit[letter].nonnegative ? (value < T(0) ? Vec<T>{} : value) : value;
  }
}

// Takes one step of each sample. scratch holds n + 7 padded(m) numbers. x, h, out are (B, n), (B, m), (B, m); h and out
// contiguous.
template <class T>
void step_batch(const Problem& problem, const T* h, T* out, T* scratch) {
  constexpr index_t W = kLanes<T>;
  const index_t m = problem.m, n = problem.n, m_padded = padded<T>(m);
  const Switches switches{problem.saturated != 0, problem.elastance, problem.solver};
  T *state = scratch, *inputs = state + m_padded, *sums = inputs + 3 * m_padded, *y = sums + 3 * m_padded;
  const T *scale = static_cast<const T*>(problem.letters.input_scale),
          *shift = static_cast<const T*>(problem.letters.input_shift);
  const StepUnits<T> units(*problem.units);
  const bool elastic = problem.elastance != kNone;
  const auto add_some = problem.mask ? (elastic ? add_all_rows<T, true, true> : add_all_rows<T, false, true>)
                                     : (elastic ? add_all_rows<T, true, false> : add_all_rows<T, false, false>);
  const auto add = [&](index_t first, index_t count, const T* from, T* to) {
    add_some(problem, units, first, count, from, to, to + m_padded, to + 2 * m_padded);
  };
  for (index_t b = 0; b < problem.B; ++b) {
    const T* x = static_cast<const T*>(problem.x) + b * problem.x_batch;
    for (index_t j = 0; j < n; ++j)
      y[j] = (x[j * problem.x_channel] * (scale ? scale[j] * units.scale_over_shift : units.one_over_shift) +
              (shift ? shift[j] : T(0))) *
             units.shift;
    for (index_t i = 0; i < m_padded; i += W) {
      const Vec<T> g_l = load_part(static_cast<const T*>(problem.letters.g_l) + i, m - i);
      const Vec<T> leak = g_l < T(0) ? Vec<T>{} : g_l;
      store(inputs + i, leak * units.g_l_over_g), store(inputs + m_padded + i, leak * units.g_l_over_k);
      const T* p = static_cast<const T*>(problem.letters.p);
      store(inputs + 2 * m_padded + i, p ? load_part(p + i, m - i) * units.p_over_o : Vec<T>{});
      store(state + i, h ? load_part(h + b * m + i, m - i) : Vec<T>{});
    }
    add(m, n, y, inputs);
    for (index_t k = 0; k < problem.K; ++k) {
      std::memcpy(sums, inputs, static_cast<std::size_t>(3 * m_padded) * sizeof(T));
      add(0, m, state, sums);
      for (index_t i = 0; i < m_padded; i += W) {
        Vec<T> f = load(sums + i) * units.g, u = load(sums + m_padded + i) * units.k;
        Vec<T> unit[kUnitLetters];
        load_unit_letters<T>(problem, i, unit);
        store(state + i, advance<T>(switches, load(state + i), substep<T>(problem, 0, b), f, u,
                                    load(sums + 2 * m_padded + i) * units.o, unit));
      }
    }
    std::memcpy(out + b * m, state, static_cast<std::size_t>(m) * sizeof(T));
  }
}

}  // namespace
