// Threads: torch's own OpenMP runtime if it is already loaded, so that its idle threads do the work and no second pool
// competes for the cores; otherwise threads started for the call. In a forked child OpenMP's threads no longer exist
// and its runtime would wait for them forever, so the child starts its own threads as well.
#include "threads.h"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#if defined(__linux__)
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#endif

namespace lrcnet {
namespace {

struct Job {
  Task task;
  void* context;
  int count;
  std::atomic<int> next{0};

  void work() {
    for (int i = next.fetch_add(1); i < count; i = next.fetch_add(1)) task(context, i);
  }
};

void work_on(void* job) { static_cast<Job*>(job)->work(); }

// libgomp's entry point, which LLVM's and Intel's runtimes offer too.
using Parallel = void (*)(void (*)(void*), void*, unsigned, unsigned);

Parallel parallel = nullptr;
// The calling thread's place in the team that executes a parallel region, and the size of that team.
int (*omp_member)() = nullptr;
int (*omp_members)() = nullptr;
std::atomic<bool> forked{false};

// LRCNET_OWN_THREADS is for the thread sanitizer, which does not see how OpenMP's threads wait for each other.
#if defined(__linux__) && !defined(LRCNET_OWN_THREADS)
struct Runtime {
  char path[4096];
  bool of_torch;
};

int inspect(dl_phdr_info* info, std::size_t, void* data) {
  Runtime& best = *static_cast<Runtime*>(data);
  const char* name = std::strrchr(info->dlpi_name, '/');
  if (!name ||
      (std::strncmp(name, "/libgomp", 8) && std::strncmp(name, "/libiomp", 8) && std::strncmp(name, "/libomp", 7)))
    return 0;
  const bool of_torch =
      std::strstr(info->dlpi_name, "/torch/") != nullptr || std::strstr(info->dlpi_name, "/torch.libs/") != nullptr;
  if ((best.path[0] && !(of_torch && !best.of_torch)) || std::strlen(info->dlpi_name) >= sizeof best.path) return 0;
  std::strcpy(best.path, info->dlpi_name);
  best.of_torch = of_torch;
  return 0;
}

// Searched once, at import: torch is loaded by then.
const bool searched = [] {
  Runtime runtime{};
  dl_iterate_phdr(inspect, &runtime);
  if (runtime.path[0])
    if (void* library = dlopen(runtime.path, RTLD_LAZY | RTLD_NOLOAD)) {
      parallel = reinterpret_cast<Parallel>(dlsym(library, "GOMP_parallel"));
      omp_member = reinterpret_cast<int (*)()>(dlsym(library, "omp_get_thread_num"));
      omp_members = reinterpret_cast<int (*)()>(dlsym(library, "omp_get_num_threads"));
    }
  pthread_atfork(nullptr, nullptr, [] { forked = true; });
  return true;
}();
#endif

// Threads started for one call, beside the one that makes it.
struct Helpers {
  std::thread all[64];
  int started = 0;

  // Starts work(1), work(2) and so on up to work(count), or fewer.
  template <class Work>
  void start(int count, const Work& work) {
    while (started < count && started < 64) {
      try {
        all[started] = std::thread(work, started + 1);
      } catch (const std::exception&) {  // no more threads, or no memory for one: the started ones do the work
        break;
      }
      ++started;
    }
  }

  ~Helpers() {
    for (int i = 0; i < started; ++i) all[i].join();
  }
};

void run_on_own_threads(Job& job, int threads) {
  Helpers helpers;
  helpers.start(threads - 1, [&job](int) { job.work(); });
  job.work();
}

struct TeamJob {
  TeamTask task;
  void* context;
};

void work_in_team(void* data) {
  const TeamJob& job = *static_cast<TeamJob*>(data);
  job.task(job.context, omp_member(), omp_members());
}

// The members must know how many they are before any of them starts: that is known once no further thread is started.
struct Gathering {
  std::mutex mutex;
  std::condition_variable complete;
  int members = 0;

  int wait() {
    std::unique_lock<std::mutex> lock(mutex);
    complete.wait(lock, [this] { return members != 0; });
    return members;
  }

  void announce(int count) {
    const std::lock_guard<std::mutex> lock(mutex);
    members = count;
    complete.notify_all();
  }
};

void run_team_on_own_threads(const TeamJob& job, int threads) {
  Gathering gathering;
  Helpers helpers;
  helpers.start(threads - 1, [&](int member) { job.task(job.context, member, gathering.wait()); });
  gathering.announce(helpers.started + 1);
  job.task(job.context, 0, helpers.started + 1);
}

}  // namespace

void run_tasks(Task task, void* context, int count, int threads) {
  Job job{task, context, count};
  if (threads > count) threads = count;
  if (threads <= 1)
    job.work();
  else if (parallel && !forked)
    parallel(work_on, &job, static_cast<unsigned>(threads), 0);
  else
    run_on_own_threads(job, threads);
}

void run_team(TeamTask task, void* context, int threads) {
  TeamJob job{task, context};
  if (threads <= 1)
    task(context, 0, 1);
  else if (parallel && omp_member && omp_members && !forked)
    parallel(work_in_team, &job, static_cast<unsigned>(threads), 0);
  else
    run_team_on_own_threads(job, threads);
}

const char* thread_source() { return parallel && !forked ? "torch's OpenMP" : "own threads"; }

}  // namespace lrcnet
