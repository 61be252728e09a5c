// All states of a batch of sequences, and what the backward pass needs: F, U, w of every unfolding.
#pragma once

#include "matmul.h"
#include "prepare.h"
#include "solver.h"
#include "team.h"

namespace {

template <class T>
struct ForwardScratch {
  T *y, *f_in, *u_in, *w_in, *f, *u, *w;
  // The states before and after an unfolding: the same memory, unless a team shares it and others still read the former.
  T *h, *next;
  T *y_t, *h_t;  // transposed, for a wiring; so are f_in, u_in, w_in if the states have a list too
  Currents<T> sums_t, inputs_t;

  void lay_out(Arena& arena, Sizes sizes) {
    const index_t points = sizes.steps * sizes.block;
    const index_t sums = sizes.m_padded * (sizes.wired ? sizes.block_points : points),
                  step_t = sizes.wired ? sizes.m_padded * sizes.step_points : 0;
    y = arena.take<T>(points * sizes.n_padded);
    y_t = arena.take<T>(sizes.input_wired ? sizes.n_padded * sizes.block_points : 0), h_t = arena.take<T>(step_t);
    f_in = arena.take<T>(sums), u_in = arena.take<T>(sums), w_in = arena.take<T>(sums);
    const index_t apart = sizes.input_wired && !sizes.wired ? sizes.m_padded * sizes.block_points : 0;
    inputs_t = {arena.take<T>(apart), arena.take<T>(apart), arena.take<T>(apart), sizes.block_points};
    if (!apart) inputs_t = {f_in, u_in, w_in, sizes.block_points};
    sums_t = {arena.take<T>(step_t), arena.take<T>(step_t), arena.take<T>(step_t), sizes.step_points};
    f = arena.take<T>(sizes.block * sizes.m_padded), u = arena.take<T>(sizes.block * sizes.m_padded),
    w = arena.take<T>(sizes.block * sizes.m_padded);
    h = next = arena.take<T>(sizes.block * sizes.m_padded);
  }
};

template <class T>
struct Forward {
  static constexpr index_t W = kLanes<T>;
  const Problem& problem;
  Sizes sizes;
  Prepared<T> weights;
  ForwardScratch<T>* of_members = nullptr;
  Team team;
  bool out_of_memory = false;

  explicit Forward(const Problem& given) : problem(given), sizes(Sizes::of<T>(given)) {}

  // The same from a list: f_in, u_in, w_in are (units, points), unless the states have no list.
  void sum_wired_inputs(const ForwardScratch<T>& scratch, index_t time, index_t steps, index_t sample,
                        index_t samples) const {
    const bool elastic = problem.elastance != kNone;
    const index_t points = steps * samples, stride = sizes.block_points;
    const Currents<T>& to = scratch.inputs_t;
    for (index_t i = 0; i < sizes.m; ++i)
      for (index_t p = 0; p < stride; p += W) {
        store(to.f + i * stride + p, splat(weights.g_l[i]));
        store(to.u + i * stride + p, splat(weights.g_l[i]));
        store(to.w + i * stride + p, splat(weights.p[i]));
      }
    if (sizes.n > 0) {
      gather_inputs(problem, sizes, weights, time, steps, sample, samples, scratch.y);
      transpose(scratch.y, sizes.n_padded, points, sizes.n, scratch.y_t, stride);
      sum_wires(weights.input_wires, scratch.y_t, stride, points, elastic, {to.f, to.u, to.w, stride}, to);
    }
    if (sizes.wired) return;
    transpose(to.f, stride, sizes.m, points, scratch.f_in, sizes.m_padded);
    transpose(to.u, stride, sizes.m, points, scratch.u_in, sizes.m_padded);
    if (elastic) transpose(to.w, stride, sizes.m, points, scratch.w_in, sizes.m_padded);
  }

