// The only place where the module checks what it was given, before a kernel reads or writes an address. Python has
// checked shapes, dtypes and devices by then and says which tensor is wrong; this is the second line, for callers that
// got past it. All checks together take some tens of nanoseconds.
#pragma once

#include <cstdint>

#include "api.h"

namespace lrcnet {

// Collects the first problem: a clause that completes the sentence "a kernel needs ...". Null if there is none.
struct Checks {
  std::int64_t item;  // bytes of a number
  const char* problem = nullptr;

  void need(bool holds, const char* what) {
    if (!holds && !problem) problem = what;
  }

  // An address that may be null, but not in the middle of a number.
  void aligned(const void* address) {
    need(reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uintptr_t>(item) == 0,
         "addresses at whole numbers of its dtype");
  }

  void given(const void* address, std::int64_t numbers, const char* what) {
    need(numbers == 0 || address, what);
    aligned(address);
  }

  // The product of sizes, which must fit into memory; 0 after a failure.
  std::int64_t product(std::initializer_list<std::int64_t> sizes) {
    std::int64_t total = item;
    for (const std::int64_t size : sizes)
      if (size < 0 || __builtin_mul_overflow(total, size, &total)) {
        need(false, "sizes of at least 0 that fit into memory");
        return 0;
      }
    return total / item;
  }

  void strides(std::initializer_list<std::int64_t> all) {
    for (const std::int64_t stride : all) need(stride >= 0, "strides of at least 0");
  }

  void model(const Problem& problem) {
    need(problem.saturated == 0 || problem.saturated == 1, "a saturation of 0 or 1");
    need(problem.elastance >= kNone && problem.elastance <= kSymmetric, "a known elastance");
    need(problem.solver >= kEuler && problem.solver <= kSlope, "a known solver");
    need(problem.K >= 1, "at least 1 unfolding");
    need(problem.n >= 0 && problem.m >= 1, "at least 0 inputs and 1 unit");
    need(problem.units, "the units of its letters");
    product({problem.n + problem.m, problem.m});
    const Letters<const void*>& letters = problem.letters;
    for (const void* letter : {letters.a, letters.b, letters.g, letters.k, letters.g_l, letters.e_l})
      given(letter, 1, "the letters a, b, g, k, g_l and e_l");
    given(letters.o, problem.elastance != kNone, "the letter o with an elastance");
    given(letters.k_eps, problem.elastance == kSymmetric, "the letter k_eps with the symmetric elastance");
    for (const void* letter : {letters.p, letters.input_scale, letters.input_shift}) aligned(letter);
  }

  void sequence(const Problem& problem) {
    const std::int64_t planes = saved_planes(problem.elastance, problem.K);
    product({problem.T, problem.K, problem.B, planes, problem.m});
    given(problem.x, product({problem.T, problem.B, problem.n}), "an input");
    given(problem.states, product({problem.T, problem.B, problem.m}), "memory for the states");
    aligned(problem.h0), aligned(problem.dt), aligned(problem.saved);
    strides({problem.x_time, problem.x_batch, problem.x_channel, problem.dt_time, problem.dt_batch});
    // The states of two points must not overlap.
    need(problem.T <= 1 || problem.state_time >= problem.m, "states that lie side by side");
    need(problem.B <= 1 || problem.state_batch >= problem.m, "states that lie side by side");
  }

  // One step: `states` is where the new states go.
  void step(const Problem& problem, const void* h) {
    const std::int64_t numbers = product({problem.B, problem.m});
    given(problem.x, product({problem.B, problem.n}), "an input");
    given(h, numbers, "states");
    given(problem.states, numbers, "memory for the states");
    aligned(problem.dt);
    strides({problem.x_batch, problem.x_channel, problem.dt_batch});
  }

  void diagonal(const Diagonal& call) {
    need(call.elastance >= kNone && call.elastance <= kSymmetric, "a known elastance");
    need(call.solver >= kEuler && call.solver <= kExponential, "a known solver");
    need(call.K >= 1 && call.K <= Diagonal::kMostUnfolds, "from 1 to 64 unfoldings");
    need(call.m >= 1 && call.threads >= 1, "at least 1 unit and 1 thread");
    need(call.width >= call.m && call.width % 16 == 0, "letters in rows of whole vectors");
    const std::int64_t numbers = product({call.T, call.B, call.m});
    product({call.T, call.B, 2, call.m});
    const bool has_inputs = call.inputs.weight != nullptr;
    if (has_inputs) diagonal_inputs(call);
    given(call.terms, has_inputs ? 0 : numbers, "the terms of the inputs");
    given(call.states, numbers, "memory for the states");
    given(call.h0, product({call.B, call.m}), "states");
    given(call.letters, 1, "letters");
    aligned(call.dt), aligned(call.of_states), aligned(call.of_dt);
    strides({call.terms_time, call.terms_batch, call.dt_time, call.dt_batch, call.of_time, call.of_batch});
    need(call.T <= 1 || call.state_time >= call.m, "states that lie side by side");
    need(call.B <= 1 || call.state_batch >= call.m, "states that lie side by side");
    if (!call.of_states) return;
    given(call.of_h0, product({call.B, call.m}), "memory for the gradient of the first states");
    given(call.of_letters, 1, "memory for the gradients of the letters");
    need(call.of_unit == 0 || call.of_unit == 1, "gradients of the states that lie side by side");
    if (has_inputs) return;
    given(call.of_terms, numbers, "memory for the gradient of the terms");
    need(call.T <= 1 || call.of_terms_time >= 2 * call.m, "gradients that lie side by side");
    need(call.B <= 1 || call.of_terms_batch >= 2 * call.m, "gradients that lie side by side");
  }

