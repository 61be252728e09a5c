"""The contract of a backend, on a small one written here: how it is chosen, and how it is refused."""

import logging
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

import lrcnet
from lrcnet import kernels
from lrcnet.circuit import Circuit, Switches
from lrcnet.kernels import Backend, KeptGates
from lrcnet.liquid import gates, input_currents
from tests.kernels.conftest import CPU


class ZeroBackend(Backend):
    """Answers every call with zeros, and notes the calls."""

    name = "zero"

    def __init__(self, refusal: str | None = None) -> None:
        self.refusal, self.calls = refusal, list[str]()

    def reasons(self, x: Tensor, switches: Switches, units: int) -> list[str]:
        return [] if self.refusal is None else [self.refusal]

    def scan(
        self,
        circuit: Circuit,
        switches: Switches,
        x: Tensor,
        h: Tensor | None,
        dt: float | Tensor,
        *,
        keep_gates: bool = False,
    ) -> tuple[Tensor, KeptGates | None]:
        self.calls.append("scan")
        states = x.new_zeros(*x.shape[:2], circuit.g_l.shape[0])
        return states, KeptGates(states, states, states) if keep_gates else None

    def step(self, circuit: Circuit, switches: Switches, x: Tensor, h: Tensor, dt: float | Tensor) -> Tensor:
        self.calls.append("step")
        return torch.zeros_like(h)

    def derivative(self, circuit: Circuit, switches: Switches, x: Tensor, h: Tensor) -> Tensor:
        self.calls.append("derivative")
        return torch.zeros_like(h)


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Backend]]:
    """The list of backends, empty, and as it was afterwards."""
    before = kernels.BACKENDS[:]
    kernels.BACKENDS.clear()
    monkeypatch.setattr(kernels, "_logged", set())
    yield kernels.BACKENDS
    kernels.BACKENDS[:] = before


@pytest.mark.parametrize("choice", ["auto", "fused"])
def test_the_first_backend_that_serves_gets_every_kind_of_call(choice: str, register: list[Backend]) -> None:
    refusing, serving, never = ZeroBackend("it is tired"), ZeroBackend(), ZeroBackend()
    register += [refusing, serving, never]
    layer, x = lrcnet.LRCU(3, 5, backend=choice), torch.rand(4, 2, 3)
    assert not layer(x)[0].any()
    assert not layer.cells[0](x[0]).any()
    with torch.no_grad():
        assert not layer.step(x[0])[0].any()
    field = lrcnet.LRCField(2, backend=choice)
    with torch.no_grad():
        field(0.0, torch.rand(3, 2))
    assert serving.calls == ["scan", "scan", "step", "derivative"]
    assert refusing.calls == never.calls == []


def test_stages_of_runge_kutta_come_from_the_derivative(register: list[Backend]) -> None:
    backend = ZeroBackend()
    register.append(backend)
    layer = lrcnet.LRC(3, 40, solver="rk4")
    assert not layer(torch.rand(5, 12, 3))[0].any()
    assert backend.calls == ["derivative"] * 20


def test_fused_raises_with_every_reason_of_every_backend(register: list[Backend]) -> None:
    first, second = ZeroBackend("it is tired"), ZeroBackend("it is asleep")
    second.name = "night"
    register += [first, second]
    x = torch.rand(4, 2, 3)
    with pytest.raises(RuntimeError, match=r"cannot serve this call: zero: it is tired; night: it is asleep; use "):
        lrcnet.LRCU(3, 5, backend="fused")(x)


def test_auto_falls_back_to_the_plain_loop_and_says_so_once(
    register: list[Backend], caplog: pytest.LogCaptureFixture
) -> None:
    register.append(ZeroBackend("it is tired"))
    layer, x = lrcnet.LRCU(3, 5), torch.rand(4, 2, 3)
    plain = lrcnet.LRCU(3, 5, backend="reference")
    plain.load_state_dict(layer.state_dict())
    with caplog.at_level(logging.WARNING, logger="lrcnet"):
        for _ in range(3):
            assert torch.equal(layer(x)[0], plain(x)[0])
    assert [record.message for record in caplog.records] == [
        "no fused kernel can serve LRCUCell, so the plain loop runs: zero: it is tired"
    ]


