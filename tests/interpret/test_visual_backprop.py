"""VisualBackProp is the method of its paper, for every stack of convolutions and pooling that it claims to follow."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lrcnet.interpret import visual_backprop
from lrcnet_paper.models.policy import ConvHead


def slow_spread(average: Tensor, kernel, stride, padding, rows: int, columns: int) -> Tensor:
    """Add every output pixel to each input pixel that its window covers."""
    wide = np.zeros((rows, columns))
    for (r, c), value in np.ndenumerate(average.numpy()):
        top, left = r * stride[0] - padding[0], c * stride[1] - padding[1]
        wide[max(top, 0) : max(top + kernel[0], 0), max(left, 0) : max(left + kernel[1], 0)] += value
    return torch.from_numpy(wide)


@torch.no_grad()
def slow_visual_backprop(layers: nn.Sequential, picture: Tensor) -> Tensor:
    """Compute the mask of one picture (channel, row, column) as the method's paper describes it, pixel by pixel."""
    x, steps = picture.unsqueeze(0), []
    for layer in layers:
        if isinstance(layer, nn.Flatten):
            break
        before = x.shape[-2:]
        x = layer(x)
        if isinstance(layer, nn.Conv2d):
            steps.append([layer.kernel_size, layer.stride, layer.padding, before, None])
        elif isinstance(layer, nn.MaxPool2d):
            size, by = layer.kernel_size, layer.stride
            steps.append([(size, size), (by, by), (layer.padding, layer.padding), before, "pooling"])
        elif isinstance(layer, nn.ReLU):
            steps[-1][4] = x[0].mean(0)
    while not isinstance(steps[-1][4], Tensor):
        steps.pop()
    mask = None
    for kernel, stride, padding, (rows, columns), average in reversed(steps):
        if isinstance(average, Tensor):
            mask = average if mask is None else mask * average
        mask = slow_spread(mask, kernel, stride, padding, rows, columns)
    return (mask - mask.min()) / (mask.max() - mask.min())


STACKS = {
    "one": lambda: [nn.Conv2d(3, 4, 3), nn.ReLU()],
    "stride": lambda: [nn.Conv2d(3, 4, 5, stride=2, padding=2), nn.ReLU(), nn.Conv2d(4, 5, 3, stride=3), nn.ReLU()],
    "pooling": lambda: [nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 5, 3), nn.ReLU()],
    "overlaps": lambda: [nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.Conv2d(4, 4, 2), nn.ReLU()],
    "pooling last": lambda: [nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2)],
    "oblong": lambda: [nn.Conv2d(3, 4, (5, 3), (2, 1), padding=(1, 0)), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.ReLU()],
    "flattened": lambda: [nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2)],
}  # fmt: skip


@pytest.mark.parametrize("name", STACKS)
def test_it_equals_the_plain_transcription(name: str) -> None:
    layers = nn.Sequential(*STACKS[name]()).double()
    pictures = torch.rand(3, 3, 14, 19, dtype=torch.float64)
    masks = visual_backprop(layers, pictures)
    for picture, mask in zip(pictures, masks, strict=True):
        torch.testing.assert_close(mask, slow_visual_backprop(layers, picture), rtol=1e-9, atol=1e-9)


def test_the_policys_head_is_followed_down_to_its_pixels() -> None:
    head, pictures = ConvHead().double(), torch.randn(2, 3, 48, 160, dtype=torch.float64)
    masks = visual_backprop(head.layers, pictures)
    for picture, mask in zip(pictures, masks, strict=True):
        torch.testing.assert_close(mask, slow_visual_backprop(head.layers, picture), rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
@pytest.mark.parametrize(
    "convolution",
    [
        nn.Conv2d(1, 1, 3, padding="same"),
        nn.Conv2d(1, 1, 4, padding="same"),
        nn.Conv2d(1, 1, 3, padding="valid"),
        nn.Conv2d(1, 1, 3, dilation=2, padding=1),
    ],
    ids=str,
)
def test_a_pixel_is_spread_over_exactly_its_window(convolution: nn.Conv2d) -> None:
    """With weights of one and one bright output pixel, the mask is the gradient of that pixel by the input."""
    with torch.no_grad():
        convolution.weight.fill_(1.0)
        convolution.bias.zero_()
    x = torch.zeros(1, 1, 9, 11, requires_grad=True)
    out = convolution(x)
    row, column = out.shape[-2] // 2, out.shape[-1] // 2
    out[0, 0, row, column].backward()

    class OnePixel(nn.Identity):
        def forward(self, values: Tensor) -> Tensor:
            alone = torch.zeros_like(values)
            alone[0, 0, row, column] = 1.0
            return alone

    mask = visual_backprop(nn.Sequential(convolution, OnePixel()), torch.zeros(1, 1, 9, 11))
    assert torch.equal(mask[0], x.grad[0, 0])


def test_masks_lie_between_0_and_1_and_a_batch_is_its_pictures() -> None:
    layers, pictures = ConvHead().layers, torch.randn(3, 3, 48, 160)
    whole = visual_backprop(layers, pictures)
    assert torch.equal(whole.amin((1, 2)), torch.zeros(3))
    assert torch.equal(whole.amax((1, 2)), torch.ones(3))
    single = torch.cat([visual_backprop(layers, pictures[i : i + 1]) for i in range(3)])
    torch.testing.assert_close(whole, single, rtol=1e-4, atol=1e-5)
    assert not whole.requires_grad


def test_a_picture_that_excites_nothing_gives_an_empty_mask() -> None:
    layers = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU())
    with torch.no_grad():
        layers[0].weight.fill_(-1.0)
        layers[0].bias.zero_()
    assert torch.equal(visual_backprop(layers, torch.rand(1, 1, 8, 8)), torch.zeros(1, 8, 8))


def test_dropout_does_not_act_and_the_mode_stays() -> None:
    layers = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Dropout(0.5), nn.BatchNorm2d(2)).train()
    pictures = torch.rand(2, 1, 8, 8)
    before = layers[3].running_mean.clone()
    assert torch.equal(visual_backprop(layers, pictures), visual_backprop(layers, pictures))
    assert layers.training
    assert layers[2].training
    assert torch.equal(layers[3].running_mean, before)


def test_bad_stacks_and_pictures_are_named() -> None:
    with pytest.raises(TypeError, match="cannot follow pixels through PixelShuffle; it knows Conv2d, MaxPool2d"):
        visual_backprop(nn.Sequential(nn.Conv2d(4, 4, 3), nn.PixelShuffle(2)), torch.zeros(1, 4, 8, 8))
    with pytest.raises(ValueError, match="must have at least one convolution"):
        visual_backprop(nn.Sequential(nn.MaxPool2d(2)), torch.zeros(1, 4, 8, 8))
    with pytest.raises(ValueError, match=r"must have shape \(picture, channel, row, column\)"):
        visual_backprop(nn.Sequential(nn.Conv2d(4, 4, 3)), torch.zeros(4, 8, 8))
