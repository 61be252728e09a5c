"""Parameters that torch replaces by tensors: pruning, weight_norm, spectral_norm, fast weights, parametrisations."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize, prune, spectral_norm, weight_norm

import lrcnet

LAYERS = {"ltc": lrcnet.LTC, "stc": lrcnet.STC, "lrc": lrcnet.LRC, "lrcu": lrcnet.LRCU}


class Twice(nn.Module):
    """A parametrisation."""

    def forward(self, k: Tensor) -> Tensor:
        return 2 * k


def add_fast_weights(cell: nn.Module) -> None:
    """Replace a parameter by a function of it, as MAML does."""
    slow = cell.k
    del cell.k
    cell.slow = slow
    cell.k = slow * 1.5


REPLACEMENTS: dict[str, Callable[[nn.Module], object]] = {
    "pruned": lambda cell: prune.l1_unstructured(cell, "k", amount=0.5),
    "weight norm": lambda cell: weight_norm(cell, "k"),
    "spectral norm": lambda cell: spectral_norm(cell, "k"),
    "fast weights": add_fast_weights,
    "parametrised": lambda cell: parametrize.register_parametrization(cell, "k", Twice()),
}


# torch recommends torch.nn.utils.parametrizations in place of the older weight_norm, but people still use it.
@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.parametrize("kind", REPLACEMENTS)
@pytest.mark.parametrize("name", LAYERS)
def test_replaced_parameters_are_served_and_followed(name: str, kind: str) -> None:
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    outputs: dict[str, list[Tensor]] = {}
    for backend in ("auto", "reference"):
        torch.manual_seed(1)
        layer = LAYERS[name](3, 4, backend=backend, dtype=torch.float64)
        REPLACEMENTS[kind](layer.cells[0])
        # Its estimate changes with every call in training mode, and `step` is called once more on one side.
        layer.train(kind != "spectral norm")
        optimiser = torch.optim.SGD(layer.parameters(), 0.5)
        outputs[backend] = []
        # A second forward pass sees the parameters after the optimiser's step; fast weights are made anew by MAML.
        for _ in range(1 if kind == "fast weights" else 2):
            output = layer(x)[0]
            optimiser.zero_grad()
            output.square().sum().backward()
            optimiser.step()
            outputs[backend].append(output.detach())
        with torch.no_grad():
            whole, step = layer(x[:1])[0][0], layer.step(x[0])[0]
        torch.testing.assert_close(step, whole)
        outputs[backend] += [step, *(p.grad for p in layer.parameters() if p.grad is not None)]
    for fused, plain in zip(*outputs.values(), strict=True):
        torch.testing.assert_close(fused, plain)
