"""LrcSSM: padding, streaming, pooling, gradients, learning."""

from pathlib import Path

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import lrcnet
from lrcnet.export import generate_c


def make(pooling: str | None = "mean", **options: object) -> lrcnet.LrcSSM:
    return lrcnet.LrcSSM(3, 2, hidden_size=8, states=5, blocks=2, pooling=pooling, **options).eval()


@pytest.mark.parametrize("pooling", ["mean", "last", "max"])
def test_padding_changes_nothing(pooling: str) -> None:
    network, x, lengths = make(pooling), torch.randn(3, 20, 3), torch.tensor([20, 7, 1])
    answers = network(x, dt=torch.ones(3, 20), lengths=lengths)
    for i, length in enumerate(lengths):
        torch.testing.assert_close(answers[i : i + 1], network(x[i : i + 1, :length]), rtol=1e-5, atol=1e-6)


def test_packed_input_gets_packed_answers() -> None:
    network, x, lengths = make(None), torch.randn(3, 20, 3), torch.tensor([20, 7, 1])
    packed = network(pack_padded_sequence(x, lengths, True, False))
    padded, _ = pad_packed_sequence(packed, batch_first=True)
    torch.testing.assert_close(padded[1, :7], network(x[1:2, :7])[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("pooling", [None, "mean", "last"])
def test_a_stream_gives_the_answers_of_the_whole_run(pooling: str | None) -> None:
    network, x, dt = make(pooling), torch.randn(4, 30, 3), torch.rand(4, 30)
    whole, state = network(x, dt=dt), None
    for t in range(30):
        answer, state = network.step(x[:, t], state, dt[:, t])
        if pooling is None:
            torch.testing.assert_close(answer, whole[:, t], rtol=1e-4, atol=1e-5)
    if pooling is not None:
        torch.testing.assert_close(answer, whole, rtol=1e-4, atol=1e-5)


def test_every_parameter_gets_a_gradient() -> None:
    network = make()
    network(torch.randn(4, 30, 3)).square().sum().backward()
    assert [name for name, p in network.named_parameters() if p.grad is None or not bool(p.grad.any())] == []


def test_it_learns_which_of_two_frequencies_a_long_noisy_wave_has() -> None:
    torch.manual_seed(0)
    time, labels = torch.linspace(0, 100, 400), torch.arange(32) % 2
    waves = torch.sin((1 + 0.3 * labels[:, None]) * time + 6.3 * torch.rand(32, 1)) + 0.3 * torch.randn(32, 400)
    network = lrcnet.LrcSSM(1, 2, hidden_size=16, states=8)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(60):
        loss = torch.nn.functional.cross_entropy(network(waves[..., None]), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert float((network(waves[..., None]).argmax(-1) == labels).float().mean()) > 0.9


def test_bad_sizes_get_a_sentence() -> None:
    with pytest.raises(ValueError, match="states must be"):
        lrcnet.LrcSSM(3, 2, states=0)
    with pytest.raises(ValueError, match="blocks must be"):
        lrcnet.LrcSSM(3, 2, blocks=0)
    with pytest.raises(TypeError, match=r"LrcSSM has no option elastence; it takes .*: did you mean elastance\?"):
        lrcnet.LrcSSM(3, 2, elastence="symmetric")


@pytest.mark.parametrize(
    ("option", "instead"),
    [
        ({"bidirectional": True}, r"use lrcnet\.DiagonalLRC\(\.\.\., bidirectional=True\)"),
        ({"num_layers": 2}, "pass blocks"),
        ({"batch_first": False}, "always batch first"),
        ({"bias": False}, "always have one"),
    ],
    ids=str,
)
def test_options_of_a_layer_that_a_network_cannot_have_are_refused(option: dict[str, object], instead: str) -> None:
    with pytest.raises(TypeError, match=f"^LrcSSM has no option {next(iter(option))}, but it was given; .*{instead}"):
        lrcnet.LrcSSM(3, 2, **option)


@pytest.mark.parametrize("pooling", [None, "mean", "last", "max"])
def test_the_whole_network_has_the_dtype_that_is_asked_for(pooling: str | None) -> None:
    network, x, dt = make(pooling, dtype=torch.float64), torch.randn(2, 9, 3).double(), torch.rand(2, 9).double()
    assert {parameter.dtype for parameter in network.parameters()} == {torch.float64}
    answer = network(x, dt=dt)
    assert answer.dtype is torch.float64
    answer.square().sum().backward()
    assert all(bool(p.grad.isfinite().all()) and p.grad.dtype is torch.float64 for p in network.parameters())
    assert network.step(x[:, 0])[0].dtype is torch.float64


def test_the_whole_network_is_on_the_device_that_is_asked_for() -> None:
    network = make(device="meta")
    assert all(parameter.is_meta for parameter in network.parameters())
    assert network(torch.empty(2, 9, 3, device="meta")).shape == (2, 2)


def test_dtype_and_device_are_not_part_of_a_folder(tmp_path: Path) -> None:
    network, x = make(dtype=torch.float64, device="cpu"), torch.randn(2, 9, 3).double()
    assert torch.equal(lrcnet.load(network.save(tmp_path / "model"))(x), network(x))


def test_a_network_calibrates_the_time_of_all_blocks() -> None:
    network, x, dt = make(time_scale="auto"), torch.randn(2, 9, 3), torch.full((2, 9), 30.0)
    with pytest.raises(RuntimeError, match=r"^LrcSSM has time_scale='auto' but no scale yet.*calibrate_time\(dt\)"):
        network(x, dt=dt)
    assert network.calibrate_time(dt) == 30.0
    assert [recurrence.time_scale for recurrence in network.network.layer.recurrences] == [30.0, 30.0]
    torch.testing.assert_close(network(x, dt=dt), network(x))


def test_a_step_that_is_too_long_warns_once_and_names_the_caller() -> None:
    network, x = make(), torch.randn(2, 9, 3)
    with pytest.warns(lrcnet.StabilityWarning, match="LrcSSM with 1 explicit euler") as record:
        network(x, dt=torch.full((2, 9), 5.0))
    assert [warning.filename for warning in record] == [__file__]
    make(time_warnings=False)(x, dt=torch.full((2, 9), 5.0))


def test_a_folder_gives_the_same_network(tmp_path: Path) -> None:
    network, x = make("max", time_scale=30.0, synapses="per-channel"), torch.randn(2, 9, 3)
    assert torch.equal(lrcnet.load(network.save(tmp_path / "model"))(x), network(x))


def test_it_streams_and_its_c_source_is_that_of_the_network_inside() -> None:
    network, x = make("mean"), torch.randn(1, 5, 3)
    stream = lrcnet.Stream(network)
    for t in range(5):
        answer = stream(x[0, t], float(t))
    torch.testing.assert_close(answer, network(x)[0].detach(), rtol=1e-4, atol=1e-5)
    assert generate_c(network).source == generate_c(network.network).source


def test_blocks_with_different_time_scales_are_not_written_in_c() -> None:
    network = make(time_scale="auto")
    network.network.layer.calibrate_time(torch.full((2, 3), 5.0))
    assert generate_c(network).cost.exponentials > 0
    network.network.layer.recurrences[1].calibrate_time(torch.full((2, 3), 7.0))
    with pytest.raises(ValueError, match="must have one time scale"):
        generate_c(network)
