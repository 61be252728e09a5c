// Runs one call of the kernels, without Python, so that they can be tested on processors that are only emulated:
//
//     driver INPUT OUTPUT
//
// INPUT holds whole numbers (64 bits each) in the order of `Call`, the units of the letters, and the arrays that
// `main` reads; an array is its number of elements and its elements, an absent one has none. OUTPUT gets the states, the
// first states by `step`, and the gradients of x, h0, dt and the letters.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "api.h"

extern const lrcnet::Kernels LRCNET_TABLE;

namespace {

struct Call {
  std::int64_t is_double, T, B, n, m, K, saturated, elastance, solver, threads;
};

struct Files {
  std::FILE *input, *output;

  void read(void* to, std::size_t size, std::size_t count) const {
    if (std::fread(to, size, count, input) != count) std::exit(2);
  }

  // The memory stays until the end of the program. Null for an array without elements.
  void* read_array(std::size_t size, std::int64_t* count = nullptr) const {
    std::int64_t elements;
    read(&elements, sizeof elements, 1);
    if (count) *count = elements;
    void* array = elements ? std::malloc(static_cast<std::size_t>(elements) * size) : nullptr;
    if (elements) read(array, size, static_cast<std::size_t>(elements));
    return array;
  }

  void write(const void* from, std::int64_t count, std::size_t size) const {
    std::fwrite(&count, sizeof count, 1, output);
    if (count) std::fwrite(from, size, static_cast<std::size_t>(count), output);
  }
};

// One after the other; the parts of the batch are divided as with threads.
void run_in_turn(lrcnet::Task task, void* context, int count, int) {
  for (int i = 0; i < count; ++i) task(context, i);
}

void run_team_of_one(lrcnet::TeamTask task, void* context, int) { task(context, 0, 1); }

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const Files files{std::fopen(arguments[1], "rb"), std::fopen(arguments[2], "wb")};
  if (!files.input || !files.output) return 2;
  Call call;
  files.read(&call, sizeof call, 1);
  lrcnet::Letters<double> units;
  files.read(&units, sizeof units, 1);
  const bool is_double = call.is_double != 0;
  const std::size_t size = is_double ? 8 : 4;
  lrcnet::Problem problem{};
  problem.T = call.T, problem.B = call.B, problem.n = call.n, problem.m = call.m, problem.K = call.K;
  problem.saturated = static_cast<int>(call.saturated), problem.elastance = static_cast<int>(call.elastance),
  problem.solver = static_cast<int>(call.solver), problem.threads = static_cast<int>(call.threads);
  problem.units = &units;
  problem.x = files.read_array(size), problem.h0 = files.read_array(size), problem.dt = files.read_array(size);
  problem.x_time = call.B * call.n, problem.x_batch = call.n, problem.x_channel = 1;
  problem.dt_time = call.B, problem.dt_batch = 1;
  lrcnet::Gradients gradients{};
  gradients.states = files.read_array(size);
  gradients.time = call.B * call.m, gradients.batch = call.m, gradients.unit = 1;
  const std::size_t states = static_cast<std::size_t>(call.T * call.B * call.m);
  std::vector<std::int64_t> counts;
  problem.letters.each([&](const void*& letter) {
    counts.push_back(0);
    letter = files.read_array(size, &counts.back());
  });
  problem.mask = static_cast<const unsigned char*>(files.read_array(1));
  problem.states = std::malloc(states * size);
  problem.state_time = call.B * call.m, problem.state_batch = call.m;
  problem.saved = std::malloc(states * size * static_cast<std::size_t>(call.K * 4));
  if (LRCNET_TABLE.scan(problem, is_double, run_in_turn, run_team_of_one)) return 3;
  files.write(problem.states, static_cast<std::int64_t>(states), size);

  void* first = std::malloc(static_cast<std::size_t>(call.B * call.m) * size);
  void* scratch = std::malloc(static_cast<std::size_t>(call.n + 7 * (call.m + 16)) * size);
  LRCNET_TABLE.step(problem, is_double, problem.h0, first, scratch);
  files.write(first, call.B * call.m, size);

  const auto room = [size](std::int64_t elements) {
    return elements ? std::malloc(static_cast<std::size_t>(elements) * size) : nullptr;
  };
  const std::int64_t readings = call.T * call.B * call.n;
  gradients.x = room(readings), gradients.h0 = room(call.B * call.m), gradients.dt = room(call.T * call.B);
  gradients.x_time = problem.x_time, gradients.x_batch = problem.x_batch;
  gradients.dt_time = call.B, gradients.dt_batch = 1;
  std::size_t next = 0;
  gradients.letters.each([&](void*& letter) { letter = room(counts[next++]); });
  if (LRCNET_TABLE.scan_backward(problem, gradients, is_double, run_in_turn, run_team_of_one)) return 3;
  files.write(gradients.x, readings, size), files.write(gradients.h0, call.B * call.m, size);
  files.write(gradients.dt, call.T * call.B, size);
  next = 0;
  gradients.letters.each([&](void* letter) { files.write(letter, counts[next++], size); });
  return std::fclose(files.output) == 0 ? 0 : 2;
}
