"""Threads that share the units of a wide layer, because the batch has fewer samples than there are threads.

The number of threads is that of the team, not of the machine's cores: a team of four runs on two as well.
"""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import lrcnet
from tests.kernels.conftest import run_program, scan, values_and_gradients
from tests.kernels.test_values import (
    DOUBLE,
    FUSED,
    PLAIN,
    SOME_MODELS,
    SOME_NAMES,
    check_error_law,
    relative_error,
)
from tests.kernels.test_values import problem as narrow_problem
from tests.kernels.transcription import states

# Steps, batch, inputs, units, threads. Neither the vectors of units nor the last of them divide evenly; the inputs are
# none, fewer than threads, or more.
SHAPES = [(4, 1, 3, 257, 2), (3, 1, 0, 330, 3), (3, 2, 20, 263, 3), (3, 3, 1, 290, 4), (3, 1, 5, 511, 4)]
LRCU = SOME_MODELS[0]


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def problem(steps: int, batch: int, n: int, m: int, elastance: str, seed: int = 0) -> dict[str, Tensor | None]:
    """As for narrow layers, with weaker synapses: the forget gates of so many would be 1 but for the last digits."""
    tensors = narrow_problem(steps, batch, n, m, elastance, seed)
    return {**tensors, "g": tensors["g"] / 8}  # type: ignore[operator]


def run(threads: int, tensors: dict[str, Tensor | None], dtype: torch.dtype, **model: Any) -> dict[str, Tensor]:
    torch.set_num_threads(threads)
    return values_and_gradients(scan, tensors, dtype, **model, **FUSED)


@pytest.mark.parametrize(("steps", "batch", "n", "m", "threads"), SHAPES)
@pytest.mark.parametrize("model", SOME_MODELS, ids=SOME_NAMES)
def test_values_and_gradients_are_those_of_the_equation(
    model: dict[str, Any], steps: int, batch: int, n: int, m: int, threads: int
) -> None:
    tensors = problem(steps, batch, n, m, model["elastance"])
    found = run(threads, tensors, torch.float64, **model)
    truth = values_and_gradients(states, tensors, torch.float64, **model, **PLAIN)
    for name, value in truth.items():
        assert relative_error(found[name], value) < DOUBLE, name


def test_several_blocks_of_steps() -> None:
    # 128 points are a block: of one sample, and of three; a block of one step follows the others.
    for steps, batch in ((129, 1), (43, 3)):
        tensors = problem(steps, batch, 3, 365, "symmetric")
        found = run(4, tensors, torch.float64, **LRCU)
        truth = values_and_gradients(states, tensors, torch.float64, **LRCU, **PLAIN)
        for name, value in truth.items():
            assert relative_error(found[name], value) < 10 * DOUBLE, name


def test_several_blocks_of_samples() -> None:
    # 32 samples are a block, and a team has more members than the batch has samples.
    tensors = problem(2, 33, 3, 600, "symmetric")
    one, found = (run(threads, tensors, torch.float64, **LRCU) for threads in (1, 36))
    assert not torch.equal(found["h0"], one["h0"])
    for name, value in one.items():
        assert relative_error(found[name], value) < DOUBLE, name


