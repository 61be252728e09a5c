"""The table of letters, and everything that is made from it."""

from typing import Any

import pytest
import torch
from torch import Tensor

import lrcnet
from lrcnet import liquid
from lrcnet.circuit import ELASTANCES, LETTERS, STEP_LETTERS, Circuit, Switches, check_letters
from lrcnet.kernels.cpu import CPUBackend
from lrcnet.liquid import LiquidParameters

N, M = 3, 5
OPTIONAL = [name for name in STEP_LETTERS if LETTERS[name].option is not None]
built = pytest.mark.skipif(lrcnet.kernels.unavailable() is not None, reason="the fused kernels are not built")


def circuit_of(**changes: Tensor | None) -> Circuit:
    values = {name: torch.rand(LETTERS[name].shape(N, M)) for name in STEP_LETTERS}
    return Circuit(**{**values, **changes})


def spoilt(how: str, value: Tensor) -> Tensor | None:
    return {
        "missing": lambda: None,
        "too small": lambda: value[:-1],
        "transposed": lambda: value.t().contiguous() if value.dim() == 2 else value.unsqueeze(0),
        "another type": lambda: value.double(),
        "elsewhere": lambda: value.to("meta"),
    }[how]()


HOW = ["missing", "too small", "transposed", "another type", "elsewhere"]


def test_the_table_has_a_row_for_every_field_in_order() -> None:
    assert (*LETTERS, "mask") == Circuit._fields
    assert Circuit._fields[: len(STEP_LETTERS)] == STEP_LETTERS
    options = {"bias", "input_map", "output_map"}
    assert {letter.option for letter in LETTERS.values()} - {None} == options


@built
def test_the_registered_schema_is_made_from_the_table() -> None:
    tensors = [("x", "Tensor"), ("h0", "Tensor?"), ("dt", "Tensor?")]
    tensors += [(name, "Tensor" if LETTERS[name].always_there else "Tensor?") for name in STEP_LETTERS]
    numbers = [("dt_value", "float"), *((name, kind.__name__) for name, kind in Switches.__annotations__.items())]
    schema = torch.ops.lrcnet.scan.default._schema
    types = {"Optional[Tensor]": "Tensor?"}
    registered = [(one.name, types.get(str(one.type), str(one.type))) for one in schema.arguments]
    assert registered == [*tensors, *numbers, ("keep", "bool"), ("mask", "Tensor?")]
    backward = [one.name for one in torch.ops.lrcnet.scan_backward.default._schema.arguments]
    rest = ["states", "saved", "want_x", "want_dt", "mask"]
    assert backward == ["grad", *(name for name, _ in (*tensors, *numbers)), *rest]
    assert len(torch.ops.lrcnet.scan_backward.default._schema.returns) == len(tensors)


@built
@pytest.mark.parametrize("name", STEP_LETTERS)
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("method", ["scan", "step", "derivative"])
def test_every_letter_is_checked_before_a_kernel_reads_it(method: str, name: str, how: str) -> None:
    right = circuit_of()
    wrong = right._replace(**{name: spoilt(how, getattr(right, name))})
    x, h = torch.rand(2, N), torch.rand(2, M)
    backend = CPUBackend()

    def call(circuit: Circuit) -> Any:
        if method == "scan":
            return backend.scan(circuit, Switches(), x.unsqueeze(0), h, 1.0)
        if method == "step":
            return backend.step(circuit, Switches(), x, h, 1.0)
        with torch.no_grad():
            return backend.derivative(circuit, Switches(), x, h)

    call(right)
    if how == "missing" and name in OPTIONAL:
        call(wrong)
        return
    with pytest.raises(ValueError, match=r"must (be|have)"):
        call(wrong)
    with pytest.raises(ValueError, match=r"must (be|have)"):
        check_letters(wrong, Switches(), x, contiguous=True)


