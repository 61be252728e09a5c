// The gradients of every parameter, the inputs, dt and the first state, backwards through time. Sigmoids are computed
// again rather than kept. Each part of the batch sums its own parameter gradients; the parts are added in order at the end,
// so that the result depends on the number of parts only.
#pragma once

#include "matmul.h"
#include "prepare.h"
#include "solver.h"

namespace {

// Gradient sums of one part, laid out as the prepared weights.
template <class T>
struct Sums {
  T *state, *input, *o, *g_l, *e_l, *p, *k_eps, *scale, *shift, *first;
  std::size_t count;

  void lay(Arena& arena, Sizes s, bool elastic) {
    const std::size_t before = arena.used;
    const index_t rows = s.vectors * kPlanes * kLanes<T>;
    first = state = arena.take<T>(s.m * rows);
    input = arena.take<T>(s.n * rows);
    o = arena.take<T>(elastic ? (s.m + s.n) * s.mp : 0);
    g_l = arena.take<T>(s.mp), e_l = arena.take<T>(s.mp), p = arena.take<T>(s.mp), k_eps = arena.take<T>(s.mp);
    scale = arena.take<T>(s.np), shift = arena.take<T>(s.np);
    count = (arena.used - before) / sizeof(T);
  }
};

template <class T>
struct BackwardScratch {
  T *y, *gf, *gu, *gw, *gf_one, *gu_one, *gw_one, *dy, *h, *gh, *lanes;

  void lay(Arena& arena, Sizes s) {
    const index_t points = s.steps * s.block, block = s.block * s.mp, unfolded = s.K > 1 ? block : 0;
    y = arena.take<T>(points * s.np), dy = arena.take<T>(points * s.np);
    gf = arena.take<T>(points * s.mp), gu = arena.take<T>(points * s.mp), gw = arena.take<T>(points * s.mp);
    gf_one = arena.take<T>(unfolded), gu_one = arena.take<T>(unfolded), gw_one = arena.take<T>(unfolded);
    h = arena.take<T>(points * s.mp), gh = arena.take<T>(block);
    lanes = arena.take<T>(s.block * kLanes<T>);
  }
};

template <class T>
struct Backward {
  static constexpr index_t W = kLanes<T>;
  const Problem& q;
  const Gradients& to;
  Sizes s;
  Prepared<T> weights;
  Sums<T>* sums = nullptr;  // one per part
  bool want_y, elastic, out_of_memory = false;

  Backward(const Problem& problem, const Gradients& gradients)
      : q(problem), to(gradients), s(Sizes::of<T>(problem)), want_y(to.x || to.scale || to.shift), elastic(q.elastance != kNone) {}

  // The state before unfolding k of a step, (samples, mp).
  void gather_state(T* h, index_t time, index_t k, index_t sample, index_t samples) const {
    if (s.K > 1) {
      const T* saved = static_cast<const T*>(q.saved) + ((time * s.K + k) * s.B + sample) * s.planes * s.m;
      gather_rows(saved + (s.planes - 1) * s.m, s.planes * s.m, samples, s.m, s.mp, h);
    } else if (time > 0) {
      const T* states = static_cast<const T*>(q.states) + (time - 1) * q.state_time + sample * q.state_batch;
      gather_rows(states, q.state_batch, samples, s.m, s.mp, h);
    } else {
      const T* h0 = static_cast<const T*>(q.h0);
      gather_rows(h0 ? h0 + sample * s.m : nullptr, s.m, samples, s.m, s.mp, h);
    }
  }

  void add_output_gradient(T* gh, index_t time, index_t sample, index_t samples) const {
    if (!to.states) return;
    for (index_t b = 0; b < samples; ++b) {
      const T* from = static_cast<const T*>(to.states) + time * to.time + (sample + b) * to.batch;
      for (index_t i = 0; i < s.m; ++i) gh[b * s.mp + i] += from[i * to.unit];
    }
  }

