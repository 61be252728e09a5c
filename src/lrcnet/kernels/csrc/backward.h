// The gradients of every parameter, the inputs, dt and the first state, backwards through time. Sigmoids are computed
// again instead of stored. A leading g marks a gradient: gh is that of the state h, gf, gu, gw those of the sums f, u,
// w. Each part of the batch sums its own parameter gradients; the parts are added in order at the end, so that the
// result depends only on the number of parts. The members of a team add to the same sums, each to those of its units;
// what all units add to, the gradients of the states before, of the inputs and of dt, they sum in the order of members.
#pragma once

#include "matmul.h"
#include "prepare.h"
#include "solver.h"
#include "sums.h"
#include "team.h"

namespace {

// What the units of one thread add, in one unfolding, to the gradients of the states before it and of dt / K.
template <class T>
struct Added {
  T *gh, *by_dt;
};

template <class T>
struct BackwardScratch {
  T *y, *gf, *gu, *gw, *gf_one, *gu_one, *gw_one, *dy, *h, *lanes;
  Added<T> added[2];  // in turn, in a team: others still read that of one unfolding when the next one begins
  index_t turn;
  T *y_t, *dy_t;  // transposed; y only for a wiring
  Currents<T> gradient_t;

  void lay_out(Arena& arena, Sizes sizes) {
    const index_t points = sizes.steps * sizes.block, block = sizes.block * sizes.m_padded,
                  unfolded = sizes.K > 1 ? block : 0, team = sizes.members > 1 ? 1 : 0;
    y = arena.take<T>(points * sizes.n_padded), dy = arena.take<T>(points * sizes.n_padded);
    gf = arena.take<T>(points * sizes.m_padded), gu = arena.take<T>(points * sizes.m_padded),
    gw = arena.take<T>(points * sizes.m_padded);
    gf_one = arena.take<T>(unfolded), gu_one = arena.take<T>(unfolded), gw_one = arena.take<T>(unfolded);
    h = arena.take<T>(points * sizes.m_padded);
    added[0] = {arena.take<T>(block), arena.take<T>(sizes.block)};
    added[1] = {arena.take<T>(team * block), arena.take<T>(team * sizes.block)};
    turn = 0;
    lanes = arena.take<T>(sizes.block * kLanes<T>);
    const index_t stride = sizes.input_wired ? sizes.block_points : 0, rows = larger(sizes.m_padded, sizes.n_padded);
    y_t = arena.take<T>(rows * stride), dy_t = arena.take<T>(rows * larger(stride, sizes.step_points));
    gradient_t = {arena.take<T>(sizes.m_padded * stride), arena.take<T>(sizes.m_padded * stride),
                  arena.take<T>(sizes.m_padded * stride), stride};
  }

  T* gh() const { return added[turn].gh; }
};

template <class T>
struct Backward {
  static constexpr index_t W = kLanes<T>;
  const Problem& problem;
  const Gradients& gradients;
  Sizes sizes;
  Prepared<T> weights;
  Sums<T>* sums = nullptr;  // one per part
  const BackwardScratch<T>* of_members = nullptr;
  Team team;
  bool want_y, elastic, out_of_memory = false;

  Backward(const Problem& given, const Gradients& wanted)
      : problem(given),
        gradients(wanted),
        sizes(Sizes::of<T>(given)),
        want_y(gradients.x || gradients.letters.input_scale || gradients.letters.input_shift),
        elastic(problem.elastance != kNone) {}

  index_t units_of(Share share) const { return smaller(sizes.m, share.end * W) - share.first * W; }

  // The state before unfolding k of a step, (samples, m_padded).
  void gather_state(T* h, index_t time, index_t k, index_t sample, index_t samples) const {
    if (sizes.K > 1) {
      const T* saved =
          static_cast<const T*>(problem.saved) + ((time * sizes.K + k) * sizes.B + sample) * sizes.planes * sizes.m;
      gather_rows(sizes, sizes.all(), saved + (sizes.planes - 1) * sizes.m, sizes.planes * sizes.m, samples, h);
    } else if (time > 0) {
      const T* states =
          static_cast<const T*>(problem.states) + (time - 1) * problem.state_time + sample * problem.state_batch;
      gather_rows(sizes, sizes.all(), states, problem.state_batch, samples, h);
    } else {
      const T* h0 = static_cast<const T*>(problem.h0);
      gather_rows(sizes, sizes.all(), h0 ? h0 + sample * sizes.m : nullptr, sizes.m, samples, h);
    }
  }

