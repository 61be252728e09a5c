"""Every public function answers bad input with a message: the requirement, the given value, and a fix."""

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

import lrcnet
from tests.collection import LAYER_NAMES, MEMORY, NAMES, PAIRED, TIMED_NAMES, make_cell, make_layer


def raises(error: type[Exception], *parts: str):
    pattern = "".join(f"(?=.*{part})" for part in parts)
    return pytest.raises(error, match=f"(?s){pattern}")


@pytest.mark.parametrize("name", LAYER_NAMES)
def test_layers_say_what_is_wrong_with_an_input(name: str) -> None:
    layer = make_layer(name, num_layers=2)
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    with raises(ValueError, "3 dimensions", "it has 1"):
        layer(x[0, 0])
    with raises(ValueError, "3 dimensions", "it has 4"):
        layer(x[None])
    with raises(ValueError, "3 features", "it has 4", "input_size"):
        layer(torch.randn(5, 2, 4, dtype=torch.float64))
    with raises(ValueError, "float64", "int64"):
        layer(torch.ones(5, 2, 3, dtype=torch.int64))
    with raises(ValueError, "float64", "float32"):
        layer(x.float())
    with raises(TypeError, "tensor or a PackedSequence", "list"):
        layer([1.0, 2.0])


@pytest.mark.parametrize("name", LAYER_NAMES)
def test_layers_say_what_is_wrong_with_a_state(name: str) -> None:
    layer = make_layer(name, num_layers=2)
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    wrap = (lambda s: (s, s)) if isinstance(layer, PAIRED) else (lambda s: s)
    for shape in ((1, 2, 4), (2, 3, 4), (2, 2, 5), (2, 4)):
        with raises(ValueError, "hx", r"\(2, 2, 4\)", str(shape).replace("(", r"\(").replace(")", r"\)")):
            layer(x, wrap(torch.zeros(shape, dtype=torch.float64)))
    with raises(ValueError, "hx", "float32"):
        layer(x, wrap(torch.zeros(2, 2, 4)))
    with raises(ValueError, "hx", r"\(2, 4\)"):
        layer(x[:, 0], wrap(torch.zeros(2, 1, 4, dtype=torch.float64)))
    with pytest.raises(TypeError, match="hx"):
        layer(x, "zeros")
    if not isinstance(layer, PAIRED):
        with raises(TypeError, r"hx must be a tensor of shape \(2, 2, 4\), but is a tuple", "no cell state c"):
            layer(x, (torch.zeros(2, 2, 4), torch.zeros(2, 2, 4)))


@pytest.mark.parametrize("name", TIMED_NAMES)
def test_layers_say_what_is_wrong_with_dt(name: str) -> None:
    layer = make_layer(name)
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    ones = torch.ones(5, 2, dtype=torch.float64)
    with raises(ValueError, r"\(5, 2\)", r"\(2, 5\)"):
        layer(x, dt=ones.T)
    with raises(ValueError, "float64", "float32"):
        layer(x, dt=ones.float())
    with raises(TypeError, "dt must be None, a number or a tensor"):
        layer(x, dt="fast")
    with raises(TypeError, "dt must be"):
        layer(x, dt=True)
    with raises(ValueError, "dt must be finite"):
        layer(x, dt=float("nan"))
    packed = pack_padded_sequence(x, torch.tensor([5, 3]))
    with raises(ValueError, "packed dt goes with a packed input"):
        layer(x, dt=pack_padded_sequence(ones, torch.tensor([5, 3])))
    with raises(ValueError, "batch sizes"):
        layer(packed, dt=pack_padded_sequence(ones, torch.tensor([5, 4])))
    with raises(ValueError, r"\(5, 2\)", r"\(4, 2\)"):
        layer(packed, dt=ones[:4])


