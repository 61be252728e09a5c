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

// The switches of most networks, known to the compiler in loops of their own.
constexpr Switches kUsual{true, kSymmetric, kEuler};

// A loop that is worth a function: the compiler finds better registers than in one function with all of them.
#define LRCNET_APART __attribute__((noinline))

// Steps whose data stay in the cache while one item after the other passes through them. Sums of sums also keep more
// digits than one long sum.
constexpr index_t kDiagonalBlock = 32;
// Steps whose gates are computed before the gradient passes through them.
constexpr index_t kSweep = 16;

// Mixed: the planes of the terms are the argument of the inputs' synapse and the inputs' part of w. Otherwise they are
// the inputs' parts of f and u.
template <class T, bool Mixed, bool Usual>
struct DiagonalLoops {
  static constexpr index_t W = kLanes<T>;
  // Items whose steps are computed together: those of one alone would wait for each of its results.
  static constexpr int kTogether = Usual ? 4 : 2;

  // Where the two planes of every step and sample are.
  struct Planes {
    T* at;
    index_t first_step, time, batch, apart;

    T* of(index_t t, index_t sample, index_t unit) const {
      return at + (t - first_step) * time + sample * batch + unit;
    }
  };

  const Diagonal& call;
  const Planes terms, of_terms;
  const Switches switches = Usual ? kUsual : Switches{true, call.elastance, call.solver};

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
    const T *first = static_cast<const T*>(call.h0), *states = static_cast<const T*>(call.states);
    const T* from = t == 0 ? first + at.sample * call.m
                           : states + (t - 1) * call.state_time + at.sample * call.state_batch;
    return load_part(from + at.unit, at.count);
  }

  // Asks for the numbers that the next sample has in the place of this item's, because a processor does not guess that
  // the loop jumps there. All requests of a block at once would be dropped.
  LRCNET_INLINE void look_ahead(index_t t, const Item& at) const {
    const lrcnet::DiagonalInputs& inputs = call.inputs;
    const index_t next = at.sample + 1;
    if (next >= call.B) return;
    __builtin_prefetch(static_cast<const T*>(call.states) + t * call.state_time + next * call.state_batch + at.unit);
    if (at.unit < inputs.n) {
      const index_t channel = at.unit * inputs.x_channel;
      __builtin_prefetch(static_cast<const T*>(inputs.x) + t * inputs.x_time + next * inputs.x_batch + channel);
    }
    if (call.of_unit)
      __builtin_prefetch(static_cast<const T*>(call.of_states) + t * call.of_time + next * call.of_batch + at.unit);
  }

  // One unit's letters, loaded once for several steps. Those of arguments that occur in exponents only come times
  // -log2(e), as letters of these exponents of two.
  struct Unit {
    Vec<T> a, b, g, k, o, input_g, input_k, g_l, p;
    Vec<T> two_a, two_b, two_g, two_o, two_input_g, two_g_l, two_p, two_k_eps;
    Vec<T> own[kUnitLetters];
  };

  static constexpr T kToTwo = -kLog2E<T>;

  Unit unit(index_t at) const {
    Unit unit{};
    unit.a = letter(Diagonal::kA, at), unit.b = letter(Diagonal::kB, at);
    unit.g = letter(Diagonal::kG, at), unit.k = letter(Diagonal::kK, at), unit.o = letter(Diagonal::kO, at);
    unit.input_g = letter(Diagonal::kInputG, at), unit.input_k = letter(Diagonal::kInputK, at);
    unit.g_l = letter(Diagonal::kGL, at), unit.p = letter(Diagonal::kP, at);
    unit.own[kEl] = letter(Diagonal::kEL, at), unit.own[kKEps] = letter(Diagonal::kKEps, at);
    unit.two_a = kToTwo * unit.a, unit.two_b = kToTwo * unit.b, unit.two_g = kToTwo * unit.g;
    unit.two_o = kToTwo * unit.o, unit.two_input_g = kToTwo * unit.input_g, unit.two_g_l = kToTwo * unit.g_l;
    unit.two_p = kToTwo * unit.p, unit.two_k_eps = kToTwo * unit.own[kKEps];
    return unit;
  }

  // The parts of the gates' arguments that are due to the inputs, the same in every unfolding; those of f and w as
  // exponents of two. And the inputs' synapse if Mixed.
  struct FromInput {
    Vec<T> f, u, w, synapse;
  };

  // Those of N steps or items at once; unit_of(i) is the unit of the i-th.
  template <int N, class UnitOf>
  LRCNET_INLINE void read_inputs(const UnitOf& unit_of, const T* const (&planes)[N], const index_t (&count)[N],
                                 FromInput (&input)[N]) const {
    Vec<T> first[N], second[N];
    for (int i = 0; i < N; ++i)
      first[i] = kToTwo * load_part(planes[i], count[i]), second[i] = load_part(planes[i] + terms.apart, count[i]);
    if (Mixed) sigmoid_of_minus<T, true, N, kTwo>(first);
    for (int i = 0; i < N; ++i) {
      const Unit& unit = unit_of(i);
      if (Mixed)
        input[i] = {unit.two_g_l + unit.two_input_g * first[i], unit.g_l + unit.input_k * first[i],
                    kToTwo * second[i], first[i]};
      else
        input[i] = {first[i], second[i], unit.two_p, Vec<T>{}};
    }
  }

  // The gates of one unfolding that starts from h, and the unit's own synapse.
  struct Gates {
    Vec<T> h, F, U, synapse, plus, minus, input_synapse;

    Vec<T> eps(const Switches& switches) const {
      if (switches.elastance == kSymmetric) return plus - minus;
      return switches.elastance == kAsymmetric ? plus : splat(T(1));
    }
  };

  // The gates of N unfoldings at once.
  template <int N, class UnitOf>
  LRCNET_INLINE void open_gates(const UnitOf& unit_of, const FromInput (&input)[N], Gates (&gates)[N]) const {
    Vec<T> t[N];
    for (int i = 0; i < N; ++i) t[i] = unit_of(i).two_a * gates[i].h + unit_of(i).two_b;
    sigmoid_of_minus<T, true, N, kTwo>(t);
    for (int i = 0; i < N; ++i) gates[i].synapse = t[i], gates[i].input_synapse = input[i].synapse;
    for (int i = 0; i < N; ++i) {
      Gates& at = gates[i];
      const Unit& own = unit_of(i);
      const Vec<T> u = input[i].u + own.k * at.synapse, w = input[i].w + own.two_o * at.h;
      Vec<T> s[4] = {input[i].f + own.two_g * at.synapse, T(-2) * kToTwo * absolute<T>(u), w + own.two_k_eps,
                     w - own.two_k_eps};
      sigmoid_of_minus<T, true, 4, kTwo>(s);
      at.F = s[0], at.U = hyperbolic_tangent<T>(u, s[1]), at.plus = s[2], at.minus = s[3];
    }
  }

  LRCNET_INLINE Vec<T> next_state(const Unit& own, const Gates& gates, T d) const {
    return take_step<T>(switches, gates.h, d * gates.eps(switches), gates.F, gates.U * own.own[kEl]);
  }

  // The states of N items after the steps from start to stop. Once: with one unfolding, whose inputs' parts then stay
  // in registers.
  template <int N, bool Once>
  LRCNET_APART void advance_items(index_t first, index_t start, index_t stop) const {
    Item at[N];
    Unit own[N];
    Gates gates[N];
    index_t count[N];
    const auto unit_of = [&own](int i) -> const Unit& { return own[i]; };
    for (int i = 0; i < N; ++i) {
      at[i] = item(first + i), own[i] = unit(at[i].unit), count[i] = at[i].count;
      gates[i].h = state_before(start, at[i]);
    }
    for (index_t t = start; t < stop; ++t) {
      const T* planes[N];
      for (int i = 0; i < N; ++i) planes[i] = terms.of(t, at[i].sample, at[i].unit);
      FromInput input[N];
      read_inputs<N>(unit_of, planes, count, input);
      for (index_t fold = 0; fold < (Once ? 1 : call.K); ++fold) {
        open_gates<N>(unit_of, input, gates);
        for (int i = 0; i < N; ++i) gates[i].h = next_state(own[i], gates[i], gap(t, at[i].sample));
      }
      for (int i = 0; i < N; ++i) {
        T* to = static_cast<T*>(call.states) + t * call.state_time + at[i].sample * call.state_batch;
        store_part(to + at[i].unit, gates[i].h, count[i]);
        look_ahead(t, at[i]);
      }
    }
  }

  template <bool Once>
  LRCNET_INLINE void advance_all(index_t first, index_t last, index_t start, index_t stop) const {
    index_t index = first;
    for (; index + kTogether <= last; index += kTogether) advance_items<kTogether, Once>(index, start, stop);
    for (; index < last; ++index) advance_items<1, Once>(index, start, stop);
  }

  // Carries the items from first to last through the steps from start to stop.
  LRCNET_INLINE void forward(index_t first, index_t last, index_t start, index_t stop) const {
    call.K == 1 ? advance_all<true>(first, last, start, stop) : advance_all<false>(first, last, start, stop);
  }

  LRCNET_INLINE void backward(index_t first, index_t last, index_t start, index_t stop, T* of_letters) const {
    for (index_t index = first; index < last; ++index) sweep(item(index), start, stop, of_letters);
  }

  LRCNET_INLINE Elastic<T> elastic(const Gates& gates) const {
    const Vec<T> by_plus = gates.plus - gates.plus * gates.plus, by_minus = gates.minus - gates.minus * gates.minus;
    if (switches.elastance == kSymmetric) return {gates.plus - gates.minus, by_plus - by_minus, by_plus + by_minus};
    if (switches.elastance == kAsymmetric) return {gates.plus, by_plus, Vec<T>{}};  // k_eps is 0
    return {splat(T(1)), Vec<T>{}, Vec<T>{}};
  }

  // The gradients of the gates' arguments and of the gap, summed over the unfoldings of a step.
  struct OfGates {
    Vec<T> f, u, w, d;
  };

  LRCNET_INLINE void close_gates(const Unit& own, const Gates& gates, T d, Vec<T>& gh, Vec<T> (&sums)[Diagonal::kRows],
                                 OfGates& of) const {
    const Vec<T> h = gates.h, open = gates.synapse;
    const UnitGradient<T> g = differentiate_gates<T>(switches, gh, h, d, gates.F, gates.U, elastic(gates), own.own);
    const Vec<T> argument = (g.f * own.g + g.u * own.k) * (open - open * open);
    sums[Diagonal::kA] += argument * h, sums[Diagonal::kB] += argument;
    sums[Diagonal::kG] += g.f * open, sums[Diagonal::kK] += g.u * open;
    sums[Diagonal::kO] += g.w * h;
    sums[Diagonal::kEL] += g.unit[kEl], sums[Diagonal::kKEps] += g.unit[kKEps];
    of.f += g.f, of.u += g.u, of.w += g.w, of.d += g.d;
    gh = g.h + argument * own.a + g.w * own.o;
  }

  // Writes the gradients of a step's terms and gap, and adds to those of the letters that only the inputs see.
  LRCNET_INLINE void write_step(const Unit& own, const Item& at, index_t t, const Gates& gates, const OfGates& of,
                                Vec<T> (&sums)[Diagonal::kRows]) const {
    T* to = of_terms.of(t, at.sample, at.unit);
    if (Mixed) {
      const Vec<T> open = gates.input_synapse;
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

  // The gates of N steps of one unfolding each.
  template <int N>
  LRCNET_INLINE void open_steps(const Unit& own, const Item& at, index_t start, Gates (&gates)[N]) const {
    const auto unit_of = [&own](int) -> const Unit& { return own; };
    const T* planes[N];
    index_t count[N];
    for (int i = 0; i < N; ++i) {
      gates[i].h = state_before(start + i, at);
      planes[i] = terms.of(start + i, at.sample, at.unit), count[i] = at.count;
    }
    FromInput input[N];
    read_inputs<N>(unit_of, planes, count, input);
    open_gates<N>(unit_of, input, gates);
  }

  // At most kSweep steps of one unfolding each. The gates do not depend on the gradient, so that they are computed without
  // waiting for it, and the sums then have the registers.
  LRCNET_INLINE void sweep_steps(const Unit& own, const Item& at, index_t start, index_t stop, Vec<T>& gh,
                                 Vec<T> (&total)[Diagonal::kRows]) const {
    Gates gates[kSweep];
    index_t t = start;
    for (; t + 2 <= stop; t += 2) {
      Gates two[2];
      open_steps<2>(own, at, t, two);
      gates[t - start] = two[0], gates[t - start + 1] = two[1];
    }
    for (; t < stop; ++t) {
      Gates one[1];
      open_steps<1>(own, at, t, one);
      gates[t - start] = one[0];
    }
    Vec<T> sums[Diagonal::kRows] = {};
    for (t = stop - 1; t >= start; --t) {
      look_ahead(t, at);
      gh += given_gradient(t, at);
      OfGates of = {};
      close_gates(own, gates[t - start], gap(t, at.sample), gh, sums, of);
      write_step(own, at, t, gates[t - start], of, sums);
    }
#pragma GCC unroll 16
    for (int row = 0; row < Diagonal::kRows; ++row) total[row] += sums[row];
  }

  // One step of several unfoldings: their first states are computed again.
  LRCNET_INLINE void sweep_unfolds(const Unit& own, const Item& at, index_t t, Vec<T>& gh,
                                   Vec<T> (&sums)[Diagonal::kRows]) const {
    FromInput input[1];
    const auto unit_of = [&own](int) -> const Unit& { return own; };
    read_inputs<1>(unit_of, {terms.of(t, at.sample, at.unit)}, {at.count}, input);
    const T d = gap(t, at.sample);
    Gates gates[1] = {};
    Vec<T> before[Diagonal::kMostUnfolds];
    gates[0].h = before[0] = state_before(t, at);
    for (index_t fold = 0; fold + 1 < call.K; ++fold) {
      open_gates<1>(unit_of, input, gates);
      gates[0].h = before[fold + 1] = next_state(own, gates[0], d);
    }
    gh += given_gradient(t, at);
    OfGates of = {};
    for (index_t fold = call.K - 1; fold >= 0; --fold) {
      gates[0].h = before[fold];
      open_gates<1>(unit_of, input, gates);
      close_gates(own, gates[0], d, gh, sums, of);
    }
    write_step(own, at, t, gates[0], of, sums);
  }

  // The gradients of one item over the steps from start to stop.
  LRCNET_APART void sweep(const Item& at, index_t start, index_t stop, T* of_letters) const {
    const Unit own = unit(at.unit);
    Vec<T> sums[Diagonal::kRows] = {};
    T* carried = static_cast<T*>(call.of_h0) + at.sample * call.m + at.unit;
    Vec<T> gh = load_part(carried, at.count);
    if (call.K == 1)
      for (index_t t = stop; t > start; t -= kSweep) sweep_steps(own, at, std::max(t - kSweep, start), t, gh, sums);
    else
      for (index_t t = stop; t > start; --t) sweep_unfolds(own, at, t - 1, gh, sums);
    store_part(carried, gh, at.count);
    for (int row = 0; row < Diagonal::kRows; ++row) {
      T* sum = of_letters + row * call.width + at.unit;
      store(sum, load(sum) + sums[row]);
    }
  }
};

// A share of the items of a call whose terms are given.
template <class T, bool Mixed, bool Usual>
void scan_terms(const Diagonal& call, int index) {
  // The gradient of a gap is a sum over the units of a sample, which then belong to one task.
  const index_t group = call.of_dt ? padded<T>(call.m) / kLanes<T> : 1;
  const index_t groups = call.B * (padded<T>(call.m) / kLanes<T>) / group;
  const index_t first = groups * index / call.threads * group, last = groups * (index + 1) / call.threads * group;
  T *terms = static_cast<T*>(const_cast<void*>(call.terms)), *of_terms = static_cast<T*>(call.of_terms);
  const DiagonalLoops<T, Mixed, Usual> loops{call,
                                             {terms, 0, call.terms_time, call.terms_batch, call.m},
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
