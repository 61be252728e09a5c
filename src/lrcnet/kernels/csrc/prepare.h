// The parameters, times their units, packed, padded and constrained once per call and shared by all threads; and how
// work is divided.
#pragma once

#include <cstdlib>

#include "api.h"
#include "solver.h"
#include "synapses.h"
#include "team.h"
#include "wired.h"

namespace {

using lrcnet::Gradients;
using lrcnet::Problem;

// Samples that a thread carries through time together: enough to reuse a weight while it is in the nearest cache.
constexpr index_t kSamples = 32;
// Points (a sample at a time step) whose input synapses are summed in one sweep.
constexpr index_t kPoints = 128;
// With fewer synapses than this, one more thread costs more than it saves.
constexpr double kSynapsesPerThread = 60000;
// The same for a thread that shares the units of a layer and meets the others in every unfolding: the synapses that it
// computes between two meetings.
constexpr double kSynapsesPerMeeting = 32768;

// Making the list of a wiring costs as much as this many points of each of its synapses.
constexpr double kPointsPerWire = 16;

inline index_t smaller(index_t a, index_t b) { return a < b ? a : b; }
inline index_t larger(index_t a, index_t b) { return a < b ? b : a; }

// Divides one allocation into aligned pieces; with a null base it only measures the size.
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

// Several of one kind in one block.
template <class S>
struct Several {
  S* each;

  template <class... Arguments>
  void lay_out(Arena& arena, index_t count, Arguments... arguments) {
    each = arena.take<S>(count);
    for (index_t i = 0; i < count; ++i) {
      S one;
      one.lay_out(arena, arguments...);
      if (arena.base) each[i] = one;
    }
  }
};

// Lays `scratch` out in one aligned block; false when there is no memory.
template <class S, class... Arguments>
bool allocate(S& scratch, void*& block, Arguments... arguments) {
  Arena measure;
  scratch.lay_out(measure, arguments...);
  block = nullptr;
  if (posix_memalign(&block, 64, measure.used + 64) != 0) return false;
  Arena arena{static_cast<char*>(block), 0};
  scratch.lay_out(arena, arguments...);
  return true;
}

struct Sizes {
  index_t T, B, n, m, K, m_padded, n_padded, vectors, planes;
  // Threads share the batch, in as many parts, or the units, as so many members of a team (1 if they share the batch).
  index_t parts, members;
  // Samples and time steps that a thread computes together.
  index_t block, steps;
  // With a mask: its synapses, and whether all of them, or at least those of the inputs, are worth a list of their own
  // (see wired.h). If so, the padded number of points of one step and of a block of steps, with a vector more because a
  // step may start anywhere in a block.
  bool wired, input_wired;
  index_t state_wires, input_wires, step_points, block_points;

  template <class Number>
  static Sizes of(const Problem& problem) {
    Sizes sizes;
    sizes.T = problem.T, sizes.B = problem.B, sizes.n = problem.n, sizes.m = problem.m, sizes.K = problem.K;
    sizes.m_padded = padded<Number>(sizes.m), sizes.n_padded = padded<Number>(sizes.n);
    sizes.vectors = sizes.m_padded / kLanes<Number>;
    sizes.planes = lrcnet::saved_planes(problem.elastance, sizes.K);
    sizes.state_wires = problem.mask ? count_wires(problem.mask, sizes.m * sizes.m) : sizes.m * sizes.m;
    sizes.input_wires =
        problem.mask ? count_wires(problem.mask + sizes.m * sizes.m, sizes.n * sizes.m) : sizes.n * sizes.m;
    const double synapses =
        static_cast<double>(sizes.T) * sizes.B * (sizes.K * sizes.state_wires + sizes.input_wires);
    const index_t useful = smaller(problem.threads, static_cast<index_t>(synapses / kSynapsesPerThread) + 1);
    sizes.divide<Number>(larger(1, smaller(useful, sizes.B)));
    // The cost of a point in synapses: padding to whole vectors of points, or of units. The transpositions cost about as
    // much as some synapses of each unit, making the list and reading the gradients from it as some points of each
    // synapse. The points of a list of inputs are those of a block of steps, so that it pays off for one sample too.
    const double points = static_cast<double>(sizes.steps) * sizes.block, all_points = 1.0 * sizes.T * sizes.samples_of_part() + 1e-9;
    const double states_listed =
        sizes.K * (static_cast<double>(sizes.state_wires) * sizes.step_points / sizes.block + 4.0 * sizes.m) +
        kPointsPerWire * sizes.state_wires / all_points;
    const double inputs_listed = sizes.input_wires * padded<Number>(sizes.steps * sizes.block) / points +
                                 6.0 * sizes.m + kPointsPerWire * sizes.input_wires / all_points;
    const double states = static_cast<double>(sizes.K * sizes.m) * sizes.m_padded,
                 inputs = static_cast<double>(sizes.n) * sizes.m_padded;
    sizes.wired = problem.mask && states_listed + inputs_listed < states + inputs && states_listed < states;
    sizes.input_wired = sizes.wired || (problem.mask && inputs_listed < inputs);
    sizes.members = sizes.input_wired ? 1 : smaller(useful, sizes.most_members());
    if (sizes.members <= sizes.B)
      sizes.members = 1;
    else
      sizes.divide<Number>(1);
    return sizes;
  }

