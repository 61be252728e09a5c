"""How the fused scan behaves as a PyTorch operator: gradients, tracing, errors, threads."""

import multiprocessing
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils._python_dispatch import TorchDispatchMode

import lrcnet
from lrcnet.circuit import STEP_LETTERS, Switches
from lrcnet.wirings import AutoNCP
from tests.kernels.conftest import CPU, check_repeats_and_threads, label, run_program, scan, step, values_and_gradients
from tests.kernels.transcription import MODELS, batch_of, network, states

SWITCHES: dict[str, Any] = {"saturated": True, "elastance": "symmetric", "solver": "euler", "unfolds": 1}


def arguments(
    steps: int = 4, batch: int = 3, n: int = 2, m: int = 5, **model: Any
) -> tuple[list[Tensor], dict[str, Any]]:
    model = {**SWITCHES, **model}
    x, h0, dt = batch_of(steps, batch, n, m)
    net = network(n, m, model["elastance"])
    # Away from the constraint, where a finite difference has no meaning.
    for name in ("g", "g_l", "k_eps"):
        if net[name] is not None:
            net[name] = net[name].abs() + 0.1  # type: ignore[union-attr]
    return [x, h0, dt], {**net, **model, "batch_first": False, "negative_dt": "error"}


@pytest.mark.parametrize("model", MODELS, ids=lambda m: "-".join(map(str, m.values())))
def test_gradcheck_through_every_tensor(model: dict[str, Any]) -> None:
    (x, h0, dt), rest = arguments(3, 2, 2, 3, **model)
    names = [name for name, value in rest.items() if isinstance(value, Tensor)]
    leaves = [tensor.clone().requires_grad_() for tensor in (x, h0, dt, *(rest[name] for name in names))]

    def call(x: Tensor, h0: Tensor, dt: Tensor, *parameters: Tensor) -> Tensor:
        return scan(x, h0, dt, **{**rest, **dict(zip(names, parameters, strict=True))})

    assert torch.autograd.gradcheck(call, leaves)


@pytest.mark.parametrize(("elastance", "scaled"), [("none", False), ("symmetric", False), ("symmetric", True)])
def test_opcheck(elastance: str, scaled: bool) -> None:
    (x, h0, dt), rest = arguments(elastance=elastance, unfolds=2)
    tensors = [None if t is None else t.requires_grad_() for t in (x, h0, dt, *(rest[name] for name in STEP_LETTERS))]
    switches = (1.0, True, elastance, "hybrid", 2, False, True, scaled)
    torch.library.opcheck(torch.ops.lrcnet.scan.default, (*tensors, *switches, True))
    plain = [None if t is None else t.detach() for t in tensors]
    out, saved = torch.ops.lrcnet.scan(*plain, *switches, True)
    torch.library.opcheck(
        torch.ops.lrcnet.scan_backward.default,
        (torch.ones_like(out), *plain, *switches, out, saved, True, True),
        test_utils=("test_schema", "test_faketensor"),
    )


