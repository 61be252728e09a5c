"""Parameters stored in units: the same function, exactly, and state dicts that can be carried over."""

import copy
import io
import math
import pickle
from array import array
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune

import lrcnet
from lrcnet.circuit import LETTERS, STEP_LETTERS
from lrcnet.kernels import problem
from tests.kernels.conftest import label

STACKED: dict[str, Any] = {"num_layers": 2, "bidirectional": True, "output_map": True}
KINDS: list[tuple[Any, dict[str, Any]]] = [
    (lrcnet.LRCU, {}),
    (lrcnet.LRC, {"elastance": "asymmetric", **STACKED}),
    (lrcnet.LTC, {"bias": False, "input_map": False}),
    (lrcnet.STC, {"constraint": "softplus", **STACKED}),
]
kinds = pytest.mark.parametrize(("kind", "options"), KINDS, ids=label)


def make(kind: Any, parametrisation: str, **options: Any) -> Any:
    """Build a layer with random values, a fifth of its conductances below 0."""
    layer = kind(3, 5, parametrisation=parametrisation, **options)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return layer


def states(layer: Any) -> Tensor:
    x = torch.linspace(-1, 1, 42).view(7, 2, 3)
    output: Tensor = layer(x, dt=0.5)[0]
    return output


def unit_of(name: str) -> float:
    """Return the unit of a parameter, given its name in a layer."""
    return LETTERS[name.split(".")[-1]].unit if not name.endswith("_raw") else 1.0


