"""Arguments that used to give a wrong number, a hang or an unrelated error, and now give a sentence."""

import threading
from collections.abc import Callable

import numpy as np
import pytest
import torch

import lrcnet
from lrcnet import solvers
from lrcnet.data import from_long
from lrcnet.errors import DivergenceError, check_target
from lrcnet.estimators import LiquidClassifier, LiquidRegressor
from lrcnet.interpret import integrated_gradients, trace
from lrcnet.pages.content import Table
from lrcnet.pages.tables import to_markdown
from lrcnet.trajectories import read_trajectories


def growth(t: object, y: torch.Tensor) -> torch.Tensor:
    return -y


@pytest.mark.parametrize("solver", ["euler", "heun", "rk4", "dopri5"])
def test_a_roll_out_needs_finite_times(solver: str) -> None:
    model, y0 = lrcnet.NeuralODE(growth, solver=solver), torch.ones(2, 3)
    for last in (torch.inf, torch.nan):
        with pytest.raises(ValueError, match="t must be finite"):
            model(y0, torch.tensor([0.0, 1.0, last]))
    with pytest.raises(ValueError, match="t must hold at least one time"):
        model(y0, torch.empty(0))
    with pytest.raises(ValueError, match="t must be floating point"):
        model(y0, torch.arange(3))


def test_the_adaptive_solver_needs_times_in_order() -> None:
    model = lrcnet.NeuralODE(growth)
    with pytest.raises(ValueError, match=r"t must (not repeat a time|increase, or decrease, all the way)"):
        model(torch.ones(2, 3), torch.tensor([0.0, 1.0, 0.5]))
    backward = model(torch.ones(2, 3), torch.tensor([1.0, 0.0]))
    torch.testing.assert_close(backward[-1], torch.full((2, 3), torch.e))


def test_the_adaptive_solver_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solvers, "MOST_STEPS", 50)
    with pytest.raises(DivergenceError, match="it took 50 steps between two times, the most that are allowed"):
        lrcnet.NeuralODE(growth)(torch.ones(2, 3), torch.tensor([0.0, 1.0, 1e30]))


@pytest.mark.parametrize("shape", [(3,), (4, 2, 3)])
def test_a_roll_out_needs_a_batch_of_states(shape: tuple[int, ...]) -> None:
    for field in (lrcnet.LRCField(3), lrcnet.MLPField(3)):
        with pytest.raises(ValueError, match=r"y0 must be a tensor of shape \(batch, state\)"):
            lrcnet.NeuralODE(field)(torch.ones(shape), torch.linspace(0, 1, 3))


@pytest.mark.parametrize("name", ["relative_tolerance", "absolute_tolerance"])
@pytest.mark.parametrize("value", [-1e-3, 0.0, float("nan"), float("inf"), "1e-3"])
def test_tolerances_are_above_zero(name: str, value: object) -> None:
    with pytest.raises((ValueError, TypeError), match=f"{name} must be a"):
        lrcnet.NeuralODE(growth, **{name: value})


def test_a_circuit_with_nan_is_refused() -> None:
    layer = lrcnet.LRCU(3, 4)
    before = layer.circuit()
    for name, letter in before.items():
        if letter is not None:
            with pytest.raises(ValueError, match=f"{name} must be a number everywhere, but is NaN"):
                layer.load_circuit({**before, name: torch.full_like(letter, torch.nan)})
    assert torch.equal(layer.circuit()["g"], before["g"])


@pytest.mark.parametrize("cell", [lrcnet.GRUCell, lrcnet.LSTMCell, lrcnet.MGUCell])
def test_the_time_of_a_gated_cell_is_a_number(cell: type) -> None:
    with pytest.raises(TypeError, match="dt must be None, a number or a tensor, but is '1'"):
        cell(3, 4, time_feature=True)(torch.ones(2, 3), dt="1")


@pytest.mark.parametrize("kind", [lrcnet.LRCU, lrcnet.MGU, lrcnet.GRU])
def test_a_trace_is_that_of_its_own_thread(kind: type) -> None:
    layer, x = kind(3, 4), torch.randn(6, 2, 3)
    expected = trace(layer, x)
    stop, errors = threading.Event(), list[BaseException]()

    def run_beside() -> None:
        while not stop.is_set():
            try:
                layer(torch.zeros(3, 1, 3))
            except BaseException as error:
                errors.append(error)

    others = [threading.Thread(target=run_beside) for _ in range(2)]
    for thread in others:
        thread.start()
    try:
        for _ in range(50):
            one = trace(layer, x)
            assert torch.equal(one.state, expected.state)
    finally:
        stop.set()
        for thread in others:
            thread.join()
    assert errors == []


