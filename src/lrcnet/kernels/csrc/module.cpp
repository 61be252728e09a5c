// The Python module lrcnet.kernels._native: picks an instruction set, takes addresses and sizes as integers, checks dt
// and the result. It does not depend on PyTorch, so that one build serves every version of it.
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "api.h"
#include "checks.h"
#include "threads.h"

#if defined(LRCNET_HAVE_ZEN4)
extern const lrcnet::Kernels lrcnet_zen4;
#endif
#if defined(LRCNET_HAVE_AVX512)
extern const lrcnet::Kernels lrcnet_avx512;
#endif
#if defined(LRCNET_HAVE_AVX2)
extern const lrcnet::Kernels lrcnet_avx2;
#endif
extern const lrcnet::Kernels lrcnet_baseline;

namespace {

using lrcnet::Gradients;
using lrcnet::Kernels;
using lrcnet::Problem;

struct Choice {
  const Kernels* kernels;
  bool available;
};

#if defined(LRCNET_HAVE_AVX512) || defined(LRCNET_HAVE_ZEN4)
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl");
}

// AMD's family 25 is Zen 3, which has no AVX-512, and Zen 4. Compilers older than Zen 4 do not know its name.
bool is_zen4() {
  unsigned version = 0, b, c, d;
  __get_cpuid(1, &version, &b, &c, &d);
  const unsigned family = (version >> 8 & 15) + (version >> 20 & 255);
  return has_avx512() && __builtin_cpu_is("amd") && family == 25;
}
#endif

// The instruction sets of this build, best first.
const Choice* choices(int* count) {
  static const Choice all[] = {
#if defined(LRCNET_HAVE_ZEN4)
      {&lrcnet_zen4, is_zen4()},
#endif
#if defined(LRCNET_HAVE_AVX512)
      {&lrcnet_avx512, has_avx512()},
#endif
#if defined(LRCNET_HAVE_AVX2)
      {&lrcnet_avx2, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")},
#endif
      {&lrcnet_baseline, true},
  };
  *count = static_cast<int>(sizeof all / sizeof all[0]);
  return all;
}

const Kernels* in_use = nullptr;

// Reads the arguments one after the other; remembers a failure instead of checking each.
struct Reader {
  PyObject* const* args;
  Py_ssize_t count, next = 0;

  PyObject* take() { return next < count ? args[next++] : nullptr; }
  long long integer() {
    PyObject* o = take();
    if (o) return PyLong_AsLongLong(o);
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "too few arguments");
    return -1;
  }
  void* address() { return reinterpret_cast<void*>(static_cast<std::intptr_t>(integer())); }
  double number() {
    PyObject* o = take();
    if (o) return PyFloat_AsDouble(o);
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "too few arguments");
    return -1;
  }
  // The dtype: 0 for float32, 1 for float64.
  bool is_double() {
    const long long code = integer();
    if (code != 0 && code != 1 && !PyErr_Occurred())
      PyErr_Format(PyExc_ValueError, "a kernel needs dtype 0 (float32) or 1 (float64), but was given %lld", code);
    return code == 1;
  }
  bool failed() {
    if (next != count && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "too many arguments");
    return PyErr_Occurred() != nullptr;
  }
};

bool refuse(const lrcnet::Checks& checks) {
  if (checks.problem) PyErr_Format(PyExc_ValueError, "a kernel needs %s, but was given something else", checks.problem);
  return checks.problem != nullptr;
}

// The same numbers one after the other in memory.
struct Packed {
  const std::int64_t* next;

  long long integer() { return *next++; }
  void* address() { return reinterpret_cast<void*>(static_cast<std::intptr_t>(integer())); }
};

template <class Source>
void read_model(Source& reader, Problem& problem) {
  problem.saturated = static_cast<int>(reader.integer());
  problem.elastance = static_cast<int>(reader.integer());
  problem.solver = static_cast<int>(reader.integer());
  problem.K = reader.integer();
  problem.units = static_cast<const lrcnet::Letters<double>*>(reader.address());
  problem.n = reader.integer();
  problem.m = reader.integer();
  problem.letters.each([&reader](const void*& letter) { letter = reader.address(); });
  problem.mask = static_cast<const unsigned char*>(reader.address());
}

