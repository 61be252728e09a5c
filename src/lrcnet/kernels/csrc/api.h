// The data that the module hands to one instruction set's kernels, and the table of functions each instruction set
// offers. Axes: T time, B batch, n inputs, m states (units), K unfoldings. Strides count elements, not bytes.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace lrcnet {

// In the order of the names in lrcnet/kernels/problem.py. kSlope stands for the right-hand side itself: the "next
// state" is dh/dt, times dt / K, which the caller sets to 1.
enum Elastance : int { kNone = 0, kAsymmetric = 1, kSymmetric = 2 };
enum Solver : int { kEuler = 0, kHybrid = 1, kExponential = 2, kSlope = 3 };

// One pointer per letter, in the order and with the shapes of lrcnet/circuit.py, contiguous. Null for a letter that the
// network does not have or that its switches do not use.
template <class Pointer>
struct Letters {
  Pointer a, b, g, k, g_l, e_l, o, p, k_eps, input_scale, input_shift;

  template <class Visit>
  void each(Visit visit) {
    for (Pointer* letter : {&a, &b, &g, &k, &g_l, &e_l, &o, &p, &k_eps, &input_scale, &input_shift}) visit(*letter);
  }
};

struct Problem {
  std::int64_t T, B, n, m, K;
  int saturated, elastance, solver, threads;
  const void *x, *h0, *dt;
  std::int64_t x_time, x_batch, x_channel;
  std::int64_t dt_time, dt_batch;
  double dt_value;  // used where dt is null
  Letters<const void*> letters;
  const unsigned char* mask;  // (m + n, m): 1 where a synapse exists, 0 where it is missing; null if all exist
  const Letters<double>* units;  // what a stored number of each letter is multiplied by; powers of two
  void* states;
  std::int64_t state_time, state_batch;
  void* saved;  // (T, K, B, planes, m) or null; planes as saved_planes() counts them
  // Asked between blocks of steps: whether to give up, because the user pressed Ctrl-C. Null if nobody can.
  bool (*is_interrupted)(void* watch);
  void* watch;

  bool interrupted() const { return is_interrupted && is_interrupted(watch); }
};

struct Gradients {
  const void* states;  // gradient of the states, any strides, or null
  std::int64_t time, batch, unit;
  void *x, *h0, *dt;  // null for x or dt if that gradient is not wanted; x is (B, T, n) or (T, B, n), strides below
  std::int64_t x_time, x_batch, dt_time, dt_batch;
  Letters<void*> letters;  // of the stored numbers; null where the network does not have the letter
};

// The loops over time of a CfC; see cfc.h. Layer 0 is the first one, the last one gives the heads. In the forward pass
// the weights are (inputs of the layer, outputs), layer 0 from the state; in the backward pass (outputs, inputs).
struct CfC {
  static constexpr int kMostLayers = 8;
  std::int64_t T, B, m;
  int layers, threads, mixed;  // mixed: the gate mixes the candidates instead of adding one
  std::int64_t widths[kMostLayers];
  const void *weights[kMostLayers], *offsets[kMostLayers];  // no offset is null; that of layer 0 is in its sums
  void* sums[kMostLayers];                                  // (T, B, width)
  void* half_states;                                        // (T + 1, B, m)
  const void* dt;                                           // (T, B), or null if the weights contain it
  const void* of_states;  // gradient of the states; null in the forward pass. The unit's stride is 1.
  std::int64_t of_time, of_batch;
  void* of_sums[kMostLayers];
  void* of_start;  // (B, m), zero at first: gradient of the initial state
  bool (*is_interrupted)(void* watch);  // as in a Problem
  void* watch;

  bool interrupted() const { return is_interrupted && is_interrupted(watch); }
};

// The loops over time of a gated unit with one gate (MGU) or two (the paper's GRU); see gated.h.
struct Gated {
  std::int64_t T, B, m, width;  // width: m, filled up to whole vectors
  int gates, threads;
  const void* weights;             // zero beyond m; the two passes have layouts of their own
  void *gate_values, *candidates;  // (T, B, gates m) and (T, B, m); sums of the inputs at first, in the forward pass
  void* scratch;                   // (B, gates + 3, width)
  const void* start;               // (B, m): the first state; forward pass only, as the next three
  void* states;
  std::int64_t state_time, state_batch;
  const void* before;  // the states before each step; backward pass only, as all that follows
  std::int64_t before_time, before_batch;
  const void* of_states;  // gradient of the states; null in the forward pass. The unit's stride is 1.
  std::int64_t of_time, of_batch;
  void* of_arguments;  // planes of (T, B, m): of the candidate, then of the gates
  std::int64_t of_plane;
  void* of_start;  // (B, m): the gradient that comes from later steps, and then of the first state
  bool (*is_interrupted)(void* watch);
  void* watch;

