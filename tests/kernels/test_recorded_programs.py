"""Programs recorded by torch.export and torch.jit.trace, converted to a dtype that the kernels do not compute in."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import lrcnet
from lrcnet.wirings import Random

NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "lrcu": lambda: lrcnet.LRCU(3, 16),
    "wired ltc": lambda: lrcnet.LTC(3, wiring=Random(16, sparsity_level=0.5)),
    "cfc": lambda: lrcnet.CfC(3, 16, backbone_units=16),
    "diagonal-lrc": lambda: lrcnet.DiagonalLRC(3, 16, contraction=0.02),
    "mgu": lambda: lrcnet.MGU(3, 16),
    "gru-reset-before": lambda: lrcnet.ResetBeforeGRU(3, 16),
    "lrc-ssm": lambda: lrcnet.LrcSSM(3, 2, hidden_size=16, states=16),
}
# torch.jit.trace says so of itself, and of every size that becomes a constant.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")


def output_of(answer: Any) -> Tensor:
    output: Tensor = answer[0] if isinstance(answer, tuple) else answer
    return output


def record(way: str, network: nn.Module, x: Tensor) -> Any:
    return torch.export.export(network, (x,)).module() if way == "export" else torch.jit.trace(network, (x,))


@pytest.mark.parametrize("way", ["export", "trace"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_converted_program_is_right_or_an_error(name: str, way: str) -> None:
    torch.manual_seed(0)
    network, x = NETWORKS[name]().eval(), torch.randn(4, 2, 3)
    expected = output_of(network(x))
    program = record(way, network, x)
    for dtype in (torch.bfloat16, torch.float16):
        program.to(dtype)
        for given in (x, x.to(dtype)):
            try:
                answer = output_of(program(given))
            except (ValueError, RuntimeError) as error:  # TorchScript wraps the error in its own.
                # The kernels' sentence, or that of a matrix product before them.
                text = str(error)
                assert "float32 or float64" in text or "must be torch.float32" in text or "same dtype" in text
            else:
                assert answer.dtype is dtype
                # bfloat16 has 8 bits, also where float16 starts from its weights.
                torch.testing.assert_close(answer.float(), expected, atol=0.02, rtol=0.02)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_trace_passes_torchs_own_check_and_trains(name: str) -> None:
    """torch.jit.trace compares its program with a second one, which it records without gradients."""
    torch.manual_seed(0)
    network, x, other = NETWORKS[name]().eval(), torch.randn(4, 2, 3), torch.randn(4, 2, 3)
    program = torch.jit.trace(network, (x,))
    answer, expected = output_of(program(other)), output_of(network(other))
    torch.testing.assert_close(answer, expected)
    for mine, theirs in zip(
        torch.autograd.grad(answer.square().sum(), list(program.parameters()), allow_unused=True),
        torch.autograd.grad(expected.square().sum(), list(network.parameters()), allow_unused=True),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-5)