void read_sequence(Reader& reader, Problem& problem) {
  problem.threads = static_cast<int>(reader.integer());
  problem.T = reader.integer();
  problem.B = reader.integer();
  problem.x = reader.address(), problem.x_time = reader.integer(), problem.x_batch = reader.integer(),
  problem.x_channel = reader.integer();
  problem.h0 = reader.address();
  problem.dt = reader.address(), problem.dt_time = reader.integer(), problem.dt_batch = reader.integer(),
  problem.dt_value = reader.number();
  problem.states = reader.address(), problem.state_time = reader.integer(), problem.state_batch = reader.integer();
  problem.saved = reader.address();
}

template <class T>
T dt_at(const Problem& problem, std::int64_t t, std::int64_t b) {
  return static_cast<const T*>(problem.dt)[t * problem.dt_time + b * problem.dt_batch];
}

// The first dt that is NaN, or negative if the sign is checked: lowest time, then lowest sample. A dt given as one number
// is checked in Python.
template <class T>
bool find_bad_dt(const Problem& problem, bool check_sign, std::int64_t* time, std::int64_t* sample) {
  if (!problem.dt) return false;
  for (std::int64_t t = 0; t < problem.T; ++t)
    for (std::int64_t b = 0; b < problem.B; ++b) {
      const T dt = dt_at<T>(problem, t, b);
      if (dt >= T(0) || (!check_sign && !std::isnan(dt))) continue;
      *time = t, *sample = b;
      return true;
    }
  return false;
}

template <class T>
bool finite_row(const T* row, std::int64_t count, std::int64_t stride) {
  for (std::int64_t i = 0; i < count; ++i)
    if (!std::isfinite(row[i * stride])) return false;
  return true;
}

// The first non-finite state that is not due to a non-finite input. Such a state stays non-finite to the end of its
// sequence, so looking at the last states is enough when nothing is wrong.
template <class T>
bool find_diverged(const Problem& problem, std::int64_t* time, std::int64_t* sample) {
  bool found = false;
  const T *states = static_cast<const T*>(problem.states), *x = static_cast<const T*>(problem.x),
          *h0 = static_cast<const T*>(problem.h0);
  if (problem.T == 0) return false;
  for (std::int64_t b = 0; b < problem.B; ++b) {
    if (finite_row(states + (problem.T - 1) * problem.state_time + b * problem.state_batch, problem.m, 1)) continue;
    if (h0 && !finite_row(h0 + b * problem.m, problem.m, 1)) continue;
    if (!problem.dt && !std::isfinite(problem.dt_value)) continue;
    for (std::int64_t t = 0; t < (found ? *time : problem.T); ++t) {
      if (!finite_row(x + t * problem.x_time + b * problem.x_batch, problem.n, problem.x_channel)) break;
      if (problem.dt && !std::isfinite(dt_at<T>(problem, t, b))) break;
      if (finite_row(states + t * problem.state_time + b * problem.state_batch, problem.m, 1)) continue;
      found = true, *time = t, *sample = b;
      break;
    }
  }
  return found;
}

// The interpreter's lock, released for a long call; the thread that made the call takes it back now and then to look
// for signals, so that Ctrl-C does not wait for the end of a long sequence.
struct Released {
  PyThreadState* state = PyEval_SaveThread();
  const std::thread::id caller = std::this_thread::get_id();
  std::chrono::steady_clock::time_point next = std::chrono::steady_clock::now() + kPause;
  std::atomic<bool> interrupted{false};

  static constexpr std::chrono::milliseconds kPause{50};

  ~Released() { PyEval_RestoreThread(state); }

  static bool ask(void* self) { return static_cast<Released*>(self)->check(); }

  bool check() {
    if (interrupted.load(std::memory_order_relaxed)) return true;
    if (std::this_thread::get_id() != caller || std::chrono::steady_clock::now() < next) return false;
    PyEval_RestoreThread(state);
    const bool found = PyErr_CheckSignals() != 0;
    state = PyEval_SaveThread();
    next = std::chrono::steady_clock::now() + kPause;
    if (found) interrupted = true;
    return found;
  }
};

// Asks for huge pages under memory that a long scan is about to write: the operating system is then entered once for
// 2 MiB and not for 4 KiB, which takes a tenth off a training step that keeps tens of megabytes. A refusal does no harm.
void prefer_huge_pages(void* memory, std::int64_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::intptr_t kHuge = 2 << 20;
  const std::intptr_t start = reinterpret_cast<std::intptr_t>(memory), end = start + bytes,
                      first = (start + kHuge - 1) / kHuge * kHuge, last = end / kHuge * kHuge;
  if (memory && last > first)
    madvise(reinterpret_cast<void*>(first), static_cast<std::size_t>(last - first), MADV_HUGEPAGE);
#else
  (void)memory, (void)bytes;
#endif
}

