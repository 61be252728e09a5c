"""LSTM and GRU as a scan over time, for exporters: torch.export fixes the number of steps of torch's own layers.

Axes: T time, B batch, n inputs, m hidden units, L layers, D directions.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from lrcnet.cells.gated import with_time
from lrcnet.torch_layers import GRU, LSTM
from lrcnet.tracing import scan_operator


class ScannedLayer(nn.Module):
    """The forward pass of an LSTM or GRU over whole sequences, with the weights and the layout of that layer."""

    def __init__(self, layer: LSTM | GRU) -> None:
        super().__init__()
        self.layer = layer
        self.batch_first, self.bidirectional = layer.batch_first, layer.bidirectional

    def forward(self, x: Tensor, *, dt: Tensor | None = None) -> tuple[Tensor, Any]:
        """Return the output in the layout of x, and the last states (L*D, B, m)."""
        layer = self.layer
        if layer.time_feature:
            x = with_time(x, 1.0 if dt is None else dt.unsqueeze(-1))
        x = x.transpose(0, 1) if self.batch_first else x
        last: list[Tensor] = []
        for index in range(layer.num_layers):
            outputs = []
            for suffix in ("", "_reverse") if self.bidirectional else ("",):
                states = self._scan(x.flip(0) if suffix else x, f"l{index}{suffix}")
                last.append(states[-1])
                h = states[..., : layer.hidden_size]
                outputs.append(h.flip(0) if suffix else h)
            x = torch.cat(outputs, -1)
        whole = torch.stack(last)
        m = layer.hidden_size
        state = (whole[..., :m], whole[..., m:]) if isinstance(layer, LSTM) else whole
        return x.transpose(0, 1) if self.batch_first else x, state

    def _scan(self, x: Tensor, name: str) -> Tensor:
        """Return the states (T, B, m) of one layer and direction, or (T, B, 2 m): the memory of an LSTM follows h."""
        layer = self.layer
        weights = [getattr(layer, f"{part}_{name}") for part in ("weight_ih", "weight_hh")]
        biases = [getattr(layer, f"{part}_{name}") for part in ("bias_ih", "bias_hh")] if layer.bias else []
        step = _lstm_step if isinstance(layer, LSTM) else _gru_step
        start = x.new_zeros(x.shape[1], layer.hidden_size * (2 if isinstance(layer, LSTM) else 1))
        return scan_operator(step, start, [x], [*weights, *biases])


def _gru_step(
    h: Tensor, x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    from_input, from_state = linear(x, w_ih, b_ih).chunk(3, -1), linear(h, w_hh, b_hh).chunk(3, -1)
    reset, update = torch.sigmoid(from_input[0] + from_state[0]), torch.sigmoid(from_input[1] + from_state[1])
    candidate = torch.tanh(from_input[2] + reset * from_state[2])
    return candidate + update * (h - candidate)


def _lstm_step(
    state: Tensor, x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    h, c = state.chunk(2, -1)
    i, f, g, o = (linear(x, w_ih, b_ih) + linear(h, w_hh, b_hh)).chunk(4, -1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.cat([torch.sigmoid(o) * torch.tanh(c), c], -1)
