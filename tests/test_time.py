"""Elapsed time in ODE layers: its unit, the first gap, unstable steps, dt as a feature, and what dt may be."""

import copy
import math
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

import lrcnet
from lrcnet.continuous_layer import ContinuousLayer
from lrcnet.interpret import trace
from lrcnet.solvers import DORMAND_PRINCE, SOLVERS, ExplicitRungeKutta
from lrcnet.theory import Domain, lipschitz_bound
from tests.collection import ODE_NAMES, TIMED_NAMES, make_cell, make_layer
from tests.tolerances import ADAPTIVE, REARRANGED

SCALE = 3600.0
FAST_ODE_NAMES = [name for name in ODE_NAMES if "dopri5" not in name]
ODE_LAYERS = ["ltc", "stc", "lrc", "lrcu", "ctrnn", "gru-ode"]


def series(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def gaps(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, dtype=torch.float64)


def twin(layer: Any, name: str, **options: Any) -> Any:
    """Build a layer of other options with the same parameters."""
    other = make_layer(name, **options)
    other.cells.load_state_dict(layer.cells.state_dict())
    return other


def close(actual: object, expected: object, name: str = "") -> None:
    torch.testing.assert_close(actual, expected, rtol=0, atol=ADAPTIVE if "dopri5" in name else REARRANGED)


@pytest.mark.parametrize("name", ODE_NAMES)
def test_a_longer_unit_of_time_undoes_longer_gaps(name: str) -> None:
    options: dict[str, Any] = {"num_layers": 2, "bidirectional": True}
    layer = make_layer(name, **options)
    scaled = twin(layer, name, time_scale=SCALE, **options)
    x, dt = series(6, 3, 3), gaps(6, 3)
    close(scaled(x, dt=SCALE * dt), layer(x, dt=dt), name)
    close(scaled(x, dt=SCALE / 2), layer(x, dt=0.5), name)
    lengths = torch.tensor([2, 6, 4])
    packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
    for form in (lambda v: v, lambda v: pack_padded_sequence(v, lengths, enforce_sorted=False)):
        output, last = scaled(packed, dt=form(SCALE * dt))
        expected, expected_last = layer(packed, dt=form(dt))
        close(output.data, expected.data, name)
        close(last, expected_last, name)


@pytest.mark.parametrize("name", ODE_NAMES)
def test_without_dt_a_step_is_1_whatever_the_scale(name: str) -> None:
    layer = make_layer(name)
    x = series(6, 3, 3)
    for scale in (SCALE, "auto"):
        close(twin(layer, name, time_scale=scale).eval()(x), layer(x), name)


@pytest.mark.parametrize("backend", ["reference", "auto"])
@pytest.mark.parametrize("options", [{}, {"time_feature": True}, {"fill_first_gap": True}], ids=str)
@pytest.mark.parametrize("name", ["ltc", "stc", "lrc", "lrcu"])
def test_steps_without_gradient_use_the_same_scale(name: str, options: dict[str, Any], backend: str) -> None:
    layer = make_layer(name, time_scale=SCALE, backend=backend, **options)
    x, dt = series(6, 3), SCALE * gaps(6)
    dt[0] = 0.0 if "fill_first_gap" in options else dt[0]
    whole, last = layer(x, dt=dt)
    state, outputs = None, []
    with torch.no_grad():
        for t in range(6):
            output, state = layer.step(x[t], state, float(dt[t]))
            outputs.append(output)
    close(torch.stack(outputs), whole)
    close(state, last)


@pytest.mark.parametrize("name", ODE_LAYERS)
def test_auto_takes_the_median_gap_of_the_first_training_call(name: str) -> None:
    layer = make_layer(name, time_scale="auto", time_warnings=False)
    assert layer.time_scale == "auto"
    assert "time_scale='auto'" in repr(layer)
    x = series(5, 3, 3)
    dt = torch.tensor([0.0, 2.0, 4.0, 9.0, 100.0], dtype=torch.float64).unsqueeze(-1).expand(5, 3)
    layer(x)
    assert layer.time_scale == "auto", "dt=None says nothing about gaps"
    output, _ = layer(x, dt=dt)
    assert layer.time_scale == 4.0, "the first gaps of 0 are not counted"
    assert "time_scale=4" in repr(layer)
    close(output, twin(layer, name, time_scale=4.0, time_warnings=False)(x, dt=dt)[0])
    layer(x, dt=10 * dt)
    assert layer.time_scale == 4.0
    layer.reset_parameters()
    assert layer.time_scale == "auto"


def test_padding_does_not_count_for_the_median() -> None:
    layer = make_layer("lrcu", time_scale="auto", time_warnings=False)
    dt = torch.tensor([[1.0, 3.0, 3.0, 4.0], [3.0, 99.0, 99.0, 99.0]], dtype=torch.float64)
    layer(pack_padded_sequence(series(4, 2, 3), torch.tensor([4, 1])), dt=dt.T)
    assert layer.time_scale == 3.0


@pytest.mark.parametrize("given", [7, 7.0, np.float32(7), np.array(7.0), torch.tensor([[0.0, 7.0]]), [7.0, 3.0, 9.0]])
def test_calibrate_time_takes_numbers_arrays_and_tensors(given: Any) -> None:
    for scale in ("auto", 1.0, 60.0):
        layer = lrcnet.LRCU(3, 4, time_scale=scale)
        assert layer.calibrate_time(given) == layer.time_scale == 7.0
    packed = pack_padded_sequence(torch.tensor([[7.0, 1.0, 9.0]]).T, torch.tensor([3]))
    assert layer.calibrate_time(packed) == 7.0
    assert layer.calibrate_time(np.array([np.nan, 0.0, 5.0, np.inf])) == 5.0


def test_auto_without_gaps_above_0_is_an_error() -> None:
    layer = lrcnet.LRCU(3, 4, time_scale="auto")
    with pytest.raises(ValueError, match="median of the gaps above 0, but dt has none"):
        layer(torch.randn(5, 2, 3), dt=torch.zeros(5, 2))
    output, _ = layer(torch.randn(5, 0, 3), dt=torch.zeros(5, 0))
    assert output.shape == (5, 0, 4)
    assert layer.time_scale == "auto", "an empty batch says nothing about gaps"


@pytest.mark.parametrize("name", ODE_LAYERS)
def test_auto_without_a_scale_raises_where_it_cannot_be_set(name: str) -> None:
    layer = make_layer(name, time_scale="auto", time_warnings=False)
    x, dt = series(5, 2, 3), gaps(5, 2)
    message = "has time_scale='auto' but no scale yet.*calibrate_time"
    for grad in (True, False):
        with torch.set_grad_enabled(grad), pytest.raises(RuntimeError, match=message):
            layer.step(x[0], dt=0.5)
    with pytest.raises(RuntimeError, match=message):
        layer.eval()(x, dt=dt)
    layer.train()
    with pytest.raises(RuntimeError, match=message):
        torch.export.export(layer, (x,), {"dt": dt})
    with pytest.raises(RuntimeError, match=message):
        torch.func.vmap(lambda gap: layer(x, dt=gap)[0])(dt.expand(3, 5, 2))
    assert layer.time_scale == "auto"
    layer.calibrate_time(dt)
    layer.eval()(x, dt=dt)
    layer.step(x[0], dt=0.5)


@pytest.mark.parametrize("fullgraph", [True, False])
def test_auto_without_a_scale_raises_under_compile(fullgraph: bool) -> None:
    torch.compiler.reset()
    layer = lrcnet.LRCU(3, 4, time_scale="auto")
    compiled = torch.compile(lambda x, dt: layer(x, dt=dt), fullgraph=fullgraph, backend="aot_eager")
    with pytest.raises(RuntimeError, match="calibrate_time"):
        compiled(torch.randn(5, 2, 3), torch.rand(5, 2))


# torch's tracer warns of its own treatment of the autograd function behind a constraint.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.parametrize(
    ("name", "options"),
    [("lrcu", {"backend": "auto"}), ("lrcu", {"backend": "auto", "time_feature": True}), ("ctrnn", {"unfolds": 1})],
    ids=str,
)
def test_scaled_layers_compile_and_export_to_the_same_numbers(name: str, options: dict[str, Any]) -> None:
    layer = make_layer(name, time_scale="auto", time_warnings=False, fill_first_gap=True, **options)
    x, dt = series(3, 2, 3), SCALE * gaps(3, 2)
    dt[0, 1] = 0.0
    layer.calibrate_time(dt)
    expected, _ = layer(x, dt=dt)
    for given in (dt, SCALE):
        torch.compiler.reset()
        compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
        close(compiled(x, dt=given)[0], layer(x, dt=given)[0])
    exported = torch.export.export(layer, (x,), {"dt": dt}).module()
    close(exported(x, dt=dt)[0], expected)