  // Through one unfolding: gh becomes the direct part of the gradient of the state before; gf, gu, gw are those of the sums.
  void refold(const BackwardScratch<T>& at, const Sums<T>& sum, const T* h, T* gf, T* gu, T* gw, index_t time, index_t k, index_t sample,
              index_t samples) const {
    const Switches is{q.saturated != 0, q.elastance, q.solver};
    const auto keep = lanes_below<T>(s.m - (s.mp - W));
    const T* saved = static_cast<const T*>(q.saved) + ((time * s.K + k) * s.B + sample) * s.planes * s.m;
    if (to.dt) std::memset(at.lanes, 0, static_cast<std::size_t>(samples * W) * sizeof(T));
    for (index_t v = 0; v < s.vectors; ++v) {
      const index_t i = v * W, here = s.m - i;
      const Vec<T> k_eps = load(weights.k_eps + i), e_l = load(weights.e_l + i);
      Vec<T> g_l_sum = {}, e_l_sum = {}, p_sum = {}, k_eps_sum = {};
      for (index_t b = 0; b < samples; ++b) {
        const index_t p = b * s.mp + i;
        const T* from = saved + b * s.planes * s.m + i;
        const Vec<T> F = load_part(from, here), U = load_part(from + s.m, here);
        const Vec<T> w = elastic ? load_part(from + 2 * s.m, here) : Vec<T>{};
        UnitGradient<T> g = retreat<T>(is, load(at.gh + p), load(h + p), substep<T>(q, time, sample + b), F, U, w, k_eps, e_l);
        if (here < W) g.h = masked<T>(g.h, keep), g.f = masked<T>(g.f, keep), g.u = masked<T>(g.u, keep), g.w = masked<T>(g.w, keep);
        store(at.gh + p, g.h);
        store(gf + p, g.f), store(gu + p, g.u);
        if (elastic) store(gw + p, g.w);
        g_l_sum += g.f + g.u, e_l_sum += g.e_l, p_sum += g.w, k_eps_sum += g.k_eps;
        if (to.dt) store(at.lanes + b * W, load(at.lanes + b * W) + (here < W ? masked<T>(g.d, keep) : g.d));
      }
      store(sum.g_l + i, load(sum.g_l + i) + g_l_sum);
      store(sum.e_l + i, load(sum.e_l + i) + e_l_sum);
      store(sum.p + i, load(sum.p + i) + p_sum);
      store(sum.k_eps + i, load(sum.k_eps + i) + k_eps_sum);
    }
    if (to.dt)
      for (index_t b = 0; b < samples; ++b) {
        T& g = static_cast<T*>(to.dt)[time * to.dt_time + (sample + b) * to.dt_batch];
        g = (k == s.K - 1 ? T(0) : g) + sum_lanes<T>(load(at.lanes + b * W)) / static_cast<T>(s.K);
      }
  }

  // One step, all its unfoldings; leaves the step's gf, gu, gw (summed over unfoldings) for the inputs' rows.
  void run_step(const BackwardScratch<T>& at, const Sums<T>& sum, index_t point, index_t time, index_t sample,
                index_t samples) const {
    T* h = at.h + point * s.mp;
    T *gf_all = at.gf + point * s.mp, *gu_all = at.gu + point * s.mp, *gw_all = at.gw + point * s.mp;
    add_output_gradient(at.gh, time, sample, samples);
    for (index_t k = s.K - 1; k >= 0; --k) {
      const bool apart = k < s.K - 1;
      T *gf = apart ? at.gf_one : gf_all, *gu = apart ? at.gu_one : gu_all, *gw = apart ? at.gw_one : gw_all;
      gather_state(h, time, k, sample, samples);
      refold(at, sum, h, gf, gu, gw, time, k, sample, samples);
      differentiate_synapses(weights.state, h, s.mp, samples, gf, gu, sum.state, at.gh, s.mp, at.lanes);
      if (elastic) {
        matmul_add(gw, s.mp, index_t(1), samples, weights.o_t_state, s.mp, s.m, at.gh, s.mp, s.vectors);
        if (s.K > 1) matmul_add(h, index_t(1), s.mp, s.m, gw, s.mp, samples, sum.o, s.mp, s.vectors);
      }
      if (!apart) continue;
      for (index_t i = 0; i < samples * s.mp; ++i) gf_all[i] += gf[i], gu_all[i] += gu[i];
      if (elastic)
        for (index_t i = 0; i < samples * s.mp; ++i) gw_all[i] += gw[i];
    }
  }