def test_reference_asks_no_backend(register: list[Backend]) -> None:
    backend = ZeroBackend()
    register.append(backend)
    layer = lrcnet.LRCU(3, 5, backend="reference")
    assert layer(torch.rand(4, 2, 3))[0].any()
    with torch.no_grad():
        layer.step(torch.rand(2, 3))
    assert backend.calls == []


def test_an_incomplete_backend_cannot_be_built() -> None:
    class Half(Backend):
        name = "half"

        def reasons(self, x: Tensor, switches: Switches, units: int) -> list[str]:
            return []

    with pytest.raises(TypeError, match="abstract"):
        Half()  # type: ignore[abstract]


@pytest.mark.parametrize("elastance", ["none", "asymmetric", "symmetric"])
@pytest.mark.parametrize("unfolds", [1, 3])
@pytest.mark.parametrize("batch_first", [False, True])
def test_kept_gates_are_those_of_the_equation(elastance: str, unfolds: int, batch_first: bool) -> None:
    kind = lrcnet.STCCell if elastance == "none" else lrcnet.LRCCell
    cell = kind(3, 5, elastance=elastance, dtype=torch.float64)
    switches = Switches(True, elastance, "hybrid", unfolds, batch_first)
    circuit = cell.values()
    x, h, dt = (torch.rand(*shape, dtype=torch.float64) for shape in ((4, 2, 3), (2, 5), (4, 2)))
    states, kept = CPU.scan(circuit, switches, x, h, dt, keep_gates=True)
    alone, nothing = CPU.scan(circuit, switches, x, h, dt)
    assert nothing is None
    assert kept is not None
    assert torch.equal(states, alone)
    assert states.requires_grad
    assert not kept.forget.requires_grad
    before = torch.cat([h[None], states[:-1]])
    expected = gates(circuit, input_currents(circuit, x), before, switches)
    torch.testing.assert_close(kept.forget, expected.forget.detach())
    torch.testing.assert_close(kept.update, expected.update.detach())
    assert (kept.w is None) == (elastance == "none")


@pytest.mark.parametrize("elastance", ["none", "asymmetric", "symmetric"])
@pytest.mark.parametrize("saturated", [True, False])
def test_the_derivative_is_exact_and_so_are_its_gradients(elastance: str, saturated: bool) -> None:
    kind = lrcnet.LRCCell if elastance != "none" else lrcnet.STCCell if saturated else lrcnet.LTCCell
    cell = kind(3, 5, elastance=elastance, dtype=torch.float64)
    switches = Switches(cell.saturated, elastance)
    x, h = (torch.randn(7, size, dtype=torch.float64, requires_grad=True) for size in (3, 5))
    parameters = [p for p in cell.parameters() if p is not None]
    fused, plain = CPU.derivative(cell.values(), switches, x, h), cell.derivative(x, h)
    torch.testing.assert_close(fused, plain, rtol=1e-13, atol=1e-14)
    direction = torch.randn_like(plain)
    found, expected = (torch.autograd.grad(slope, [x, h, *parameters], direction) for slope in (fused, plain))
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-13)
    with torch.no_grad():
        torch.testing.assert_close(CPU.derivative(cell.values(), switches, x, h), plain, rtol=1e-13, atol=1e-14)


def test_a_large_state_costs_the_derivative_no_digits() -> None:
    # By a difference of two states it would lose what their size rounds away.
    cell = lrcnet.LRCCell(0, 4, input_map=False, dtype=torch.float64)
    h = torch.full((1, 4), 1e12, dtype=torch.float64)
    x = h.new_empty(1, 0)
    with torch.no_grad():
        found = CPU.derivative(cell.values(), cell.switches(), x, h)
        torch.testing.assert_close(found, cell.derivative(x, h), rtol=1e-14, atol=0)