  // Divides the batch into parts, and their work into blocks.
  template <class Number>
  void divide(index_t into) {
    parts = into;
    const index_t most = samples_of_part(), blocks = larger(1, (most + kSamples - 1) / kSamples);
    block = larger(1, (most + blocks - 1) / blocks);
    steps = larger(1, smaller(T, kPoints / block));
    step_points = padded<Number>(block);
    block_points = padded<Number>(steps * block) + kLanes<Number>;
  }

  // In the largest part.
  index_t samples_of_part() const { return (B + parts - 1) / parts; }

  // As many as have a vector of units each and enough to do between two meetings.
  index_t most_members() const {
    const index_t blocks = larger(1, (B + kSamples - 1) / kSamples);
    const double synapses = static_cast<double>(B) / blocks * m * m;
    return smaller(vectors, static_cast<index_t>(synapses / kSynapsesPerMeeting));
  }

  // All vectors of units.
  Share all() const { return {0, vectors}; }

  // The rows of o that are not in a list: those of the states come first.
  index_t o_rows() const { return wired ? 0 : input_wired ? m : m + n; }
};

template <class T>
struct Prepared {
  Rows<T> state, input;
  Wires<T> state_wires, input_wires;
  T *state_packed, *input_packed, *state_bounds, *input_bounds;
  T *o, *o_t_state, *o_t_input;  // o (m+n, m_padded); its transposes (m, m_padded) and (m, n_padded)
  T *g_l, *p, *unit[kUnitLetters], *scale, *shift;

  void lay_out(Arena& arena, Sizes sizes, bool elastic, bool backward) {
    const index_t row = sizes.vectors * kPlanes * kLanes<T>;
    state_packed = arena.take<T>(sizes.wired ? 0 : sizes.m * row);
    input_packed = arena.take<T>(sizes.input_wired ? 0 : sizes.n * row);
    state_bounds = arena.take<T>(2 * sizes.m);
    input_bounds = arena.take<T>(2 * sizes.n);
    const index_t last = sizes.m - (sizes.vectors - 1) * kLanes<T>;
    state = {sizes.m, sizes.vectors, last, state_packed, state_bounds, state_bounds + sizes.m};
    input = {sizes.n, sizes.vectors, last, input_packed, input_bounds, input_bounds + sizes.n};
    if (sizes.wired) state_wires.lay_out(arena, sizes.m, sizes.m, sizes.state_wires);
    if (sizes.input_wired) input_wires.lay_out(arena, sizes.n, sizes.m, sizes.input_wires);
    o = arena.take<T>(elastic ? sizes.o_rows() * sizes.m_padded : 0);
    o_t_state = arena.take<T>(elastic && backward && !sizes.wired ? sizes.m * sizes.m_padded : 0);
    o_t_input = arena.take<T>(elastic && backward && !sizes.input_wired ? sizes.m * sizes.n_padded : 0);
    g_l = arena.take<T>(sizes.m_padded), p = arena.take<T>(sizes.m_padded);
    for (T*& letter : unit) letter = arena.take<T>(sizes.m_padded);
    scale = arena.take<T>(sizes.n_padded), shift = arena.take<T>(sizes.n_padded);
  }

  static void copy_padded(T* to, const void* from, double unit, index_t count, index_t padded_count, T missing) {
    const T *source = static_cast<const T*>(from), times = static_cast<T>(unit);
    for (index_t i = 0; i < padded_count; ++i) to[i] = i < count ? (source ? source[i] * times : missing) : T(0);
  }

  static void copy_nonnegative(T* to, const void* from, double unit, index_t count, index_t padded_count) {
    copy_padded(to, from, unit, count, padded_count, T(0));
    for (index_t i = 0; i < count; ++i)
      if (to[i] < T(0)) to[i] = 0;
  }

  // The unit letters of the vector of units that starts at i.
  LRCNET_INLINE void load_unit(index_t i, Vec<T> (&values)[kUnitLetters]) const {
    for (int letter = 0; letter < kUnitLetters; ++letter) values[letter] = load(unit[letter] + i);
  }

