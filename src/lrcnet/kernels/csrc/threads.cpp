// Threads: torch's own OpenMP runtime if it is already loaded, so that its idle threads do the work and no second pool
// competes for the cores; otherwise threads started for the call. In a forked child OpenMP's threads no longer exist
// and its runtime would wait for them forever, so the child starts its own threads as well.
#include "threads.h"

#include <atomic>
#include <cstring>
#include <system_error>
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
    if (void* library = dlopen(runtime.path, RTLD_LAZY | RTLD_NOLOAD))
      parallel = reinterpret_cast<Parallel>(dlsym(library, "GOMP_parallel"));
  pthread_atfork(nullptr, nullptr, [] { forked = true; });
  return true;
}();
#endif

void run_on_own_threads(Job& job, int threads) {
  std::thread helpers[64];
  int started = 0;
  for (; started < threads - 1 && started < 64; ++started) {
    try {
      helpers[started] = std::thread(work_on, &job);
    } catch (const std::system_error&) {  // no more threads available: the started ones do the work
      break;
    }
  }
  job.work();
  for (int i = 0; i < started; ++i) helpers[i].join();
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

const char* thread_source() { return parallel && !forked ? "torch's OpenMP" : "own threads"; }

}  // namespace lrcnet