  bool interrupted() const { return is_interrupted && is_interrupted(watch); }
};

// The inputs of a diagonal LRC and their linear map to the terms; see diagonal_inputs.h. Planes of terms are `width`
// apart, as the rows of the letters are.
struct DiagonalInputs {
  std::int64_t n, x_width;  // x_width: n, filled up to whole vectors
  const void *x, *weight;   // weight: (n + 1, 2 width), the bias last
  std::int64_t x_time, x_batch, x_channel;
  std::int64_t block;  // steps of a sample whose terms are computed at once
  void* scratch;       // for every task, zero at first: see scratch_size()
  const void* transposed;  // of the weight: (2 width, x_width)
  void *of_x, *of_weight;  // of_x is null if it is not wanted; of_weight for every task, zero at first
  std::int64_t of_x_time, of_x_batch;
};

// The loops over time of a diagonal LRC; see diagonal.h.
struct Diagonal {
  // The rows of `letters` and of their gradients, in the order of lrcnet/kernels/diagonal.py.
  enum Row { kA, kB, kG, kK, kO, kEL, kKEps, kInputG, kInputK, kGL, kP, kRows };
  static constexpr int kMostUnfolds = 64;
  std::int64_t T, B, m, K;
  int mixed, elastance, solver, threads;
  std::int64_t width;  // of a row of letters: m, filled up with zeros to whole vectors
  const void *terms, *h0, *dt, *letters;  // terms: two planes of m numbers side by side at every step and sample
  std::int64_t terms_time, terms_batch, dt_time, dt_batch;
  double dt_value;  // used where dt is null
  void* states;
  std::int64_t state_time, state_batch;
  const void* of_states;  // gradient of the states; null in the forward pass. The unit's stride is 1, or 0.
  std::int64_t of_time, of_batch, of_unit;
  void *of_terms, *of_h0, *of_dt, *of_letters;  // zero at first but for of_terms; of_letters for every task, of_dt (T, B)
  std::int64_t of_terms_time, of_terms_batch;
  DiagonalInputs inputs;  // in place of the terms and their gradient, if it has a weight
  bool (*is_interrupted)(void* watch);
  void* watch;

  bool interrupted() const { return is_interrupted && is_interrupted(watch); }
};

// The numbers of a task's memory for a block of terms, their gradients and those of x, and a row of zeros.
inline std::int64_t scratch_size(const Diagonal& call) {
  return call.inputs.block * (4 * call.width + call.inputs.x_width) + call.inputs.x_width;
}

// F, U, then w with an elastance, then the state before the unfolding unless it is simply the last output.
inline std::int64_t saved_planes(int elastance, std::int64_t K) { return 2 + (elastance != kNone) + (K > 1); }

// Work is handed out by index; the function must not depend on which thread runs it.
using Task = void (*)(void* context, int index);
using RunTasks = void (*)(Task task, void* context, int count, int threads);

// Members of a team run at the same time, so that they may wait for each other. There may be fewer than were asked for.
using TeamTask = void (*)(void* context, int member, int members);
using RunTeam = void (*)(TeamTask task, void* context, int threads);

struct Kernels {
  const char* name;
  int (*scan)(const Problem&, bool is_double, RunTasks, RunTeam);  // 0, or 1 when memory ran out
  int (*scan_backward)(const Problem&, const Gradients&, bool is_double, RunTasks, RunTeam);
  void (*step)(const Problem&, bool is_double, const void* h, void* out, void* scratch);
  void (*sigmoids)(const void* from, void* to, std::int64_t count, bool is_double);
  float (*multiply_adds)(std::int64_t count);
  void (*cfc)(CfC&, bool is_double, RunTasks);
  void (*diagonal)(Diagonal&, bool is_double, RunTasks);
  void (*gated)(Gated&, bool is_double, RunTasks);
};

}  // namespace lrcnet
