"""Every kernel compiles for NVIDIA's and AMD's GPUs, fits into shared memory, and the forward ones spill nothing."""

from pathlib import Path

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed (pip install 'lrcnet[gpu]')")

from tests.kernels.gpu.compiled import FORWARD, SHARED_MEMORY, TARGETS, TYPES, compile_for, list_kernels


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("target", TARGETS)
def test_kernels_compile_and_fit(
    target: str, dtype: torch.dtype, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    spilled = {}
    for kernel in list_kernels(dtype):
        done = compile_for(kernel, target)
        assert done.registers > 0
        assert done.shared <= SHARED_MEMORY[target], kernel
        if kernel.name in FORWARD:
            assert done.spilled == 0, kernel
        else:
            spilled[str(kernel)] = done.spilled
    with capsys.disabled():
        print(f"\nspilled by the backward kernels on {target}: {spilled}")
    assert {name.split()[0] for name in spilled} == {
        "scan_backward",
        "input_gradients",
        "weight_gradients",
        "diagonal_backward",
    }