@pytest.fixture
def other_units(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give every letter another unit, the maps included."""
    for i, (name, letter) in enumerate(LETTERS.items()):
        monkeypatch.setitem(LETTERS, name, letter._replace(unit=2.0 ** (i % 7 - 3)))
    monkeypatch.setitem(problem._UNITS, True, array("d", [LETTERS[name].unit for name in STEP_LETTERS]))
    problem._plan.cache_clear()
    yield
    problem._plan.cache_clear()


def test_units_are_powers_of_two() -> None:
    assert all(letter.unit > 0 and math.frexp(letter.unit)[0] == 0.5 for letter in LETTERS.values())


@kinds
def test_the_default_is_scaled_and_draws_the_same_circuit(kind: Any, options: dict[str, Any]) -> None:
    layers = []
    for given in ({}, {"parametrisation": "scaled"}, {"parametrisation": "ab"}):
        torch.manual_seed(0)
        layers.append(kind(3, 5, **options, **given))
    default, scaled, plain = layers
    assert default.cells[0].parametrisation == "scaled"
    assert default.state_dict().keys() == scaled.state_dict().keys()
    for name, value in plain.circuit().items():
        assert value is None or torch.equal(default.circuit()[name], value), name
    for name, stored in default.named_parameters():
        assert torch.equal(stored * unit_of(name), plain.get_parameter(name))


def check_same_function(plain: Any, scaled: Any) -> None:
    """Assert that two layers compute the same numbers, and gradients that differ by the unit: bit for bit."""
    assert torch.equal(states(scaled), states(plain))
    with torch.no_grad():
        x, h = torch.randn(2, 3), torch.randn(plain.num_layers, 2, 5)
        if not plain.bidirectional:
            assert torch.equal(scaled.step(x, h)[0], plain.step(x, h)[0])
    for layer in (plain, scaled):
        layer.zero_grad()
        states(layer).square().sum().backward()
    for name, parameter in plain.named_parameters():
        assert torch.equal(scaled.get_parameter(name).grad, parameter.grad * unit_of(name)), name


@pytest.mark.parametrize("backend", ["auto", "reference"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@kinds
def test_scaling_changes_no_bit(kind: Any, options: dict[str, Any], backend: str, dtype: torch.dtype) -> None:
    torch.set_default_dtype(dtype)
    try:
        plain = make(kind, "ab", backend=backend, **options)
        scaled = make(kind, "scaled", backend=backend, **options)
        scaled.load_state_dict(plain.state_dict())
        check_same_function(plain, scaled)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("other_units")
@pytest.mark.parametrize("backend", ["auto", "reference"])
@kinds
def test_nothing_depends_on_the_numbers_of_the_table(kind: Any, options: dict[str, Any], backend: str) -> None:
    plain, scaled = (make(kind, stored, backend=backend, **options) for stored in ("ab", "scaled"))
    scaled.load_state_dict(plain.state_dict())
    check_same_function(plain, scaled)
    scaled.load_circuit(scaled.circuit())
    plain.load_circuit(plain.circuit())
    check_same_function(plain, scaled)


@pytest.mark.parametrize("solver", ["heun", "rk4", "dopri5"])
def test_stages_and_vector_fields_see_true_values(solver: Any) -> None:
    # 40 units and 12 samples are enough for a backend to compute the stages.
    plain, scaled = (lrcnet.LRC(3, 40, solver=solver, parametrisation=stored) for stored in ("ab", "scaled"))
    scaled.load_state_dict(plain.state_dict())
    x = torch.randn(4, 12, 3)
    assert torch.equal(scaled(x)[0], plain(x)[0])
    fields = [lrcnet.LRCField(2, parametrisation=stored) for stored in ("ab", "scaled")]
    assert lrcnet.LRCField(2).liquid.parametrisation == "scaled"
    fields[1].load_state_dict(fields[0].state_dict())
    y, t = torch.randn(80, 2), torch.linspace(0, 1, 3)
    ours, theirs = (lrcnet.NeuralODE(field, solver=solver)(y, t) for field in fields)
    assert torch.equal(ours, theirs)
    with torch.no_grad():
        assert torch.equal(fields[1](0.0, y), fields[0](0.0, y))


@kinds
def test_a_state_dict_from_before_loads_and_goes_back(kind: Any, options: dict[str, Any]) -> None:
    old, new = make(kind, "ab", **options), make(kind, "scaled", **options)
    dictionary = old.state_dict()
    assert not any(name.endswith("units") for name in dictionary)
    assert str(new.load_state_dict(dictionary)) == "<All keys matched successfully>"
    assert torch.equal(states(new), states(old))
    back = make(kind, "ab", **options)
    assert str(back.load_state_dict(new.state_dict())) == "<All keys matched successfully>"
    for name, value in dictionary.items():
        assert torch.equal(back.state_dict()[name], value), name
    # Loading converts a copy.
    assert all(torch.equal(value, old.state_dict()[name]) for name, value in dictionary.items())


@kinds
def test_a_scaled_state_dict_describes_itself(kind: Any, options: dict[str, Any]) -> None:
    layer = make(kind, "scaled", **options)
    dictionary = layer.state_dict()
    units = {name: value for name, value in dictionary.items() if name.endswith("units")}
    assert list(units) == [f"cells.{i}.units" for i in range(len(layer.cells))]
    softplus = options.get("constraint") == "softplus"
    expected = [1.0 if softplus and letter.nonnegative else letter.unit for letter in LETTERS.values()]
    assert all(value.tolist() == expected for value in units.values())
    before = states(layer)
    # The same values in units of another version.
    foreign = dict(dictionary)
    names = layer.cells[0]._names
    for cell in range(len(layer.cells)):
        factors = [2.0 ** (i % 5 - 2) for i in range(len(LETTERS))]
        foreign[f"cells.{cell}.units"] = dictionary[f"cells.{cell}.units"] * torch.tensor(factors)
        for letter, factor in zip(LETTERS, factors, strict=True):
            key = f"cells.{cell}.{names[letter]}"
            if key in foreign:
                foreign[key] = dictionary[key] / factor
    other = make(kind, "scaled", **options)
    other.load_state_dict(foreign)
    assert torch.equal(states(other), before)
    assert all(torch.equal(other.state_dict()[name], value) for name, value in dictionary.items())


def test_a_dict_with_the_units_of_the_first_release_loads() -> None:
    """Their numbers are in the dict, so that the table may change."""
    units = torch.tensor([16.0, 16, 4, 2, 4, 4, 2, 4, 4, 2, 2, 1, 1])
    assert units.tolist() != [letter.unit for letter in LETTERS.values()]
    layer, plain = lrcnet.LRCU(3, 5), make(lrcnet.LRCU, "ab")
    old = {
        f"cells.0.{name}": plain.state_dict()[f"cells.0.{name}"] / unit
        for name, unit in zip(LETTERS, units, strict=True)
        if f"cells.0.{name}" in plain.state_dict()
    }
    assert str(layer.load_state_dict({**old, "cells.0.units": units})) == "<All keys matched successfully>"
    assert torch.equal(states(layer), states(plain))


@kinds
def test_copies_and_files_keep_the_values(kind: Any, options: dict[str, Any]) -> None:
    layer = make(kind, "scaled", **options)
    before, file = states(layer), io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    loaded = [make(kind, stored, **options) for stored in ("scaled", "ab")]
    for other in loaded:
        file.seek(0)
        other.load_state_dict(torch.load(file, weights_only=True))
    for other in (*loaded, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(states(other), before)
    assert torch.equal(states(copy.deepcopy(layer).double().float()), before)


class Model(nn.Module):
    """A user's model with liquid layers of both kinds inside."""

    def __init__(self, parametrisation: str) -> None:
        super().__init__()
        self.body = nn.ModuleDict({"rnn": make(lrcnet.LRCU, parametrisation, num_layers=2)})
        self.cell = lrcnet.LTCCell(5, 4, parametrisation=parametrisation)
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cell(self.body["rnn"](x)[0][-1]))  # type: ignore[no-any-return]


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("source", ["ab", "scaled"])
@pytest.mark.parametrize("target", ["ab", "scaled"])
def test_a_model_around_layers_loads_either_kind(source: str, target: str, assign: bool) -> None:
    first, second = Model(source), Model(target)
    x = torch.randn(4, 2, 3)
    expected = first(x)
    assert str(second.load_state_dict(first.state_dict(), assign=assign)) == "<All keys matched successfully>"
    assert torch.equal(second(x), expected)
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in second.parameters())
    second(x).sum().backward()
    with torch.device("meta"):
        empty = Model(target)
    empty.load_state_dict(first.state_dict(), assign=True)
    assert torch.equal(empty(x), expected)
    again = Model(source)
    again.load_state_dict(empty.state_dict())
    assert torch.equal(again(x), expected)