  void add_output_gradient(T* gh, Share share, index_t time, index_t sample, index_t samples) const {
    if (!gradients.states) return;
    const index_t start = share.first * W, units = units_of(share);
    for (index_t b = 0; b < samples; ++b) {
      const T* from = static_cast<const T*>(gradients.states) + time * gradients.time + (sample + b) * gradients.batch +
                      start * gradients.unit;
      T* to = gh + b * sizes.m_padded + start;
      const T first = *from;
      if (gradients.unit == 1)  // a constant stride, so that the compiler makes vectors of it
        for (index_t i = 0; i < units; ++i) to[i] += from[i];
      else if (gradients.unit == 0)  // the gradient of a sum is one number
        for (index_t i = 0; i < units; ++i) to[i] += first;
      else
        for (index_t i = 0; i < units; ++i) to[i] += from[i * gradients.unit];
    }
  }

  // Differentiates one unfolding: gh becomes the direct part of the gradient of the state before; gf, gu, gw become the
  // gradients of the sums.
  void unfold_backward(const BackwardScratch<T>& scratch, const Sums<T>& sum, Share share, const T* h, T* gf, T* gu,
                       T* gw, index_t time, index_t k, index_t sample, index_t samples) const {
    with_switches({problem.saturated != 0, problem.elastance, problem.solver}, [&](const Switches& switches) {
      unfold_backward_with(switches, scratch, sum, share, h, gf, gu, gw, time, k, sample, samples);
    });
  }

  LRCNET_INLINE void unfold_backward_with(const Switches& switches, const BackwardScratch<T>& scratch,
                                          const Sums<T>& sum, Share share, const T* h, T* gf, T* gu, T* gw,
                                          index_t time, index_t k, index_t sample, index_t samples) const {
    const auto keep = lanes_below<T>(sizes.m - (sizes.m_padded - W));
    const T* saved =
        static_cast<const T*>(problem.saved) + ((time * sizes.K + k) * sizes.B + sample) * sizes.planes * sizes.m;
    if (gradients.dt) std::memset(scratch.lanes, 0, static_cast<std::size_t>(samples * W) * sizeof(T));
    for (index_t v = share.first; v < share.end; ++v) {
      const index_t i = v * W, here = sizes.m - i;
      Vec<T> unit[kUnitLetters];
      weights.load_unit(i, unit);
      Vec<T> g_l_sum = {}, p_sum = {}, unit_sum[kUnitLetters] = {};
      for (index_t b = 0; b < samples; ++b) {
        const index_t p = b * sizes.m_padded + i;
        const T* from = saved + b * sizes.planes * sizes.m + i;
        const Vec<T> F = load_part(from, here), U = load_part(from + sizes.m, here);
        const Vec<T> w = elastic ? load_part(from + 2 * sizes.m, here) : Vec<T>{};
        UnitGradient<T> g = advance_backward<T>(switches, load(scratch.gh() + p), load(h + p),
                                                substep<T>(problem, time, sample + b), F, U, w, unit);
        if (here < W)
          g.h = masked<T>(g.h, keep), g.f = masked<T>(g.f, keep), g.u = masked<T>(g.u, keep),
          g.w = masked<T>(g.w, keep);
        store(scratch.gh() + p, g.h);
        store(gf + p, g.f), store(gu + p, g.u);
        if (elastic) store(gw + p, g.w);
        g_l_sum += g.f + g.u, p_sum += g.w;
        for (int letter = 0; letter < kUnitLetters; ++letter) unit_sum[letter] += g.unit[letter];
        if (gradients.dt)
          store(scratch.lanes + b * W, load(scratch.lanes + b * W) + (here < W ? masked<T>(g.d, keep) : g.d));
      }
      store(sum.g_l + i, load(sum.g_l + i) + g_l_sum);
      store(sum.p + i, load(sum.p + i) + p_sum);
      for (int letter = 0; letter < kUnitLetters; ++letter)
        store(sum.unit[letter] + i, load(sum.unit[letter] + i) + unit_sum[letter]);
    }
    if (gradients.dt)
      for (index_t b = 0; b < samples; ++b) scratch.added[scratch.turn].by_dt[b] = sum_lanes<T>(load(scratch.lanes + b * W));
  }

