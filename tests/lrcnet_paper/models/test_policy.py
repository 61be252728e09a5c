"""The driving policy has the paper's layers and sizes, normalises frames, and continues from its state."""

import pytest
import torch
from torch import Tensor, nn

from lrcnet_paper.models import parameter_count
from lrcnet_paper.models.feature_policy import FeaturePolicy
from lrcnet_paper.models.policy import CURVATURE_PER_OUTPUT, UNITS, ConvHead, Policy, normalise_frames


def frames(*shape: int) -> Tensor:
    return torch.randint(0, 256, (*shape, 48, 160, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def test_the_layers_of_the_head_have_the_papers_sizes() -> None:
    seen = []
    x = torch.zeros(1, 3, 48, 160)
    for layer in ConvHead().layers:
        x = layer(x)
        if isinstance(layer, (nn.Conv2d, nn.MaxPool2d, nn.Flatten, nn.Linear)):
            seen.append(tuple(x.shape[1:]))
    assert seen == [
        (24, 24, 80),
        (36, 24, 80),
        (36, 12, 40),
        (48, 12, 40),
        (48, 6, 20),
        (64, 6, 20),
        (64, 3, 10),
        (64, 3, 10),
        (1920,),
        (64,),
    ]


def test_the_head_computes_its_layers_in_the_papers_order_to_the_last_bit() -> None:
    torch.manual_seed(0)
    head = ConvHead()
    pictures = normalise_frames(frames(4)).requires_grad_()
    by_head = head(pictures)
    in_order = head.layers(pictures.permute(0, 3, 1, 2))
    assert torch.equal(by_head, in_order)
    wanted = [pictures, *head.parameters()]
    weights = torch.randn(by_head.shape)
    gradients = zip(*(torch.autograd.grad(y, wanted, weights) for y in (by_head, in_order)), strict=True)
    assert all(torch.equal(ours, theirs) for ours, theirs in gradients)


def test_the_head_has_exactly_the_papers_parameters() -> None:
    convolutions = [(3, 24, 5), (24, 36, 5), (36, 48, 3), (48, 64, 3), (64, 64, 3)]
    expected = sum(o * (i * k * k + 1) for i, o, k in convolutions) + 1920 * 64 + 64
    assert parameter_count(ConvHead()) == expected == 226_644


@pytest.mark.parametrize(
    ("model", "count"),
    [
        # torch keeps two biases per gate; MGU and the paper's GRU have one.
        ("lstm", 4 * 23 * (23 + 64 + 2)),
        ("gru", 3 * 28 * (28 + 64 + 1)),
        ("torch-gru", 3 * 28 * (28 + 64 + 2)),
        ("mgu", 2 * 38 * (38 + 64 + 1)),
        ("lrcu-a", 5 * 19 * (19 + 64 + 1) + 2 * 64),
        ("lrcu-s", 5 * 19 * (19 + 64 + 1) + 2 * 64 + 19),
    ],
)
def test_the_recurrent_part_has_8000_parameters(model: str, count: int) -> None:
    policy = Policy(model)
    assert parameter_count(policy.layer) == count
    assert round(count, -3) == 8000
    assert parameter_count(policy.head) == UNITS[model] + 1


def test_frames_are_normalised_one_by_one() -> None:
    bright = torch.rand(3, 2, 48, 160, 3) * torch.tensor([0.1, 0.5, 1.0]).view(3, 1, 1, 1, 1)
    flat = normalise_frames(bright).flatten(2)
    torch.testing.assert_close(flat.mean(2), torch.zeros(3, 2), rtol=0, atol=1e-5)
    torch.testing.assert_close(flat.var(2, correction=0), torch.ones(3, 2), rtol=0, atol=1e-4)
    assert torch.equal(normalise_frames(torch.full((48, 160, 3), 7, dtype=torch.uint8)), torch.zeros(48, 160, 3))
    bytes_, floats = frames(2), frames(2) / 255
    torch.testing.assert_close(normalise_frames(bytes_), normalise_frames(floats))


@pytest.mark.parametrize("model", UNITS)
def test_a_drive_in_pieces_equals_the_whole(model: str) -> None:
    policy, seen = Policy(model).eval(), frames(2, 4)
    with torch.no_grad():
        whole = policy(seen)
        first, state = policy.run(seen[:, :2])
        third, state = policy.step(seen[:, 2], state)
        fourth, _ = policy.step(seen[:, 3], state)
    torch.testing.assert_close(torch.cat([first, third[:, None], fourth[:, None]], 1), whole, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("model", ["lstm", "lrcu-s", "ltc"])
def test_every_parameter_learns(model: str) -> None:
    policy = Policy(model)
    policy(frames(2, 6)).pow(2).sum().backward()
    assert [name for name, p in policy.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0] == []


@pytest.mark.parametrize("model", ["gru", "mgu", "torch-gru", "lrcu-a"])
def test_half_precision_is_for_the_convolutions_only(model: str) -> None:
    policy, seen = Policy(model).to(memory_format=torch.channels_last), frames(2, 3)
    plain = policy(seen)
    with torch.autocast("cpu", torch.bfloat16):
        half = policy(seen)
        half.sum().backward()
    assert half.dtype is torch.float32
    assert (half - plain).abs().max() < 0.05 * plain.abs().max()


def test_bad_frames_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must have shape \(\.\.\., 48, 160, 3\)"):
        normalise_frames(torch.zeros(3, 48, 160))
    with pytest.raises(ValueError, match="must be uint8, or floating point"):
        normalise_frames(torch.zeros(48, 160, 3, dtype=torch.int32))
    with pytest.raises(ValueError, match=r"must have shape \(batch, time, 48, 160, 3\)"):
        Policy("gru")(frames(2))
    with pytest.raises(ValueError, match="model must be one of"):
        Policy("transformer")


# The sharpest curvature of the recordings, 1/m: a bend of 25 m radius, and the expert's corrections on top.
SHARPEST_LABEL = 0.044


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("model", UNITS)
def test_every_policy_can_express_the_sharpest_label_at_initial_values(model: str, seed: int) -> None:
    torch.manual_seed(seed)
    policy = FeaturePolicy(model)
    with torch.no_grad():
        output = policy(torch.randn(500, 1, 64).expand(-1, 32, -1))[:, -1]
    assert output.max() > SHARPEST_LABEL
    assert output.min() < -SHARPEST_LABEL
    # One rule for all models: none reacts much more strongly to its features than another.
    assert 0.7 * CURVATURE_PER_OUTPUT < output.std() < 1.4 * CURVATURE_PER_OUTPUT


def test_the_head_starts_from_glorots_values() -> None:
    torch.manual_seed(0)
    last = ConvHead().layers[-1]
    limit = (6 / (1920 + 64)) ** 0.5
    assert 0.97 * limit < last.weight.abs().max() <= limit
    assert (last.bias == 0).all()