@pytest.mark.parametrize("name", ODE_LAYERS)
def test_the_state_dict_carries_the_scale(name: str) -> None:
    plain, scaled = make_layer(name), make_layer(name, time_scale="auto")
    assert "time_unit" not in plain.state_dict(), "state dicts of plain layers are as they were"
    scaled.calibrate_time(SCALE)
    x, dt = series(5, 2, 3), SCALE * gaps(5, 2)
    expected = scaled(x, dt=dt)[0]
    for other in (
        make_layer(name, time_scale="auto"),
        make_layer(name, time_scale=2.0),
        make_layer(name),
        copy.deepcopy(scaled),
        pickle.loads(pickle.dumps(scaled)),
    ):
        other.load_state_dict(scaled.state_dict())
        assert other.time_scale == SCALE
        assert torch.equal(other.eval()(x, dt=dt)[0], expected)
    assert copy.deepcopy(make_layer(name, time_scale="auto")).time_scale == "auto"


@pytest.mark.parametrize("wrapped", [False, True])
def test_old_state_dicts_load_as_a_scale_of_1(wrapped: bool) -> None:
    def build(scale: Any) -> Any:
        layer = lrcnet.LRCU(3, 4, time_scale=scale)
        return layer, torch.nn.Sequential(layer) if wrapped else layer

    _, old = build(1.0)
    layer, model = build("auto")
    stored = old.state_dict()
    model.load_state_dict(stored)
    assert layer.time_scale == 1.0
    assert not any("time_unit" in name for name in stored), "the caller's state dict stays as it was"
    layer, model = build(60.0)
    model.load_state_dict(stored)
    assert layer.time_scale == 60.0, "a number is the caller's choice"
    layer, model = build("auto")
    model.load_state_dict({}, strict=False)
    assert layer.time_scale == "auto", "a state dict of other modules says nothing"
    model.load_state_dict(build("auto")[1].state_dict())
    assert layer.time_scale == "auto", "nor does one of a layer that has not seen any gaps"


