"""Continuous-time RNN: a leaky neuron with electrical, that is additive, synapses."""

import torch
from torch import Tensor, nn

from lrcnet.cells.base import ODECell
from lrcnet.cells.gated import reset_kernels
from lrcnet.constraints import Constrained, nonnegative
from lrcnet.errors import check_flag, check_placement, positive_size


class CTRNNCell(Constrained, ODECell):
    """dh/dt = -rate * h + tanh(W [x, h] + b), with a leak rate >= 0 per unit.

    Args:
        input_size: n, may be 0.
        hidden_size: m.
        bias: whether there is a bias b.
        solver, unfolds, negative_dt: see `ODECell`; explicit Euler with 6 unfoldings by default.
    """

    nonnegative_parameters = ("rate",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        solver: str = "euler",
        unfolds: int = 6,
        negative_dt: str = "error",
    ) -> None:
        super().__init__()
        self.input_size = positive_size("input_size", input_size, least=0)
        self.hidden_size = positive_size("hidden_size", hidden_size)
        check_flag("bias", bias)
        check_placement(device, dtype)
        self.set_solver(solver, unfolds, negative_dt)
        self.weight_ih = nn.Parameter(torch.empty(hidden_size, input_size, device=device, dtype=dtype))
        self.weight_hh = nn.Parameter(torch.empty(hidden_size, hidden_size, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(hidden_size, device=device, dtype=dtype)) if bias else None
        self.rate = nn.Parameter(torch.empty(hidden_size, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw a Glorot input kernel and an orthogonal recurrent kernel; zero bias, leak rate 1."""
        reset_kernels(self.weight_ih, self.weight_hh, self.hidden_size)
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        nn.init.ones_(self.rate)

    def values(self) -> Tensor:
        return nonnegative(self.rate, "clamp")

    @torch.no_grad()
    def fastest_decay(self) -> float:
        return float(self.values().max())

    def input_terms(self, values: Tensor, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight_ih, self.bias)

    def split(self, values: Tensor, terms: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        return values, torch.tanh(torch.addmm(terms, h, self.weight_hh.t()))

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, solver={self.solver!r}, unfolds={self.unfolds}"