  // Sums f, u, w of one unfolding of a step whose first point is `point`.
  void sum_wired_states(const ForwardScratch<T>& scratch, index_t point, index_t samples) const {
    transpose(scratch.h, sizes.m_padded, samples, sizes.m, scratch.h_t, sizes.step_points);
    sum_wires(weights.state_wires, scratch.h_t, sizes.step_points, samples, problem.elastance != kNone,
              {scratch.f_in + point, scratch.u_in + point, scratch.w_in + point, sizes.block_points}, scratch.sums_t);
    transpose(scratch.sums_t.f, sizes.step_points, sizes.m, samples, scratch.f, sizes.m_padded);
    transpose(scratch.sums_t.u, sizes.step_points, sizes.m, samples, scratch.u, sizes.m_padded);
    if (problem.elastance != kNone)
      transpose(scratch.sums_t.w, sizes.step_points, sizes.m, samples, scratch.w, sizes.m_padded);
  }

  // Sums the inputs' part of f, u, w for a block of steps.
  void sum_inputs(const ForwardScratch<T>& scratch, Share share, index_t time, index_t steps, index_t sample,
                  index_t samples) const {
    if (sizes.input_wired) return sum_wired_inputs(scratch, time, steps, sample, samples);
    const index_t points = steps * samples, first = share.first * W;
    // Without inputs this writes the leaks alone.
    if (sizes.n > 0) gather_inputs(problem, sizes, weights, time, steps, sample, samples, scratch.y);
    sum_synapses(weights.input, share, scratch.y, sizes.n_padded, points, weights.g_l, weights.g_l, index_t(0),
                 scratch.f_in, scratch.u_in);
    if (problem.elastance == kNone) return;
    matmul(scratch.y, sizes.n_padded, index_t(1), points, weights.o + sizes.m * sizes.m_padded + first, sizes.m_padded,
           sizes.n, weights.p + first, index_t(0), scratch.w_in + first, sizes.m_padded, share.count());
  }

  void sum_states(const ForwardScratch<T>& scratch, Share share, index_t point, index_t samples) const {
    sum_synapses(weights.state, share, scratch.h, sizes.m_padded, samples, scratch.f_in + point, scratch.u_in + point,
                 sizes.m_padded, scratch.f, scratch.u);
    if (problem.elastance == kNone) return;
    const index_t first = share.first * W;
    matmul(scratch.h, sizes.m_padded, index_t(1), samples, weights.o + first, sizes.m_padded, sizes.m,
           scratch.w_in + point + first, sizes.m_padded, scratch.w + first, sizes.m_padded, share.count());
  }

  // Takes one unfolding of all samples of the block, from their sums to their next states.
  void unfold(const ForwardScratch<T>& scratch, Share share, index_t time, index_t k, index_t sample,
              index_t samples) const {
    with_switches({problem.saturated != 0, problem.elastance, problem.solver},
                  [&](const Switches& switches) { unfold_with(switches, scratch, share, time, k, sample, samples); });
  }

  LRCNET_INLINE void unfold_with(const Switches& switches, const ForwardScratch<T>& scratch, Share share, index_t time,
                                 index_t k, index_t sample, index_t samples) const {
    const auto keep = lanes_below<T>(sizes.m - (sizes.m_padded - W));
    T* saved = static_cast<T*>(problem.saved);
    for (index_t b = 0; b < samples; ++b) {
      const T d = substep<T>(problem, time, sample + b);
      T* planes = saved ? saved + ((time * sizes.K + k) * sizes.B + sample + b) * sizes.planes * sizes.m : nullptr;
      for (index_t v = share.first; v < share.end; ++v) {
        const index_t i = v * W, here = sizes.m - i, p = b * sizes.m_padded + i;
        Vec<T> h = load(scratch.h + p), f = load(scratch.f + p), u = load(scratch.u + p), w = {};
        if (switches.elastance != kNone) w = load(scratch.w + p);
        Vec<T> unit[kUnitLetters];
        weights.load_unit(i, unit);
        Vec<T> next = advance<T>(switches, h, d, f, u, w, unit);
        if (here < W) next = masked<T>(next, keep);
        store(scratch.next + p, next);
        if (!planes) continue;
        T* to = planes + i;
        store_part(to, f, here), to += sizes.m;
        store_part(to, u, here), to += sizes.m;
        if (switches.elastance != kNone) store_part(to, w, here), to += sizes.m;
        if (sizes.K > 1) store_part(to, h, here);
      }
    }
  }

