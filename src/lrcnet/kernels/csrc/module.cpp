// The Python module lrcnet.kernels._native: picks an instruction set, takes addresses and sizes as integers, checks dt and
// the result. It knows nothing of PyTorch, so that one build serves every version of it.
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "api.h"
#include "threads.h"

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

// Best first.
const Choice* choices(int* count) {
  static const Choice all[] = {
#if defined(LRCNET_HAVE_AVX512)
      {&lrcnet_avx512, __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")},
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
  bool failed() const { return PyErr_Occurred() != nullptr; }
};

void read_model(Reader& r, Problem& q) {
  q.saturated = static_cast<int>(r.integer());
  q.elastance = static_cast<int>(r.integer());
  q.solver = static_cast<int>(r.integer());
  q.K = r.integer();
  q.n = r.integer();
  q.m = r.integer();
  q.a = r.address(), q.b = r.address(), q.g = r.address(), q.k = r.address();
  q.g_l = r.address(), q.e_l = r.address();
  q.o = r.address(), q.p = r.address(), q.k_eps = r.address(), q.scale = r.address(), q.shift = r.address();
}

void read_sequence(Reader& r, Problem& q) {
  q.threads = static_cast<int>(r.integer());
  q.T = r.integer();
  q.B = r.integer();
  q.x = r.address(), q.x_time = r.integer(), q.x_batch = r.integer(), q.x_channel = r.integer();
  q.h0 = r.address();
  q.dt = r.address(), q.dt_time = r.integer(), q.dt_batch = r.integer(), q.dt_value = r.number();
  q.states = r.address(), q.state_time = r.integer(), q.state_batch = r.integer();
  q.saved = r.address();
}

template <class T>
T dt_at(const Problem& q, std::int64_t t, std::int64_t b) {
  return static_cast<const T*>(q.dt)[t * q.dt_time + b * q.dt_batch];
}

// The first negative dt, lowest time, then lowest sample; a scalar dt is checked where it enters.
template <class T>
bool find_negative(const Problem& q, std::int64_t* time, std::int64_t* sample) {
  if (!q.dt) return false;
  for (std::int64_t t = 0; t < q.T; ++t)
    for (std::int64_t b = 0; b < q.B; ++b)
      if (dt_at<T>(q, t, b) < T(0)) {
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

// The first non-finite state that no non-finite input explains. Such a state stays non-finite to the end of its sequence,
// so looking at the last states is enough when nothing is wrong.
template <class T>
bool find_diverged(const Problem& q, std::int64_t* time, std::int64_t* sample) {
  bool found = false;
  const T *states = static_cast<const T*>(q.states), *x = static_cast<const T*>(q.x), *h0 = static_cast<const T*>(q.h0);
  if (q.T == 0) return false;
  for (std::int64_t b = 0; b < q.B; ++b) {
    if (finite_row(states + (q.T - 1) * q.state_time + b * q.state_batch, q.m, 1)) continue;
    if (h0 && !finite_row(h0 + b * q.m, q.m, 1)) continue;
    if (!q.dt && !std::isfinite(q.dt_value)) continue;
    for (std::int64_t t = 0; t < (found ? *time : q.T); ++t) {
      if (!finite_row(x + t * q.x_time + b * q.x_batch, q.n, q.x_channel)) break;
      if (q.dt && !std::isfinite(dt_at<T>(q, t, b))) break;
      if (finite_row(states + t * q.state_time + b * q.state_batch, q.m, 1)) continue;
      found = true, *time = t, *sample = b;
      break;
    }
  }
  return found;
}

PyObject* no_memory(int failed) {
  if (failed) return PyErr_NoMemory();
  Py_RETURN_NONE;
}

// scan(is_double, check_dt, model..., sequence...) -> None, ("dt", time, sample, value) or ("state", time, sample).
PyObject* scan(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Reader r{args, count};
  Problem q{};
  const bool is_double = r.integer() != 0, check = r.integer() != 0;
  read_model(r, q);
  read_sequence(r, q);
  if (r.failed()) return nullptr;
  std::int64_t time = 0, sample = 0;
  if (check && (is_double ? find_negative<double>(q, &time, &sample) : find_negative<float>(q, &time, &sample)))
    return Py_BuildValue("(sLLd)", "dt", static_cast<long long>(time), static_cast<long long>(sample),
                         is_double ? dt_at<double>(q, time, sample) : static_cast<double>(dt_at<float>(q, time, sample)));
  int failed;
  bool diverged = false;
  Py_BEGIN_ALLOW_THREADS;
  failed = in_use->scan(q, is_double, lrcnet::run_tasks);
  if (!failed) diverged = is_double ? find_diverged<double>(q, &time, &sample) : find_diverged<float>(q, &time, &sample);
  Py_END_ALLOW_THREADS;
  if (diverged) return Py_BuildValue("(sLL)", "state", static_cast<long long>(time), static_cast<long long>(sample));
  return no_memory(failed);
}

// scan_backward(is_double, model..., sequence..., gradients...) -> None.
PyObject* scan_backward(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Reader r{args, count};
  Problem q{};
  Gradients to{};
  const bool is_double = r.integer() != 0;
  read_model(r, q);
  read_sequence(r, q);
  to.states = r.address(), to.time = r.integer(), to.batch = r.integer(), to.unit = r.integer();
  to.x = r.address(), to.x_time = r.integer(), to.x_batch = r.integer();
  to.h0 = r.address();
  to.dt = r.address(), to.dt_time = r.integer(), to.dt_batch = r.integer();
  to.a = r.address(), to.b = r.address(), to.g = r.address(), to.k = r.address();
  to.g_l = r.address(), to.e_l = r.address();
  to.o = r.address(), to.p = r.address(), to.k_eps = r.address(), to.scale = r.address(), to.shift = r.address();
  if (r.failed()) return nullptr;
  int failed;
  Py_BEGIN_ALLOW_THREADS;
  failed = in_use->scan_backward(q, to, is_double, lrcnet::run_tasks);
  Py_END_ALLOW_THREADS;
  return no_memory(failed);
}

// step(is_double, model..., batch, x, x_batch, x_channel, h, dt, dt_batch, dt_value, out) -> None.
PyObject* step(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Reader r{args, count};
  Problem q{};
  const bool is_double = r.integer() != 0;
  read_model(r, q);
  q.T = 1;
  q.B = r.integer();
  q.x = r.address(), q.x_batch = r.integer(), q.x_channel = r.integer();
  const void* h = r.address();
  q.dt = r.address(), q.dt_batch = r.integer(), q.dt_value = r.number();
  void* out = r.address();
  if (r.failed()) return nullptr;
  // Room for padding to the widest vector; see step_batch.
  const std::size_t bytes = static_cast<std::size_t>(q.n + 7 * (q.m + 16)) * (is_double ? 8 : 4);
  alignas(64) char room[16384];
  void* scratch = bytes <= sizeof room ? room : std::malloc(bytes);
  if (!scratch) return PyErr_NoMemory();
  // Short: giving up the interpreter's lock would cost as much as a small step.
  const bool release = q.B * q.K * q.m * (q.n + q.m) > 65536;
  PyThreadState* thread = release ? PyEval_SaveThread() : nullptr;
  in_use->step(q, is_double, h, out, scratch);
  if (thread) PyEval_RestoreThread(thread);
  if (scratch != room) std::free(scratch);
  Py_RETURN_NONE;
}

// sigmoids(is_double, from, to, count, threads, repeats): `repeats` passes on each of `threads` threads; for the benchmark.
struct Sigmoids {
  const char* from;
  char* to;
  std::int64_t count;
  bool is_double;
  long long repeats;

  static void task(void* context, int index) {
    const Sigmoids& job = *static_cast<Sigmoids*>(context);
    const std::int64_t skip = job.count * (job.is_double ? 8 : 4) * index;
    for (long long i = 0; i < job.repeats; ++i) in_use->sigmoids(job.from + skip, job.to + skip, job.count, job.is_double);
  }
};

PyObject* sigmoids(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Reader r{args, count};
  Sigmoids job{};
  job.is_double = r.integer() != 0;
  job.from = static_cast<const char*>(r.address()), job.to = static_cast<char*>(r.address()), job.count = r.integer();
  const int threads = static_cast<int>(r.integer());
  job.repeats = r.integer();
  if (r.failed()) return nullptr;
  Py_BEGIN_ALLOW_THREADS;
  lrcnet::run_tasks(Sigmoids::task, &job, threads, threads);
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
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
    {"describe", describe, METH_NOARGS, nullptr},
    {"use", use, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_native", "The fused kernels, by address.", -1, methods,
                          nullptr, nullptr, nullptr, nullptr};

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