  void run_inputs(const BackwardScratch<T>& at, const Sums<T>& sum, index_t time, index_t steps, index_t sample,
                  index_t samples) const {
    const index_t points = steps * samples;
    gather_inputs(q, s, weights, time, steps, sample, samples, at.y);
    if (want_y) std::memset(at.dy, 0, static_cast<std::size_t>(points * s.np) * sizeof(T));
    for (index_t p = 0; p < points; p += s.block) {
      const index_t some = smaller(s.block, points - p);
      differentiate_synapses(weights.input, at.y + p * s.np, s.np, some, at.gf + p * s.mp, at.gu + p * s.mp, sum.input,
                             want_y ? at.dy + p * s.np : nullptr, s.np, at.lanes);
    }
    if (elastic) {
      matmul_add(at.y, index_t(1), s.np, s.n, at.gw, s.mp, points, sum.o + s.m * s.mp, s.mp, s.vectors);
      if (want_y) matmul_add(at.gw, s.mp, index_t(1), points, weights.o_t_input, s.np, s.m, at.dy, s.np, s.np / W);
    }
    if (want_y) scatter_inputs(at.dy, sum, time, steps, sample, samples);
  }

  // From the mapped inputs' gradient to those of x and of the map.
  void scatter_inputs(const T* dy, const Sums<T>& sum, index_t time, index_t steps, index_t sample, index_t samples) const {
    if (to.scale || to.shift) sum_map(dy, sum, time, steps, sample, samples);
    if (!to.x) return;
    for (index_t t = 0; t < steps; ++t)
      for (index_t b = 0; b < samples; ++b, dy += s.np) {
        T* into = static_cast<T*>(to.x) + (time + t) * to.x_time + (sample + b) * to.x_batch;
        for (index_t j = 0; j < s.n; ++j) into[j] = dy[j] * weights.scale[j];
      }
  }

  // A channel's gradient sums one number per reading, of both signs and one after the other: in single precision it would
  // lose what the plain loop, which sums in a tree, keeps.
  void sum_map(const T* dy, const Sums<T>& sum, index_t time, index_t steps, index_t sample, index_t samples) const {
    constexpr index_t kChannels = 16;
    for (index_t first = 0; first < s.n; first += kChannels) {
      const index_t channels = smaller(kChannels, s.n - first);
      double scale[kChannels] = {}, shift[kChannels] = {};
      const T* row = dy + first;
      for (index_t t = 0; t < steps; ++t)
        for (index_t b = 0; b < samples; ++b, row += s.np) {
          const T* x = static_cast<const T*>(q.x) + (time + t) * q.x_time + (sample + b) * q.x_batch + first * q.x_channel;
          for (index_t j = 0; j < channels; ++j) {
            shift[j] += row[j];
            scale[j] += static_cast<double>(row[j]) * x[j * q.x_channel];
          }
        }
      for (index_t j = 0; j < channels; ++j) {
        sum.scale[first + j] += static_cast<T>(scale[j]);
        sum.shift[first + j] += static_cast<T>(shift[j]);
      }
    }
  }

  void run_block(const BackwardScratch<T>& at, const Sums<T>& sum, index_t sample, index_t samples) const {
    std::memset(at.gh, 0, static_cast<std::size_t>(samples * s.mp) * sizeof(T));
    for (index_t end = s.T; end > 0; end -= s.steps) {
      const index_t steps = smaller(s.steps, end), time = end - steps;
      for (index_t t = steps - 1; t >= 0; --t) run_step(at, sum, t * samples, time + t, sample, samples);
      // With one unfolding the states before all steps of the block are at hand: one product instead of one per step.
      if (elastic && s.K == 1)
        matmul_add(at.h, index_t(1), s.mp, s.m, at.gw, s.mp, steps * samples, sum.o, s.mp, s.vectors);
      if (s.n > 0) run_inputs(at, sum, time, steps, sample, samples);
    }
    for (index_t b = 0; b < samples; ++b)
      std::memcpy(static_cast<T*>(to.h0) + (sample + b) * s.m, at.gh + b * s.mp, static_cast<std::size_t>(s.m) * sizeof(T));
  }

