"""GRU-D (Che and others, 2018): a GRU whose state, and whose last values of missing inputs, decay with time."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lrcnet.cells.gated import reset_kernels, with_time
from lrcnet.errors import check_flag, positive_size

LARGEST_DECAY = 0.1
"""Largest initial weight and bias of a decay."""


class GRUD(nn.Module):
    """A layer of GRU-D, batch first: (output, state) = layer(x, dt=dt).

        delta_t = dt_t + (1 - m_{t-1}) delta_{t-1}         time since each variable was measured
        x <- m_t x_t + (1 - m_t) gamma_x x_last            gamma_x = exp(-relu(w_x delta_t + b_x))
        h <- gamma_h h                                     gamma_h = exp(-relu(W_h delta_t / k + b_h))
        z = sigma(W_z x + U_z h + b_z), r likewise, c = tanh(W_c x + U_c (r h) + b_c), h <- (1 - z) h + z c

    Inputs are standardised, so that a missing value decays to its mean, 0. The paper has delta_1 = 0; here it is dt_1,
    which in a stream of events is the duration of the first one. The paper's W_h is W_h / k here: see `_reset_decays`.

    Args:
        input_size: n.
        hidden_size: m.
        masked: k. The first k inputs are last values, the next k their masks (1 if measured); the others are always
            there. With masked = 0 everything is measured at every reading: delta_t = dt_t and k = 1.
        time_feature: feed dt as one more input. The decay of a state of 0 shows nothing, so that without it no network
            can tell the first gap.
    """

    def __init__(self, input_size: int, hidden_size: int, *, masked: int = 0, time_feature: bool = False) -> None:
        super().__init__()
        self.input_size, self.hidden_size = positive_size("input_size", input_size), hidden_size
        self.masked = positive_size("masked", masked, least=0)
        self.time_feature = check_flag("time_feature", time_feature)
        if 2 * masked > input_size:
            raise ValueError(f"{masked} variables and their masks need {2 * masked} inputs, but there are {input_size}")
        m = positive_size("hidden_size", hidden_size)
        self.weight_ih, self.weight_hh = (
            nn.Parameter(torch.empty(3 * m, input_size + time_feature)),
            nn.Parameter(torch.empty(3 * m, m)),
        )
        self.bias = nn.Parameter(torch.zeros(3 * m))
        reset_kernels(self.weight_ih.data, self.weight_hh.data, m)
        self.input_decay = nn.Parameter(torch.empty(2, masked)) if masked else None
        self.state_decay = nn.Linear(max(masked, 1), m)
        self._reset_decays()

    def _reset_decays(self) -> None:
        # Where weight and bias are 0 or below, relu has no gradient at any delta and the decay would never be learned,
        # so both start above 0; a large start would forget everything. The sum over variables is divided by k because
        # every delta is positive: a step of the optimiser moves all k weights of a unit in one direction, and without
        # the k half of the units had lost their decay for good after an epoch of PhysioNet at a rate of 0.01.
        for values in (self.input_decay, self.state_decay.weight, self.state_decay.bias):
            if values is not None:
                nn.init.uniform_(values, 0.0, LARGEST_DECAY)

    def forward(self, x: Tensor, *, dt: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the states (B, T, m) and the last one, (1, B, m).

        Args:
            x: (B, T, n).
            dt: the time before each reading, (B, T); 1 if None.
        """
        step = x.new_ones(x.shape[:2]) if dt is None else dt
        elapsed = self.time_since_measured(x, step)
        decay = torch.exp(-torch.relu(self.state_decay(elapsed / elapsed.shape[-1]))).unbind(1)
        inputs = self._decay_inputs(x, elapsed)
        if self.time_feature:
            inputs = with_time(inputs, step.unsqueeze(-1))
        m = self.hidden_size
        # Everything is cut into pieces once, before the loop: each cut inside it would be a step of the backward pass.
        rows = [2 * m, m]
        gate_terms, terms = torch.split(nn.functional.linear(inputs, self.weight_ih, self.bias), rows, -1)
        gate_kernel, kernel = (piece.t() for piece in torch.split(self.weight_hh, rows))
        h, states = x.new_zeros(len(x), m), []
        for kept, gate_term, term in zip(decay, gate_terms.unbind(1), terms.unbind(1), strict=True):
            h = kept * h
            z, r = torch.sigmoid(torch.addmm(gate_term, h, gate_kernel)).chunk(2, 1)
            candidate = torch.tanh(torch.addmm(term, r * h, kernel))
            h = torch.lerp(h, candidate, z)
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
