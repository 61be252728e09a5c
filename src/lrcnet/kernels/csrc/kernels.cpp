// The kernels of one instruction set. Compiled once for each of them; LRCNET_TABLE and LRCNET_NAME say which one it is.
#include "backward.h"
#include "cfc.h"
#include "diagonal_inputs.h"
#include "forward.h"
#include "gated.h"
#include "step.h"

namespace {

int scan(const Problem& problem, bool is_double, lrcnet::RunTasks tasks, lrcnet::RunTeam team) {
  return is_double ? Forward<double>(problem).run(tasks, team) : Forward<float>(problem).run(tasks, team);
}

int scan_backward(const Problem& problem, const Gradients& to, bool is_double, lrcnet::RunTasks tasks,
                  lrcnet::RunTeam team) {
  return is_double ? Backward<double>(problem, to).run(tasks, team) : Backward<float>(problem, to).run(tasks, team);
}

void step(const Problem& problem, bool is_double, const void* h, void* out, void* scratch) {
  if (is_double)
    step_batch<double>(problem, static_cast<const double*>(h), static_cast<double*>(out),
                       static_cast<double*>(scratch));
  else
    step_batch<float>(problem, static_cast<const float*>(h), static_cast<float*>(out), static_cast<float*>(scratch));
}

// The sigmoid alone, as the synapses compute it for arguments of ordinary size: the benchmark's lower limit of time.
template <class T>
void sigmoids_of(const T* from, T* to, index_t count) {
  constexpr index_t W = kLanes<T>;
  constexpr int N = 2;
  index_t i = 0;
  for (; i + N * W <= count; i += N * W) {
    Vec<T> t[N];
    for (int v = 0; v < N; ++v) t[v] = -load(from + i + v * W);
    sigmoid_of_minus<T, false, N>(t);
    for (int v = 0; v < N; ++v) store(to + i + v * W, t[v]);
  }
  for (; i < count; i += W) store_part(to + i, sigmoid<T>(load_part(from + i, count - i)), count - i);
}

void sigmoids(const void* from, void* to, std::int64_t count, bool is_double) {
  if (is_double)
    sigmoids_of(static_cast<const double*>(from), static_cast<double*>(to), count);
  else
    sigmoids_of(static_cast<const float*>(from), static_cast<float*>(to), count);
}

// Fused multiply-adds that do not wait for each other, `count` vectors of them: the unit of time of the benchmark's
// arithmetic bound.
float multiply_adds(std::int64_t count) {
  constexpr int kChains = 12;
  Vec<float> sums[kChains];
  for (int chain = 0; chain < kChains; ++chain) sums[chain] = splat(static_cast<float>(chain));  // equal ones would be one
  // Numbers that the compiler knows would let it leave out a chain that starts at its limit.
  volatile float half = 0.5f, one = 1.0f;
  const Vec<float> factor = splat<float>(half), term = splat<float>(one);
  for (std::int64_t i = 0; i < count; i += kChains)
    for (int chain = 0; chain < kChains; ++chain) sums[chain] = sums[chain] * factor + term;
  Vec<float> all = {};
  for (const Vec<float>& sum : sums) all += sum;
  return sum_lanes<float>(all);
}

void cfc(lrcnet::CfC& call, bool is_double, lrcnet::RunTasks run) {
  run(is_double ? cfc_task<double> : cfc_task<float>, &call, call.threads, call.threads);
}

void diagonal(Diagonal& call, bool is_double, lrcnet::RunTasks run) {
  run(is_double ? diagonal_task<double> : diagonal_task<float>, &call, call.threads, call.threads);
}

void gated(Gated& call, bool is_double, lrcnet::RunTasks run) {
  run(is_double ? gated_task<double> : gated_task<float>, &call, call.threads, call.threads);
}

}  // namespace

extern const lrcnet::Kernels LRCNET_TABLE;
const lrcnet::Kernels LRCNET_TABLE = {LRCNET_NAME, scan, scan_backward, step, sigmoids, multiply_adds, cfc, diagonal,
                                      gated};