@pytest.mark.parametrize("backend", ["reference", "auto"])
def test_negative_dt_is_an_error_clamped_or_allowed(backend: str) -> None:
    x = torch.randn(5, 3, 3)
    dt = torch.full((5, 3), 0.5)
    dt[3, 1], dt[4, 0] = -0.25, -1.0
    layer = lrcnet.LRCU(3, 4, backend=backend)
    with raises(ValueError, r"dt must be >= 0, but dt\[t=3, sample=1\] is -0.25", "negative_dt"):
        layer(x, dt=dt)
    with raises(ValueError, "dt must be >= 0, but is -1"):
        layer(x, dt=-1)
    lengths = torch.tensor([2, 5, 5])
    packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
    with raises(ValueError, r"dt\[t=3, sample=1\]"):
        layer(packed, dt=dt)
    for name, expected in (("clamp", dt.clamp(min=0)), ("allow", dt)):
        lenient = lrcnet.LRCU(3, 4, negative_dt=name, backend=backend)
        lenient.load_circuit(layer.circuit())
        by_hand, h = [], torch.zeros(3, 4)
        for t in range(5):
            h = h + expected[t, :, None] * lenient.cells[0].derivative(x[t], h)
            by_hand.append(h)
        torch.testing.assert_close(lenient(x, dt=dt)[0], torch.stack(by_hand), rtol=1e-5, atol=1e-6)
    with raises(ValueError, "negative_dt='allow' needs solver='euler'", "hybrid"):
        lrcnet.LRC(3, 4, negative_dt="allow")
    with raises(ValueError, "negative_dt must be one of error, clamp, allow"):
        lrcnet.LRCU(3, 4, negative_dt="ignore")


def test_construction_refuses_what_torch_would_misread() -> None:
    with raises(TypeError, "dropout must be a number", "torch.nn.GRU"):
        lrcnet.LRCU(3, 4, 2, True, True, True)
    with raises(ValueError, "dropout must be from 0 to 1", "1.5"):
        lrcnet.LRCU(3, 4, 2, dropout=1.5)
    with raises(ValueError, "input_size must be at least 1", "is 0"):
        lrcnet.LRCU(0, 4)
    with raises(TypeError, "hidden_size must be an int", "4.0"):
        lrcnet.LRCU(3, 4.0)
    with raises(ValueError, "num_layers must be at least 1"):
        lrcnet.MGU(3, 4, 0)
    with raises(TypeError, "LRCU has no option elastanc", "it takes elastance"):
        lrcnet.LRCU(3, 4, elastanc="symmetric")
    with raises(ValueError, "elastance of LRCUCell must be one of symmetric, asymmetric", "'none'"):
        lrcnet.LRCU(3, 4, elastance="none")
    with raises(ValueError, "backend must be one of auto, fused, reference"):
        lrcnet.LRCU(3, 4, backend="gpu")
    with raises(ValueError, "parametrisation must be one of scaled, ab, sigma-mu"):
        lrcnet.LRCU(3, 4, parametrisation="mu")
    with pytest.warns(UserWarning, match="dropout acts between layers"):
        lrcnet.LRCU(3, 4, dropout=0.5)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith(("lstm", "gru")) or "ode" in name])
def test_cells_say_what_is_wrong(name: str) -> None:
    cell = make_cell(name)
    x = torch.randn(2, 3, dtype=torch.float64)
    with raises(ValueError, "2 dimensions", "has 3"):
        cell(x[None])
    with raises(ValueError, "3 features", "has 4"):
        cell(torch.randn(2, 4, dtype=torch.float64))
    with raises(ValueError, "float64", "float32"):
        cell(x.float())
    with raises(ValueError, r"h must have shape \(2, 4\)", r"\(3, 4\)"):
        zeros = torch.zeros(3, 4, dtype=torch.float64)
        cell(x, (zeros, zeros) if isinstance(cell, PAIRED) else zeros)
    if name in TIMED_NAMES:
        with raises(ValueError, r"shape \(2,\)", r"\(3,\)"):
            cell(x, dt=torch.ones(3, dtype=torch.float64))
    else:
        with raises(ValueError, "time_feature"):
            cell(x, dt=1.0)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("lstm") and name not in MEMORY])