  // Differentiates the sums of a wiring at some points, given y (points, rows) and gf, gu, gw (points, padded m): adds
  // to the sums of the synapses' gradients and, unless it is null, to dy (points, rows).
  void differentiate_wired(const BackwardScratch<T>& scratch, const Wires<T>& wires, const T* y, index_t y_stride,
                           index_t points, const T* gf, const T* gu, const T* gw, T* sums, T* dy) const {
    const index_t stride = sizes.block_points;
    const Currents<T>& to = scratch.gradient_t;
    transpose(y, y_stride, points, wires.rows, scratch.y_t, stride);
    transpose(gf, sizes.m_padded, points, sizes.m, to.f, stride);
    transpose(gu, sizes.m_padded, points, sizes.m, to.u, stride);
    if (elastic) transpose(gw, sizes.m_padded, points, sizes.m, to.w, stride);
    if (dy) std::memset(scratch.dy_t, 0, static_cast<std::size_t>(wires.rows * stride) * sizeof(T));
    differentiate_wires(wires, scratch.y_t, stride, points, elastic, {to.f, to.u, to.w, stride}, sums,
                        dy ? scratch.dy_t : nullptr, stride);
    if (dy) transpose<T, true>(scratch.dy_t, stride, wires.rows, points, dy, y_stride);
  }

  // Differentiates the sums over the states at the samples of one unfolding.
  void differentiate_states(const BackwardScratch<T>& scratch, const Sums<T>& sum, Share share, const T* h, const T* gf,
                            const T* gu, const T* gw, index_t samples) const {
    if (sizes.wired)
      return differentiate_wired(scratch, weights.state_wires, h, sizes.m_padded, samples, gf, gu, gw, sum.state,
                                 scratch.gh());
    differentiate_synapses(weights.state, share, h, sizes.m_padded, samples, gf, gu, sum.state, scratch.gh(),
                           sizes.m_padded, {scratch.lanes, scratch.dy_t, sizes.step_points});
    if (!elastic) return;
    const index_t first = share.first * W;
    matmul_add(gw + first, sizes.m_padded, index_t(1), samples, weights.o_t_state + first * sizes.m_padded,
               sizes.m_padded, units_of(share), scratch.gh(), sizes.m_padded, sizes.vectors);
    if (sizes.K > 1)
      matmul_add(h, index_t(1), sizes.m_padded, sizes.m, gw + first, sizes.m_padded, samples, sum.o + first,
                 sizes.m_padded, share.count());
  }

  // Completes the gradients of one unfolding that the units of all members add to, and makes room for the next one:
  // of the states before, each member for its own units, and of dt.
  void exchange_gradients(BackwardScratch<T>& scratch, const Member& member, Share share, index_t time, index_t k,
                          index_t sample, index_t samples) const {
    const index_t turn = scratch.turn;
    if (!member.alone()) {
      member.meet();
      scratch.turn = 1 - turn;
      T* gh = scratch.gh();
      std::memset(gh, 0, static_cast<std::size_t>(samples * sizes.m_padded) * sizeof(T));
      for (index_t other = 0; other < member.count; ++other)
        for (index_t b = 0; b < samples; ++b)
          for (index_t i = share.first * W; i < share.end * W; i += W) {
            T* to = gh + b * sizes.m_padded + i;
            store(to, load(to) + load(of_members[other].added[turn].gh + b * sizes.m_padded + i));
          }
    }
    if (!gradients.dt || member.number != 0) return;
    for (index_t b = 0; b < samples; ++b) {
      T& g = static_cast<T*>(gradients.dt)[time * gradients.dt_time + (sample + b) * gradients.dt_batch];
      T all = scratch.added[turn].by_dt[b];
      for (index_t other = 1; other < member.count; ++other) all += of_members[other].added[turn].by_dt[b];
      g = (k == sizes.K - 1 ? T(0) : g) + all / static_cast<T>(sizes.K);
    }
  }

