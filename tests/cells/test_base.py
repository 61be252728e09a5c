"""The contract that every cell shares: the plain loop, final methods, recorded gates."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import lrcnet
from lrcnet.cells.base import Cell, ODECell
from tests.collection import NAMES, make_cell, make_layer


class Written(TorchDispatchMode):
    """Counts the numbers that operations put out."""

    count = 0

    def __torch_dispatch__(self, operator: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        result = operator(*arguments, **(named or {}))
        self.count += sum(value.numel() for value in tree_leaves(result) if isinstance(value, Tensor))
        return result


@pytest.mark.parametrize("name", ["lrcu", "mgu", "ctrnn", "gru-ode"])
def test_the_work_of_a_gradient_grows_with_the_number_of_steps_not_its_square(name: str) -> None:
    layer = make_layer(name)

    def work(steps: int) -> int:
        x = torch.randn(steps, 2, 3, dtype=torch.float64, requires_grad=True)
        with Written() as written:
            layer(x)[0].sum().backward()
        return written.count

    # Three points: what each call costs once cancels, and equal differences remain.
    assert work(48) - work(32) == pytest.approx(work(32) - work(16), rel=0.05)


def final_methods(kind: type) -> set[str]:
    return {name for name, value in vars(kind).items() if getattr(value, "__final__", False)}


def test_the_interface_of_a_cell_is_final() -> None:
    assert final_methods(Cell) == {"forward", "scan", "scan_with_gates", "record_gates"}
    assert final_methods(ODECell) == {"derivative", "longest_stable_step"}


@pytest.mark.parametrize("kind", [kind for kind in lrcnet.CELLS.values() if issubclass(kind, Cell)])
def test_no_cell_overrides_a_final_method(kind: type[Cell]) -> None:
    final = final_methods(Cell) | final_methods(ODECell)
    for ancestor in kind.__mro__[: kind.__mro__.index(Cell)]:
        own = final_methods(ancestor) if ancestor is ODECell else set()
        assert not (vars(ancestor).keys() & final) - own, ancestor


OWN = [name for name in NAMES if isinstance(make_cell(name), Cell)]


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("backend", ["auto", "reference"])
@pytest.mark.parametrize("batch_major", [False, True])
@pytest.mark.parametrize("steps", [0, 4])
def test_gates_are_kept_beside_the_same_states(name: str, backend: str, batch_major: bool, steps: int) -> None:
    cell = make_cell(name)
    if isinstance(cell, lrcnet.cells.LiquidCell):
        cell.backend = backend
    width = 3 + getattr(cell, "time_feature", False)
    x, h = torch.randn(steps, 2, width, dtype=torch.float64), torch.randn(2, 4, dtype=torch.float64)
    dt = torch.rand(steps, 2, dtype=torch.float64) if cell.takes_dt and not hasattr(cell, "time_feature") else 1.0
    expected = cell.scan(x, h, dt, batch_major=batch_major)
    states, gates = cell.scan_with_gates(x, h, dt, batch_major=batch_major)
    assert torch.equal(states, expected)
    assert {"time_constant"} < gates.keys()
    assert all(value.shape == states.shape and not value.requires_grad for value in gates.values())
    assert states.requires_grad or not steps


def test_a_recorder_leaves_gradients_and_nothing_else_behind() -> None:
    layer, x = lrcnet.LRCU(3, 4), torch.randn(5, 2, 3)
    (expected,) = torch.autograd.grad(layer(x)[0].sum(), layer.cells[0].k)
    cell = layer.cells[0]
    with cell.record_gates() as runs:
        (found,) = torch.autograd.grad(layer(x)[0].sum(), cell.k)
    assert torch.equal(found, expected)
    with pytest.raises(ValueError, match="features"), cell.record_gates():
        layer(x[..., :2])
    assert len(runs) == 1
    layer(x)
    assert len(runs) == 1


def test_recorders_may_be_nested() -> None:
    cell, x, h = lrcnet.LRCUCell(3, 4), torch.randn(5, 2, 3), torch.zeros(2, 4)
    with cell.record_gates() as outer:
        with cell.record_gates() as inner:
            cell.scan(x, h, 1.0)
        cell.scan(x, h, 1.0)
    assert (len(outer), len(inner)) == (1, 1)
