"""Single steps of streams: a stack in one call, and the memory of checks that must notice every moved parameter."""

import copy
import io
import pickle
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize

import lrcnet
from lrcnet.kernels import Network, unavailable
from lrcnet.kernels.cpu import CPUBackend
from lrcnet.wirings import AutoNCP
from tests.kernels.gpu.interpreted import INTERPRETED

pytestmark = pytest.mark.skipif(
    unavailable() is not None or INTERPRETED, reason=f"needs the compiled kernels: {unavailable()}"
)

STACKS = {
    "one layer": lambda: lrcnet.LRCU(3, 5),
    "three layers": lambda: lrcnet.LRCU(3, 5, num_layers=3),
    "asymmetric, no bias": lambda: lrcnet.LRCU(3, 5, num_layers=2, bias=False, elastance="asymmetric"),
    "several unfoldings": lambda: lrcnet.LTC(3, 20, num_layers=2),
    "motor neurons": lambda: lrcnet.LRC(3, wiring=AutoNCP(20, 4), num_layers=2),
    "output maps": lambda: lrcnet.LRCU(3, 5, num_layers=2, output_map=True),
    "other parameters": lambda: lrcnet.LRCU(3, 5, num_layers=2, parametrisation="ab"),
}


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("batch", [None, 1, 4])
def test_steps_of_a_stack_equal_the_sequence(name: str, batch: int | None) -> None:
    torch.manual_seed(0)
    layer = STACKS[name]().eval()
    x = torch.randn(6, 3) if batch is None else torch.randn(6, batch, 3)
    with torch.no_grad():
        whole, last = layer(x, dt=0.5)
        state = None
        for t in range(6):
            output, state = layer.step(x[t], state, 0.5)
            torch.testing.assert_close(output, whole[t], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(state, last, rtol=1e-5, atol=1e-6)


def test_a_stack_runs_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    layers: list[int] = []
    real = CPUBackend.step_stack

    def count(self: CPUBackend, networks: list[Network], *rest: torch.Tensor) -> torch.Tensor:
        layers.append(len(networks))
        return real(self, networks, *rest)

    monkeypatch.setattr(CPUBackend, "step_stack", count)
    with torch.no_grad():
        lrcnet.LRCU(3, 5, num_layers=3).step(torch.rand(1, 3))
    assert layers == [3]


def _replace(layer: nn.Module) -> None:
    layer.cells[0].k = nn.Parameter(2 * layer.cells[0].k.detach())


def _assign(layer: nn.Module) -> None:
    layer.cells[0].g.data = 2 * layer.cells[0].g.data


def _load(layer: nn.Module) -> None:
    layer.load_state_dict({name: 2 * value for name, value in layer.state_dict().items()}, assign=True)


def _write(layer: nn.Module) -> None:
    layer.cells[0].a.data.mul_(2)


def _drop_bias(layer: nn.Module) -> None:
    layer.cells[0].p = None


def _change_solver(layer: nn.Module) -> None:
    layer.cells[0].set_solver("exponential", 3, "error")


class _Double(nn.Module):
    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return 2 * value


def _parametrise(layer: nn.Module) -> None:
    parametrize.register_parametrization(layer.cells[0], "k", _Double())


@pytest.mark.parametrize("change", [_replace, _assign, _load, _write, _drop_bias, _change_solver, _parametrise])
def test_a_step_sees_every_change_of_the_network(change: Callable[[nn.Module], None]) -> None:
    torch.manual_seed(0)
    layer, x = lrcnet.LRC(3, 5), torch.rand(2, 3)
    with torch.no_grad():
        before, _ = layer.step(x)
        change(layer)
        after, _ = layer.step(x)
        layer.cells[0].backend = "reference"
        expected, _ = layer.step(x)
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("spoil", [lambda k: k[:, :4], lambda k: k.double(), lambda k: k[:0]])
def test_a_parameter_that_no_longer_fits_is_refused(spoil: Callable[[torch.Tensor], torch.Tensor]) -> None:
    layer, x = lrcnet.LRCU(3, 5), torch.rand(2, 3)
    with torch.no_grad():
        layer.step(x)
        layer.cells[0].k.data = spoil(layer.cells[0].k.data)
        with pytest.raises(ValueError, match="k must"):
            layer.step(x)


def test_another_dtype_is_stepped_in_that_dtype() -> None:
    layer, x = lrcnet.LRCU(3, 5, num_layers=2), torch.rand(2, 3)
    with torch.no_grad():
        single, _ = layer.step(x)
        double, _ = layer.double().step(x.double())
    assert double.dtype is torch.float64
    torch.testing.assert_close(single.double(), double, rtol=1e-5, atol=1e-6)


def test_a_remembered_backend_is_not_used_inside_a_transform() -> None:
    torch.manual_seed(0)
    layer, x = lrcnet.LRCU(3, 5), torch.rand(4, 3)
    with torch.no_grad():
        expected, _ = layer.step(x)
        answer = torch.func.vmap(lambda reading: layer.step(reading)[0])(x)
    torch.testing.assert_close(answer, expected, rtol=1e-5, atol=1e-6)


def test_copies_and_files_leave_the_memory_of_checks_out() -> None:
    layer, x = lrcnet.LRCU(3, 5), torch.rand(2, 3)
    with torch.no_grad():
        expected, _ = layer.step(x)
        file = io.BytesIO()
        torch.save(layer, file)
        file.seek(0)
        loaded = torch.load(file, weights_only=False)
        for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), loaded):
            assert "_checked" not in twin.cells[0].__dict__
            twin.cells[0].e_l.data.zero_()
            assert torch.equal(layer.step(x)[0], expected)
            assert not torch.equal(twin.step(x)[0], expected)


def test_a_layer_that_reads_more_than_the_one_below_has_is_refused() -> None:
    small, wide = lrcnet.LRCUCell(3, 5).stream_network(), lrcnet.LRCUCell(6, 5).stream_network()
    assert small is not None
    assert wide is not None
    with pytest.raises(ValueError, match="must read 0 to 5 states of the layer below, but reads 6"):
        CPUBackend().step_stack([small, wide], torch.rand(1, 3), torch.zeros(2, 1, 5), 1.0)
