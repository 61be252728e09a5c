"""The plain loop that every cell runs on."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.collection import make_layer


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