PyObject* no_memory(int failed) {
  if (failed) return PyErr_NoMemory();
  Py_RETURN_NONE;
}

// scan(is_double, check_dt, model..., sequence...) -> None, ("dt", time, sample, value) or ("state", time, sample).
PyObject* scan(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Reader reader{args, count};
  Problem problem{};
  const bool is_double = reader.is_double(), check = reader.integer() != 0;
  read_model(reader, problem);
  read_sequence(reader, problem);
  lrcnet::Checks checks{is_double ? 8 : 4};
  checks.model(problem), checks.sequence(problem);
  if (reader.failed() || refuse(checks)) return nullptr;
  std::int64_t time = 0, sample = 0;
  if (is_double ? find_bad_dt<double>(problem, check, &time, &sample)
                : find_bad_dt<float>(problem, check, &time, &sample))
    return Py_BuildValue(
        "(sLLd)", "dt", static_cast<long long>(time), static_cast<long long>(sample),
        is_double ? dt_at<double>(problem, time, sample) : static_cast<double>(dt_at<float>(problem, time, sample)));
  const std::int64_t states = problem.T * problem.B * problem.m * checks.item;
  prefer_huge_pages(problem.states, states);
  prefer_huge_pages(problem.saved, states * problem.K * lrcnet::saved_planes(problem.elastance, problem.K));
  int failed;
  bool diverged = false;
  bool interrupted;
  {
    Released released;
    problem.is_interrupted = Released::ask, problem.watch = &released;
    failed = in_use->scan(problem, is_double, lrcnet::run_tasks, lrcnet::run_team);
    interrupted = released.interrupted;
    if (!failed && !interrupted)
      diverged =
          is_double ? find_diverged<double>(problem, &time, &sample) : find_diverged<float>(problem, &time, &sample);
  }
  if (interrupted) return nullptr;
  if (diverged) return Py_BuildValue("(sLL)", "state", static_cast<long long>(time), static_cast<long long>(sample));
  return no_memory(failed);
}

// scan_backward(is_double, model..., sequence..., gradients...) -> None.
PyObject* scan_backward(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Reader reader{args, count};
  Problem problem{};
  Gradients gradients{};
  const bool is_double = reader.is_double();
  read_model(reader, problem);
  read_sequence(reader, problem);
  gradients.states = reader.address(), gradients.time = reader.integer(), gradients.batch = reader.integer(),
  gradients.unit = reader.integer();
  gradients.x = reader.address(), gradients.x_time = reader.integer(), gradients.x_batch = reader.integer();
  gradients.h0 = reader.address();
  gradients.dt = reader.address(), gradients.dt_time = reader.integer(), gradients.dt_batch = reader.integer();
  gradients.letters.each([&reader](void*& letter) { letter = reader.address(); });
  lrcnet::Checks checks{is_double ? 8 : 4};
  checks.model(problem), checks.sequence(problem), checks.backward(problem, gradients);
  if (reader.failed() || refuse(checks)) return nullptr;
  int failed;
  bool interrupted;
  {
    Released released;
    problem.is_interrupted = Released::ask, problem.watch = &released;
    failed = in_use->scan_backward(problem, gradients, is_double, lrcnet::run_tasks, lrcnet::run_team);
    interrupted = released.interrupted;
  }
  return interrupted ? nullptr : no_memory(failed);
}

