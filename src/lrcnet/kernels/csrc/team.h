// A team of threads that share the units of a layer, for a batch with fewer samples than there are threads. The members
// run at the same time, each computes its own vectors of units, and they meet in every unfolding, because every unit
// reads the states of all units.
#pragma once

#include <sched.h>

#include "api.h"
#include "simd.h"

namespace {

// A range: of vectors of units, if nothing else is said.
struct Share {
  index_t first, end;

  index_t count() const { return end - first; }

  // Part `number` of `count` parts of so many things; none is empty if there are at least as many things as parts.
  static Share of(index_t things, index_t number, index_t count) {
    return {things * number / count, things * (number + 1) / count};
  }
};

// Where the members wait for each other. The compiler's own atomics instead of the library's: functions of a library
// could be compiled with one instruction set and called from the code of another.
struct MeetingPoint {
  // Apart, so that an arrival does not disturb those who watch the round.
  alignas(64) unsigned arrived = 0;
  alignas(64) unsigned round = 0;

  // About as long as a thread is late that runs. One that does not run needs the processor, perhaps this one.
  static constexpr int kSpins = 10000;

  // Returns once all `members` have called it. What each wrote before, all see afterwards.
  void wait(unsigned members) {
    const unsigned mine = __atomic_load_n(&round, __ATOMIC_RELAXED);  // it cannot change before this member arrives
    if (__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL) == members) {
      __atomic_store_n(&arrived, 0, __ATOMIC_RELAXED);
      __atomic_store_n(&round, mine + 1, __ATOMIC_RELEASE);
      return;
    }
    for (int spins = 0; __atomic_load_n(&round, __ATOMIC_ACQUIRE) == mine;)
      if (spins < kSpins)
        ++spins, pause();
      else
        sched_yield();
  }

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
};

// What the members share beside the layer's numbers.
struct Team {
  MeetingPoint meeting_point;
  bool stopped = false;
};

// One member, or a thread that works alone. Whatever ends a call early must be decided for all members at once: a member
// that left would leave the others waiting. So memory is allocated before the team starts, and the first member asks
// for interrupts.
struct Member {
  index_t number = 0, count = 1;
  Team* team = nullptr;

  bool alone() const { return count == 1; }

  void meet() const {
    if (!alone()) team->meeting_point.wait(static_cast<unsigned>(count));
  }

  Share share(index_t things) const { return Share::of(things, number, count); }

  // Whether all members must give up. They meet here; they must meet once more before they ask again.
  bool interrupted(const lrcnet::Problem& problem) const {
    if (alone()) return problem.interrupted();
    if (number == 0) team->stopped = problem.interrupted();
    meet();
    return team->stopped;
  }
};

}  // namespace