def test_the_message_names_the_letter() -> None:
    x = torch.rand(2, N)
    for name in STEP_LETTERS:
        if name == "g_l":
            continue
        right = circuit_of()
        wrong = right._replace(**{name: getattr(right, name).double()})
        with pytest.raises(ValueError, match=rf"^{name} must be torch\.float32 on the CPU, as x is"):
            check_letters(wrong, Switches(), x, contiguous=True)
        wrong = right._replace(**{name: getattr(right, name)[:-1]})
        with pytest.raises(ValueError, match=rf"^{name} must have shape "):
            check_letters(wrong, Switches(), x, contiguous=True)
    wide = circuit_of(a=torch.rand(M, N + M).t())
    check_letters(wide, Switches(), x, contiguous=False)
    with pytest.raises(ValueError, match=r"^a must be contiguous"):
        check_letters(wide, Switches(), x, contiguous=True)


@built
def test_first_state_and_dt_are_checked_too() -> None:
    circuit, backend = circuit_of(), CPUBackend()
    x, h, dt = torch.rand(4, 2, N), torch.rand(2, M), torch.rand(4, 2)
    backend.scan(circuit, Switches(), x, h, dt)
    for start, step in ((h[:1], dt), (h, dt[:3]), (h.double(), dt), (h, dt.double()), (h.t(), dt), (h, dt.t())):
        with pytest.raises(ValueError, match=r"must (be|have)"):
            backend.scan(circuit, Switches(), x, start, step)
    with pytest.raises(ValueError, match="x must have 3 dimensions"):
        backend.scan(circuit, Switches(), x[0], h, 1.0)
    half = Circuit._make(None if value is None else value.half() for value in circuit)
    with pytest.raises(ValueError, match="x must be float32 or float64"):
        backend.step(half, Switches(), x[0].half(), h.half(), 1.0)
    with pytest.raises(ValueError, match="x must be float32 or float64"):
        backend.scan(half, Switches(), x.half(), h.half(), 1.0)


@built
def test_a_letter_that_the_switches_do_not_use_changes_nothing() -> None:
    backend, x, h = CPUBackend(), torch.rand(2, N), torch.rand(2, M)
    for elastance, unused in (("none", ("o", "p", "k_eps")), ("asymmetric", ("k_eps",))):
        switches, circuit = Switches(elastance=elastance), circuit_of()
        without = circuit._replace(**dict.fromkeys(unused))
        assert torch.equal(backend.step(circuit, switches, x, h, 0.5), backend.step(without, switches, x, h, 0.5))
        whole, one = (backend.scan(c, switches, x[None], h, 0.5)[0] for c in (circuit, without))
        assert torch.equal(whole, one)


@pytest.mark.parametrize("elastance", ELASTANCES)
@pytest.mark.parametrize("option", [True, False])
def test_parameters_are_registered_from_the_table(elastance: str, option: bool) -> None:
    module = LiquidParameters(N, M, elastance=elastance, bias=option, input_map=option, output_map=option)
    switches = Switches(elastance=elastance)
    for name, letter in LETTERS.items():
        value = module.circuit()[name]
        assert (value is not None) == (letter.used(switches) and (letter.option is None or option))
        if value is not None:
            assert value.shape == letter.shape(N, M)
    names = [name for name in LETTERS if LETTERS[name].nonnegative and module.circuit()[name] is not None]
    assert list(module.nonnegative_parameters) == names


@pytest.mark.parametrize("elastance", ELASTANCES)
def test_an_elastance_gets_the_letters_that_its_row_names(elastance: str) -> None:
    w = torch.linspace(-3, 3, 7)
    letters = [torch.full((7,), 0.5) for _ in ELASTANCES[elastance].letters]
    eps = liquid.elastance_gate(elastance, w, *letters)
    assert bool(((eps >= 0) & (eps <= 1)).all())
    assert all(LETTERS[name].used(Switches(elastance=elastance)) for name in ELASTANCES[elastance].letters)


def test_a_new_elastance_is_one_row_and_runs_on_the_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    form = ELASTANCES["symmetric"]._replace(gate=lambda w, k_eps: torch.exp(-((w / (1 + k_eps)) ** 2)))
    monkeypatch.setitem(ELASTANCES, "bell", form)

    class BellCell(lrcnet.LRCCell):
        elastances = ("bell",)

    cell = BellCell(N, M)
    h = cell(torch.rand(2, N))
    assert h.shape == (2, M)
    assert cell.k_eps is not None
    with pytest.raises(RuntimeError, match="it knows the elastances none, asymmetric, symmetric, but it is bell"):
        BellCell(N, M, backend="fused")(torch.rand(2, N))