// step(is_double, layers, the address of each layer's model as 64-bit integers, batch, x, x_batch, x_channel, h, dt, dt_batch, dt_value, out) -> None.
// h and out are (layers, batch, m); the inputs of each layer but the first are the first states of the layer below.
PyObject* step(PyObject*, PyObject* const* args, Py_ssize_t count) {
  constexpr int kMostLayers = 64;
  Reader reader{args, count};
  Problem problems[kMostLayers];
  const bool is_double = reader.is_double();
  const long long layers = reader.integer();
  if (layers < 1 || layers > kMostLayers) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a step needs from 1 to 64 layers");
    return nullptr;
  }
  for (long long i = 0; i < layers; ++i) {
    problems[i] = Problem{};
    const std::int64_t* model = static_cast<const std::int64_t*>(reader.address());
    if (!model) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a step needs the model of every layer");
      return nullptr;
    }
    Packed packed{model};
    read_model(packed, problems[i]);
  }
  Problem& first = problems[0];
  first.T = 1;
  first.B = reader.integer();
  first.x = reader.address(), first.x_batch = reader.integer(), first.x_channel = reader.integer();
  const char* h = static_cast<const char*>(reader.address());
  first.dt = reader.address(), first.dt_batch = reader.integer(), first.dt_value = reader.number();
  char* out = static_cast<char*>(reader.address());
  first.states = out;
  lrcnet::Checks checks{is_double ? 8 : 4};
  checks.model(first), checks.step(first, h);
  // Nothing else is computed from the sizes before they are checked.
  if (reader.failed() || refuse(checks)) return nullptr;
  const std::int64_t state = first.B * first.m * checks.item;
  std::int64_t widest = first.n, work = 0;
  for (long long i = 0; i < layers; ++i) {
    Problem& problem = problems[i];
    if (i > 0) {
      problem.T = 1, problem.B = first.B, problem.x = out + (i - 1) * state, problem.x_batch = first.m,
      problem.x_channel = 1;
      problem.dt = first.dt, problem.dt_batch = first.dt_batch, problem.dt_value = first.dt_value;
      problem.states = out + i * state;
      checks.model(problem), checks.step(problem, h + i * state);
      checks.need(problem.m == first.m && problem.n <= first.m, "layers of equal size that read the layer below");
      if (refuse(checks)) return nullptr;
    }
    widest = problem.n > widest ? problem.n : widest;
    work += problem.B * problem.K * problem.m * (problem.n + problem.m);
  }
  // Includes padding to the widest vector; see step_batch.
  const std::size_t bytes = static_cast<std::size_t>(widest + 7 * (first.m + 16)) * (is_double ? 8 : 4);
  alignas(64) char stack_memory[16384];
  void* scratch = bytes <= sizeof stack_memory ? stack_memory : std::malloc(bytes);
  if (!scratch) return PyErr_NoMemory();
  // Only for long steps: releasing the interpreter's lock costs as much as a small step.
  PyThreadState* thread = work > 65536 ? PyEval_SaveThread() : nullptr;
  for (long long i = 0; i < layers; ++i)
    in_use->step(problems[i], is_double, h + i * state, out + i * state, scratch);
  if (thread) PyEval_RestoreThread(thread);
  if (scratch != stack_memory) std::free(scratch);
  Py_RETURN_NONE;
}

// sigmoids(is_double, from, to, count, threads, repeats): `repeats` passes on each of `threads` threads; for the
// benchmark.
struct Sigmoids {
  const char* from;
  char* to;
  std::int64_t count;
  bool is_double;
  long long repeats;

  static void task(void* context, int index) {
    const Sigmoids& job = *static_cast<Sigmoids*>(context);
    const std::int64_t skip = job.count * (job.is_double ? 8 : 4) * index;
    for (long long i = 0; i < job.repeats; ++i)
      in_use->sigmoids(job.from + skip, job.to + skip, job.count, job.is_double);
  }
};

PyObject* sigmoids(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Reader reader{args, count};
  Sigmoids job{};
  job.is_double = reader.integer() != 0;
  job.from = static_cast<const char*>(reader.address()), job.to = static_cast<char*>(reader.address()),
  job.count = reader.integer();
  const int threads = static_cast<int>(reader.integer());
  job.repeats = reader.integer();
  if (reader.failed()) return nullptr;
  Py_BEGIN_ALLOW_THREADS;
  lrcnet::run_tasks(Sigmoids::task, &job, threads, threads);
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
}

// multiply_adds(count, threads): `count` vectors of fused multiply-adds on each of `threads` threads; for the benchmark.
PyObject* multiply_adds(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Reader reader{args, count};
  std::int64_t vectors = reader.integer();
  const int threads = static_cast<int>(reader.integer());
  if (reader.failed()) return nullptr;
  const auto task = [](void* context, int) {
    volatile float result = in_use->multiply_adds(*static_cast<std::int64_t*>(context));
    (void)result;
  };
  Py_BEGIN_ALLOW_THREADS;
  lrcnet::run_tasks(task, &vectors, threads, threads);
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
}