@pytest.mark.parametrize("model", [SOME_MODELS[i] for i in (0, 1, 3)], ids=[SOME_NAMES[i] for i in (0, 1, 3)])
@pytest.mark.parametrize("threads", [2, 4])
def test_single_precision_is_about_as_exact_as_the_plain_loop(model: dict[str, Any], threads: int) -> None:
    torch.set_num_threads(threads)
    check_error_law((problem(8, threads - 1, 20, 257, model["elastance"], seed), model) for seed in range(2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("threads", [2, 3, 4])
def test_results_repeat_and_states_do_not_depend_on_the_number_of_threads(threads: int, dtype: torch.dtype) -> None:
    for model in SOME_MODELS[:2]:
        tensors = problem(6, threads - 1, 7, 301, model["elastance"])
        one, first = (run(count, tensors, dtype, **model) for count in (1, threads))
        assert torch.equal(first["states"], one["states"])
        for _ in range(5):
            again = run(threads, tensors, dtype, **model)
            assert all(torch.equal(again[name], value) for name, value in first.items())


@pytest.mark.parametrize(("m", "shared"), [(64, False), (512, True)])
def test_only_wide_layers_are_shared(m: int, shared: bool) -> None:
    # Sums in another order show it: one sample on one thread gives the same digits with any number of threads.
    tensors = problem(60, 1, 3, m, "symmetric")
    one, two = (run(threads, tensors, torch.float32, **LRCU)["h0"] for threads in (1, 2))
    assert torch.equal(one, two) is not shared


def test_a_layer_with_missing_synapses_keeps_its_list() -> None:
    tensors = problem(4, 1, 3, 300, "symmetric")
    mask = torch.rand(303, 300, generator=torch.Generator().manual_seed(0)) < 0.01
    found = run(3, tensors, torch.float64, mask=mask, **LRCU)
    truth = values_and_gradients(states, tensors, torch.float64, mask=mask, **LRCU, **PLAIN)
    for name, value in truth.items():
        assert relative_error(found[name], value) < DOUBLE, name


def test_a_mask_that_hides_few_synapses_is_shared() -> None:
    tensors = problem(4, 1, 3, 300, "symmetric")
    mask = torch.rand(303, 300, generator=torch.Generator().manual_seed(0)) < 0.97
    one, found = (run(threads, tensors, torch.float64, mask=mask, **LRCU) for threads in (1, 3))
    assert not torch.equal(found["h0"], one["h0"])
    truth = values_and_gradients(states, tensors, torch.float64, mask=mask, **LRCU, **PLAIN)
    for name, value in truth.items():
        assert relative_error(found[name], value) < DOUBLE, name


@pytest.mark.parametrize("form", ["a number", "one per step and sample", "without h0", "batch first"])
def test_every_form_of_dt_and_of_the_first_state(form: str) -> None:
    torch.manual_seed(0)
    layers = [
        lrcnet.LRCU(3, 260, backend=backend, batch_first=form == "batch first", dtype=torch.float64)
        for backend in ("fused", "reference")
    ]
    layers[1].load_state_dict(layers[0].state_dict())
    lead = (2, 5) if form == "batch first" else (5, 2)
    given = torch.randn(*lead, 3, dtype=torch.float64)
    start = None if form == "without h0" else torch.randn(1, 2, 260, dtype=torch.float64)
    steps = torch.rand(lead, dtype=torch.float64)
    torch.set_num_threads(3)
    found = []
    for layer in layers:
        x, dt = given.clone().requires_grad_(), steps.clone().requires_grad_()
        h0 = None if start is None else start.clone().requires_grad_()
        output, _ = layer(x, h0, dt=0.3 if form == "a number" else dt)
        leaves = [leaf for leaf in (x, h0, None if form == "a number" else dt) if leaf is not None]
        found.append([output.detach(), *torch.autograd.grad(output.cos().sum(), [*leaves, *layer.parameters()])])
    for ours, theirs in zip(*found, strict=True):
        assert relative_error(ours, theirs) < DOUBLE


@pytest.mark.parametrize("place", ["x", "h0", "a", "g", "o", "e_l"])
def test_nan_comes_out_where_the_equation_has_it(place: str) -> None:
    tensors = problem(2, 2, 3, 270, "symmetric")
    tensor = tensors[place]
    assert tensor is not None
    tensor[(1, 1, 1)[-tensor.dim() :]] = torch.nan
    truth = values_and_gradients(states, tensors, torch.float64, **LRCU, **PLAIN)
    torch.set_num_threads(3)
    if place not in ("x", "h0"):
        with pytest.warns(lrcnet.DivergenceWarning):
            found = values_and_gradients(scan, tensors, torch.float64, **LRCU, **FUSED)
    else:
        found = values_and_gradients(scan, tensors, torch.float64, **LRCU, **FUSED)
    for name, value in truth.items():
        assert torch.equal(found[name].isnan(), value.isnan()), name
        assert relative_error(found[name].nan_to_num(), value.nan_to_num()) < 1e-10, name


INTERRUPTED = """
import os, signal, threading, torch, lrcnet
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
torch.set_num_threads({threads})
layer, x = lrcnet.LRCU(1, 512), torch.zeros(1, 1, 1)
training = {training}
# Once the kernel runs: it takes minutes, or half a second where the gates of every step are kept.
with torch.set_grad_enabled(training):
    try:
        if training:
            loss = layer(x.expand(6_000, 1, 1))[0].sum()
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        loss.backward() if training else layer(x.expand(1_000_000, 1, 1))
        print("finished")
    except KeyboardInterrupt:
        print("interrupted")
    print(layer(x.expand(5, 1, 1))[0].shape)
"""


# Windows has no signal that only interrupts.
@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends a process there")
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("threads", [2, 4])
def test_ctrl_c_ends_a_team(threads: int, training: bool) -> None:
    done = run_program(INTERRUPTED.format(threads=threads, training=training))
    assert done.stdout.splitlines() == ["interrupted", "torch.Size([5, 1, 512])"], done.stderr


# One thread's results, whatever was asked for: the runtime gives no second thread, so that the team has one member.
ALONE = """
import torch, lrcnet
from tests.kernels.conftest import scan, values_and_gradients
from tests.kernels.test_shared_units import problem
from tests.kernels.test_values import FUSED, SOME_MODELS
tensors = problem(6, 1, 3, 400, "symmetric")
def run(threads):
    torch.set_num_threads(threads)
    return values_and_gradients(scan, tensors, torch.float32, **SOME_MODELS[0], **FUSED)
def same(found, expected):
    return all(torch.equal(value, expected[name]) for name, value in found.items())
one = run(1)
"""


def test_a_limit_of_one_thread() -> None:
    done = run_program(ALONE + "print(same(run(4), one))", OMP_THREAD_LIMIT="1")
    assert done.stdout == "True\n", done.stderr


NESTED = """
import ctypes
[path] = {{line.split()[-1] for line in open("/proc/self/maps") if "libgomp" in line or "libiomp" in line}}
found = []
runtime = ctypes.CDLL(path)
runtime.omp_set_nested({nested:d})
callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: found.append(run(3)))
runtime.GOMP_parallel(callback, None, 2, 0)
# If regions may be nested the teams have members, and the sums another order.
print(len(found), *(torch.equal(each["states"], one["states"]) for each in found))
print(*(torch.allclose(each["h0"], one["h0"], atol=1e-4) and same(each, one) is {alone} for each in found))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="finds the OpenMP runtime in /proc")
@pytest.mark.parametrize("nested", [False, True])
def test_inside_a_parallel_region(nested: bool) -> None:
    done = run_program(ALONE + NESTED.format(alone=not nested, nested=nested))
    assert done.stdout.splitlines() == ["2 True True", "True True"], done.stderr


FORKED = """
import os, resource, signal, torch, lrcnet
torch.set_num_threads(4)
layer, x = lrcnet.LRCU(3, 400), torch.randn(6, 1, 3, requires_grad=True)
leaves = [x, layer.cells[0].e_l]
def run():
    # Nothing large but the kernel: torch's own threads do not exist in the child, and torch would wait for them.
    output = layer(x)[0]
    return [output.detach(), *torch.autograd.grad(output.sum(), leaves)]
expected, spare = run(), {spare}
child = os.fork()
if child:
    _, status = os.waitpid(child, 0)
    print("ended with", os.waitstatus_to_exitcode(status))
else:
    signal.alarm(60)
    if spare is not None:
        # Memory for the stacks of some threads, or for none.
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + spare, resource.RLIM_INFINITY))
    found = run()
    right = torch.equal(found[0], expected[0])
    right &= all(torch.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in zip(found, expected))
    print("right" if right else "wrong", lrcnet.kernels.info()["thread_source"], flush=True)
    os._exit(0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("spare", [None, 34 << 20, 26 << 20, 18 << 20])
def test_works_after_fork_and_with_fewer_threads_than_asked_for(spare: int | None) -> None:
    done = run_program(FORKED.format(spare=spare))
    assert done.stdout.splitlines() == ["right own threads", "ended with 0"], done.stderr


def test_no_memory_is_an_error_and_not_a_wait() -> None:
    program = """
import resource, torch, lrcnet
torch.set_num_threads(4)
layer, x = lrcnet.LRCU(1, 1024), torch.ones(3, 1, 1)
with torch.no_grad():
    before = layer(x)[0]
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (4 << 20), resource.RLIM_INFINITY))
    try:
        layer(x)
        print("finished")
    except MemoryError:
        print("no memory")
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(torch.equal(layer(x)[0], before))
"""
    # Memory that was freed goes back to the system, instead of to the next call.
    done = run_program(program, MALLOC_MMAP_THRESHOLD_="100000", MALLOC_ARENA_MAX="1")
    assert done.stdout.splitlines() == ["no memory", "True"], done.stderr


def test_many_python_threads_may_run_teams_at_once() -> None:
    program = """
import threading, torch, lrcnet
layer, x = lrcnet.LRCU(3, 400), torch.randn(20, 1, 3)
expected = layer(x)[0].detach()
answers = []
def call():
    torch.set_num_threads(4)
    for _ in range(3):
        output = layer(x)[0]
        torch.autograd.grad(output.sum(), list(layer.parameters()))
        answers.append(torch.equal(output, expected))
threads = [threading.Thread(target=call) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(answers), all(answers))
"""
    done = run_program(program)
    assert done.stdout == "9 True\n", done.stderr
