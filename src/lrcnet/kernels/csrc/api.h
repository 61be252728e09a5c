// What the module hands to a compiled instruction set: plain data, one table of functions per instruction set.
// Axes: T time, B batch, n inputs, m states (units), K unfoldings. Strides count elements, not bytes.
#pragma once

#include <cstdint>

namespace lrcnet {

enum Elastance : int { kNone = 0, kAsymmetric = 1, kSymmetric = 2 };
enum Solver : int { kEuler = 0, kHybrid = 1, kExponential = 2 };

struct Problem {
  std::int64_t T, B, n, m, K;
  int saturated, elastance, solver, threads;
  const void *x, *h0, *dt;
  std::int64_t x_time, x_batch, x_channel;
  std::int64_t dt_time, dt_batch;
  double dt_value;  // used where dt is null
  // Contiguous, as the paper shapes them: a, b, g, k, o (m+n, m); g_l, e_l, p, k_eps (m); scale, shift (n). May be null:
  // o, p, k_eps, scale, shift.
  const void *a, *b, *g, *k, *g_l, *e_l, *o, *p, *k_eps, *scale, *shift;
  void* states;
  std::int64_t state_time, state_batch;
  void* saved;  // (T, K, B, planes, m) or null; planes as saved_planes() counts them
};

struct Gradients {
  const void* states;  // gradient of the states, any strides, or null
  std::int64_t time, batch, unit;
  void *x, *h0, *dt;  // x and dt may be null: not wanted. x is (B, T, n) or (T, B, n) with the strides below
  std::int64_t x_time, x_batch, dt_time, dt_batch;
  void *a, *b, *g, *k, *g_l, *e_l, *o, *p, *k_eps, *scale, *shift;  // null where the parameter is
};

// F, U, then w with an elastance, then the state before the unfolding where it is not simply the last output.
inline std::int64_t saved_planes(int elastance, std::int64_t K) { return 2 + (elastance != kNone) + (K > 1); }

// Work is handed out by index; the function must not care which thread runs it.
using Task = void (*)(void* context, int index);
using RunTasks = void (*)(Task task, void* context, int count, int threads);

struct Kernels {
  const char* name;
  int (*scan)(const Problem&, bool is_double, RunTasks);  // 0, or 1 when memory ran out
  int (*scan_backward)(const Problem&, const Gradients&, bool is_double, RunTasks);
  void (*step)(const Problem&, bool is_double, const void* h, void* out, void* scratch);
  void (*sigmoids)(const void* from, void* to, std::int64_t count, bool is_double);
};

}  // namespace lrcnet
