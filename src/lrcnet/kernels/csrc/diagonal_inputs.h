// A diagonal LRC with the linear map of its inputs. The terms of a block of steps are computed, used and forgotten in
// the cache, and so are their gradients: for all steps they are tens of megabytes of new pages, which take longer than
// the arithmetic. A task has a share of the samples, so that it never waits for another one.
#pragma once

#include "diagonal.h"
#include "product.h"

namespace {

// The products of one task, and the memory between them and the loops over time.
template <class T>
struct InputProducts {
  const lrcnet::DiagonalInputs& inputs;
  const index_t width;  // of a row of terms
  T *const terms, *const of_terms, *const of_x, *const zeros, *const of_weight;

  InputProducts(const Diagonal& call, int index)
      : inputs(call.inputs),
        width(2 * call.width),
        terms(static_cast<T*>(inputs.scratch) + index * lrcnet::scratch_size(call)),
        of_terms(terms + inputs.block * width),
        of_x(of_terms + inputs.block * width),
        zeros(of_x + inputs.block * inputs.x_width),
        of_weight(static_cast<T*>(inputs.of_weight) + index * (inputs.n + 1) * width) {}

  Strided<const T> x(index_t sample, index_t start) const {
    return {static_cast<const T*>(inputs.x) + sample * inputs.x_batch + start * inputs.x_time, inputs.x_time,
            inputs.x_channel};
  }

  void compute_terms(index_t sample, index_t start, index_t stop) const {
    const T* weight = static_cast<const T*>(inputs.weight);
    multiply<T>(x(sample, start), stop - start, {weight, width, 1}, inputs.n, width, {weight + inputs.n * width, 0, 1},
                {terms, width, 1});
  }

  // Adds to the gradient of the weight and, as its last row, to that of the bias.
  void add_of_weight(index_t sample, index_t start, index_t stop) const {
    const Strided<const T> right{of_terms, width, 1}, given = x(sample, start);
    const T one = 1;
    T* of_bias = of_weight + inputs.n * width;
    multiply<T>({given.at, given.column, given.row}, inputs.n, right, stop - start, width, {of_weight, width, 1},
                {of_weight, width, 1});
    multiply<T>({&one, 0, 0}, 1, right, stop - start, width, {of_bias, width, 1}, {of_bias, width, 1});
  }

  void write_of_x(index_t sample, index_t start, index_t stop) const {
    multiply<T>({of_terms, width, 1}, stop - start, {static_cast<const T*>(inputs.transposed), inputs.x_width, 1},
                width, inputs.x_width, {zeros, 0, 1}, {of_x, inputs.x_width, 1});
    T* to = static_cast<T*>(inputs.of_x) + sample * inputs.of_x_batch + start * inputs.of_x_time;
    for (index_t t = 0; t < stop - start; ++t)
      std::memcpy(to + t * inputs.of_x_time, of_x + t * inputs.x_width, static_cast<std::size_t>(inputs.n) * sizeof(T));
  }
};

// A share of the samples of a call whose inputs are given.
template <class T, bool Mixed, bool Usual>
void scan_inputs(const Diagonal& call, int index) {
  const index_t first = call.B * index / call.threads, last = call.B * (index + 1) / call.threads,
                items = padded<T>(call.m) / kLanes<T>, block = call.inputs.block;
  const InputProducts<T> products(call, index);
  T* of_letters = static_cast<T*>(call.of_letters) + index * Diagonal::kRows * call.width;
  for (index_t done = 0; done < call.T; done += block) {
    const index_t end = std::min(done + block, call.T);
    const index_t start = call.of_states ? call.T - end : done, stop = call.of_states ? call.T - done : end;
    const DiagonalLoops<T, Mixed, Usual> loops{call,
                                               {products.terms, start, products.width, 0, call.width},
                                               {products.of_terms, start, products.width, 0, call.width}};
    for (index_t sample = first; sample < last; ++sample) {
      if (call.interrupted()) return;
      products.compute_terms(sample, start, stop);
      if (!call.of_states) {
        loops.forward(sample * items, (sample + 1) * items, start, stop);
        continue;
      }
      loops.backward(sample * items, (sample + 1) * items, start, stop, of_letters);
      products.add_of_weight(sample, start, stop);
      if (call.inputs.of_x) products.write_of_x(sample, start, stop);
    }
  }
}

template <class T, bool Mixed, bool Usual>
void run_diagonal(const Diagonal& call, int index) {
  call.inputs.weight ? scan_inputs<T, Mixed, Usual>(call, index) : scan_terms<T, Mixed, Usual>(call, index);
}

template <class T, bool Mixed>
void run_diagonal(const Diagonal& call, int index) {
  const bool usual = call.elastance == kUsual.elastance && call.solver == kUsual.solver;
  usual ? run_diagonal<T, Mixed, true>(call, index) : run_diagonal<T, Mixed, false>(call, index);
}

// Task `index` of a call: a share of the items, or of the samples.
template <class T>
void diagonal_task(void* context, int index) {
  const Diagonal& call = *static_cast<const Diagonal*>(context);
  call.mixed ? run_diagonal<T, true>(call, index) : run_diagonal<T, false>(call, index);
}

}  // namespace