  static void prefetch(const T* first, index_t count) {
    const char *from = reinterpret_cast<const char*>(first), *end = reinterpret_cast<const char*>(first + count);
    for (; from < end; from += 64) __builtin_prefetch(from, 0, 2);
  }

  // Asks for the gates and the states that the next step of the backward pass, the one before in time, will read: the
  // processor does not foresee a walk backwards.
  void prefetch_step(index_t time, index_t sample, index_t samples) const {
    const index_t row = sizes.planes * sizes.m;
    prefetch(static_cast<const T*>(problem.saved) + (time * sizes.K * sizes.B + sample) * row, samples * row);
    if (time == 0 || sizes.K > 1) return;  // the states are the first ones, or among the gates
    const T* states =
        static_cast<const T*>(problem.states) + (time - 1) * problem.state_time + sample * problem.state_batch;
    for (index_t b = 0; b < samples; ++b) prefetch(states + b * problem.state_batch, sizes.m);
  }

  // Differentiates one step with all its unfoldings; leaves its gf, gu, gw, summed over unfoldings, for the inputs'
  // rows.
  void run_step(BackwardScratch<T>& scratch, const Sums<T>& sum, const Member& member, Share share, index_t point,
                index_t time, index_t sample, index_t samples) const {
    T* h = scratch.h + point * sizes.m_padded;
    T *gf_all = scratch.gf + point * sizes.m_padded, *gu_all = scratch.gu + point * sizes.m_padded,
      *gw_all = scratch.gw + point * sizes.m_padded;
    add_output_gradient(scratch.gh(), share, time, sample, samples);
    if (time > 0) prefetch_step(time - 1, sample, samples);
    for (index_t k = sizes.K - 1; k >= 0; --k) {
      const bool apart = k < sizes.K - 1;
      T *gf = apart ? scratch.gf_one : gf_all, *gu = apart ? scratch.gu_one : gu_all,
        *gw = apart ? scratch.gw_one : gw_all;
      gather_state(h, time, k, sample, samples);
      unfold_backward(scratch, sum, share, h, gf, gu, gw, time, k, sample, samples);
      differentiate_states(scratch, sum, share, h, gf, gu, gw, samples);
      exchange_gradients(scratch, member, share, time, k, sample, samples);
      if (!apart) continue;
      for (index_t b = 0; b < samples; ++b) {
        const index_t first = b * sizes.m_padded + share.first * W, end = b * sizes.m_padded + share.end * W;
        for (index_t i = first; i < end; ++i) gf_all[i] += gf[i], gu_all[i] += gu[i];
        for (index_t i = first; elastic && i < end; ++i) gw_all[i] += gw[i];
      }
    }
  }

  void run_inputs(const BackwardScratch<T>& scratch, const Sums<T>& sum, const Member& member, Share share, index_t time,
                  index_t steps, index_t sample, index_t samples) const {
    const index_t points = steps * samples;
    gather_inputs(problem, sizes, weights, time, steps, sample, samples, scratch.y);
    if (want_y) std::memset(scratch.dy, 0, static_cast<std::size_t>(points * sizes.n_padded) * sizeof(T));
    if (sizes.input_wired)
      differentiate_wired(scratch, weights.input_wires, scratch.y, sizes.n_padded, points, scratch.gf, scratch.gu,
                          scratch.gw, sum.input, want_y ? scratch.dy : nullptr);
    else
      differentiate_inputs(scratch, sum, share, points);
    if (!want_y) return;
    const Share channels = member.share(sizes.n);
    if (!member.alone()) exchange_inputs(scratch, member, channels, points);
    scatter_inputs(scratch.dy, sum, channels, time, steps, sample, samples);
  }