def test_assigning_the_same_units_takes_the_very_tensors() -> None:
    first, second = make(lrcnet.LRCU, "scaled"), make(lrcnet.LRCU, "scaled")
    second.load_state_dict(first.state_dict(), assign=True)
    assert second.cells[0].a.data_ptr() == first.cells[0].a.data_ptr()


def test_a_layer_made_empty_gets_its_units_back() -> None:
    for fill in ("reset_parameters", "load_circuit", "load_state_dict"):
        layer = lrcnet.LRCU(3, 5, device="meta").to_empty(device="cpu")
        layer.cells[0].units.fill_(torch.nan)
        source = make(lrcnet.LRCU, "ab")
        argument = {"load_circuit": source.circuit(), "load_state_dict": source.state_dict()}
        getattr(layer, fill)(*([argument[fill]] if fill in argument else []))
        twin = lrcnet.LRCU(3, 5, parametrisation="ab")
        twin.load_state_dict(layer.state_dict())
        assert torch.equal(states(twin), states(layer))


def test_sigma_and_mu_keep_names_of_their_own() -> None:
    for stored in ("ab", "scaled"):
        for source, target in ((stored, "sigma-mu"), ("sigma-mu", stored)):
            with pytest.raises(RuntimeError, match="Missing key"):
                make(lrcnet.LRCU, target).load_state_dict(make(lrcnet.LRCU, source).state_dict())
        other = make(lrcnet.LRCU, "sigma-mu")
        part = make(lrcnet.LRCU, stored)
        other.load_state_dict(part.state_dict(), strict=False)
        assert torch.equal(other.circuit()["g"], part.circuit()["g"])  # type: ignore[arg-type]


def test_units_that_do_not_fit_are_refused_and_named() -> None:
    dictionary = make(lrcnet.LRCU, "scaled").state_dict()
    dictionary["cells.0.units"] = dictionary["cells.0.units"][:-1]
    for stored in ("ab", "scaled"):
        with pytest.raises(RuntimeError, match=r"cells\.0\.units must have 13 numbers, one per letter, but has 12"):
            make(lrcnet.LRCU, stored).load_state_dict(dictionary)


def test_pruned_and_parametrised_layers_carry_over() -> None:
    for change in (
        lambda cell: prune.l1_unstructured(cell, "a", amount=0.5),
        lambda cell: parametrizations.weight_norm(cell, "a"),
        lambda cell: nn.utils.parametrize.register_parametrization(cell, "g", nn.Identity()),
    ):
        # Pruning replaces the parameter in a hook of `forward`: cells and the plain loop notice it.
        plain, scaled, back = (
            make(lrcnet.LRCU, stored, backend="reference").cells[0] for stored in ("ab", "scaled", "ab")
        )
        for cell in (plain, scaled, back):
            change(cell)
        scaled.load_state_dict(plain.state_dict())
        back.load_state_dict(scaled.state_dict())
        x, h = torch.randn(2, 3), torch.randn(2, 5)
        torch.testing.assert_close(scaled(x, h), plain(x, h))
        torch.testing.assert_close(back(x, h), plain(x, h))


def test_functional_calls_take_stored_values() -> None:
    layer = make(lrcnet.LRCU, "scaled")
    doubled = {name: 2 * value for name, value in layer.named_parameters()}
    twin = copy.deepcopy(layer)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.mul_(2)
    x = torch.randn(4, 2, 3)
    assert torch.equal(torch.func.functional_call(layer, doubled, (x,))[0], twin(x)[0])


def test_only_another_parametrisation_is_shown() -> None:
    assert "parametrisation" not in repr(lrcnet.LRCU(3, 5))
    assert "parametrisation='ab'" in repr(lrcnet.LRCU(3, 5, parametrisation="ab"))
    assert "parametrisation='sigma-mu'" in repr(lrcnet.LRCU(3, 5, parametrisation="sigma-mu"))


def test_an_optimiser_moves_each_letter_by_its_unit() -> None:
    layer = lrcnet.LRCU(3, 5)
    before = layer.circuit()
    optimiser = torch.optim.SGD(layer.parameters(), lr=1.0)
    for parameter in layer.parameters():
        parameter.grad = torch.full_like(parameter, -1 / 1024)
    optimiser.step()
    for name, value in layer.circuit().items():
        if value is not None:
            torch.testing.assert_close(value - before[name], torch.full_like(value, LETTERS[name].unit / 1024))


def test_a_dict_without_units_is_read_as_plain_values_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    layer, plain = make(lrcnet.LRCU, "scaled"), make(lrcnet.LRCU, "ab")
    with caplog.at_level("WARNING", logger="lrcnet"):
        layer.load_state_dict(layer.state_dict())
        assert not caplog.records
        layer.load_state_dict(plain.state_dict())
    assert "no entry cells.0.units" in caplog.text
    torch.testing.assert_close(states(layer), states(plain), rtol=0, atol=0)
