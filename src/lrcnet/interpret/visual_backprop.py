"""VisualBackProp: which pixels a stack of convolutions looks at.

The method of Bojarski et al., "VisualBackProp: efficient visualization of CNNs" (2016). The feature maps of each
convolution, after their nonlinearity, are averaged over channels. Starting with the deepest layer, the average is
spread to the size of that layer's input by a transposed convolution of ones with the layer's kernel, stride and
padding, and multiplied by the average of the layer below; this repeats down to the picture. Pooling is spread like a
convolution, by its own kernel and stride, and has no average of its own.

Axes: picture, channel, row, column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from lrcnet.errors import check_kind

POOLS = (nn.MaxPool2d, nn.AvgPool2d)
# Layers that leave every pixel where it is.
POINTWISE = (
    nn.ReLU,
    nn.ReLU6,
    nn.LeakyReLU,
    nn.ELU,
    nn.GELU,
    nn.SiLU,
    nn.Softplus,
    nn.Sigmoid,
    nn.Tanh,
    nn.BatchNorm2d,
    nn.Dropout,
    nn.Dropout2d,
    nn.Identity,
)
# The outputs of these layers have no rows and columns.
ENDS = (nn.Flatten, nn.Linear)


@dataclass(frozen=True)
class _Window:
    """The part of a layer's input that one output pixel sees, along rows and columns."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]

    @classmethod
    def of(cls, layer: nn.Module) -> _Window:
        if isinstance(layer, nn.Conv2d):
            kernel, stride, dilation = _pair(layer.kernel_size), _pair(layer.stride), _pair(layer.dilation)
            if layer.padding == "same":
                # torch puts the odd pixel, if there is one, on the far side.
                near = tuple(d * (k - 1) // 2 for d, k in zip(dilation, kernel, strict=True))
                return cls(kernel, stride, _pair(near), dilation)
            padding = (0, 0) if isinstance(layer.padding, str) else _pair(layer.padding)  # the string "valid"
            return cls(kernel, stride, padding, dilation)
        assert isinstance(layer, POOLS)
        dilation = _pair(layer.dilation) if isinstance(layer, nn.MaxPool2d) else (1, 1)
        return cls(_pair(layer.kernel_size), _pair(layer.stride), _pair(layer.padding), dilation)

    def spread(self, average: Tensor, size: torch.Size) -> Tensor:
        """Spread an average (picture, 1, ...) of the layer's output to the size (rows, columns) of its input."""
        ones = average.new_ones(1, 1, *self.kernel)
        wide = functional.conv_transpose2d(average, ones, stride=self.stride, dilation=self.dilation)
        (top, left), (rows, columns) = self.padding, size
        # The far side is cropped like the near one; pixels at the far edge that no window reaches get 0.
        short = (top + rows - wide.shape[-2], left + columns - wide.shape[-1])
        if max(short) > 0:
            wide = functional.pad(wide, (0, max(short[1], 0), 0, max(short[0], 0)))
        return wide[..., top : top + rows, left : left + columns]


def visual_backprop(layers: nn.Module, pictures: Tensor) -> Tensor:
    """Compute which pixels a stack of convolutions looks at.

    Args:
        layers: nn.Sequential of Conv2d, pooling and pointwise layers, possibly nested. Layers from the first
            nn.Flatten or nn.Linear on are ignored.
        pictures: (picture, channel, row, column), as the stack takes them.

    Returns:
        (picture, row, column), from 0 to 1 within each picture, without a gradient; 0 everywhere if nothing stands
        out.

    Raises:
        ValueError: for a stack without a convolution, or pictures of another shape.
        TypeError: for a layer through which pixels cannot be followed; the message names it.

    Example:
        >>> layers = nn.Sequential(nn.Conv2d(3, 4, 5, stride=2, padding=2), nn.ReLU(), nn.MaxPool2d(2))
        >>> visual_backprop(layers, torch.rand(2, 3, 48, 160)).shape
        torch.Size([2, 48, 160])
    """
    check_kind("layers", layers, nn.Module, "a module of convolutions")
    check_kind("pictures", pictures, Tensor, "a tensor")
    if pictures.is_sparse or pictures.is_meta or not pictures.is_floating_point():
        raise ValueError(
            f"pictures must hold real numbers, but are {pictures.dtype} on {pictures.device}; convert them"
        )
    if pictures.ndim != 4:
        raise ValueError(f"pictures must have shape (picture, channel, row, column), but have {tuple(pictures.shape)}")
    # In training mode dropout would change the maps, and the statistics of normalisation layers would move.
    modes = [(module, module.training) for module in layers.modules()]
    layers.eval()
    try:
        with torch.no_grad():
            return _normalise(_product(layers, pictures))
    finally:
        for module, mode in modes:
            module.training = mode


def _product(layers: nn.Module, x: Tensor) -> Tensor:
    """Compute the product of all spread averages, (picture, row, column)."""
    # For each layer that moves pixels: its window, the size of its input, and the average of its output's maps (None
    # for pooling).
    stages: list[tuple[_Window, torch.Size, Tensor | None]] = []
    for layer in _flatten(layers):
        if isinstance(layer, ENDS):
            break
        size = x.shape[-2:]
        x = layer(x)
        if isinstance(layer, nn.Conv2d):
            stages.append((_Window.of(layer), size, _average(x)))
        elif isinstance(layer, POOLS):
            stages.append((_Window.of(layer), size, None))
        elif isinstance(layer, POINTWISE):
            # The average is taken after the last pointwise layer.
            if stages and stages[-1][2] is not None:
                stages[-1] = (*stages[-1][:2], _average(x))
        else:
            known = ", ".join(kind.__name__ for kind in (nn.Conv2d, *POOLS, *POINTWISE, *ENDS))
            raise TypeError(f"visual_backprop cannot follow pixels through {type(layer).__name__}; it knows {known}")
    deepest = next((i for i in reversed(range(len(stages))) if stages[i][2] is not None), None)
    if deepest is None:
        raise ValueError("layers must have at least one convolution, but have none; pass the convolutional part")
    mask: Tensor | None = None
    for window, size, average in reversed(stages[: deepest + 1]):
        if average is not None:
            mask = average if mask is None else mask * average
        assert mask is not None  # the deepest layer has an average
        mask = window.spread(mask, size)
    assert mask is not None
    return mask[:, 0]


def _average(maps: Tensor) -> Tensor:
    """Average over channels, (picture, 1, ...); averages that a smooth nonlinearity leaves negative count as 0."""
    return maps.mean(1, keepdim=True).clamp_min(0)


def _normalise(mask: Tensor) -> Tensor:
    low, high = mask.amin((1, 2), keepdim=True), mask.amax((1, 2), keepdim=True)
    span = high - low
    return (mask - low) / torch.where(span > 0, span, torch.ones_like(span))


def _flatten(layers: nn.Module) -> Iterator[nn.Module]:
    if isinstance(layers, nn.Sequential):
        for layer in layers:
            yield from _flatten(layer)
    else:
        yield layers


def _pair(value: int | tuple[int, ...]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])
