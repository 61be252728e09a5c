// All states of a batch of sequences, and what the way back needs: F, U, w of every unfolding.
#pragma once

#include "matmul.h"
#include "prepare.h"
#include "solver.h"

namespace {

template <class T>
struct ForwardScratch {
  T *y, *f_in, *u_in, *w_in, *f, *u, *w, *h;

  void lay(Arena& arena, Sizes s) {
    const index_t points = s.steps * s.block;
    y = arena.take<T>(points * s.np);
    f_in = arena.take<T>(points * s.mp), u_in = arena.take<T>(points * s.mp), w_in = arena.take<T>(points * s.mp);
    f = arena.take<T>(s.block * s.mp), u = arena.take<T>(s.block * s.mp), w = arena.take<T>(s.block * s.mp);
    h = arena.take<T>(s.block * s.mp);
  }
};

template <class T>
struct Forward {
  static constexpr index_t W = kLanes<T>;
  const Problem& q;
  Sizes s;
  Prepared<T> weights;
  bool out_of_memory = false;

  explicit Forward(const Problem& problem) : q(problem), s(Sizes::of<T>(problem)) {}

  // The inputs' part of f, u, w for a block of steps.
  void sum_inputs(const ForwardScratch<T>& at, index_t time, index_t steps, index_t sample, index_t samples) const {
    const index_t points = steps * samples;
    const std::size_t row = static_cast<std::size_t>(s.mp) * sizeof(T);
    for (index_t p = 0; p < points; ++p) {
      std::memcpy(at.f_in + p * s.mp, weights.g_l, row);
      std::memcpy(at.u_in + p * s.mp, weights.g_l, row);
      if (q.elastance != kNone) std::memcpy(at.w_in + p * s.mp, weights.p, row);
    }
    if (s.n == 0) return;
    gather_inputs(q, s, weights, time, steps, sample, samples, at.y);
    sum_synapses(weights.input, at.y, s.np, points, at.f_in, at.u_in, at.f_in, at.u_in);
    if (q.elastance != kNone)
      matmul_add(at.y, s.np, index_t(1), points, weights.o + s.m * s.mp, s.mp, s.n, at.w_in, s.mp, s.vectors);
  }

  // One unfolding of all samples of the block, from sums to the next state.
  void unfold(const ForwardScratch<T>& at, index_t time, index_t k, index_t sample, index_t samples) const {
    const Switches is{q.saturated != 0, q.elastance, q.solver};
    const auto keep = lanes_below<T>(s.m - (s.mp - W));
    T* saved = static_cast<T*>(q.saved);
    for (index_t b = 0; b < samples; ++b) {
      const T d = substep<T>(q, time, sample + b);
      T* planes = saved ? saved + ((time * s.K + k) * s.B + sample + b) * s.planes * s.m : nullptr;
      for (index_t v = 0; v < s.vectors; ++v) {
        const index_t i = v * W, here = s.m - i, p = b * s.mp + i;
        Vec<T> h = load(at.h + p), f = load(at.f + p), u = load(at.u + p), w = {};
        if (q.elastance != kNone) w = load(at.w + p);
        Vec<T> next = advance<T>(is, h, d, f, u, w, load(weights.k_eps + i), load(weights.e_l + i));
        if (here < W) next = masked<T>(next, keep);
        store(at.h + p, next);
        if (!planes) continue;
        T* to = planes + i;
        store_part(to, f, here), to += s.m;
        store_part(to, u, here), to += s.m;
        if (q.elastance != kNone) store_part(to, w, here), to += s.m;
        if (s.K > 1) store_part(to, h, here);
      }
    }
  }

  void run_block(const ForwardScratch<T>& at, index_t sample, index_t samples) const {
    const T* h0 = static_cast<const T*>(q.h0);
    gather_rows(h0 ? h0 + sample * s.m : nullptr, s.m, samples, s.m, s.mp, at.h);
    for (index_t time = 0; time < s.T; time += s.steps) {
      const index_t steps = smaller(s.steps, s.T - time);
      sum_inputs(at, time, steps, sample, samples);
      for (index_t t = 0; t < steps; ++t) {
        const index_t point = t * samples * s.mp;
        for (index_t k = 0; k < s.K; ++k) {
          sum_synapses(weights.state, at.h, s.mp, samples, at.f_in + point, at.u_in + point, at.f, at.u);
          if (q.elastance != kNone) {
            std::memcpy(at.w, at.w_in + point, static_cast<std::size_t>(samples * s.mp) * sizeof(T));
            matmul_add(at.h, s.mp, index_t(1), samples, weights.o, s.mp, s.m, at.w, s.mp, s.vectors);
          }
          unfold(at, time + t, k, sample, samples);
        }
        T* states = static_cast<T*>(q.states) + (time + t) * q.state_time + sample * q.state_batch;
        for (index_t b = 0; b < samples; ++b)
          std::memcpy(states + b * q.state_batch, at.h + b * s.mp, static_cast<std::size_t>(s.m) * sizeof(T));
      }
    }
  }

  static void task(void* context, int part) {
    Forward& self = *static_cast<Forward*>(context);
    const Sizes& s = self.s;
    ForwardScratch<T> scratch;
    void* block;
    if (!allocate(scratch, block, s)) {
      __atomic_store_n(&self.out_of_memory, true, __ATOMIC_RELAXED);
      return;
    }
    const index_t first = s.B * part / s.parts, end = s.B * (part + 1) / s.parts;
    for (index_t sample = first; sample < end; sample += s.block)
      self.run_block(scratch, sample, smaller(s.block, end - sample));
    std::free(block);
  }

  int run(lrcnet::RunTasks run_tasks) {
    if (s.T == 0 || s.B == 0) return 0;
    void* block;
    if (!allocate(weights, block, s, q.elastance != kNone, false)) return 1;
    weights.fill(q, s, false);
    run_tasks(task, this, static_cast<int>(s.parts), q.threads);
    std::free(block);
    return out_of_memory ? 1 : 0;
  }
};

}  // namespace