  // All members of a team fill their parts and meet before it returns.
  void fill(const Problem& problem, const Sizes& sizes, bool backward, const Member& member) {
    const Letters<const void*>& letters = problem.letters;
    const Letters<double>& units = *problem.units;
    const index_t shares = backward ? member.count : 0;
    if (sizes.wired)
      state_wires.fill(letters, units, problem.mask, 0);
    else
      pack_rows(member.share(sizes.m), shares, letters, units, problem.mask, 0, sizes.m, sizes.m, state_packed,
                state_bounds);
    if (sizes.input_wired)
      input_wires.fill(letters, units, problem.mask, sizes.m);
    else
      pack_rows(member.share(sizes.n), shares, letters, units, problem.mask, sizes.m, sizes.n, sizes.m, input_packed,
                input_bounds);
    if (member.number == 0) fill_units(problem, sizes);
    if (problem.elastance != lrcnet::kNone) fill_elastance(problem, sizes, member.share(sizes.o_rows()));
    member.meet();
    if (problem.elastance != lrcnet::kNone && backward) transpose_elastance(sizes, member.share(sizes.vectors));
  }

  void fill_units(const Problem& problem, const Sizes& sizes) const {
    const Letters<const void*>& letters = problem.letters;
    const Letters<double>& units = *problem.units;
    copy_nonnegative(g_l, letters.g_l, units.g_l, sizes.m, sizes.m_padded);
    copy_padded(p, letters.p, units.p, sizes.m, sizes.m_padded, T(0));
    for (int letter = 0; letter < kUnitLetters; ++letter) {
      const void* value = letters.*kUnit[letter].value;
      const double times = units.*kUnit[letter].unit;
      if (kUnit[letter].nonnegative)
        copy_nonnegative(unit[letter], value, times, sizes.m, sizes.m_padded);
      else
        copy_padded(unit[letter], value, times, sizes.m, sizes.m_padded, T(0));
    }
    copy_padded(scale, letters.input_scale, units.input_scale, sizes.n, sizes.n_padded, T(1));
    copy_padded(shift, letters.input_shift, units.input_shift, sizes.n, sizes.n_padded, T(0));
  }

  void fill_elastance(const Problem& problem, const Sizes& sizes, Share rows) const {
    const T* weights = static_cast<const T*>(problem.letters.o);
    const T o_unit = static_cast<T>(problem.units->o);
    for (index_t j = rows.first; j < rows.end; ++j)
      for (index_t i = 0; i < sizes.m_padded; i += kLanes<T>) {
        const index_t at = j * sizes.m + i, here = sizes.m - i;
        const Vec<T> value = load_part(weights + at, here) * o_unit;
        store(o + j * sizes.m_padded + i, problem.mask ? masked<T>(value, load_mask<T>(problem.mask + at, here)) : value);
      }
  }

  // For the units of a share, which no other member of a team reads.
  void transpose_elastance(const Sizes& sizes, Share share) const {
    const index_t first = share.first * kLanes<T>, units = smaller(sizes.m, share.end * kLanes<T>) - first;
    if (!sizes.wired)
      transpose(o + first, sizes.m_padded, sizes.m, units, o_t_state + first * sizes.m_padded, sizes.m_padded);
    if (!sizes.input_wired)
      transpose(o + sizes.m * sizes.m_padded + first, sizes.m_padded, sizes.n, units,
                o_t_input + first * sizes.n_padded, sizes.n_padded);
  }
};

// Writes the mapped inputs of `points` points starting at (time, sample): y[point][channel], points ordered by time,
// then sample.
template <class T>
void gather_inputs(const Problem& problem, const Sizes& sizes, const Prepared<T>& w, index_t time, index_t steps,
                   index_t sample, index_t samples, T* y) {
  const T* x = static_cast<const T*>(problem.x);
  for (index_t t = 0; t < steps; ++t)
    for (index_t b = 0; b < samples; ++b, y += sizes.n_padded) {
      const T* from = x + (time + t) * problem.x_time + (sample + b) * problem.x_batch;
      for (index_t j = 0; j < sizes.n; ++j) y[j] = from[j * problem.x_channel] * w.scale[j] + w.shift[j];
    }
}

// dt / K of one sample at one time step.
template <class T>
LRCNET_INLINE T substep(const Problem& problem, index_t time, index_t sample) {
  const T dt = problem.dt ? static_cast<const T*>(problem.dt)[time * problem.dt_time + sample * problem.dt_batch]
                          : static_cast<T>(problem.dt_value);
  return problem.K == 1 ? dt : dt / static_cast<T>(problem.K);  // a division is seen in the backward pass
}

// Copies the units of a share, (samples, m) with rows `stride` apart, into theirs of (samples, m_padded) with zero
// padding; zeros if there is no source.
template <class T>
void gather_rows(const Sizes& sizes, Share share, const T* from, index_t stride, index_t samples, T* to) {
  const index_t first = share.first * kLanes<T>, end = share.end * kLanes<T>,
                copied = from ? smaller(sizes.m, end) - first : 0;
  for (index_t b = 0; b < samples; ++b, to += sizes.m_padded) {
    if (from) std::memcpy(to + first, from + b * stride + first, static_cast<std::size_t>(copied) * sizeof(T));
    for (index_t i = first + copied; i < end; ++i) to[i] = T(0);
  }
}

}  // namespace
