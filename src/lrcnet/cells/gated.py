"""Gated cells: MGU and the GRU of the paper's tables, and torch's own LSTM and GRU with Keras' initial values."""

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from lrcnet.cells import gated_sequence
from lrcnet.cells.base import Cell, GatesByName
from lrcnet.cells.checks import check_gaps, check_like, check_number, describe_state
from lrcnet.errors import check_flag, check_placement, describe_kind, positive_size
from lrcnet.tracing import Unscriptable
from lrcnet.value_checks import warn_if_diverged


class GatedCell(Cell):
    """A gated unit whose reset gate acts before the matrix product: the base of `MGUCell` and `ResetBeforeGRUCell`.

        z = sigma(W_z [x, h] + b_z), r likewise, c = tanh(W_c [x, r h] + b_c), h <- (1 - z) h + z c

    Args:
        input_size: n, may be 0.
        hidden_size: m.
        bias: whether the gates have biases.
        time_feature: feed dt as one more input; without it, passing dt is an error.

    Attributes:
        gate_names: names of the gates, z first and r last; one gate serves as both.
    """

    gate_names: ClassVar[tuple[str, ...]]
    takes_dt = False
    # Here dt is an input like any other, so it may have any sign.
    negative_dt = "allow"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        time_feature: bool = False,
    ) -> None:
        super().__init__()
        self.input_size = positive_size("input_size", input_size, least=0)
        self.hidden_size = positive_size("hidden_size", hidden_size)
        check_flag("bias", bias)
        check_placement(device, dtype)
        self.takes_dt = self.time_feature = check_flag("time_feature", time_feature)
        width = input_size + time_feature
        # m rows for each gate, then m rows for the candidate.
        rows = (len(self.gate_names) + 1) * hidden_size
        self.weight_ih = nn.Parameter(torch.empty(rows, width, device=device, dtype=dtype))
        self.weight_hh = nn.Parameter(torch.empty(rows, hidden_size, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(rows, device=device, dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw one Glorot-uniform kernel over [x, h] for each gate and for the candidate; set biases to 0."""
        reset_joint_kernels(self.weight_ih, self.weight_hh)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def values(self) -> None:
        return None

    def input_terms(self, values: Any, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight_ih, self.bias)

    def advance(self, values: Any, terms: Tensor, h: Tensor, dt: float | Tensor) -> Tensor:
        return self.next_state(terms, h, self.weight_hh)

    @staticmethod
    def next_state(terms: Tensor, h: Tensor, weight_hh: Tensor) -> Tensor:
        """Return the state (B, m) after h, given the input's terms of the gates and of the candidate."""
        m = h.shape[-1]
        gates = torch.sigmoid(torch.addmm(terms[:, :-m], h, weight_hh[:-m].t()))
        candidate = torch.tanh(torch.addmm(terms[:, -m:], gates[:, -m:] * h, weight_hh[-m:].t()))
        return torch.lerp(h, candidate, gates[:, :m])

    def gates(self, x: Tensor, h: Tensor, states: Tensor, batch_major: bool) -> GatesByName:
        # In the order of memory, so that the matrix products need no copies.
        time = 1 if batch_major else 0
        whole, readings = (values.transpose(0, 1) if batch_major else values for values in (states, x))
        before = torch.cat([h.unsqueeze(time), whole.narrow(time, 0, max(len(states) - 1, 0))], time)
        before = before.narrow(time, 0, len(states)).flatten(0, 1)
        m = self.hidden_size
        # In place, from sums to gates: allocating new memory costs more than the arithmetic.
        sums = self.input_terms(None, readings).flatten(0, 1)
        gates, candidate = sums[:, :-m], sums[:, -m:]
        gates.addmm_(before, self.weight_hh[:-m].t()).sigmoid_()
        candidate.addmm_(gates[:, -m:] * before, self.weight_hh[-m:].t()).tanh_()

        def time_major(values: Tensor) -> Tensor:
            values = values.view(*whole.shape[:2], m)
            return values.transpose(0, 1) if batch_major else values

        flat = dict(zip(self.gate_names, torch.split(gates, m, -1), strict=True))
        flat |= {"candidate": candidate, "time_constant": 1 / gates[:, :m]}
        return {name: time_major(values) for name, values in flat.items()}

    def _scan(self, x: Tensor, h: Tensor, dt: float | Tensor, batch_major: bool) -> Tensor:
        weights = (self.weight_ih, self.weight_hh, self.bias)
        if not x.shape[0] or not gated_sequence.serves(x, h, *weights):
            return super()._scan(x, h, dt, batch_major)
        states = gated_sequence.scan(self.next_state, x, h, *weights, batch_major=batch_major)
        warn_if_diverged(x, h, dt, states)
        return states

    def _step(self, x: Tensor, h: Tensor, dt: float | Tensor) -> Tensor:
        return super()._step(with_time(x, dt) if self.time_feature else x, h, dt)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, time_feature={self.time_feature}"


class MGUCell(GatedCell):
    """Minimal gated unit: f = sigma(W_f [x, h] + b_f), c = tanh(W_c [x, f h] + b_c), h <- (1 - f) h + f c.

    As in the paper's tables: one Glorot-uniform kernel over [x, h] for each of the two, zero biases. Arguments as in
    `GatedCell`.
    """

    gate_names = ("forget",)


class ResetBeforeGRUCell(GatedCell):
    """The GRU of the paper's tables: c = tanh(W_c [x, r h] + b_c), h <- (1 - z) h + z c.

    Its reset gate r acts before the matrix product, its kernels are Glorot-uniform over [x, h], and its update gate z
    opens for the candidate. In torch's GRU (`GRUCell`) r acts after the product and z keeps the old state. Arguments as
    in `GatedCell`.
    """

    gate_names = ("update", "reset")


def with_time(x: Tensor, dt: float | Tensor) -> Tensor:
    """Return x (..., n) with the elapsed time as one more column; dt is a number or has a last axis of 1."""
    if isinstance(dt, float):  # one operator instead of three, which a stream of single readings sees
        return torch.constant_pad_nd(x, (0, 1), dt)
    column = dt if isinstance(dt, Tensor) else torch.tensor(dt, dtype=x.dtype, device=x.device)
    return torch.cat([x, column.expand(*x.shape[:-1], 1)], -1)


def reset_kernels(weight_ih: Tensor, weight_hh: Tensor, hidden_size: int) -> None:
    """Draw Glorot-uniform input kernels and orthogonal recurrent kernels, each gate's rows on their own."""
    for rows in range(0, weight_ih.shape[0], hidden_size):
        if weight_ih.shape[1]:
            nn.init.xavier_uniform_(weight_ih[rows : rows + hidden_size])
        nn.init.orthogonal_(weight_hh[rows : rows + hidden_size])


@torch.no_grad()
def reset_joint_kernels(weight_ih: Tensor, weight_hh: Tensor) -> None:
    """Draw every gate's kernel over [x, h] as one Glorot-uniform matrix: n + m inputs, m outputs."""
    n, m = weight_ih.shape[1], weight_hh.shape[1]
    limit = math.sqrt(6 / (n + m + m))
    for weight in (weight_ih, weight_hh):
        nn.init.uniform_(weight, -limit, limit)


@torch.no_grad()
def reset_torch_rnn(rnn: nn.Module, hidden_size: int) -> None:
    """Draw Keras' initial values for a torch recurrent module: Glorot, orthogonal, zero bias, an LSTM's forget bias 1.

    Keras draws each kernel as one matrix over all gates, and so does this.
    """
    is_lstm = isinstance(rnn, nn.LSTM | nn.LSTMCell)
    for name, parameter in rnn.named_parameters():
        if name.startswith("weight_ih"):
            nn.init.xavier_uniform_(parameter)
        elif name.startswith("weight_hh"):
            nn.init.orthogonal_(parameter)
        else:
            nn.init.zeros_(parameter)
            # torch adds two biases; the 1 goes into one of them.
            if is_lstm and name.startswith("bias_ih"):
                parameter[hidden_size : 2 * hidden_size] = 1.0


class _TimedCell(Unscriptable, nn.Module):
    """The additions of GRUCell and LSTMCell to torch's: Keras' initial values, and dt as one more input."""

    input_size: int
    hidden_size: int
    weight_ih: Tensor

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        time_feature: bool = False,
    ) -> None:
        positive_size("input_size", input_size, least=0)
        positive_size("hidden_size", hidden_size)
        check_flag("bias", bias)
        check_placement(device, dtype)
        self.time_feature = check_flag("time_feature", time_feature)
        super().__init__(input_size + time_feature, hidden_size, bias, device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw new initial values from torch's global generator."""
        reset_torch_rnn(self, self.hidden_size)

    def forward(self, input: Tensor, hx: Any = None, dt: float | Tensor | None = None) -> Any:
        """Advance the state as torch's cell does; dt, a number or (B,), needs time_feature."""
        kind, features = type(self).__name__, self.input_size - self.time_feature
        if not isinstance(input, Tensor) or input.dim() not in (1, 2) or input.shape[-1] != features:
            given = f"of shape {tuple(input.shape)}" if isinstance(input, Tensor) else describe_kind(input)
            raise ValueError(
                f"{kind} expects an input of shape (batch, {features}) or ({features},), but it is {given}"
            )
        check_like(kind, "the input", input, self.weight_ih)
        self._check_state(input, hx)
        return super().forward(_timed(self, input, dt), hx)

    def _check_state(self, input: Tensor, hx: Any) -> None:
        """Raise unless the state is None or a tensor like the input, (..., hidden)."""
        if hx is None:
            return
        shape = (*input.shape[:-1], self.hidden_size)
        if not isinstance(hx, Tensor):
            raise TypeError(describe_state("hx", shape, hx))
        if hx.shape != shape:
            raise ValueError(f"hx must have shape {shape}, but has {tuple(hx.shape)}; it is (batch, hidden)")
        check_like(type(self).__name__, "hx", hx, input)


class GRUCell(_TimedCell, nn.GRUCell):
    """torch.nn.GRUCell with Keras' initial values and `time_feature`; the paper's GRU is `ResetBeforeGRUCell`."""


class LSTMCell(_TimedCell, nn.LSTMCell):
    """torch.nn.LSTMCell with the initial values of the paper's baseline and `time_feature`; its state is (h, c)."""

    def _check_state(self, input: Tensor, hx: Any) -> None:
        check_pair(hx)


def check_pair(hx: Any) -> None:
    """Raise unless an LSTM's state is None or a pair (h, c)."""
    if hx is not None and not (isinstance(hx, tuple | list) and len(hx) == 2):
        raise TypeError(f"hx of an LSTM must be a pair (h, c), but is a {type(hx).__name__}")


def _timed(cell: _TimedCell, x: Tensor, dt: float | Tensor | None) -> Tensor:
    if not cell.time_feature:
        if dt is not None:
            raise ValueError(no_time(type(cell).__name__))
        return x
    if isinstance(dt, Tensor):
        if dt.shape not in ((), x.shape[:-1]):
            raise ValueError(
                f"dt must be a number or have shape {tuple(x.shape[:-1])}, one value per sample, but has "
                f"{tuple(dt.shape)}"
            )
        check_like(type(cell).__name__, "dt", dt, x)
        return with_time(x, check_gaps(dt, "allow").unsqueeze(-1))
    return with_time(x, 1.0 if dt is None else check_number("dt", dt, "allow"))


def no_time(name: str) -> str:
    """Return the sentence for a dt that a gated unit would have to ignore."""
    return (
        f"{name} has no notion of elapsed time, but dt was given; pass time_feature=True to feed dt as one more input, "
        "or leave dt out"
    )