class Seen(TorchDispatchMode):
    """Notes every operator that runs."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


SOLVED = [{"solver": s, "unfolds": k} for s in ("euler", "hybrid", "exponential") for k in (1, 3)]
LAYERS: list[tuple[Any, dict[str, Any]]] = [
    *((lrcnet.LRCU, {"elastance": e}) for e in ("asymmetric", "symmetric")),
    *((lrcnet.LRC, {"elastance": e, **solved}) for e in ("asymmetric", "symmetric") for solved in SOLVED),
    *((kind, solved) for kind in (lrcnet.LTC, lrcnet.STC) for solved in SOLVED),
]


@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize(("kind", "options"), LAYERS, ids=label)
def test_a_layer_is_one_operator_per_direction_each_way(
    kind: Any, options: dict[str, Any], directions: int, packed: bool
) -> None:
    layer = kind(3, 5, num_layers=2, bidirectional=directions == 2, backend="fused", **options)
    assert {name: getattr(layer.cells[-1], name) for name in options} == options
    x: Any = torch.randn(4, 2, 3, requires_grad=True)
    x = pack_padded_sequence(x, torch.tensor([2, 4]), enforce_sorted=False) if packed else x
    with Seen() as seen:
        output, _ = layer(x)
        (output.data if packed else output).sum().backward()
    fused = sorted(name for name in seen.names if name.startswith("lrcnet"))
    runs = 2 * directions
    assert fused == ["lrcnet.scan.default"] * runs + ["lrcnet.scan_backward.default"] * runs
    # No way back to one operator per step: nothing of the equation is left outside.
    assert not [name for name in seen.names if "sigmoid" in name or "tanh" in name or "bmm" in name]


@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (lrcnet.LRCU, {}),
        (lrcnet.LRC, {"elastance": "asymmetric", "solver": "exponential", "unfolds": 2}),
        (lrcnet.LTC, {"batch_first": True}),
        (lrcnet.STC, {"solver": "euler", "unfolds": 3, "batch_first": True}),
    ],
    ids=label,
)
def test_stacked_directions_equal_the_plain_loop(kind: Any, options: dict[str, Any], packed: bool) -> None:
    options = {"num_layers": 2, "bidirectional": True, "dtype": torch.float64, **options}
    torch.manual_seed(0)
    layers = [kind(3, 5, backend=backend, **options) for backend in ("fused", "reference")]
    layers[1].load_state_dict(layers[0].state_dict())
    # One layout for both: (4, 4, ...) is time first or batch first.
    x, dt = torch.randn(4, 4, 3, dtype=torch.float64), torch.rand(4, 4, dtype=torch.float64)
    h0 = torch.randn(4, 4, 5, dtype=torch.float64)
    found = []
    for layer in layers:
        leaves = [tensor.clone().requires_grad_() for tensor in (x, h0, dt)]
        given: Any = leaves[0]
        if packed:
            given = pack_padded_sequence(
                given, torch.tensor([3, 4, 1, 2]), batch_first=layer.batch_first, enforce_sorted=False
            )
        output, last = layer(given, leaves[1], dt=leaves[2])
        output = output.data if packed else output
        direction = torch.linspace(-1, 1, output.numel(), dtype=torch.float64).view_as(output)
        loss = (output * direction).sum() + last.pow(2).sum()
        leaves += layer.parameters()
        found.append((output, last, *torch.autograd.grad(loss, leaves)))
    assert len(found[0]) > 2 + 3 + 4 * 6, "every parameter of four cells"
    for fused, plain in zip(*found, strict=True):
        assert plain.any()
        assert torch.allclose(fused, plain, rtol=1e-10, atol=1e-12)


def test_compiles_without_a_graph_break() -> None:
    torch.manual_seed(0)
    model = torch.nn.ModuleDict({"rnn": lrcnet.LRCU(3, 5, backend="fused"), "head": torch.nn.Linear(5, 2)})

    def run(x: Tensor) -> Tensor:
        return model["head"](model["rnn"](x)[0][-1])

    x = torch.randn(6, 4, 3)
    run(x).sum().backward()
    eager = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    # aot_eager traces forward and backward as the default compiler does, without needing one at test time.
    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    out = compiled(x)
    assert torch.equal(out, run(x))
    out.sum().backward()
    for name, p in model.named_parameters():
        if name in eager:
            assert torch.allclose(p.grad, eager[name]), name  # type: ignore[arg-type]


def test_exports_as_one_operator() -> None:
    layer = lrcnet.LRCU(3, 5, backend="fused").eval()
    program = torch.export.export(layer, (torch.randn(6, 4, 3),))
    assert sum("lrcnet.scan" in str(node.target) for node in program.graph.nodes) == 1


def test_second_derivative_names_the_reference() -> None:
    (x, h0, dt), rest = arguments()
    x.requires_grad_()
    (first,) = torch.autograd.grad(scan(x, h0, dt, **rest).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match='backend="reference"'):
        first.sum().backward()


def test_only_what_is_asked_for_gets_a_gradient() -> None:
    (x, h0, dt), rest = arguments()
    rest["a"].requires_grad_()
    scan(x, h0, dt, **rest).sum().backward()
    assert rest["a"].grad is not None
    assert x.grad is None
    assert h0.grad is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_weights_of_an_elastance_that_is_not_there_get_no_gradient(dtype: torch.dtype) -> None:
    (x, h0, dt), rest = arguments(n=3, m=9)
    tensors = {"x": x, "h0": h0, "dt": dt, **{name: v for name, v in rest.items() if isinstance(v, Tensor)}}
    switches = {name: value for name, value in rest.items() if name not in tensors}
    found = values_and_gradients(scan, tensors, dtype, **{**switches, "elastance": "none"})
    assert found["a"].any()
    assert not any(found[name].any() for name in ("o", "p", "k_eps"))


def test_without_gradients_nothing_is_kept() -> None:
    (x, h0, dt), rest = arguments()
    rest["a"].requires_grad_()
    with torch.no_grad(), Seen() as seen:
        out = scan(x, h0, dt, **rest)
    assert not out.requires_grad
    assert seen.names == ["lrcnet.scan.default"]


def test_first_negative_dt_is_named() -> None:
    (x, h0, dt), rest = arguments()
    dt[3, 0], dt[2, 1], dt[2, 2] = -1.0, -0.05, -2.0
    with pytest.raises(ValueError, match=r"dt must be >= 0, but dt\[t=2, sample=1\] is -0.05; sort"):
        scan(x, h0, dt, **rest)
    with pytest.raises(ValueError, match=r"dt\[t=2, sample=1\]"):
        scan(x.transpose(0, 1), h0, dt.transpose(0, 1), **{**rest, "batch_first": True})
    with pytest.raises(ValueError, match="dt must be >= 0, but is -1"):
        scan(x, h0, -1.0, **rest)
    allowed = scan(x, h0, dt, **{**rest, "negative_dt": "allow"})
    assert torch.allclose(allowed, states(x, h0, dt, **{**rest, "negative_dt": "allow"}))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("negative", ["error", "allow"])
def test_first_nan_in_dt_is_named(negative: str, dtype: torch.dtype) -> None:
    (x, h0, dt), rest = arguments()
    tensors = {name: value.to(dtype) for name, value in rest.items() if isinstance(value, Tensor)}
    rest, x, h0, dt = {**rest, **tensors, "negative_dt": negative}, x.to(dtype), h0.to(dtype), dt.to(dtype)
    dt[3, 0], dt[2, 1], dt[2, 2] = torch.nan, torch.nan, -2.0
    with pytest.raises(ValueError, match=r"dt must not be NaN, but dt\[t=2, sample=1\] is; fill in"):
        scan(x, h0, dt, **rest)
    for given, message in ((dt[3], r"dt\[sample=0\] is; fill in"), (torch.nan, "dt must not be NaN, but is; fill in")):
        with pytest.raises(ValueError, match=message):
            step(x[3], h0, given, **rest)
    with pytest.raises(ValueError, match="dt must not be NaN, but is; fill in"):
        scan(x, h0, torch.nan, **rest)


def test_divergence_warns_naming_step_and_sample() -> None:
    (x, h0, _), rest = arguments(steps=60, saturated=False, solver="euler", elastance="none")
    dt = torch.full((60, 3), 0.01, dtype=torch.float64)
    dt[:, 1] = 1e30
    with pytest.warns(lrcnet.DivergenceWarning, match=r"at step \d+ of sample 1 "):
        scan(x, h0, dt, **rest)
    x[0, 1] = torch.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scan(x, h0, dt, **rest)


@pytest.mark.parametrize("name", ["a", "g_l", "o", "k_eps", "input_scale"])
def test_wrong_shapes_and_types_are_refused(name: str) -> None:
    (x, h0, dt), rest = arguments()
    with pytest.raises(ValueError, match=f"{name} must have shape|x must have|must have shape"):
        scan(x, h0, dt, **{**rest, name: rest[name][:-1]})
    with pytest.raises(ValueError, match=r"must be torch\.float"):
        scan(x, h0, dt, **{**rest, name: rest[name].float()})


def test_a_long_run_equals_its_two_halves() -> None:
    # Steps so short that the first input is still felt 100,000 steps later.
    steps = 100_000
    (x, h0, dt), rest = arguments(steps, 1, 2, 3)
    dt *= 1e-4
    x.requires_grad_()
    whole = scan(x, h0, dt, **rest)
    half = scan(x[: steps // 2], h0, dt[: steps // 2], **rest)
    halves = torch.cat([half, scan(x[steps // 2 :], half[-1], dt[steps // 2 :], **rest)])
    assert torch.allclose(halves, whole, rtol=1e-12, atol=1e-12)
    expected, found = (torch.autograd.grad(out[-1].sum(), x)[0] for out in (whole, halves))
    assert expected[0].any()
    assert torch.allclose(found, expected, rtol=1e-10, atol=0)


def test_scalar_tensor_dt_equals_the_number() -> None:
    (x, h0, _), rest = arguments()
    as_tensor = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    assert torch.equal(scan(x, h0, as_tensor, **rest), scan(x, h0, 0.3, **rest))


def test_runs_are_identical_and_threads_agree() -> None:
    (x, h0, dt), rest = arguments(20, 37, 3, 64)
    rest["a"].requires_grad_()

    def gradient() -> Tensor:
        return torch.autograd.grad(scan(x, h0, dt, **rest).sum(), rest["a"])[0]

    check_repeats_and_threads(gradient)


def _in_child(pipe: Any) -> None:
    (x, h0, dt), rest = arguments(20, 37, 3, 64)
    pipe.send(float(scan(x, h0, dt, **rest).sum()))
    pipe.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_works_after_fork() -> None:
    (x, h0, dt), rest = arguments(20, 37, 3, 64)
    expected = float(scan(x, h0, dt, **rest).sum())
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_in_child, args=(there,))
    child.start()
    assert here.poll(60), "the child hangs"
    assert here.recv() == expected
    child.join()


@pytest.mark.parametrize("model", MODELS, ids=lambda m: "-".join(map(str, m.values())))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_step_equals_a_scan_of_one_step(model: dict[str, Any], dtype: torch.dtype) -> None:
    for batch, n, m in ((1, 64, 64), (3, 2, 7), (2, 0, 17)):
        (x, h0, dt), rest = arguments(1, batch, n, m, **model)
        rest = {name: v.to(dtype) if isinstance(v, Tensor) else v for name, v in rest.items()}
        whole = scan(x.to(dtype), h0.to(dtype), dt.to(dtype), **rest)[0]
        del rest["batch_first"]
        one = step(x[0].to(dtype), h0.to(dtype), dt[0].to(dtype), **rest)
        assert torch.allclose(one, whole, rtol=1e-5 if dtype is torch.float32 else 1e-12, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"time_feature": True}, {"wiring": AutoNCP(9, 4)}], ids=str)
@pytest.mark.parametrize("batched", [True, False])
def test_a_step_of_stacked_layers_is_fused_and_equals_a_run(
    batched: bool, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = lrcnet.LRCU(3, None if "wiring" in options else 9, num_layers=3, backend="fused", **options)
    x = torch.randn(5, *([4] if batched else []), 3)
    with torch.no_grad():
        whole, last = layer(x, dt=0.5)
        # The general way must not be taken.
        monkeypatch.setattr(layer, "forward", None)
        state = None
        for reading, expected in zip(x, whole, strict=True):
            output, state = layer.step(reading, state, dt=0.5)
            assert torch.allclose(output, expected, rtol=1e-5, atol=1e-6)
    assert state is not None
    assert torch.allclose(state, last, rtol=1e-5, atol=1e-6)


def test_dropout_between_stacked_layers_acts_in_a_step_of_training() -> None:
    layer = lrcnet.LRCU(3, 9, num_layers=2, dropout=1.0, backend="fused")
    x = torch.randn(4, 3)
    with torch.no_grad():
        # A probability of 1 leaves nothing to chance.
        output, _ = layer.train().step(x)
        assert torch.allclose(output, layer(x.unsqueeze(0))[0][0])
        assert not torch.allclose(output, layer.eval().step(x)[0])


def test_a_step_reads_letters_with_gaps_and_refuses_a_negative_dt() -> None:
    (x, h0, _), rest = arguments(1)
    del rest["batch_first"]
    expected = step(x[0], h0, 1.0, **rest)
    assert torch.equal(step(x[0], h0, 1.0, **{**rest, "a": rest["a"].t().contiguous().t()}), expected)
    with pytest.raises(ValueError, match=r"dt\[sample=1\] is -1"):
        step(x[0], h0, torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64), **rest)


def test_a_step_between_devices_is_an_error_and_not_a_crash() -> None:
    # In a process of its own: reading what is not there ends the interpreter.
    program = """
