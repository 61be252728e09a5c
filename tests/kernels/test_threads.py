"""The kernels on several threads: calls from many Python threads at once, and Ctrl-C during a long call."""

import sys
import threading
from typing import Any

import pytest
import torch

import lrcnet
from tests.kernels.conftest import run_program


@pytest.mark.parametrize("kind", [lrcnet.LRCU, lrcnet.LTC])
def test_many_threads_may_run_one_layer(kind: Any, one_thread: Any) -> None:
    torch.set_num_threads(4)
    # Large enough that the kernels share the work among their own threads.
    layer, x = kind(8, 32), torch.randn(20, 64, 8)
    expected = layer(x)[0].detach()
    answers: list[torch.Tensor] = []

    def call() -> None:
        torch.set_num_threads(4)
        for _ in range(3):
            output = layer(x)[0]
            torch.autograd.grad(output.sum(), list(layer.parameters()))
            answers.append(output.detach())

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 9
    assert all(torch.equal(answer, expected) for answer in answers)


# Windows has no signal that only interrupts.
@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends a process there")
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_a_long_call(threads: int) -> None:
    program = f"""
import os, signal, threading, torch, lrcnet
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
torch.set_num_threads({threads})
layer, x = lrcnet.LRCU(2, 64), torch.zeros(1, 2, 2).expand(400_000, 2, 2)
# Once the kernel runs: it takes minutes.
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    with torch.no_grad():
        layer(x)
    print("finished")
except KeyboardInterrupt:
    print("interrupted")
with torch.no_grad():
    print(layer(x[:5])[0].shape)
"""
    done = run_program(program)
    assert done.stdout.splitlines() == ["interrupted", "torch.Size([5, 2, 64])"], done.stderr