def test_the_scale_follows_dtype_and_materialisation() -> None:
    layer = lrcnet.LRCU(3, 4, time_scale=60.0).double()
    assert layer.time_unit is not None
    assert layer.time_unit.dtype == torch.float64
    for name, options in (("ltc", {"solver": "euler"}), ("ctrnn", {}), ("lrcu", {})):
        layer = lrcnet.LAYERS[name](3, 4, time_scale=60.0, device="meta", **options)
        assert "time_scale=60" in repr(layer)
        layer.to_empty(device="cpu").reset_parameters()
        assert layer.time_scale == 60.0


def test_circuits_know_no_scale() -> None:
    plain, scaled = lrcnet.LRCU(3, 4), lrcnet.LRCU(3, 4, time_scale=60.0)
    scaled.load_circuit(plain.circuit())
    x = torch.randn(5, 2, 3)
    assert torch.equal(scaled(x)[0], plain(x)[0])
    assert scaled.circuit().keys() == plain.circuit().keys()


def test_time_scales_are_checked() -> None:
    for value in (0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="time_scale must be a finite number above 0"):
            lrcnet.LRCU(3, 4, time_scale=value)
    for value in ("median", None, True, [1.0]):
        with pytest.raises(TypeError, match="time_scale must be a number above 0 or 'auto'"):
            lrcnet.CTRNN(3, 4, time_scale=value)  # type: ignore[arg-type]
    assert lrcnet.LRCU(3, 4, time_scale=np.float32(2)).time_scale == 2.0
    with pytest.raises(TypeError, match="time_scale"):
        lrcnet.GRU(3, 4, time_scale=2.0)


