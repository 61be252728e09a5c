"""The boundary of the layers whose sequences are other functions than lrcnet::scan: diagonal LRC, CfC, MGU and GRU.

The laws are those of test_boundary.py: tensors whose memory is not their value count with their value, and whatever
would read or write memory that is not theirs is refused in a sentence.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import lrcnet
from lrcnet.circuit import Switches
from lrcnet.kernels.diagonal import ROWS
from lrcnet.wirings import AutoNCP
from tests.kernels.conftest import CPU
from tests.kernels.test_boundary import letters, negated, negated_dense, spread, zeros_without_memory

LAYERS: dict[str, Callable[[], Any]] = {
    "diagonal, mixed": lambda: lrcnet.DiagonalLRC(3, 16, dtype=torch.float64),
    "diagonal, per channel": lambda: lrcnet.DiagonalLRC(
        *(3, 5), elastance="asymmetric", synapses="per-channel", solver="hybrid", unfolds=2, dtype=torch.float64
    ),
    "diagonal, contraction": lambda: lrcnet.DiagonalLRC(3, 5, contraction=0.02, dtype=torch.float64),
    # Widths of whole vectors run in the compiled library, others in torch's operators.
    "CfC": lambda: lrcnet.CfC(3, 16, backbone_units=16, dtype=torch.float64),
    "CfC, odd": lambda: lrcnet.CfC(3, 5, mode="no_gate", dtype=torch.float64),
    "CfC, pure": lambda: lrcnet.CfC(3, 5, mode="pure", dtype=torch.float64),
    "wired CfC": lambda: lrcnet.WiredCfC(3, wiring=AutoNCP(12, 2), dtype=torch.float64),
    "MGU": lambda: lrcnet.MGU(3, 5, time_feature=True, dtype=torch.float64),
    "GRU": lambda: lrcnet.ResetBeforeGRU(3, 5, time_feature=True, dtype=torch.float64),
}
LAZY = {"negated": negated, "negated, dense": negated_dense, "zeros": zeros_without_memory}
PLACES = ("x", "h", "dt", "gradient", "parameters")


def draw(layer: Any) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(3)
    outputs = layer.proj_size or layer.hidden_size
    sizes = {"x": (6, 2, 3), "h": (1, 2, layer.hidden_size), "dt": (6, 2), "gradient": (6, 2, outputs)}
    return {name: torch.rand(size, generator=generator, dtype=torch.float64) for name, size in sizes.items()}


def run(layer: Any, given: dict[str, Tensor], hooks: Any = None) -> dict[str, Tensor]:
    """Return the output and the gradients of input, state, dt and every parameter."""
    x, h, dt = (given[name].detach().requires_grad_() for name in ("x", "h", "dt"))
    if hooks is None:
        output = layer(x, h, dt=dt)[0]
    else:
        with torch.autograd.graph.saved_tensors_hooks(*hooks):
            output = layer(x, h, dt=dt)[0]
    leaves = {"x": x, "h": h, "dt": dt, **dict(layer.named_parameters())}
    gradients = torch.autograd.grad(output, list(leaves.values()), given["gradient"], allow_unused=True)
    return {"output": output.detach()} | {n: g for n, g in zip(leaves, gradients, strict=True) if g is not None}


def replace_parameters(layer: nn.Module, change: Callable[[Tensor], Tensor]) -> None:
    for module in layer.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            setattr(module, name, nn.Parameter(change(parameter.detach())))


def assert_same(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        # Products over other strides may be summed in another order.
        torch.testing.assert_close(value, other[name], rtol=1e-12, atol=1e-13, msg=lambda text, n=name: f"{n}: {text}")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("lazy", LAZY)
@pytest.mark.parametrize("name", LAYERS)
def test_lazy_tensors_count_with_their_value(name: str, lazy: str, place: str) -> None:
    torch.manual_seed(0)
    layer = LAYERS[name]()
    given, change = draw(layer), LAZY[lazy]
    plainly: Callable[[Tensor], Tensor] = torch.zeros_like if lazy == "zeros" else torch.clone
    if place == "parameters":
        replace_parameters(layer, plainly)
        expected = run(layer, given)
        replace_parameters(layer, change)
        assert_same(run(layer, given), expected)
    else:
        expected = run(layer, {**given, place: plainly(given[place])})
        assert_same(run(layer, {**given, place: change(given[place])}), expected)


@pytest.mark.parametrize("unpack", [spread, negated, negated_dense])
@pytest.mark.parametrize("name", LAYERS)
def test_saved_tensors_may_come_back_with_other_strides(name: str, unpack: Callable[[Tensor], Tensor]) -> None:
    torch.manual_seed(0)
    layer = LAYERS[name]()
    given = draw(layer)
    hooks = (lambda t: t.detach(), lambda t: unpack(t) if t.is_floating_point() and t.dim() else t)
    assert_same(run(layer, given, hooks), run(layer, given))


@pytest.mark.parametrize("name", LAYERS)
def test_saved_states_may_share_one_address(name: str) -> None:
    """A sequence whose readings and gaps are all equal may come back as one step that is repeated by a stride of 0."""
    torch.manual_seed(0)
    layer = LAYERS[name]()
    given = draw(layer)
    given |= {"h": torch.zeros_like(given["h"]), "dt": torch.zeros_like(given["dt"])}

    def unpack(saved: Tensor) -> Tensor:
        repeated = saved.dim() > 1 and bool((saved == saved[:1]).all())
        return saved[:1].clone().expand(saved.shape) if repeated else saved

    assert_same(run(layer, given, (lambda t: t.detach(), unpack)), run(layer, given))


def _free(saved: Tensor) -> Tensor:
    saved = saved.clone()
    saved.untyped_storage().resize_(0)
    return saved


@pytest.mark.parametrize("change", [Tensor.half, Tensor.float, Tensor.flatten, lambda t: t[:0], _free])
@pytest.mark.parametrize("name", LAYERS)
def test_saved_sequences_that_changed_are_refused(name: str, change: Callable[[Tensor], Tensor]) -> None:
    torch.manual_seed(0)
    layer = LAYERS[name]()
    # The backward pass meets the function of the sequence first, before torch's own operators.
    hooks = (lambda t: t.detach(), lambda t: change(t) if t.dim() == 3 else t)
    with pytest.raises(ValueError, match=r"must (have|be)"):
        run(layer, draw(layer), hooks)


def diagonal_arguments(**changes: Any) -> list[Any]:
    """The arguments of lrcnet::diagonal_scan for a small network, with some of them changed."""
    given: dict[str, Any] = {
        "terms": torch.zeros(5, 2, 8),
        "h": torch.zeros(2, 4),
        "dt": torch.ones(5, 2),
        "letters": torch.zeros(len(ROWS), 4),
        **{"dt_value": 1.0, "mixed": True, "elastance": "symmetric", "solver": "euler", "unfolds": 1},
        "batch_first": False,
    }
    return list((given | changes).values())


BAD_ARGUMENTS: dict[str, dict[str, Any]] = {
    "half terms": {"terms": torch.zeros(5, 2, 8).half()},
    "flat terms": {"terms": torch.zeros(80)},
    "an odd number of terms": {"terms": torch.zeros(5, 2, 7)},
    "double states": {"h": torch.zeros(2, 4).double()},
    "too few states": {"h": torch.zeros(1, 4)},
    "too few letters": {"letters": torch.zeros(len(ROWS) - 1, 4)},
    "too short a dt": {"dt": torch.ones(4, 2)},
    "half dt": {"dt": torch.ones(5, 2).half()},
    "no unfolding": {"unfolds": 0},
    "an unknown solver": {"solver": "rk4"},
    "an unknown elastance": {"elastance": "square"},
    "a dt without memory": {"dt": _free(torch.ones(5, 2))},
    "states without memory": {"h": _free(torch.zeros(2, 4))},
}


@pytest.mark.parametrize("case", BAD_ARGUMENTS)
def test_the_diagonal_operator_refuses_nonsense(case: str) -> None:
    with pytest.raises(ValueError, match=r"must (have|be)|a kernel needs"):
        torch.ops.lrcnet.diagonal_scan(*diagonal_arguments(**BAD_ARGUMENTS[case]))


BAD_STATES: dict[str, Callable[[Tensor], Tensor]] = {
    "half": Tensor.half,
    "double": Tensor.double,
    "flat": Tensor.flatten,
    "too short": lambda t: t[:2],
    "without memory": _free,
}


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("case", BAD_STATES)
def test_the_backward_pass_of_the_diagonal_operator_refuses_nonsense(case: str, place: int) -> None:
    given = [torch.ones(5, 2, 4), torch.ones(5, 2, 4)]
    given[place] = BAD_STATES[case](given[place])
    with pytest.raises(ValueError, match=r"must (have|be)"):
        torch.ops.lrcnet.diagonal_scan_backward(*given, *diagonal_arguments(), False)


@pytest.mark.parametrize("place", ["x", "h", "dt", "parameters"])
@pytest.mark.parametrize("name", LAYERS)
def test_freed_storage_is_refused(name: str, place: str) -> None:
    layer = LAYERS[name]()
    given = draw(LAYERS[name]())
    freed = next(iter(layer.parameters())) if place == "parameters" else given[place]
    freed.data.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="must have its numbers in memory, but has no memory"):
        run(layer, given)


@pytest.mark.parametrize("place", ["h", "dt"])
def test_a_kernel_does_not_take_freed_storage_for_an_absent_tensor(place: str) -> None:
    """The address 0 means "none given": a state of zero, or a dt of 1."""
    x, h, gaps = torch.randn(5, 2, 3), torch.randn(2, 4), (torch.rand(5, 2), torch.rand(2))
    for freed in (h,) if place == "h" else gaps:
        freed.untyped_storage().resize_(0)
    with torch.no_grad():
        with pytest.raises(ValueError, match="must have its numbers in memory"):
            CPU.scan(letters(), Switches(), x, h, gaps[0])
        with pytest.raises(ValueError, match=r"must have its numbers in memory|a kernel needs states"):
            CPU.step(letters(), Switches(), x[0], h, gaps[1])


def test_a_kernel_does_not_take_a_freed_gradient_for_an_absent_one() -> None:
    x = torch.randn(5, 2, 3, requires_grad=True)
    states, _ = CPU.scan(letters(), Switches(), x, torch.zeros(2, 4), 1.0)
    with pytest.raises(ValueError, match="the gradient must have its numbers in memory"):
        states.backward(_free(torch.ones_like(states)))