  static void task(void* context, int part) {
    Backward& self = *static_cast<Backward*>(context);
    const Sizes& s = self.s;
    BackwardScratch<T> scratch;
    void* block;
    const Sums<T>& sum = self.sums[part];
    if (!allocate(scratch, block, s)) {
      __atomic_store_n(&self.out_of_memory, true, __ATOMIC_RELAXED);
      return;
    }
    std::memset(static_cast<void*>(sum.first), 0, sum.count * sizeof(T));
    const index_t first = s.B * part / s.parts, end = s.B * (part + 1) / s.parts;
    for (index_t sample = first; sample < end; sample += s.block)
      self.run_block(scratch, sum, sample, smaller(s.block, end - sample));
    std::free(block);
  }

  // A constrained value (max(v, 0)) passes its gradient where it is inside, or where a descent step would raise it.
  static T constrained(T gradient, T value) { return value >= T(0) || gradient < T(0) ? gradient : T(0); }

  static void give(void* into, const T* from, const void* constraint, index_t count) {
    if (!into) return;
    for (index_t i = 0; i < count; ++i)
      static_cast<T*>(into)[i] = constraint ? constrained(from[i], static_cast<const T*>(constraint)[i]) : from[i];
  }

  void give_rows(const T* packed, index_t first, index_t count) const {
    T *a = static_cast<T*>(to.a), *b = static_cast<T*>(to.b), *g = static_cast<T*>(to.g), *k = static_cast<T*>(to.k);
    for (index_t j = 0; j < count; ++j)
      for (index_t v = 0; v < s.vectors; ++v) {
        const T* from = packed + (j * s.vectors + v) * kPlanes * W;
        const index_t at = (first + j) * s.m + v * W, here = s.m - v * W;
        store_part(a + at, load(from + kA * W), here);
        store_part(b + at, load(from + kB * W), here);
        store_part(k + at, load(from + kK * W), here);
        for (index_t l = 0; l < smaller(W, here); ++l)
          g[at + l] = constrained(from[kG * W + l], static_cast<const T*>(q.g)[at + l]);
      }
  }

  void finish() const {
    const Sums<T>& all = sums[0];
    for (index_t part = 1; part < s.parts; ++part)
      for (std::size_t i = 0; i < all.count; ++i) all.first[i] += sums[part].first[i];
    give_rows(all.state, 0, s.m);
    give_rows(all.input, s.m, s.n);
    give(to.g_l, all.g_l, q.g_l, s.m);
    give(to.e_l, all.e_l, nullptr, s.m);
    give(to.p, all.p, nullptr, s.m);
    give(to.k_eps, all.k_eps, q.k_eps, s.m);
    give(to.scale, all.scale, nullptr, s.n);
    give(to.shift, all.shift, nullptr, s.n);
    for (index_t j = 0; to.o && j < s.m + s.n; ++j) {
      T* row = static_cast<T*>(to.o) + j * s.m;
      const std::size_t bytes = static_cast<std::size_t>(s.m) * sizeof(T);
      if (elastic)
        std::memcpy(row, all.o + j * s.mp, bytes);
      else
        std::memset(row, 0, bytes);
    }
  }

  struct AllSums {
    Sums<T>* each;
    void lay(Arena& arena, Sizes s, bool elastic) {
      each = arena.take<Sums<T>>(s.parts);
      for (index_t part = 0; part < s.parts; ++part) {
        Sums<T> one;
        one.lay(arena, s, elastic);
        if (arena.base) each[part] = one;
      }
    }
  };

  int run(lrcnet::RunTasks run_tasks) {
    void *block, *sums_block;
    AllSums all;
    if (!allocate(weights, block, s, elastic, true)) return 1;
    if (!allocate(all, sums_block, s, elastic)) {
      std::free(block);
      return 1;
    }
    sums = all.each;
    weights.fill(q, s, true);
    run_tasks(task, this, static_cast<int>(s.parts), q.threads);
    if (!out_of_memory) finish();
    std::free(sums_block);
    std::free(block);
    return out_of_memory ? 1 : 0;
  }
};

}  // namespace
