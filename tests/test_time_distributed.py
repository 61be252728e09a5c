"""The time scale under DistributedDataParallel: two real processes with the gloo backend."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

PROGRAM = """
import sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
import lrcnet

rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method=sys.argv[2], rank=rank, world_size=2)
x = torch.randn(6, 4, 3)
gaps = (rank + 1) * torch.full((6, 4), 60.0)


def build():
    torch.manual_seed(0)
    return lrcnet.LRCU(3, 5, time_scale="auto", time_warnings=False)


def train(model, steps):
    scales = []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(x, dt=gaps)[0].square().sum().backward()
        optimizer.step()
        scales.append(model.module.time_scale)
    return scales


first = DistributedDataParallel(build())
print("by itself", *train(first, 3))
layer = build()
if rank == 0:
    layer.calibrate_time(7.0)
second = DistributedDataParallel(layer)
print("before wrapping", *train(second, 2))
total = torch.stack([p.detach().double().sum() for p in first.parameters()]).sum()
print("parameters", float(total))
dist.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch was built without torch.distributed")
def test_all_processes_use_the_scale_of_the_first(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(rank), address],
            env=environment,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    printed = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], printed
    first, second = (out.splitlines() for out, _ in printed)
    # In the first iteration each process knows its own gaps only; then torch broadcasts the buffer.
    assert first[0] == "by itself 60.0 60.0 60.0"
    assert second[0] == "by itself 120.0 60.0 60.0"
    assert first[1] == second[1] == "before wrapping 7.0 7.0"
    assert first[2] == second[2], "the parameters stay the same"