  void differentiate_inputs(const BackwardScratch<T>& scratch, const Sums<T>& sum, Share share, index_t points) const {
    for (index_t p = 0; p < points; p += sizes.block) {
      const index_t some = smaller(sizes.block, points - p);
      differentiate_synapses(weights.input, share, scratch.y + p * sizes.n_padded, sizes.n_padded, some,
                             scratch.gf + p * sizes.m_padded, scratch.gu + p * sizes.m_padded, sum.input,
                             want_y ? scratch.dy + p * sizes.n_padded : nullptr, sizes.n_padded,
                             {scratch.lanes, scratch.dy_t, sizes.step_points});
    }
    if (!elastic) return;
    const index_t first = share.first * W;
    matmul_add(scratch.y, index_t(1), sizes.n_padded, sizes.n, scratch.gw + first, sizes.m_padded, points,
               sum.o + sizes.m * sizes.m_padded + first, sizes.m_padded, share.count());
    if (want_y)
      matmul_add(scratch.gw + first, sizes.m_padded, index_t(1), points, weights.o_t_input + first * sizes.n_padded,
                 sizes.n_padded, units_of(share), scratch.dy, sizes.n_padded, sizes.n_padded / W);
  }

  // Completes the gradients of the mapped inputs, each member those of its own channels. The members meet again before
  // the next block, and so before any of these gradients is cleared.
  void exchange_inputs(const BackwardScratch<T>& scratch, const Member& member, Share channels, index_t points) const {
    member.meet();
    for (index_t p = 0; p < points; ++p)
      for (index_t j = channels.first; j < channels.end; ++j) {
        T all = T(0);
        for (index_t other = 0; other < member.count; ++other) all += of_members[other].dy[p * sizes.n_padded + j];
        scratch.dy[p * sizes.n_padded + j] = all;
      }
  }

  // Writes the gradients of x and of the input map for some channels, given that of the mapped inputs.
  void scatter_inputs(const T* dy, const Sums<T>& sum, Share channels, index_t time, index_t steps, index_t sample,
                      index_t samples) const {
    if (gradients.letters.input_scale || gradients.letters.input_shift)
      sum_map(dy, sum, channels, time, steps, sample, samples);
    if (!gradients.x) return;
    for (index_t t = 0; t < steps; ++t)
      for (index_t b = 0; b < samples; ++b, dy += sizes.n_padded) {
        T* into = static_cast<T*>(gradients.x) + (time + t) * gradients.x_time + (sample + b) * gradients.x_batch;
        for (index_t j = channels.first; j < channels.end; ++j) into[j] = dy[j] * weights.scale[j];
      }
  }

  // Sums in double precision: a channel's gradient is the sum of one number of either sign per reading. The plain loop
  // sums them in a tree; a running sum in single precision would lose digits that the tree keeps.
  void sum_map(const T* dy, const Sums<T>& sum, Share all, index_t time, index_t steps, index_t sample,
               index_t samples) const {
    constexpr index_t kChannels = 16;
    for (index_t first = all.first; first < all.end; first += kChannels) {
      const index_t channels = smaller(kChannels, all.end - first);
      double scale[kChannels] = {}, shift[kChannels] = {};
      const T* row = dy + first;
      for (index_t t = 0; t < steps; ++t)
        for (index_t b = 0; b < samples; ++b, row += sizes.n_padded) {
          const T* x = static_cast<const T*>(problem.x) + (time + t) * problem.x_time + (sample + b) * problem.x_batch +
                       first * problem.x_channel;
          for (index_t j = 0; j < channels; ++j) {
            shift[j] += row[j];
            scale[j] += static_cast<double>(row[j]) * x[j * problem.x_channel];
          }
        }
      for (index_t j = 0; j < channels; ++j) {
        sum.scale[first + j] += static_cast<T>(scale[j]);
        sum.shift[first + j] += static_cast<T>(shift[j]);
      }
    }
  }

