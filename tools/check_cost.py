"""Measure what the checks at the kernels' boundary cost: nanoseconds per call of `csrc/checks.h`.

    python tools/check_cost.py

Compiles a loop over the checks of a scan, of its backward pass and of a step, and prints the least processor time per
call of 30 repetitions. The processor time of the thread does not count other programs' work.
"""

import subprocess
import tempfile
from pathlib import Path

HEADERS = Path(__file__).parents[1] / "src/lrcnet/kernels/csrc"
SOURCE = r"""
#include <initializer_list>
#include <time.h>
#include <cstdio>
#include "checks.h"
static double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}
int main() {
  alignas(64) static float memory[4096];
  lrcnet::Problem problem{};
  problem.saturated = 1, problem.elastance = lrcnet::kSymmetric, problem.solver = lrcnet::kEuler, problem.K = 1;
  static const lrcnet::Letters<double> units{};
  problem.units = &units, problem.n = 3, problem.m = 8, problem.T = 5, problem.B = 2;
  problem.letters.each([](const void*& letter) { letter = memory; });
  problem.x = memory, problem.h0 = memory, problem.dt = memory, problem.states = memory, problem.saved = memory;
  problem.x_time = 6, problem.x_batch = 3, problem.x_channel = 1, problem.dt_time = 2, problem.dt_batch = 1;
  problem.state_time = 16, problem.state_batch = 8;
  lrcnet::Gradients gradients{};
  gradients.h0 = memory, gradients.x = memory, gradients.states = memory;
  gradients.letters.each([](void*& letter) { letter = memory; });
  const char* names[] = {"scan", "backward", "step"};
  for (int kind = 0; kind < 3; ++kind) {
    double least = 1e18;
    for (int repeat = 0; repeat < 30; ++repeat) {
      const int calls = 100000;
      const double start = now();
      for (int i = 0; i < calls; ++i) {
        // The compiler must not assume that the arguments are those of the last call, nor that nobody reads the answer.
        asm volatile("" : : "r"(&problem), "r"(&gradients) : "memory");
        lrcnet::Checks checks{4};
        checks.model(problem);
        if (kind == 2) checks.step(problem, problem.h0); else checks.sequence(problem);
        if (kind == 1) checks.backward(problem, gradients);
        asm volatile("" : : "r"(checks.problem) : "memory");
        if (checks.problem) return std::printf("refused: %s\n", checks.problem), 1;
      }
      const double each = (now() - start) / calls;
      if (each < least) least = each;
    }
    std::printf("%-9s %6.1f ns\n", names[kind], least);
  }
}
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        source, program = Path(name) / "cost.cpp", Path(name) / "cost"
        source.write_text(SOURCE)
        subprocess.run(["c++", "-std=c++17", "-O2", f"-I{HEADERS}", str(source), "-o", str(program)], check=True)
        print(subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout, end="")


if __name__ == "__main__":
    main()
