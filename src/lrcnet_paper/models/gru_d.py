"""GRU-D (Che and others, 2018): a GRU whose state, and whose last values of missing inputs, decay with time."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lrcnet.cells.gated import reset_kernels
from lrcnet.errors import positive_size


class GRUD(nn.Module):
    """A layer of GRU-D, batch first: (output, state) = layer(x, dt=dt).

        delta_t = dt_t + (1 - m_{t-1}) delta_{t-1}      time since each variable was measured
        x_t <- m_t x_t + (1 - m_t) gamma_x x_last,      gamma_x = exp(-relu(w_x delta_t + b_x))
        h <- gamma_h h before the step of a GRU,        gamma_h = exp(-relu(W_h delta_t + b_h))

    Inputs are standardised, so that a missing value decays to its mean, 0.

    Args:
        input_size: n.
        hidden_size: m.
        masked: k. The first k inputs are last values, the next k their masks (1 if measured); the others are always
            there. With k = 0 everything is measured at every reading, and delta_t = dt_t.
    """

    def __init__(self, input_size: int, hidden_size: int, *, masked: int = 0) -> None:
        super().__init__()
        self.input_size, self.hidden_size = positive_size("input_size", input_size), hidden_size
        self.masked = positive_size("masked", masked, least=0)
        if 2 * masked > input_size:
            raise ValueError(f"{masked} variables and their masks need {2 * masked} inputs, but there are {input_size}")
        m = positive_size("hidden_size", hidden_size)
        self.weight_ih, self.weight_hh = (
            nn.Parameter(torch.empty(3 * m, input_size)),
            nn.Parameter(torch.empty(3 * m, m)),
        )
        self.bias = nn.Parameter(torch.zeros(3 * m))
        reset_kernels(self.weight_ih.data, self.weight_hh.data, m)
        self.input_decay = nn.Parameter(torch.zeros(2, masked)) if masked else None
        self.state_decay = nn.Linear(max(masked, 1), m)
        nn.init.zeros_(self.state_decay.bias)

    def forward(self, x: Tensor, *, dt: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the states (B, T, m) and the last one, (1, B, m).

        Args:
            x: (B, T, n).
            dt: the time before each reading, (B, T); 1 if None.
        """
        step = x.new_ones(x.shape[:2]) if dt is None else dt
        elapsed = self.time_since_measured(x, step)
        decay = torch.exp(-torch.relu(self.state_decay(elapsed))).unbind(1)
        terms = nn.functional.linear(self._decay_inputs(x, elapsed), self.weight_ih, self.bias).unbind(1)
        m = self.hidden_size
        h, states = x.new_zeros(len(x), m), []
        for kept, term in zip(decay, terms, strict=True):
            h = kept * h
            recurrent = nn.functional.linear(h, self.weight_hh)
            gates = torch.sigmoid(term[:, : 2 * m] + recurrent[:, : 2 * m])
            candidate = torch.tanh(term[:, 2 * m :] + gates[:, :m] * recurrent[:, 2 * m :])
            h = torch.lerp(candidate, h, gates[:, m:])
            states.append(h)
        return torch.stack(states, 1), h.unsqueeze(0)

    def time_since_measured(self, x: Tensor, step: Tensor) -> Tensor:
        """Return delta (B, T, k), the time since each masked variable was last measured; or the gaps (B, T, 1)."""
        k = self.masked
        if not k:
            return step.unsqueeze(-1)
        now = step.cumsum(1).unsqueeze(-1)
        seen = torch.where(x[..., k : 2 * k] > 0, now, torch.zeros_like(now))
        # At a reading, the last measurement before it counts; before the first one, the beginning of the sequence.
        before = nn.functional.pad(seen, (0, 0, 1, 0))[:, :-1].cummax(1).values
        return now - before

    def _decay_inputs(self, x: Tensor, elapsed: Tensor) -> Tensor:
        if self.input_decay is None:
            return x
        k = self.masked
        values, masks = x[..., :k], x[..., k : 2 * k]
        kept = torch.exp(-torch.relu(self.input_decay[0] * elapsed + self.input_decay[1]))
        return torch.cat([torch.where(masks > 0, values, kept * values), x[..., k:]], -1)