def test_theory_refuses_a_scale_and_traces_return_time_constants_in_the_callers_unit() -> None:
    layer = lrcnet.LRC(3, 4, time_scale=60.0, dtype=torch.float64)
    with pytest.raises(ValueError, match="time_scale=60"):
        lipschitz_bound(layer, Domain((-1.0, 1.0), (-1.0, 1.0)))
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    cell_units = trace(twin(layer, "lrc", dtype=torch.float64), x, 0.5).time_constant
    torch.testing.assert_close(trace(layer, x, 30.0).time_constant, 60 * cell_units)


# Unstable steps.


@pytest.mark.parametrize("method", [*SOLVERS.values(), DORMAND_PRINCE], ids=[*SOLVERS, "dormand-prince"])
def test_stability_limits_are_those_of_the_steps(method: Any) -> None:
    if not isinstance(method, ExplicitRungeKutta):
        pytest.skip("stable for every step, or adaptive")
    one = torch.ones(1, 1, dtype=torch.float64)

    def growth(size: float) -> float:
        return abs(float(method.step(lambda h: (torch.ones_like(h), torch.zeros_like(h)), one, size)))

    assert growth(method.stability_limit) <= 1 + 1e-9 < growth(method.stability_limit + 0.002)


LIMITS = [
    ("lrcu", {}, 2.0),
    ("lrc", {"solver": "heun", "unfolds": 3}, 6.0),
    ("stc", {"solver": "rk4", "unfolds": 1}, 2.785),
    ("stc", {"solver": "euler", "unfolds": 1}, 2.0),
    ("ctrnn", {}, 12.0),
    ("gru-ode", {}, 2.0),
]


@pytest.mark.parametrize(("name", "options", "limit"), LIMITS, ids=str)
def test_a_step_beyond_the_limit_warns_once(name: str, options: dict[str, Any], limit: float) -> None:
    x, dt = series(5, 2, 3), gaps(5, 2)
    for scale in (1.0, SCALE):
        layer = make_layer(name, time_scale=scale, **options)
        dt[2, 1] = limit * scale
        layer(x, dt=dt)
        layer(x, dt=limit * scale)
        dt[2, 1] *= 1.01
        with pytest.warns(lrcnet.StabilityWarning, match="time_scale") as record:
            layer(x, dt=dt)
        assert len(record) == 1
        layer(x, dt=dt)  # Warnings are errors: there is no second one.
        layer(x, dt=2 * limit * scale)
        message = str(record[0].message)
        assert f"dt is up to {dt[2, 1]:g}" in message
        assert f"stable only up to dt = {limit * scale:.3g}" in message
        assert ("lrcnet.LRC with solver='exponential'" in message) == (name == "lrcu")
        assert "solver='exponential'" in message
        assert ("time_scale='auto'" in message) == (scale == 1)
        assert record[0].filename == __file__, "the warning names the code that called the layer"


def test_limits_of_ltc_and_ctrnn_depend_on_their_parameters() -> None:
    ctrnn = lrcnet.CTRNN(3, 4, unfolds=1)
    with torch.no_grad():
        ctrnn.cells[0].rate.fill_(4.0)
    assert ctrnn.cells[0].longest_stable_step() == pytest.approx(0.5)
    ltc = lrcnet.LTC(3, 4, solver="euler", unfolds=1)
    circuit = ltc.circuit()
    assert ltc.cells[0].longest_stable_step() == pytest.approx(
        2 / float((circuit["g"].sum(0) + circuit["g_l"]).max())  # type: ignore[union-attr]
    )


