"""Laws that every layer and cell obeys."""

import copy
import io
import pickle

import pytest
import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

import lrcnet
from tests.collection import (
    LAYER_NAMES,
    NAMES,
    ODE_NAMES,
    TIMED_NAMES,
    copy_values,
    make_cell,
    make_layer,
    output_size,
    random_dt,
    random_state,
    state_map,
    take,
)
from tests.tolerances import ADAPTIVE, PER_SAMPLE_DT, REARRANGED


def close(actual: object, expected: object, name: str = "") -> None:
    tolerance = ADAPTIVE if "dopri5" in name else REARRANGED
    torch.testing.assert_close(actual, expected, rtol=0, atol=tolerance)


def parts_of(state: object) -> tuple[torch.Tensor, ...]:
    return state if isinstance(state, tuple) else (state,)


def series(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("name", [name for name in LAYER_NAMES if "dopri5" not in name])
def test_gradients_are_right(name: str) -> None:
    layer = make_layer(name, 2, 3, bidirectional=True)
    x, dt = series(4, 2, 2).requires_grad_(), random_dt(name, 4, 2)
    start = state_map(torch.Tensor.requires_grad_, random_state(layer, 2, 2, 3))
    flat = start if isinstance(start, tuple) else (start,)
    parameters = dict(layer.named_parameters())

    def run(x, dt, *tensors):
        states, values = tensors[: len(flat)], tensors[len(flat) :]
        arguments = (x, tuple(states) if len(states) == 2 else states[0])
        return torch.func.functional_call(
            layer, dict(zip(parameters, values, strict=True)), arguments, {} if dt is None else {"dt": dt}
        )[0]

    dt = None if dt is None else dt.requires_grad_()
    assert torch.autograd.gradcheck(run, (x, dt, *flat, *parameters.values()), atol=1e-6)


@pytest.mark.parametrize("name", LAYER_NAMES)
def test_chunked_run_equals_whole_run(name: str) -> None:
    layer = make_layer(name, num_layers=2)
    x, dt = series(11, 3, 3), random_dt(name, 11, 3)
    whole, last = layer(x, dt=dt)
    first, state = layer(x[:4], dt=take(dt, slice(0, 4)))
    second, state = layer(x[4:], state, dt=take(dt, slice(4, None)))
    close(torch.cat([first, second]), whole, name)
    close(state, last, name)


@pytest.mark.parametrize("name", LAYER_NAMES)
def test_steps_equal_a_run(name: str) -> None:
    for batch_first in (False, True):
        layer = make_layer(name, num_layers=2, batch_first=batch_first)
        x, dt = series(6, 3, 3), random_dt(name, 6, 3)
        laid_out = (lambda v: None if v is None else v.transpose(0, 1)) if batch_first else (lambda v: v)
        whole, last = layer(laid_out(x), dt=laid_out(dt))
        state, outputs = None, []
        for t in range(6):
            output, state = layer.step(x[t], state, take(dt, t))
            outputs.append(output)
        close(torch.stack(outputs), laid_out(whole), name)
        close(state, last, name)
        alone, _ = layer.step(x[0, 0], dt=None if dt is None else float(dt[0, 0]))
        close(alone, outputs[0][0], name)


@pytest.mark.parametrize("name", LAYER_NAMES)
def test_unbatched_equals_batched(name: str) -> None:
    layer = make_layer(name, num_layers=2, bidirectional=True)
    x, dt, state = series(7, 3), random_dt(name, 7), random_state(layer, 4, 4)
    output, last = layer(x, state, dt=dt)
    batched, last_batched = layer(
        x[:, None], state_map(lambda s: s[:, None], state), dt=None if dt is None else dt[:, None]
    )
    close(output, batched[:, 0], name)
    close(last, state_map(lambda s: s[:, 0], last_batched), name)


@pytest.mark.parametrize("name", LAYER_NAMES)
def test_batch_first_is_a_transpose(name: str) -> None:
    layer = make_layer(name, num_layers=2, bidirectional=True)
    x, dt, state = series(7, 3, 3), random_dt(name, 7, 3), random_state(layer, 4, 3, 4)
    output, last = layer(x, state, dt=dt)
    layer.batch_first = True
    other, other_last = layer(x.transpose(0, 1), state, dt=None if dt is None else dt.transpose(0, 1))
    close(other.transpose(0, 1), output, name)
    close(other_last, last, name)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("dt_form", ["padded", "packed"])
@pytest.mark.parametrize("name", LAYER_NAMES)
def test_packed_equals_each_sequence_alone(name: str, dt_form: str, batch_first: bool) -> None:
    layer = make_layer(name, num_layers=2, bidirectional=True, batch_first=batch_first)
    lengths = torch.tensor([3, 7, 1, 5])
    x, dt, state = series(4, 7, 3), random_dt(name, 4, 7), random_state(layer, 4, 4, 4)
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    given = dt
    if dt is not None and dt_form == "packed":
        given = pack_padded_sequence(dt, lengths, batch_first=True, enforce_sorted=False)
    elif dt is not None and not batch_first:
        given = dt.transpose(0, 1)
    output, last = layer(packed, state, dt=given)
    assert isinstance(output, PackedSequence)
    padded, out_lengths = pad_packed_sequence(output, batch_first=True)
    assert torch.equal(out_lengths, lengths)
    for sample, length in enumerate(lengths):
        alone, alone_last = layer(
            x[sample, :length], state_map(lambda s, i=sample: s[:, i], state), dt=take(dt, (sample, slice(0, length)))
        )
        close(padded[sample, :length], alone, name)
        close(state_map(lambda s, i=sample: s[:, i], last), alone_last, name)


@pytest.mark.parametrize(
    "name", [name for name in LAYER_NAMES if not name.startswith(("lstm", "gru")) or "ode" in name]
)
def test_bidirectional_equals_two_runs(name: str) -> None:
    layer = make_layer(name, bidirectional=True)
    ahead, back = make_layer(name), make_layer(name)
    copy_values(layer, 0, ahead)
    copy_values(layer, 1, back)
    x, dt = series(7, 3, 3), random_dt(name, 7, 3)
    output, last = layer(x, dt=dt)
    reversed_dt = None
    if dt is not None:
        # Going back, the gap before x_t is the one that follows it; a gated unit sees dt as a feature of the reading.
        reversed_dt = dt.flip(0) if "timed" in name else torch.cat([dt[1:], dt[:1]]).flip(0)
    forward_output, forward_last = ahead(x, dt=dt)
    backward_output, backward_last = back(x.flip(0), dt=reversed_dt)
    close(output, torch.cat([forward_output, backward_output.flip(0)], -1), name)
    for part, ahead_part, back_part in zip(*map(parts_of, (last, forward_last, backward_last)), strict=True):
        close(part, torch.cat([ahead_part, back_part]), name)


@pytest.mark.parametrize("name", TIMED_NAMES)
def test_samples_with_their_own_dt_equal_their_runs_alone(name: str) -> None:
    layer = make_layer(name)
    x, dt = series(6, 5, 3), torch.rand(6, 5, dtype=torch.float64) * torch.tensor([0.01, 0.3, 1.0, 1.5, 0.0])
    output, _ = layer(x, dt=dt)
    for sample in range(5):
        alone, _ = layer(x[:, sample], dt=dt[:, sample])
        tolerance = ADAPTIVE if "dopri5" in name else PER_SAMPLE_DT
        torch.testing.assert_close(output[:, sample], alone, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_dt_changes_the_output_or_is_refused(name: str) -> None:
    layer = make_layer(name)
    x, dt = series(6, 2, 3), torch.rand(6, 2, dtype=torch.float64)
    if name not in TIMED_NAMES:
        for given in (dt, 1.0):
            with pytest.raises(ValueError, match="time_feature"):
                layer(x, dt=given)
        return
    assert not torch.allclose(layer(x, dt=dt)[0], layer(x)[0])
    close(layer(x, dt=1)[0], layer(x)[0], name)
    close(layer(x, dt=torch.full((6, 2), 0.5, dtype=torch.float64))[0], layer(x, dt=0.5)[0], name)


@pytest.mark.parametrize("name", ODE_NAMES)
def test_no_time_means_no_change(name: str) -> None:
    layer = make_layer(name)
    state = random_state(layer, 1, 2, 4)
    _, last = layer(series(6, 2, 3), state, dt=0)
    close(last, state, name)


@pytest.mark.parametrize("name", NAMES)
def test_cells_and_layers_agree(name: str) -> None:
    layer, cell = make_layer(name), make_cell(name)
    if isinstance(cell, lrcnet.LSTMCell | lrcnet.GRUCell):
        cell.load_state_dict({key.removesuffix("_l0"): value for key, value in layer.state_dict().items()})
    else:
        copy_values(layer, 0, cell)
    x, dt = series(2, 3), random_dt(name, 2)
    state = random_state(cell, 2, 4)
    _, last = layer(x[None], state_map(lambda s: s[None], state), dt=take(dt, None))
    close(state_map(lambda s: s[None], cell(x, state, dt)), last, name)
    single = cell(x[0], state_map(lambda s: s[0], state), take(dt, 0))
    close(single, state_map(lambda s: s[0, 0], last), name)


@pytest.mark.parametrize("name", LAYER_NAMES)
def test_last_output_is_the_last_state_unless_mapped(name: str) -> None:
    layer = make_layer(name, **({"output_map": False} if name == "lrcu-sigma-mu" else {}))
    output, last = layer(series(5, 2, 3))
    last = (last[0] if isinstance(last, tuple) else last)[0]
    assert torch.equal(output[-1], last[..., : output_size(name)])


@pytest.mark.parametrize("name", LAYER_NAMES)
def test_empty_sequences_return_the_state_and_empty_batches_work(name: str) -> None:
    layer = make_layer(name, num_layers=2, bidirectional=True)
    state = random_state(layer, 4, 3, 4)
    output, last = layer(series(0, 3, 3), state)
    assert output.shape == (0, 3, 2 * output_size(name))
    assert str(last) == str(state)
    (last[0] if isinstance(last, tuple) else last).add_(1)
    assert str(last) != str(state), "the state must be a copy"
    output, last = layer(series(5, 0, 3), dt=random_dt(name, 5, 0))
    assert output.shape == (5, 0, 2 * output_size(name))
    assert (last[0] if isinstance(last, tuple) else last).shape == (4, 0, 4)


@pytest.mark.parametrize("name", LAYER_NAMES)
def test_layers_survive_state_dict_deepcopy_and_pickle(name: str) -> None:
    layer, other = make_layer(name, num_layers=2), make_layer(name, num_layers=2)
    x = series(5, 2, 3)
    expected = layer(x)[0]
    other.load_state_dict(layer.state_dict())
    buffer = io.BytesIO()
    torch.save(layer.state_dict(), buffer)
    buffer.seek(0)
    loaded = make_layer(name, num_layers=2)
    loaded.load_state_dict(torch.load(buffer, weights_only=True))
    for twin in (other, loaded, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(twin(x)[0], expected)


@pytest.mark.parametrize("name", [name for name in LAYER_NAMES if "dopri5" not in name])
def test_vmap_over_parameters_equals_a_loop(name: str) -> None:
    if name.startswith(("lstm", "gru")) and "ode" not in name:
        pytest.skip("torch's own LSTM and GRU kernels have no batching rule")
    layers = [make_layer(name) for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(layers)
    x, dt = series(5, 2, 3), random_dt(name, 5, 2)

    def run(values, buffers):
        return torch.func.functional_call(layers[0], (values, buffers), (x,), {} if dt is None else {"dt": dt})[0]

    together = torch.func.vmap(run)(parameters, buffers)
    close(together, torch.stack([layer(x, dt=dt)[0] for layer in layers]), name)
    own = dict(layers[0].named_buffers())
    gradient = torch.func.grad(lambda values: run(values, own).sum())(dict(layers[0].named_parameters()))
    layers[0](x, dt=dt)[0].sum().backward()
    close(gradient, {key: value.grad for key, value in layers[0].named_parameters()}, name)


@pytest.mark.parametrize("name", LAYER_NAMES)
def test_autocast_leaves_state_and_output_in_float32(name: str) -> None:
    layer = make_layer(name, dtype=torch.float32)
    x = torch.randn(5, 2, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, last = layer(x.bfloat16())
    expected, _ = layer(x.bfloat16().float())
    assert output.dtype == torch.float32
    assert torch.equal(output, expected)
    assert (last[0] if isinstance(last, tuple) else last).dtype == torch.float32


@pytest.mark.parametrize("name", LAYER_NAMES)
def test_nan_stays_in_its_own_sample_and_time(name: str) -> None:
    layer = make_layer(name)
    x = series(6, 3, 3)
    x[2, 1, 0] = float("nan")
    output, _ = layer(x)
    assert output[2:, 1].isnan().all()
    assert output[:2].isfinite().all()
    assert output[:, [0, 2]].isfinite().all()


@pytest.mark.parametrize("name", LAYER_NAMES)
def test_dropout_acts_between_layers_in_training_only(name: str) -> None:
    layer = make_layer(name, num_layers=2, dropout=0.5)
    x = series(5, 2, 3)
    assert not torch.equal(layer(x)[0], layer(x)[0])
    layer.eval()
    assert torch.equal(layer(x)[0], layer(x)[0])


def test_every_cell_of_the_collection_has_a_layer() -> None:
    assert lrcnet.LAYERS.keys() == lrcnet.CELLS.keys()
