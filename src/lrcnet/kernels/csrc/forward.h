// All states of a batch of sequences, and what the backward pass needs: F, U, w of every unfolding.
#pragma once

#include "matmul.h"
#include "prepare.h"
#include "solver.h"

namespace {

template <class T>
struct ForwardScratch {
  T *y, *f_in, *u_in, *w_in, *f, *u, *w, *h;

  void lay_out(Arena& arena, Sizes sizes) {
    const index_t points = sizes.steps * sizes.block;
    y = arena.take<T>(points * sizes.n_padded);
    f_in = arena.take<T>(points * sizes.m_padded), u_in = arena.take<T>(points * sizes.m_padded),
    w_in = arena.take<T>(points * sizes.m_padded);
    f = arena.take<T>(sizes.block * sizes.m_padded), u = arena.take<T>(sizes.block * sizes.m_padded),
    w = arena.take<T>(sizes.block * sizes.m_padded);
    h = arena.take<T>(sizes.block * sizes.m_padded);
  }
};

template <class T>
struct Forward {
  static constexpr index_t W = kLanes<T>;
  const Problem& problem;
  Sizes sizes;
  Prepared<T> weights;
  bool out_of_memory = false;

  explicit Forward(const Problem& given) : problem(given), sizes(Sizes::of<T>(given)) {}

  // Sums the inputs' part of f, u, w for a block of steps.
  void sum_inputs(const ForwardScratch<T>& scratch, index_t time, index_t steps, index_t sample,
                  index_t samples) const {
    const index_t points = steps * samples;
    const std::size_t row = static_cast<std::size_t>(sizes.m_padded) * sizeof(T);
    for (index_t p = 0; p < points; ++p) {
      std::memcpy(scratch.f_in + p * sizes.m_padded, weights.g_l, row);
      std::memcpy(scratch.u_in + p * sizes.m_padded, weights.g_l, row);
      if (problem.elastance != kNone) std::memcpy(scratch.w_in + p * sizes.m_padded, weights.p, row);
    }
    if (sizes.n == 0) return;
    gather_inputs(problem, sizes, weights, time, steps, sample, samples, scratch.y);
    sum_synapses(weights.input, scratch.y, sizes.n_padded, points, scratch.f_in, scratch.u_in, scratch.f_in,
                 scratch.u_in);
    if (problem.elastance != kNone)
      matmul_add(scratch.y, sizes.n_padded, index_t(1), points, weights.o + sizes.m * sizes.m_padded, sizes.m_padded,
                 sizes.n, scratch.w_in, sizes.m_padded, sizes.vectors);
  }

  // Takes one unfolding of all samples of the block, from their sums to their next states.
  void unfold(const ForwardScratch<T>& scratch, index_t time, index_t k, index_t sample, index_t samples) const {
    const Switches switches{problem.saturated != 0, problem.elastance, problem.solver};
    const auto keep = lanes_below<T>(sizes.m - (sizes.m_padded - W));
    T* saved = static_cast<T*>(problem.saved);
    for (index_t b = 0; b < samples; ++b) {
      const T d = substep<T>(problem, time, sample + b);
      T* planes = saved ? saved + ((time * sizes.K + k) * sizes.B + sample + b) * sizes.planes * sizes.m : nullptr;
      for (index_t v = 0; v < sizes.vectors; ++v) {
        const index_t i = v * W, here = sizes.m - i, p = b * sizes.m_padded + i;
        Vec<T> h = load(scratch.h + p), f = load(scratch.f + p), u = load(scratch.u + p), w = {};
        if (problem.elastance != kNone) w = load(scratch.w + p);
        Vec<T> unit[kUnitLetters];
        weights.load_unit(i, unit);
        Vec<T> next = advance<T>(switches, h, d, f, u, w, unit);
        if (here < W) next = masked<T>(next, keep);
        store(scratch.h + p, next);
        if (!planes) continue;
        T* to = planes + i;
        store_part(to, f, here), to += sizes.m;
        store_part(to, u, here), to += sizes.m;
        if (problem.elastance != kNone) store_part(to, w, here), to += sizes.m;
        if (sizes.K > 1) store_part(to, h, here);
      }
    }
  }

  void run_block(const ForwardScratch<T>& scratch, index_t sample, index_t samples) const {
    const T* h0 = static_cast<const T*>(problem.h0);
    gather_rows(h0 ? h0 + sample * sizes.m : nullptr, sizes.m, samples, sizes.m, sizes.m_padded, scratch.h);
    for (index_t time = 0; time < sizes.T; time += sizes.steps) {
      if (problem.interrupted()) return;
      const index_t steps = smaller(sizes.steps, sizes.T - time);
      sum_inputs(scratch, time, steps, sample, samples);
      for (index_t t = 0; t < steps; ++t) {
        const index_t point = t * samples * sizes.m_padded;
        for (index_t k = 0; k < sizes.K; ++k) {
          sum_synapses(weights.state, scratch.h, sizes.m_padded, samples, scratch.f_in + point, scratch.u_in + point,
                       scratch.f, scratch.u);
          if (problem.elastance != kNone) {
            std::memcpy(scratch.w, scratch.w_in + point,
                        static_cast<std::size_t>(samples * sizes.m_padded) * sizeof(T));
            matmul_add(scratch.h, sizes.m_padded, index_t(1), samples, weights.o, sizes.m_padded, sizes.m, scratch.w,
                       sizes.m_padded, sizes.vectors);
          }
          unfold(scratch, time + t, k, sample, samples);
        }
        T* states = static_cast<T*>(problem.states) + (time + t) * problem.state_time + sample * problem.state_batch;
        for (index_t b = 0; b < samples; ++b)
          std::memcpy(states + b * problem.state_batch, scratch.h + b * sizes.m_padded,
                      static_cast<std::size_t>(sizes.m) * sizeof(T));
      }
    }
  }

  static void task(void* context, int part) {
    Forward& self = *static_cast<Forward*>(context);
    const Sizes& sizes = self.sizes;
    ForwardScratch<T> scratch;
    void* block;
    if (!allocate(scratch, block, sizes)) {
      __atomic_store_n(&self.out_of_memory, true, __ATOMIC_RELAXED);
      return;
    }
    const index_t first = sizes.B * part / sizes.parts, end = sizes.B * (part + 1) / sizes.parts;
    for (index_t sample = first; sample < end; sample += sizes.block)
      self.run_block(scratch, sample, smaller(sizes.block, end - sample));
    std::free(block);
  }

  int run(lrcnet::RunTasks run_tasks) {
    if (sizes.T == 0 || sizes.B == 0) return 0;
    void* block;
    if (!allocate(weights, block, sizes, problem.elastance != kNone, false)) return 1;
    weights.fill(problem, sizes, false);
    run_tasks(task, this, static_cast<int>(sizes.parts), problem.threads);
    std::free(block);
    return out_of_memory ? 1 : 0;
  }
};

}  // namespace