@pytest.mark.parametrize("name", ODE_LAYERS)
def test_stable_and_silenced_layers_do_not_warn(name: str) -> None:
    x = series(5, 2, 3)
    dt = 1e3 * gaps(5, 2)
    dt[0] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lrcnet.DivergenceWarning)
        make_layer(name, time_warnings=False)(x, dt=dt)
    make_layer(name, time_feature=True)(x, dt=dt)
    for solver in ("hybrid", "exponential"):
        if name != "lrcu":
            make_layer(name, solver=solver, fill_first_gap=True)(x, dt=dt)


@pytest.mark.parametrize("backend", ["reference", "auto"])
def test_streams_warn_too_and_go_on_as_before(backend: str) -> None:
    layer = lrcnet.LRCU(3, 4, backend=backend)
    with torch.no_grad():
        _, state = layer.step(torch.randn(3), dt=1.5)
        with pytest.warns(lrcnet.StabilityWarning):
            _, state = layer.step(torch.randn(3), state, dt=2.5)
        layer.step(torch.randn(3), state, dt=2.5)


def test_tracing_does_not_warn() -> None:
    layer = lrcnet.LRCU(3, 4)
    x, dt = torch.randn(5, 2, 3), torch.full((5, 2), 3.0)
    torch.export.export(layer, (x,), {"dt": dt})
    torch.compile(layer, fullgraph=True, backend="aot_eager")(x, dt=dt)


# The first gap.


@pytest.mark.parametrize("name", ODE_LAYERS)
def test_first_gaps_of_0_warn_once_and_can_be_filled(name: str) -> None:
    layer = make_layer(name)
    x, dt = series(5, 2, 3), gaps(5, 2)
    dt[0, 0] = 0.0
    twin(layer, name)(x, dt=dt)
    dt[0] = 0.0
    state = torch.zeros(1, 2, 4, dtype=torch.float64)
    layer(x, state, dt=dt)
    with pytest.warns(lrcnet.FirstGapWarning, match="ignores the first reading.*fill_first_gap=True"):
        output, _ = layer(x, dt=dt)
    layer(x, dt=dt)  # Warnings are errors: there is no second one.
    assert not output[0].any()
    full = dt.clone()
    for scale in (1.0, 0.75):
        filled = twin(layer, name, fill_first_gap=True, time_scale=scale)
        full[0] = scale
        close(filled(x, dt=dt)[0], filled(x, dt=full)[0])
        close(filled(x, state, dt=dt)[0][0], state[0])
        close(filled(x, dt=0.0)[0], filled(x[:1], dt=scale)[0].expand(5, 2, 4))
    mixed = dt.clone()
    mixed[0, 1] = full[0, 1] = 0.3
    close(filled(x, dt=mixed)[0], filled(x, dt=full)[0])


# dt as a feature.


@pytest.mark.parametrize("name", FAST_ODE_NAMES)
def test_dt_as_a_feature_is_one_more_input_and_a_step_of_1(name: str) -> None:
    layer = make_layer(name, time_feature=True, time_scale=2.0)
    wide = make_layer(name, 4)
    wide.cells.load_state_dict(layer.cells.state_dict())
    x, dt = series(5, 2, 3), 100 * gaps(5, 2) - 50
    close(layer(x, dt=dt)[0], wide(torch.cat([x, dt.unsqueeze(-1) / 2], -1))[0])
    close(layer(x)[0], wide(torch.cat([x, torch.ones_like(x[..., :1])], -1))[0])
    assert layer.negative_dt == "allow"
    assert "time_feature=True" in repr(layer)


# What dt may be.


@pytest.mark.parametrize("negative", ["error", "clamp", "allow"])
@pytest.mark.parametrize("backend", ["reference", "auto"])
def test_nan_in_dt_is_refused_and_named(backend: str, negative: str) -> None:
    layer = lrcnet.LRCU(3, 4, backend=backend, negative_dt=negative)  # type: ignore[arg-type]
    x, dt = torch.randn(5, 3, 3), torch.rand(5, 3)
    dt[2, 1] = math.nan
    with pytest.raises(ValueError, match=r"dt must not be NaN, but dt\[t=2, sample=1\] is; fill in"):
        layer(x, dt=dt)
    lengths = torch.tensor([2, 5, 5])
    packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
    for given in (dt, pack_padded_sequence(dt, lengths, enforce_sorted=False)):
        with pytest.raises(ValueError, match=r"dt\[t=2, sample=1\] is; fill in"):
            layer(packed, dt=given)
    dt[2, 1], dt[3, 0] = 0.5, math.nan
    layer(packed, dt=dt)  # Padding may hold anything.
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            with pytest.raises(ValueError, match=r"dt\[t=0, sample=0\] is; fill in"):
                layer.step(x[3], dt=dt[3])
            with pytest.raises(ValueError, match="dt must be finite, but is nan"):
                layer.step(x[3], dt=math.nan)
    with pytest.raises(ValueError, match=r"dt\[sample=0\] is; fill in"):
        layer.cells[0](x[3], dt=dt[3])