// Runs the loops over time of a call without the interpreter's lock, and looks for signals meanwhile.
template <class Call>
PyObject* run_loops(Call& call, bool is_double, void (*kernel)(Call&, bool, lrcnet::RunTasks)) {
  bool interrupted;
  {
    Released released;
    call.is_interrupted = Released::ask, call.watch = &released;
    kernel(call, is_double, lrcnet::run_tasks);
    interrupted = released.interrupted;
  }
  if (interrupted) return nullptr;
  Py_RETURN_NONE;
}

// cfc(is_double, threads, mixed, T, B, m, half_states, dt, of_states, of_time, of_batch, of_start, layers, then for each
// layer width, weight, offset, sums, of_sums) -> None. of_states is 0 in the forward pass.
PyObject* cfc(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Reader reader{args, count};
  lrcnet::CfC call{};
  const bool is_double = reader.is_double();
  call.threads = static_cast<int>(reader.integer()), call.mixed = static_cast<int>(reader.integer());
  call.T = reader.integer(), call.B = reader.integer(), call.m = reader.integer();
  call.half_states = reader.address(), call.dt = reader.address();
  call.of_states = reader.address(), call.of_time = reader.integer(), call.of_batch = reader.integer(),
  call.of_start = reader.address();
  call.layers = static_cast<int>(reader.integer());
  if (call.layers < 1 || call.layers > lrcnet::CfC::kMostLayers) {
    PyErr_SetString(PyExc_ValueError, "a CfC of the kernel has from 1 to 8 layers");
    return nullptr;
  }
  for (int i = 0; i < call.layers; ++i) {
    call.widths[i] = reader.integer(), call.weights[i] = reader.address(), call.offsets[i] = reader.address();
    call.sums[i] = reader.address(), call.of_sums[i] = reader.address();
  }
  lrcnet::Checks checks{is_double ? 8 : 4};
  checks.cfc(call);
  if (reader.failed() || refuse(checks)) return nullptr;
  return run_loops(call, is_double, in_use->cfc);
}

// gated(is_double, threads, gates, T, B, m, width, weights, gate_values, candidates, scratch, start, states, state_time,
// state_batch, before, before_time, before_batch, of_states, of_time, of_batch, of_arguments, of_plane, of_start) -> None.
// of_states is 0 in the forward pass.
PyObject* gated(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Reader reader{args, count};
  lrcnet::Gated call{};
  const bool is_double = reader.is_double();
  call.threads = static_cast<int>(reader.integer()), call.gates = static_cast<int>(reader.integer());
  call.T = reader.integer(), call.B = reader.integer(), call.m = reader.integer(), call.width = reader.integer();
  call.weights = reader.address(), call.gate_values = reader.address(), call.candidates = reader.address(),
  call.scratch = reader.address();
  call.start = reader.address();
  call.states = reader.address(), call.state_time = reader.integer(), call.state_batch = reader.integer();
  call.before = reader.address(), call.before_time = reader.integer(), call.before_batch = reader.integer();
  call.of_states = reader.address(), call.of_time = reader.integer(), call.of_batch = reader.integer();
  call.of_arguments = reader.address(), call.of_plane = reader.integer(), call.of_start = reader.address();
  lrcnet::Checks checks{is_double ? 8 : 4};
  checks.gated(call);
  if (reader.failed() || refuse(checks)) return nullptr;
  return run_loops(call, is_double, in_use->gated);
}

