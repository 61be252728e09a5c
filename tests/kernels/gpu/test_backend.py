"""The GPU backend on a machine without a GPU: its reasons, `lrcnet info`, and the way that CUDA tensors would go."""

import pytest
import torch

import lrcnet
from lrcnet import cli, kernels
from lrcnet.circuit import Switches
from lrcnet.kernels import gpu, operators
from lrcnet.kernels.gpu import TritonBackend

without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")


def test_the_backend_says_why_it_cannot_serve() -> None:
    backend, x = TritonBackend(), torch.zeros(1, 1, 1, dtype=torch.float16)
    assert any(isinstance(one, TritonBackend) for one in kernels.BACKENDS)
    reasons = backend.reasons(x, Switches(solver="rk4"), 1000)
    assert reasons[-4:] == [
        "it runs on CUDA and ROCm devices, but x is on cpu",
        "it has at most 256 hidden units, but the network has 1000",
        "it computes in float32 or float64, but x is torch.float16",
        "it knows the solvers euler, hybrid, exponential, but the solver is rk4",
    ]


def test_a_missing_triton_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "_triton_found", lambda: False)
    (first, *_) = TritonBackend().reasons(torch.zeros(1, 1, 1), Switches(), 5)
    assert first == "Triton is not installed; run `pip install 'lrcnet[gpu]'`"
    assert "Triton is not installed" in str(lrcnet.info()["gpu"]["reason"])


def test_fused_on_a_device_without_kernels_gives_the_reasons_of_both_backends() -> None:
    layer = lrcnet.LRCU(3, 5, backend="fused", device="meta")
    with pytest.raises(RuntimeError, match=r"cpu: it runs on the CPU, but x is on meta; .*triton: it runs on CUDA"):
        layer(torch.zeros(4, 2, 3, device="meta"))


def test_the_operators_have_an_implementation_for_cuda_tensors() -> None:
    # ROCm's tensors have this key too.
    for name in ("scan", "scan_backward"):
        assert torch._C._dispatch_has_kernel_for_dispatch_key(f"lrcnet::{name}", "CUDA")
    assert operators.IMPLEMENTATIONS["cuda"] == "lrcnet.kernels.triton.launch"


@without_gpu
def test_info_shows_the_backend_and_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert lrcnet.info()["gpu"]["usable"] is False
    assert cli.main(["info"]) == 0
    printed = capsys.readouterr().out
    assert "gpu: usable" in printed
    assert "torch sees no CUDA or ROCm device" in printed


@without_gpu
def test_the_benchmark_needs_a_gpu_and_says_so_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "gpu"]) == 1
    errors = capsys.readouterr().err
    assert errors.startswith("lrcnet bench: the GPU benchmark needs a GPU that the kernels run on, but torch sees no")
    assert errors.count("\n") == 1
