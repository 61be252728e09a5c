"""The equation of a closed-form continuous-time (CfC) unit as pure functions, written once.

A backbone of fully connected layers sees the input and the state; its last layer gives the heads z. With s the gate of
time and dt the elapsed time:

    "default":  h' = (1 - s) tanh(z_1) + s tanh(z_2),   s = sigma(z_b + z_a dt)
    "no_gate":  h' = tanh(z_1) + s tanh(z_2)
    "pure":     h' = A - A exp(-dt (|w_tau| + |z|)) z

Axes: B batch, n inputs, m hidden units, W outputs of the first layer: the backbone's units, or all heads without one.

Reference: Hasani et al., Closed-form continuous-time neural networks, Nature Machine Intelligence 4, 2022.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor
from torch.nn import functional

CfCMode = Literal["default", "pure", "no_gate"]
MODES: tuple[str, ...] = get_args(CfCMode)
"""The values of the option `mode`; the first one is the default."""

# The heads of the gated modes, in the order of their rows: two candidates, then the gate's offset and slope over time.
GATED_HEADS = 4
# "Efficient BackProp" (LeCun et al., 1998) chooses these so that the activation of +-1 is +-1.
_LECUN_HEIGHT, _LECUN_SLOPE = 1.7159, 0.666


class Activation(NamedTuple):
    """An activation of the backbone, height * f(slope * z).

    Attributes:
        function: f.
        derivative: f' as a function of f(z), or of z if `by_argument`.
        by_argument: whether the derivative needs z.
        height, slope: constants that can be folded into the weights after and before.
    """

    function: Callable[[Tensor], Tensor]
    derivative: Callable[[Tensor], Tensor]
    by_argument: bool = False
    height: float = 1.0
    slope: float = 1.0

    def __call__(self, z: Tensor) -> Tensor:
        return self.function(z if self.slope == 1 else z * self.slope) * self.height


def _silu_derivative(z: Tensor) -> Tensor:
    open_share = torch.sigmoid(z)
    return open_share * (1 + z * (1 - open_share))


def _gelu_derivative(z: Tensor) -> Tensor:
    density = torch.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return 0.5 * (1 + torch.erf(z / math.sqrt(2))) + z * density


def _tanh_derivative(a: Tensor) -> Tensor:
    return 1 - a * a


def _relu_derivative(a: Tensor) -> Tensor:
    return (a > 0).to(a.dtype)


CfCActivation = Literal["lecun_tanh", "tanh", "relu", "silu", "gelu"]
ACTIVATIONS: dict[str, Activation] = {
    "lecun_tanh": Activation(torch.tanh, _tanh_derivative, height=_LECUN_HEIGHT, slope=_LECUN_SLOPE),
    "tanh": Activation(torch.tanh, _tanh_derivative),
    "relu": Activation(torch.relu, _relu_derivative),
    "silu": Activation(functional.silu, _silu_derivative, by_argument=True),
    "gelu": Activation(functional.gelu, _gelu_derivative, by_argument=True),
}
"""name -> activation of the backbone; the first one is the default."""
assert tuple(ACTIVATIONS) == get_args(CfCActivation)


class Weights(NamedTuple):
    """The values that a CfC computes with.

    Attributes:
        first: weight_ih (W, n), weight_hh (W, m) and bias (W) or None of the first layer.
        deeper: weight and bias (or None) of every further layer; the last one gives the heads.
        leak: |w_tau| (m), "pure" only.
        asymptote: A (m), "pure" only.
    """

    first: tuple[Tensor, Tensor, Tensor | None]
    deeper: tuple[tuple[Tensor, Tensor | None], ...]
    leak: Tensor | None = None
    asymptote: Tensor | None = None


class Form(NamedTuple):
    """The choices that make one CfC: the mode, the backbone's activation, and the share of its units dropped now."""

    mode: str
    activation: Activation
    dropout: float = 0.0


def next_state(form: Form, weights: Weights, terms: Tensor, h: Tensor, dt: float | Tensor) -> Tensor:
    """Return the state (B, m) after h, given the input's terms (B, W) of the first layer and dt, a number or (B, 1)."""
    return state_of_heads(form, weights, heads(form, weights, terms, h), dt)


def heads(form: Form, weights: Weights, terms: Tensor, h: Tensor) -> Tensor:
    """Return the heads (B, 4 m), or (B, m) if "pure", at states h (B, m)."""
    z = torch.addmm(terms, h, weights.first[1].t())
    for weight, bias in weights.deeper:
        a = form.activation(z)
        z = functional.linear(functional.dropout(a, form.dropout) if form.dropout else a, weight, bias)
    return z


def time_gate(z: Tensor, dt: float | Tensor, m: int) -> Tensor:
    """Return s (..., m) of heads (..., 4 m); with heads (..., 3 m), their time is in the weights already."""
    offset = z[..., 2 * m : 3 * m]
    return torch.sigmoid(offset + z[..., 3 * m :] * dt if z.shape[-1] == GATED_HEADS * m else offset)


def pure_decay(weights: Weights, z: Tensor, dt: float | Tensor) -> Tensor:
    """Return exp(-dt (|w_tau| + |z|)) of the mode "pure"."""
    assert weights.leak is not None
    return torch.exp(-dt * (weights.leak + z.abs()))


def state_of_heads(form: Form, weights: Weights, z: Tensor, dt: float | Tensor) -> Tensor:
    """Return the new state (..., m) that the heads stand for."""
    if form.mode == "pure":
        assert weights.asymptote is not None
        return weights.asymptote - weights.asymptote * pure_decay(weights, z, dt) * z
    m = weights.first[1].shape[1]
    start, end = torch.tanh(z[..., :m]), torch.tanh(z[..., m : 2 * m])
    gate = time_gate(z, dt, m)
    return torch.lerp(start, end, gate) if form.mode == "default" else start + gate * end


def scale(tensor: Tensor | None, factor: float) -> Tensor | None:
    """Return a tensor times a factor; None stays None."""
    return tensor if tensor is None or factor == 1 else tensor * factor


def fold_activation(activation: Activation, weights: Weights) -> Weights:
    """Return weights with which height and slope of the activation are 1."""
    if not weights.deeper or activation.height == activation.slope == 1:
        return weights
    weight_ih, weight_hh, bias = weights.first
    slope, height = activation.slope, activation.height
    deeper = []
    for i, (weight, offset) in enumerate(weights.deeper):
        after = 1.0 if i == len(weights.deeper) - 1 else slope
        deeper.append((weight * (height * after), scale(offset, after)))
    return weights._replace(first=(weight_ih * slope, weight_hh * slope, scale(bias, slope)), deeper=tuple(deeper))


def fold_time(weights: Weights, dt: float) -> Weights:
    """Return the weights of three heads: with the same dt for all, offset + slope * dt is one row of weights."""
    m = weights.first[1].shape[1]

    def fold(rows: Tensor) -> Tensor:
        return torch.cat([rows[: 2 * m], rows[2 * m : 3 * m] + rows[3 * m :] * dt])

    if weights.deeper:
        *inner, (weight, offset) = weights.deeper
        return weights._replace(deeper=(*inner, (fold(weight), None if offset is None else fold(offset))))
    weight_ih, weight_hh, bias = weights.first
    return weights._replace(first=(fold(weight_ih), fold(weight_hh), None if bias is None else fold(bias)))