  // The inputs of a diagonal LRC in place of its terms.
  void diagonal_inputs(const Diagonal& call) {
    const DiagonalInputs& inputs = call.inputs;
    const bool back = call.of_states != nullptr;
    need(inputs.n >= 0 && inputs.x_width >= inputs.n && inputs.x_width % 16 == 0, "inputs in rows of whole vectors");
    need(inputs.block >= 1 && call.threads <= call.B, "blocks of at least 1 step and a sample for every thread");
    product({call.threads, inputs.block, 4 * call.width + inputs.x_width});
    const std::int64_t weights = product({inputs.n + 1, 2 * call.width});
    given(inputs.x, product({call.T, call.B, inputs.n}), "an input");
    given(inputs.weight, weights, "the weights of the inputs");
    given(inputs.scratch, 1, "memory for a block of terms");
    given(inputs.transposed, back ? inputs.n : 0, "the transposed weights of the inputs");
    given(inputs.of_weight, back ? 1 : 0, "memory for the gradients of the weights");
    aligned(inputs.of_x);
    strides({inputs.x_time, inputs.x_batch, inputs.x_channel});
    need(!inputs.of_x || call.T <= 1 || inputs.of_x_time >= inputs.n, "gradients that lie side by side");
    need(!inputs.of_x || call.B <= 1 || inputs.of_x_batch >= inputs.n, "gradients that lie side by side");
  }

  void backward(const Problem& problem, const Gradients& gradients) {
    given(problem.saved, product({problem.T, problem.B, problem.m}), "the gates of the forward pass");
    given(gradients.h0, product({problem.B, problem.m}), "memory for the gradient of the first states");
    aligned(gradients.states), aligned(gradients.x), aligned(gradients.dt);
    strides({gradients.time, gradients.batch, gradients.unit, gradients.x_time, gradients.x_batch, gradients.dt_time,
             gradients.dt_batch});
    Letters<void*> letters = gradients.letters;
    letters.each([this](void* letter) { aligned(letter); });
  }

  // The loops of a gated unit.
  void gated(const Gated& call) {
    const bool back = call.of_states != nullptr;
    need(call.threads >= 1 && call.threads <= call.B, "a sample for every thread");
    need(call.gates == 1 || call.gates == 2, "one or two gates");
    need(call.m >= 1 && call.width >= call.m && call.width % 16 == 0, "units in rows of whole vectors");
    const std::int64_t states = product({call.T, call.B, call.m}), starts = product({call.B, call.m});
    given(call.weights, product({call.m, call.gates + 1, call.width}), "the weights of the states");
    given(call.gate_values, product({states, call.gates}), "the gates");
    given(call.candidates, states, "the candidates");
    given(call.scratch, product({call.B, call.gates + 3, call.width}), "memory for a row of every sample");
    given(call.start, back ? 0 : starts, "states");
    given(call.states, back ? 0 : states, "memory for the states");
    given(call.before, back ? states : 0, "the states before each step");
    given(call.of_arguments, back ? states : 0, "memory for the gradients of the gates");
    given(call.of_start, back ? starts : 0, "memory for the gradient of the first states");
    aligned(call.of_states);
    strides({call.before_time, call.before_batch, call.of_time, call.of_batch});
    need(back || call.T <= 1 || call.state_time >= call.m, "states that lie side by side");
    need(back || call.B <= 1 || call.state_batch >= call.m, "states that lie side by side");
    need(!back || call.of_plane >= states, "planes that lie side by side");
  }

  // The loops of a CfC; widths are whole numbers of the widest vector.
  void cfc(const CfC& call) {
    const bool back = call.of_states != nullptr;
    need(call.threads >= 1, "at least 1 thread");
    need(call.mixed == 0 || call.mixed == 1, "a known mode");
    const auto whole = [this](std::int64_t width) { need(width >= 1 && width % 16 == 0, "widths of whole vectors"); };
    whole(call.m);
    const std::int64_t states = product({call.T, call.B, call.m});
    for (int i = 0; i < call.layers; ++i) {
      whole(call.widths[i]);
      const std::int64_t sums = product({call.T, call.B, call.widths[i]});
      given(call.weights[i], product({i ? call.widths[i - 1] : call.m, call.widths[i]}), "the weights of every layer");
      given(call.sums[i], sums, "the sums of every layer");
      given(call.of_sums[i], back ? sums : 0, "memory for the gradients of every layer");
      aligned(call.offsets[i]);
    }
    need(call.widths[call.layers - 1] >= (call.dt ? 4 : 3) * call.m, "three heads, or four with dt");
    given(call.half_states, back ? 0 : states, "memory for the states");
    given(call.of_start, back ? states : 0, "memory for the gradient of the first states");
    aligned(call.dt), aligned(call.of_states);
    strides({call.of_time, call.of_batch});
  }
};

}  // namespace lrcnet