@pytest.mark.parametrize("name", TIMED_NAMES)
def test_every_layer_refuses_nan_in_dt(name: str) -> None:
    dt = gaps(5, 2)
    dt[1, 0] = math.nan
    with pytest.raises(ValueError, match=r"dt must not be NaN, but dt\[t=1, sample=0\] is"):
        make_layer(name)(series(5, 2, 3), dt=dt)


@pytest.mark.skipif(lrcnet.kernels.unavailable() is not None, reason="the fused kernels are not built")
@pytest.mark.parametrize("negative", ["error", "allow"])
def test_compiled_layers_refuse_nan_in_dt(negative: str) -> None:
    torch.compiler.reset()
    layer = lrcnet.LRCU(3, 4, backend="fused", negative_dt=negative)  # type: ignore[arg-type]
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    dt = torch.rand(5, 2)
    compiled(torch.randn(5, 2, 3), dt=dt)
    dt[1, 0] = math.nan
    with pytest.raises(ValueError, match=r"dt must not be NaN, but dt\[t=1, sample=0\] is"):
        compiled(torch.randn(5, 2, 3), dt=dt)


NUMBERS = [np.float32(0.5), np.float64(0.5), np.float16(0.5), np.array(0.5), np.array(0.5, np.float32)]


@pytest.mark.parametrize("name", TIMED_NAMES)
def test_numbers_of_numpy_are_numbers(name: str) -> None:
    layer = make_layer(name)
    x = series(5, 2, 3)
    expected = layer(x, dt=0.5)[0]
    one_step = layer.step(x[0], dt=0.5)[0]
    for number in NUMBERS:
        assert torch.equal(layer(x, dt=number)[0], expected)
        for grad in (True, False):
            with torch.set_grad_enabled(grad):
                assert torch.equal(layer.step(x[0], dt=number)[0], one_step)
    assert torch.equal(layer(x, dt=np.int64(1))[0], layer(x, dt=1)[0])
    with pytest.raises(TypeError, match="dt must be None, a number or a tensor"):
        layer(x, dt=np.array([0.5, 0.5]))
    with pytest.raises(TypeError, match="dt must be None, a number or a tensor"):
        layer(x, dt=np.bool_(True))


@pytest.mark.parametrize("name", ["lrcu", "ctrnn", "mgu-timed", "gru-timed", "lstm-timed"])
def test_cells_take_numbers_of_numpy_and_refuse_nan(name: str) -> None:
    cell, x = make_cell(name), series(2, 3)
    for number in NUMBERS:
        assert str(cell(x, dt=number)) == str(cell(x, dt=0.5))
    with pytest.raises(ValueError, match="dt must not be NaN"):
        cell(x, dt=torch.tensor([0.5, math.nan], dtype=torch.float64))


def test_bounds_take_numbers_of_numpy() -> None:
    layer, domain = lrcnet.LRC(3, 4), Domain((-1.0, 1.0), (-1.0, 1.0))
    assert lipschitz_bound(layer, domain, np.float32(0.5)).value == lipschitz_bound(layer, domain, 0.5).value


def test_every_layer_in_continuous_time_has_a_unit_of_time() -> None:
    continuous = {name for name, layer in lrcnet.LAYERS.items() if issubclass(layer, ContinuousLayer)}
    assert continuous == {*ODE_LAYERS, "cfc", "diagonal-lrc"}
