// The loops over time of a diagonal LRC, whose units see their own state and all inputs. The inputs' sums come as terms
// of all steps, so a step costs a few sigmoids per unit and no sum over units. An item is one vector of units of one
// sample; items are independent, so tasks share them out.
#pragma once

#include <algorithm>

#include "math.h"
#include "simd.h"
#include "solver.h"

namespace {

using lrcnet::Diagonal;

// Steps whose data stay in the cache while one item after the other passes through them backwards, its sums in
// registers. Sums of sums also keep more digits than one long sum.
constexpr index_t kDiagonalBlock = 32;
// Items whose steps are computed together: those of one alone would wait for each of its results.
constexpr int kItemsTogether = 4;

// Mixed: the planes of the terms are the argument of the inputs' synapse and the inputs' part of w. Otherwise they are
// the inputs' parts of f and u.
template <class T, bool Mixed>
struct DiagonalLoops {
  static constexpr index_t W = kLanes<T>;

  // Where the two planes of every step and sample are.
  struct Planes {
    T* at;
    index_t first_step, time, batch, apart;

    T* of(index_t t, index_t sample, index_t unit) const {
      return at + (t - first_step) * time + sample * batch + unit;
    }
  };

  const Diagonal& call;
  const Switches switches;
  const Planes terms, of_terms;

  struct Item {
    index_t sample, unit, count;
  };

  Item item(index_t index) const {
    const index_t vectors = padded<T>(call.m) / W, unit = index % vectors * W;
    return {index / vectors, unit, call.m - unit};
  }

  Vec<T> letter(Diagonal::Row row, index_t unit) const {
    return load(static_cast<const T*>(call.letters) + row * call.width + unit);
  }

  T gap(index_t t, index_t sample) const {
    const T dt = call.dt ? static_cast<const T*>(call.dt)[t * call.dt_time + sample * call.dt_batch]
                         : static_cast<T>(call.dt_value);
    return call.K == 1 ? dt : dt / static_cast<T>(call.K);
  }

  Vec<T> state_before(index_t t, const Item& at) const {
    const T* from = t == 0 ? static_cast<const T*>(call.h0) + at.sample * call.m
                           : static_cast<const T*>(call.states) + (t - 1) * call.state_time + at.sample * call.state_batch;
    return load_part(from + at.unit, at.count);
  }

  // One unit's letters, loaded once for several steps.
  struct Unit {
    Vec<T> a, b, g, k, o, input_g, input_k, g_l, p, own[kUnitLetters];
  };

  Unit unit(index_t at) const {
    Unit unit{letter(Diagonal::kA, at), letter(Diagonal::kB, at), letter(Diagonal::kG, at), letter(Diagonal::kK, at),
              letter(Diagonal::kO, at), letter(Diagonal::kInputG, at), letter(Diagonal::kInputK, at),
              letter(Diagonal::kGL, at), letter(Diagonal::kP, at), {}};
    unit.own[kEl] = letter(Diagonal::kEL, at), unit.own[kKEps] = letter(Diagonal::kKEps, at);
    return unit;
  }

  // The arguments of the gates due to the inputs, the same in every unfolding, and the inputs' synapse if Mixed.
  struct FromInput {
    Vec<T> f, u, w, synapse;
  };

  LRCNET_INLINE FromInput from_input(const Unit& unit, index_t t, const Item& at) const {
    const T* planes = terms.of(t, at.sample, at.unit);
    const Vec<T> first = load_part(planes, at.count), second = load_part(planes + terms.apart, at.count);
    if (!Mixed) return {first, second, unit.p, Vec<T>{}};
    const Vec<T> open = sigmoid<T>(first);
    return {unit.g_l + unit.input_g * open, unit.g_l + unit.input_k * open, second, open};
  }

  // The state after one unfolding.
  LRCNET_INLINE Vec<T> advance_unit(const Unit& unit, const FromInput& input, Vec<T> h, T d) const {
    const Vec<T> synapse = sigmoid<T>(unit.a * h + unit.b);
    Vec<T> f = input.f + unit.g * synapse, u = input.u + unit.k * synapse;
    return advance<T>(switches, h, d, f, u, input.w + unit.o * h, unit.own);
  }

  // The states of N items after the steps from start to stop.
  template <int N>
  LRCNET_INLINE void advance_items(index_t first, index_t start, index_t stop) const {
    Item at[N];
    Unit own[N];
    Vec<T> h[N];
    for (int i = 0; i < N; ++i) at[i] = item(first + i), own[i] = unit(at[i].unit), h[i] = state_before(start, at[i]);
    for (index_t t = start; t < stop; ++t)
      for (int i = 0; i < N; ++i) {
        const FromInput input = from_input(own[i], t, at[i]);
        const T d = gap(t, at[i].sample);
        for (index_t fold = 0; fold < call.K; ++fold) h[i] = advance_unit(own[i], input, h[i], d);
        T* to = static_cast<T*>(call.states) + t * call.state_time + at[i].sample * call.state_batch;
        store_part(to + at[i].unit, h[i], at[i].count);
      }
  }

