"""The driving policy: a convolutional head for the frames, a recurrent layer for memory, a linear output for steering.

Axes: batch, time, row, column, colour.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from lrcnet.errors import DivergenceWarning, one_of
from lrcnet.models import dense
from lrcnet_paper.models.recurrent import recurrent_layer

FEATURES = 64
ROWS, COLUMNS = 48, 160
# The first five sizes are from the paper's appendix. The other liquid networks have the same parameters as an LRCU, so
# they have its size. The last two sizes are our choice, so that these models have about 8,000 parameters too.
UNITS = {
    "lstm": 23,
    "gru": 28,
    "torch-gru": 28,
    "mgu": 38,
    "lrcu-a": 19,
    "lrcu-s": 19,
    "lrc-a": 19,
    "lrc-s": 19,
    "stc": 19,
    "ltc": 19,
    "ctrnn": 62,
    "gru-ode": 28,
}
# Curvature of an output of 1, 1/m: a bend of 40 m radius. The sharpest labels are a little below 2.
CURVATURE_PER_OUTPUT = 0.025
IN_BFLOAT16 = {"bfloat16": True}
"""The option with which a policy computes its head in bfloat16."""
# Sequences, steps and seed of the probe that scales the read-out.
_PROBE_SEQUENCES, _PROBE_STEPS, _PROBE_SEED = 256, 32, 0
_SMALLEST_STD = 1 / 255


def normalise_frames(frames: Tensor) -> Tensor:
    """Scale each frame to mean 0 and variance 1 over its rows, columns and colours.

    Args:
        frames: (..., 48, 160, 3), uint8, or floating point in [0, 1], where noise may have been added.

    Returns:
        Frames of the same shape; float32 for uint8. A frame of one colour becomes 0.

    Raises:
        ValueError: for another shape or type.
    """
    if frames.ndim < 3 or frames.shape[-3:] != (ROWS, COLUMNS, 3):
        raise ValueError(f"frames must have shape (..., {ROWS}, {COLUMNS}, 3), but have {tuple(frames.shape)}")
    if frames.dtype is torch.uint8:
        frames = frames.to(torch.float32) / 255
    elif not frames.is_floating_point():
        raise ValueError(f"frames must be uint8, or floating point in [0, 1], but are {frames.dtype}; convert them")
    # Five times faster than torch.std_mean, which takes one pixel at a time. Counting from one of its values makes a
    # frame of one colour exactly 0.
    centred = frames - frames[..., :1, :1, :1]
    centred = centred - centred.mean((-3, -2, -1), keepdim=True)
    std = centred.square().mean((-3, -2, -1), keepdim=True).sqrt()
    return centred / std.clamp_min(_SMALLEST_STD)


class ConvHead(nn.Module):
    """The convolutional head of the paper's appendix: 48x160 pixels become 64 features.

    It has convolutions of 24, 36, 48, 64 and 64 filters with ReLU. The first has stride 2; the second to fourth are
    followed by max pooling. Padding is 'same', the only one with which all layers fit into 48 rows.

    >>> ConvHead()(torch.zeros(2, 48, 160, 3)).shape
    torch.Size([2, 64])
    """

    def __init__(self) -> None:
        super().__init__()
        relu, pool = nn.ReLU, nn.MaxPool2d
        self.layers = nn.Sequential(
            *(nn.Conv2d(3, 24, 5, stride=2, padding=2), relu()),
            *(nn.Conv2d(24, 36, 5, padding=2), relu(), pool(2)),
            *(nn.Conv2d(36, 48, 3, padding=1), relu(), pool(2)),
            *(nn.Conv2d(48, 64, 3, padding=1), relu(), pool(2)),
            *(nn.Conv2d(64, 64, 3, padding=1), relu()),
            nn.Flatten(),
            nn.Linear(1920, FEATURES),
        )
        for layer in self.layers:
            if isinstance(layer, nn.Conv2d | nn.Linear):
                # Keras' initial values, as the authors have.
                nn.init.xavier_uniform_(layer.weight)
                assert layer.bias is not None
                nn.init.zeros_(layer.bias)
        # Filters in the layout of the frames are a sixth faster than filters in torch's default layout.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, frames: Tensor) -> Tensor:
        """Compute features (frame, 64) of normalised frames (frame, 48, 160, 3)."""
        # Colour comes last in a frame, so this is torch's channels_last layout without a copy.
        features = frames.permute(0, 3, 1, 2)
        for layer in self._pooling_first():
            features = layer(features)
        return features

    def _pooling_first(self) -> list[nn.Module]:
        """Return the layers with every pooling before the ReLU that it follows.

        Values and gradients are the same, since a ReLU is monotone, but it passes a quarter of the numbers, which makes
        a training step 10 % faster. `layers` keeps the paper's order, from which attention is computed.
        """
        order = list(self.layers)
        for index, layer in enumerate(order):
            if isinstance(layer, nn.MaxPool2d):
                order[index - 1 : index + 1] = layer, order[index - 1]
        return order


@torch.no_grad()
def read_out(layer: nn.Module, width: int, features: int) -> nn.Linear:
    """Return the linear output layer of a policy: Glorot weights, scaled and centred by one rule for all models.

    At initial values the states of a liquid unit are some twenty times smaller than those of an LSTM and not centred at
    0. With equal weights and no bias it cannot steer into a sharp bend to both sides. So the output is given mean 0 and
    standard deviation 1 over standard normal features that are constant in time.
    """
    output = dense(width, 1)
    probe = torch.randn(
        _PROBE_SEQUENCES, 1, features, generator=torch.Generator().manual_seed(_PROBE_SEED), dtype=output.weight.dtype
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)
        states, _ = layer(probe.expand(-1, _PROBE_STEPS, -1))
    std, mean = torch.std_mean(output(states[:, -1]))
    if not bool(std.isfinite()):
        return output  # an LTC under one explicit step diverges already here and has no scale
    output.weight /= std
    output.bias.fill_(-mean / std)
    return output


class Policy(nn.Module):
    """The network that maps camera frames to curvatures.

    Args:
        model: name of the recurrent layer, a key of `UNITS`.
        solver: solver such as "hybrid-6"; "" is the model's own.
        units: number of recurrent units; None is the paper's number.
        bfloat16: whether the head computes in bfloat16, with eight bits of mantissa: faster on processors that have
            instructions for it (`lrcnet bench driving` measures both), many times slower on others.
        options: further arguments of the layer.

    Raises:
        ValueError: for an unknown model.

    >>> policy = Policy("lrcu-s")
    >>> policy(torch.zeros(2, 5, 48, 160, 3, dtype=torch.uint8)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self, model: str, *, solver: str = "", units: int | None = None, bfloat16: bool = False, **options: Any
    ) -> None:
        super().__init__()
        self._in_bfloat16 = bfloat16
        width = UNITS[one_of("model", model, UNITS)] if units is None else units
        self.conv = ConvHead()
        self.layer = recurrent_layer(model, FEATURES, solver=solver, units=width, **options)
        self.head = read_out(self.layer, width, FEATURES)

    def forward(self, frames: Tensor, dt: Tensor | None = None) -> Tensor:
        """Compute curvatures (batch, time), 1/m, from frames (batch, time, 48, 160, 3); see `normalise_frames`."""
        return self.run(frames, dt=dt)[0]

    def run(self, frames: Tensor, state: Any = None, *, dt: Tensor | None = None) -> tuple[Tensor, Any]:
        """Compute curvatures (batch, time), 1/m, and the layer's state afterwards, from which a later call continues.

        Args:
            frames: (batch, time, 48, 160, 3).
            state: state that an earlier call returned; None at the beginning of a drive.
            dt: time steps, as the layer takes them.
        """
        features = self.features(frames)
        # Autocast is for the convolutions, which take most of the time; eight bits are not enough to steer with.
        with torch.autocast(frames.device.type, enabled=False):
            output, state = self.layer(features.to(self.head.weight.dtype), state, dt=dt)
            curvature: Tensor = self.head(output).squeeze(-1) * CURVATURE_PER_OUTPUT
        return curvature, state

    def features(self, frames: Tensor) -> Tensor:
        """Compute what the convolutions see, (batch, time, 64), in frames (batch, time, 48, 160, 3)."""
        if frames.ndim != 5:
            raise ValueError(f"frames must have shape (batch, time, 48, 160, 3), but have {tuple(frames.shape)}")
        normalised = normalise_frames(frames).flatten(0, 1)
        if self._in_bfloat16:
            with torch.autocast(frames.device.type, torch.bfloat16):
                features: Tensor = self.conv(normalised)
        else:
            features = self.conv(normalised)
        return features.view(*frames.shape[:2], FEATURES)

    def step(self, frames: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """Compute curvatures (batch,), 1/m, from frames (batch, 48, 160, 3) of one step, and the state afterwards."""
        curvature, state = self.run(frames.unsqueeze(1), state)
        return curvature[:, 0], state