// diagonal(is_double, threads, mixed, elastance, solver, T, B, m, K, width, terms, terms_time, terms_batch, h0, dt,
// dt_time, dt_batch, dt_value, letters, states, state_time, state_batch, of_states, of_time, of_batch, of_unit, of_terms,
// of_terms_time, of_terms_batch, of_h0, of_dt, of_letters, n, x_width, x, x_time, x_batch, x_channel, weight, block,
// scratch, transposed, of_x, of_x_time, of_x_batch, of_weight) -> None. of_states is 0 in the forward pass. Either the
// terms or the weight is 0, and so is all that belongs to it.
PyObject* diagonal(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Reader reader{args, count};
  lrcnet::Diagonal call{};
  const bool is_double = reader.is_double();
  call.threads = static_cast<int>(reader.integer()), call.mixed = static_cast<int>(reader.integer());
  call.elastance = static_cast<int>(reader.integer()), call.solver = static_cast<int>(reader.integer());
  call.T = reader.integer(), call.B = reader.integer(), call.m = reader.integer(), call.K = reader.integer();
  call.width = reader.integer();
  call.terms = reader.address(), call.terms_time = reader.integer(), call.terms_batch = reader.integer();
  call.h0 = reader.address();
  call.dt = reader.address(), call.dt_time = reader.integer(), call.dt_batch = reader.integer(),
  call.dt_value = reader.number();
  call.letters = reader.address();
  call.states = reader.address(), call.state_time = reader.integer(), call.state_batch = reader.integer();
  call.of_states = reader.address(), call.of_time = reader.integer(), call.of_batch = reader.integer(),
  call.of_unit = reader.integer();
  call.of_terms = reader.address(), call.of_terms_time = reader.integer(), call.of_terms_batch = reader.integer();
  call.of_h0 = reader.address(), call.of_dt = reader.address(), call.of_letters = reader.address();
  lrcnet::DiagonalInputs& inputs = call.inputs;
  inputs.n = reader.integer(), inputs.x_width = reader.integer();
  inputs.x = reader.address(), inputs.x_time = reader.integer(), inputs.x_batch = reader.integer(),
  inputs.x_channel = reader.integer();
  inputs.weight = reader.address(), inputs.block = reader.integer(), inputs.scratch = reader.address();
  inputs.transposed = reader.address();
  inputs.of_x = reader.address(), inputs.of_x_time = reader.integer(), inputs.of_x_batch = reader.integer();
  inputs.of_weight = reader.address();
  lrcnet::Checks checks{is_double ? 8 : 4};
  checks.diagonal(call);
  if (reader.failed() || refuse(checks)) return nullptr;
  const std::int64_t points = call.T * call.B * checks.item;
  prefer_huge_pages(call.of_states ? call.of_terms : call.states, points * call.m * (call.of_states ? 2 : 1));
  prefer_huge_pages(inputs.of_x, points * inputs.n);
  return run_loops(call, is_double, in_use->diagonal);
}

// describe() -> (built, available, in use, thread source).
PyObject* describe(PyObject*, PyObject*) {
  int count;
  const Choice* all = choices(&count);
  PyObject *built = PyList_New(0), *available = PyList_New(0);
  for (int i = 0; built && available && i < count; ++i) {
    PyObject* name = PyUnicode_FromString(all[i].kernels->name);
    if (!name) break;
    PyList_Append(built, name);
    if (all[i].available) PyList_Append(available, name);
    Py_DECREF(name);
  }
  if (PyErr_Occurred()) {
    Py_XDECREF(built);
    Py_XDECREF(available);
    return nullptr;
  }
  return Py_BuildValue("(NNss)", built, available, in_use->name, lrcnet::thread_source());
}

// use(name): forces an instruction set; False when this machine or this build has none of that name.
PyObject* use(PyObject*, PyObject* name) {
  int count;
  const Choice* all = choices(&count);
  for (int i = 0; i < count; ++i)
    if (all[i].available && PyUnicode_CompareWithASCIIString(name, all[i].kernels->name) == 0) {
      in_use = all[i].kernels;
      Py_RETURN_TRUE;
    }
  Py_RETURN_FALSE;
}

template <class F>
PyCFunction as_function(F function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef methods[] = {
    {"scan", as_function(scan), METH_FASTCALL, nullptr},
    {"scan_backward", as_function(scan_backward), METH_FASTCALL, nullptr},
    {"step", as_function(step), METH_FASTCALL, nullptr},
    {"sigmoids", as_function(sigmoids), METH_FASTCALL, nullptr},
    {"multiply_adds", as_function(multiply_adds), METH_FASTCALL, nullptr},
    {"cfc", as_function(cfc), METH_FASTCALL, nullptr},
    {"diagonal", as_function(diagonal), METH_FASTCALL, nullptr},
    {"gated", as_function(gated), METH_FASTCALL, nullptr},
    {"describe", describe, METH_NOARGS, nullptr},
    {"use", use, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "_native",
                          "The fused kernels, by address.",
                          -1,
                          methods,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__native() {
#if defined(__x86_64__)
  __builtin_cpu_init();
#endif
  int count;
  const Choice* all = choices(&count);
  for (int i = count - 1; i >= 0; --i)
    if (all[i].available) in_use = all[i].kernels;
  return PyModule_Create(&definition);
}