import torch, lrcnet
x = torch.zeros(2, 3)
with torch.no_grad():
    for device, state in (("meta", None), ("cpu", torch.zeros(1, 2, 5, device="meta"))):
        try:
            lrcnet.LRCU(3, 5, device=device).step(x, state)
        except (ValueError, RuntimeError) as error:
            print("meta" in str(error))
"""
    done = run_program(program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True"]


@pytest.mark.parametrize("name", ["x", "h", "a", "g_l", "o", "p", "k_eps", "input_scale", "dt"])
def test_step_refuses_what_is_not_on_the_cpu(name: str) -> None:
    (x, h0, dt), rest = arguments(1)
    del rest["batch_first"]
    given = {"x": x[0], "h": h0, "dt": dt[0], **rest}
    with pytest.raises(ValueError, match="on the CPU"):
        step(**{**given, name: given[name].to("meta")})


def test_reasons_name_everything_that_stands_in_the_way() -> None:
    assert CPU.reasons(torch.zeros(1, 1, 1), Switches(), 5) == []
    switches = Switches(solver="rk4", elastance="unheard of")
    assert len(CPU.reasons(torch.zeros(1, 1, 1, dtype=torch.float16, device="meta"), switches, 5)) == 4
    seen: list[list[str]] = []
    torch.func.grad(lambda x: (seen.append(CPU.reasons(x, Switches(), 5)), x.sum())[1])(torch.zeros(1, 1, 1))
    assert seen == [["torch.func transforms need the plain loop"]]


def test_the_short_way_equals_the_way_through_the_dispatcher() -> None:
    (x, h0, dt), rest = arguments(9, 5, 3, 7)
    leaves = [x, h0, dt, *(value for value in rest.values() if isinstance(value, Tensor))]
    for leaf in leaves:
        leaf.requires_grad_()

    def run() -> tuple[Tensor, ...]:
        out = scan(x, h0, dt, **rest)
        return (out, *torch.autograd.grad(out.pow(2).sum(), leaves))

    short = run()
    with Seen() as seen:
        long = run()
    assert {"lrcnet.scan.default", "lrcnet.scan_backward.default"} <= set(seen.names)
    assert all(torch.equal(a, b) for a, b in zip(short, long, strict=True))


def test_the_short_way_takes_a_mode_that_is_entered_between_forward_and_backward() -> None:
    (x, h0, dt), rest = arguments()
    rest["a"].requires_grad_()
    out = scan(x, h0, dt, **rest)
    with Seen() as seen:
        out.sum().backward()
    assert "lrcnet.scan_backward.default" in seen.names