  // Carries the items from first to last through the steps from start to stop.
  LRCNET_INLINE void forward(index_t first, index_t last, index_t start, index_t stop) const {
    index_t index = first;
    for (; index + kItemsTogether <= last; index += kItemsTogether) advance_items<kItemsTogether>(index, start, stop);
    for (; index < last; ++index) advance_items<1>(index, start, stop);
  }

  LRCNET_INLINE void backward(index_t first, index_t last, index_t start, index_t stop, T* of_letters) const {
    for (index_t index = first; index < last; ++index) sweep(item(index), start, stop, of_letters);
  }

  // The gates of one unfolding that starts from h, and the unit's own synapse.
  struct Gates {
    Vec<T> h, F, U, synapse;
    Elastic<T> elastic;
  };

  // The gates of several unfoldings at once: those of one alone would wait for each of its results.
  template <int N>
  LRCNET_INLINE void open_gates(const Unit& own, const FromInput (&input)[N], Gates (&gates)[N]) const {
    Vec<T> t[N], u[N], s[4 * N];
    for (int i = 0; i < N; ++i) t[i] = -(own.a * gates[i].h + own.b);
    sigmoid_of_minus<T, true, N>(t);
    for (int i = 0; i < N; ++i) {
      gates[i].synapse = t[i];
      const Vec<T> w = input[i].w + own.o * gates[i].h;
      u[i] = input[i].u + own.k * t[i];
      s[4 * i] = -(input[i].f + own.g * t[i]), s[4 * i + 1] = T(2) * absolute<T>(u[i]);
      s[4 * i + 2] = -w - own.own[kKEps], s[4 * i + 3] = own.own[kKEps] - w;
    }
    sigmoid_of_minus<T, true, 4 * N>(s);
    for (int i = 0; i < N; ++i) {
      gates[i].F = s[4 * i], gates[i].U = hyperbolic_tangent<T>(u[i], s[4 * i + 1]);
      const Vec<T> plus = s[4 * i + 2], minus = s[4 * i + 3], by_plus = plus - plus * plus,
                   by_minus = minus - minus * minus;
      if (switches.elastance == kSymmetric)
        gates[i].elastic = {plus - minus, by_plus - by_minus, by_plus + by_minus};
      else if (switches.elastance == kAsymmetric)  // k_eps is 0
        gates[i].elastic = {plus, by_plus, Vec<T>{}};
      else
        gates[i].elastic = {splat(T(1)), Vec<T>{}, Vec<T>{}};
    }
  }

  // The gradients of the gates' arguments and of the gap, summed over the unfoldings of a step.
  struct OfGates {
    Vec<T> f, u, w, d;
  };

  LRCNET_INLINE void close_gates(const Unit& own, const Gates& gates, T d, Vec<T>& gh, Vec<T> (&sums)[Diagonal::kRows],
                                 OfGates& of) const {
    const Vec<T> h = gates.h, open = gates.synapse;
    const UnitGradient<T> g =
        differentiate_gates<T>(switches, gh, h, d, gates.F, gates.U, gates.elastic, own.own);
    const Vec<T> argument = (g.f * own.g + g.u * own.k) * (open - open * open);
    sums[Diagonal::kA] += argument * h, sums[Diagonal::kB] += argument;
    sums[Diagonal::kG] += g.f * open, sums[Diagonal::kK] += g.u * open;
    sums[Diagonal::kO] += g.w * h;
    sums[Diagonal::kEL] += g.unit[kEl], sums[Diagonal::kKEps] += g.unit[kKEps];
    of.f += g.f, of.u += g.u, of.w += g.w, of.d += g.d;
    gh = g.h + argument * own.a + g.w * own.o;
  }

  // Writes the gradients of a step's terms and gap, and adds to those of the letters that only the inputs see.
  LRCNET_INLINE void write_step(const Unit& own, const Item& at, index_t t, const FromInput& input, const OfGates& of,
                                Vec<T> (&sums)[Diagonal::kRows]) const {
    T* to = of_terms.of(t, at.sample, at.unit);
    if (Mixed) {
      const Vec<T> open = input.synapse;
      sums[Diagonal::kInputG] += of.f * open, sums[Diagonal::kInputK] += of.u * open, sums[Diagonal::kGL] += of.f + of.u;
      store_part(to, (of.f * own.input_g + of.u * own.input_k) * (open - open * open), at.count);
      store_part(to + of_terms.apart, of.w, at.count);
    } else {
      sums[Diagonal::kP] += of.w;
      store_part(to, of.f, at.count), store_part(to + of_terms.apart, of.u, at.count);
    }
    if (call.of_dt)
      static_cast<T*>(call.of_dt)[t * call.B + at.sample] += sum_lanes<T>(of.d) / static_cast<T>(call.K);
  }