  // Computes the units of a member's share for a block of samples; false if it was interrupted.
  bool run_block(ForwardScratch<T>& scratch, const Member& member, index_t sample, index_t samples) const {
    const Share share = member.share(sizes.vectors);
    const index_t first = share.first * W, units = smaller(sizes.m, share.end * W) - first;
    const T* h0 = static_cast<const T*>(problem.h0);
    gather_rows(sizes, share, h0 ? h0 + sample * sizes.m : nullptr, sizes.m, samples, scratch.h);
    for (index_t time = 0; time < sizes.T; time += sizes.steps) {
      if (member.interrupted(problem)) return false;
      const index_t steps = smaller(sizes.steps, sizes.T - time);
      sum_inputs(scratch, share, time, steps, sample, samples);
      for (index_t t = 0; t < steps; ++t) {
        const index_t point = t * samples * sizes.m_padded;
        for (index_t k = 0; k < sizes.K; ++k) {
          if (sizes.wired)
            sum_wired_states(scratch, t * samples, samples);
          else
            sum_states(scratch, share, point, samples);
          unfold(scratch, share, time + t, k, sample, samples);
          member.meet();
          T* before = scratch.h;
          scratch.h = scratch.next, scratch.next = before;
        }
        T* states = static_cast<T*>(problem.states) + (time + t) * problem.state_time + sample * problem.state_batch;
        for (index_t b = 0; b < samples; ++b)
          std::memcpy(states + b * problem.state_batch + first, scratch.h + b * sizes.m_padded + first,
                      static_cast<std::size_t>(units) * sizeof(T));
      }
    }
    return true;
  }

  // Computes one part of the batch.
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
    self.run_samples(scratch, Member{}, first, end);
    std::free(block);
  }

  // Computes one member's share of the units of the whole batch.
  static void team_task(void* context, int number, int count) {
    Forward& self = *static_cast<Forward*>(context);
    const Member member{number, count, &self.team};
    ForwardScratch<T> scratch = self.of_members[number];
    if (!member.alone()) scratch.h = self.of_members[0].h, scratch.next = self.of_members[1].h;
    self.weights.fill(self.problem, self.sizes, false, member);
    self.run_samples(scratch, member, 0, self.sizes.B);
  }

  void run_samples(ForwardScratch<T>& scratch, const Member& member, index_t first, index_t end) const {
    for (index_t sample = first; sample < end; sample += sizes.block)
      if (!run_block(scratch, member, sample, smaller(sizes.block, end - sample))) return;
  }

  bool run_as_team(lrcnet::RunTeam run_team) {
    Several<ForwardScratch<T>> scratches;
    void* block;
    if (!allocate(scratches, block, sizes.members, sizes)) return false;
    of_members = scratches.each;
    run_team(team_task, this, static_cast<int>(sizes.members));
    std::free(block);
    return true;
  }

  int run(lrcnet::RunTasks run_tasks, lrcnet::RunTeam run_team) {
    if (sizes.T == 0 || sizes.B == 0) return 0;
    void* block;
    if (!allocate(weights, block, sizes, problem.elastance != kNone, false)) return 1;
    if (sizes.members > 1) {
      out_of_memory = !run_as_team(run_team);
    } else {
      weights.fill(problem, sizes, false, Member{});
      run_tasks(task, this, static_cast<int>(sizes.parts), problem.threads);
    }
    std::free(block);
    return out_of_memory ? 1 : 0;
  }
};

}  // namespace