def test_a_step_of_a_stream_refuses_a_state_of_another_kind() -> None:
    layer = lrcnet.LRCU(3, 4)
    with torch.no_grad():
        for state in ((torch.zeros(1, 4), torch.zeros(1, 4)), "zeros", torch.zeros(1, 1, 4).numpy()):
            with pytest.raises(TypeError, match="hx must be a tensor of shape"):
                layer.step(torch.zeros(1, 3), state)
        with pytest.raises(ValueError, match=r"must be torch\.float32"):
            layer.step(torch.zeros(1, 3), torch.zeros(1, 1, 4, dtype=torch.float64))


def test_a_target_is_checked_before_the_work(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="must not be a folder"):
        check_target(tmp_path)
    with pytest.raises(ValueError, match="must lie in a folder"):
        check_target(tmp_path / "file" / "page.html")
    assert check_target(tmp_path / "new" / "page.html") == tmp_path / "new" / "page.html"


def test_markdown_shows_cells_as_they_are() -> None:
    hostile = "<script>x</script>|[a](javascript:b)\n\n# c`d`"
    text = to_markdown(Table("t", hostile, ("a",), [(hostile,)], note=hostile))
    assert "<script" not in text
    assert "](" not in text
    assert text.count("\n") == 6


def test_complex_numbers_do_not_lose_their_imaginary_part() -> None:
    values = np.random.default_rng(0).normal(size=(6, 5, 2)) + 1j
    names, times = np.array(["a", "b"] * 3), np.arange(5.0)
    table = {"who": np.arange(6), "at": np.arange(6.0), "v": values[:, 0, 0]}
    calls: list[Callable[[], object]] = [
        lambda: LiquidClassifier(epochs=1, progress=False).fit(values, names),
        lambda: LiquidRegressor(epochs=1, progress=False).fit(values.real, values[:, 0, 0]),
        lambda: from_long(table, "who", "at", ["v"]),
        lambda: from_long({**table, "at": table["v"], "v": table["at"]}, "who", "at", ["v"]),
        lambda: read_trajectories(times, values[0]),
        lambda: lrcnet.Stream(lrcnet.LRCU(2, 4))(values[0, 0], 0.0),
        lambda: lrcnet.Stream(lrcnet.LRCU(2, 4))(torch.tensor(values[0, 0]), 0.0),
        lambda: lrcnet.LRCU(2, 4).load_circuit({**lrcnet.LRCU(2, 4).circuit(), "e_l": values[:4, 0, 0]}),
    ]
    for call in calls:
        with pytest.raises((TypeError, ValueError), match=r"complex|must be arrays of numbers|must be a .*real"):
            call()


def test_a_circuit_of_lists_keeps_its_digits() -> None:
    layer = lrcnet.LRCU(2, 1, dtype=torch.float64)
    layer.load_circuit({**layer.circuit(), "e_l": [0.1]})
    assert layer.circuit()["e_l"].item() == pytest.approx(0.1, abs=1e-15)


def test_numbers_that_float32_does_not_have_are_named() -> None:
    series = np.zeros((4, 3, 2))
    series[1, 2, 0] = -1e300
    with pytest.raises(ValueError, match=r"series 1 has -1e\+300, which .* at reading 2 of channel 0"):
        LiquidClassifier(epochs=1, progress=False).fit(series, np.array(["a", "b", "a", "b"]))
    table = {"who": np.zeros(2), "at": np.arange(2.0), "v": np.array([0.0, 1e300])}
    with pytest.raises(ValueError, match=r"column 'v' must hold finite numbers, at most 3\.4e38 .* row 2 is 1e\+300"):
        from_long(table, "who", "at", ["v"])


def test_integrated_gradients_need_one_number_per_sample() -> None:
    with pytest.raises(ValueError, match=r"one number per sample, \(sample,\), but gives shape \(1, 4\)"):
        integrated_gradients(lambda x: x.sum(-1), torch.ones(2, 4, 3))