  Vec<T> given_gradient(index_t t, const Item& at) const {
    const T* from = static_cast<const T*>(call.of_states) + t * call.of_time + at.sample * call.of_batch;
    if (call.of_unit) return load_part(from + at.unit, at.count);
    // The gradient of a sum is one number.
    return at.count < W ? masked<T>(splat(*from), lanes_below<T>(at.count)) : splat(*from);
  }

  // N steps of one unfolding each, which end before `stop`.
  template <int N>
  LRCNET_INLINE void sweep_steps(const Unit& own, const Item& at, index_t stop, Vec<T>& gh,
                                 Vec<T> (&sums)[Diagonal::kRows]) const {
    FromInput input[N];
    Gates gates[N];
    for (int i = 0; i < N; ++i) gates[i].h = state_before(stop - N + i, at);
    for (int i = 0; i < N; ++i) input[i] = from_input(own, stop - N + i, at);
    open_gates<N>(own, input, gates);
    for (int i = N - 1; i >= 0; --i) {
      const index_t t = stop - N + i;
      gh += given_gradient(t, at);
      OfGates of = {};
      close_gates(own, gates[i], gap(t, at.sample), gh, sums, of);
      write_step(own, at, t, input[i], of, sums);
    }
  }

  // One step of several unfoldings: their first states are computed again.
  LRCNET_INLINE void sweep_unfolds(const Unit& own, const Item& at, index_t t, Vec<T>& gh, Vec<T> (&sums)[Diagonal::kRows]) const {
    const FromInput input[1] = {from_input(own, t, at)};
    const T d = gap(t, at.sample);
    Vec<T> before[Diagonal::kMostUnfolds];
    before[0] = state_before(t, at);
    for (index_t fold = 0; fold + 1 < call.K; ++fold)
      before[fold + 1] = advance_unit(own, input[0], before[fold], d);
    gh += given_gradient(t, at);
    OfGates of = {};
    for (index_t fold = call.K - 1; fold >= 0; --fold) {
      Gates gates[1];
      gates[0].h = before[fold];
      open_gates<1>(own, input, gates);
      close_gates(own, gates[0], d, gh, sums, of);
    }
    write_step(own, at, t, input[0], of, sums);
  }

  // The gradients of one item over the steps from start to stop.
  LRCNET_INLINE void sweep(const Item& at, index_t start, index_t stop, T* of_letters) const {
    const Unit own = unit(at.unit);
    Vec<T> sums[Diagonal::kRows] = {};
    T* carried = static_cast<T*>(call.of_h0) + at.sample * call.m + at.unit;
    Vec<T> gh = load_part(carried, at.count);
    index_t t = stop;
    for (; call.K == 1 && t - start >= 2; t -= 2) sweep_steps<2>(own, at, t, gh, sums);
    for (; call.K == 1 && t > start; --t) sweep_steps<1>(own, at, t, gh, sums);
    for (; t > start; --t) sweep_unfolds(own, at, t - 1, gh, sums);
    store_part(carried, gh, at.count);
    for (int row = 0; row < Diagonal::kRows; ++row) {
      T* sum = of_letters + row * call.width + at.unit;
      store(sum, load(sum) + sums[row]);
    }
  }
};

// A share of the items of a call whose terms are given.
template <class T, bool Mixed>
LRCNET_INLINE void scan_terms(const Diagonal& call, const Switches& switches, int index) {
  // The gradient of a gap is a sum over the units of a sample, which then belong to one task.
  const index_t group = call.of_dt ? padded<T>(call.m) / kLanes<T> : 1;
  const index_t groups = call.B * (padded<T>(call.m) / kLanes<T>) / group;
  const index_t first = groups * index / call.threads * group, last = groups * (index + 1) / call.threads * group;
  T *terms = static_cast<T*>(const_cast<void*>(call.terms)), *of_terms = static_cast<T*>(call.of_terms);
  const DiagonalLoops<T, Mixed> loops{call, switches, {terms, 0, call.terms_time, call.terms_batch, call.m},
                                      {of_terms, 0, call.of_terms_time, call.of_terms_batch, call.m}};
  T* of_letters = static_cast<T*>(call.of_letters) + index * Diagonal::kRows * call.width;
  for (index_t done = 0; done < call.T; done += kDiagonalBlock) {
    if (call.interrupted()) return;
    const index_t end = std::min(done + kDiagonalBlock, call.T);
    if (call.of_states)
      loops.backward(first, last, call.T - end, call.T - done, of_letters);
    else
      loops.forward(first, last, done, end);
  }
}

}  // namespace