def test_cells_answer_an_lstms_pair_as_layers_do(name: str) -> None:
    x, h = torch.randn(2, 3, dtype=torch.float64), torch.zeros(2, 4, dtype=torch.float64)
    for pair in ((h, h), [h, h]):
        with raises(TypeError, r"must be a tensor of shape \(2, 4\), but is a (tuple|list)", "pass h alone"):
            make_cell(name)(x, pair)


@pytest.mark.parametrize("name", ["lstm", *MEMORY])
def test_an_lstm_cell_needs_a_pair(name: str) -> None:
    with raises(TypeError, r"hx of an LSTM must be a pair \(h, c\), but is a Tensor"):
        make_cell(name)(torch.randn(2, 3, dtype=torch.float64), torch.zeros(2, 4, dtype=torch.float64))


def test_mixed_memory_goes_around_cells_and_layers_of_the_library() -> None:
    with raises(TypeError, "cell must be one of lrcnet's", "is a GRUCell"):
        lrcnet.MixedMemoryCell(torch.nn.GRUCell(3, 4))
    with raises(TypeError, "layer must be a layer of lrcnet", "is a GRU"):
        lrcnet.MixedMemory(lrcnet.GRU(3, 4))


@pytest.mark.parametrize("name", LAYER_NAMES)
def test_bidirectional_layers_refuse_to_stream(name: str) -> None:
    with raises(ValueError, "step", "bidirectional"):
        make_layer(name, bidirectional=True).step(torch.randn(2, 3, dtype=torch.float64))


@pytest.mark.parametrize("name", NAMES)
def test_a_step_takes_one_reading(name: str) -> None:
    layer = make_layer(name)
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            with raises(ValueError, "step expects x of 2 dimensions", "has 3"):
                layer.step(torch.randn(1, 2, 3, dtype=torch.float64))
            with raises(ValueError, "step expects x", "is a list"):
                layer.step([1.0, 2.0, 3.0])


def test_half_precision_layers_are_refused() -> None:
    with raises(ValueError, "float32 or float64", "bfloat16", "autocast"):
        lrcnet.LRCU(3, 4).bfloat16()(torch.randn(5, 2, 3).bfloat16())


def test_cells_take_no_inputs_but_layers_need_one() -> None:
    for name in ("ltc", "stc", "lrc", "lrcu", "mgu", "ctrnn", "gru-ode"):
        cell = make_cell(name, 0, 4)
        assert cell(torch.empty(2, 0, dtype=torch.float64)).shape == (2, 4)
        with raises(ValueError, "input_size must be at least 1"):
            make_layer(name, 0, 4)


def test_neural_ode_says_what_is_wrong() -> None:
    model = lrcnet.NeuralODE(lrcnet.MLPField(2))
    with raises(ValueError, "t must be a tensor of 1 dimension"):
        model(torch.randn(3, 2), torch.rand(2, 2, 2))
    with raises(ValueError, "floating point"):
        model(torch.ones(3, 2, dtype=torch.int64), torch.rand(2))


def test_stream_reports_the_same_errors_as_forward() -> None:
    layer = lrcnet.LRCU(3, 4).eval()
    with torch.no_grad():
        with raises(ValueError, "3 features", "it has 4"):
            layer.step(torch.randn(1, 4))
        with raises(ValueError, "float32", "float64"):
            layer.step(torch.randn(1, 3, dtype=torch.float64))
        with raises(ValueError, "hx", r"\(1, 1, 4\)"):
            layer.step(torch.randn(1, 3), torch.zeros(1, 1, 5))
        with raises(ValueError, "dt must be >= 0"):
            layer.step(torch.randn(1, 3), dt=-1.0)