  // Differentiates by the units of a member's share for a block of samples; false if it was interrupted.
  bool run_block(BackwardScratch<T>& scratch, const Sums<T>& sum, const Member& member, index_t sample,
                 index_t samples) const {
    const Share share = member.share(sizes.vectors);
    const index_t first = share.first * W;
    std::memset(scratch.gh(), 0, static_cast<std::size_t>(samples * sizes.m_padded) * sizeof(T));
    for (index_t end = sizes.T; end > 0; end -= sizes.steps) {
      if (member.interrupted(problem)) return false;
      const index_t steps = smaller(sizes.steps, end), time = end - steps;
      for (index_t t = steps - 1; t >= 0; --t)
        run_step(scratch, sum, member, share, t * samples, time + t, sample, samples);
      // With one unfolding the states before all steps of the block are available: one product instead of one per step.
      if (elastic && sizes.K == 1 && !sizes.wired)
        matmul_add(scratch.h, index_t(1), sizes.m_padded, sizes.m, scratch.gw + first, sizes.m_padded, steps * samples,
                   sum.o + first, sizes.m_padded, share.count());
      if (sizes.n > 0) run_inputs(scratch, sum, member, share, time, steps, sample, samples);
    }
    for (index_t b = 0; b < samples; ++b)
      std::memcpy(static_cast<T*>(gradients.h0) + (sample + b) * sizes.m + first,
                  scratch.gh() + b * sizes.m_padded + first, static_cast<std::size_t>(units_of(share)) * sizeof(T));
    return true;
  }

  // Differentiates by one part of the batch.
  static void task(void* context, int part) {
    Backward& self = *static_cast<Backward*>(context);
    const Sizes& sizes = self.sizes;
    BackwardScratch<T> scratch;
    void* block;
    const Sums<T>& sum = self.sums[part];
    if (!allocate(scratch, block, sizes)) {
      __atomic_store_n(&self.out_of_memory, true, __ATOMIC_RELAXED);
      return;
    }
    std::memset(static_cast<void*>(sum.first), 0, sum.count * sizeof(T));
    const index_t first = sizes.B * part / sizes.parts, end = sizes.B * (part + 1) / sizes.parts;
    self.run_samples(scratch, sum, Member{}, first, end);
    std::free(block);
  }

  // Differentiates by one member's share of the units, for the whole batch.
  static void team_task(void* context, int number, int count) {
    Backward& self = *static_cast<Backward*>(context);
    BackwardScratch<T> scratch = self.of_members[number];
    const Member member{number, count, &self.team};
    const Sums<T>& sum = self.sums[0];
    // Before the members meet in `fill`, and so before any of them adds to the sums.
    const Share cleared = member.share(static_cast<index_t>(sum.count));
    std::memset(static_cast<void*>(sum.first + cleared.first), 0, static_cast<std::size_t>(cleared.count()) * sizeof(T));
    self.weights.fill(self.problem, self.sizes, true, member);
    if (!self.run_samples(scratch, sum, member, 0, self.sizes.B)) return;
    member.meet();
    self.write_gradients(member);
  }

  bool run_samples(BackwardScratch<T>& scratch, const Sums<T>& sum, const Member& member, index_t first,
                   index_t end) const {
    for (index_t sample = first; sample < end; sample += sizes.block)
      if (!run_block(scratch, sum, member, sample, smaller(sizes.block, end - sample))) return false;
    return true;
  }

  void write_gradients(const Member& member) const {
    GradientWriter<T>{problem, gradients, sizes, weights, elastic}.write(sums[0], member);
  }

  bool run_as_team(lrcnet::RunTeam run_team) {
    Several<BackwardScratch<T>> scratches;
    void* block;
    if (!allocate(scratches, block, sizes.members, sizes)) return false;
    of_members = scratches.each;
    run_team(team_task, this, static_cast<int>(sizes.members));
    std::free(block);
    return true;
  }

  void run_in_parts(lrcnet::RunTasks run_tasks) {
    weights.fill(problem, sizes, true, Member{});
    run_tasks(task, this, static_cast<int>(sizes.parts), problem.threads);
    if (out_of_memory) return;
    for (index_t part = 1; part < sizes.parts; ++part) sums[0].add(sums[part]);
    write_gradients(Member{});
  }

  int run(lrcnet::RunTasks run_tasks, lrcnet::RunTeam run_team) {
    void *block, *sums_block;
    Several<Sums<T>> all;
    if (!allocate(weights, block, sizes, elastic, true)) return 1;
    if (!allocate(all, sums_block, sizes.parts, sizes, elastic)) {
      std::free(block);
      return 1;
    }
    sums = all.each;
    if (sizes.members > 1)
      out_of_memory = !run_as_team(run_team);
    else
      run_in_parts(run_tasks);
    std::free(sums_block);
    std::free(block);
    return out_of_memory ? 1 : 0;
  }
};

}  // namespace
