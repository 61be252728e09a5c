"""The gated recurrent unit as an ODE, the paper's Eq. 9."""

from typing import Any

import torch
from torch import Tensor, nn

from lrcnet.cells.base import ODECell
from lrcnet.cells.gated import reset_joint_kernels
from lrcnet.errors import check_flag, check_placement, positive_size


class GRUODECell(ODECell):
    """dh/dt = sigma(f) (-h + tanh(u)), with f, r linear in [h, x] and u linear in [sigma(r) h, x].

    One explicit Euler step with dt = 1 is the paper's GRU (`ResetBeforeGRUCell`), whose reset gate acts before the
    matrix product (in torch.nn.GRU it acts after it).

    Args:
        input_size: n, may be 0.
        hidden_size: m.
        bias: whether the gates have biases.
        solver, unfolds, negative_dt: see `ODECell`; one explicit Euler step by default.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        solver: str = "euler",
        unfolds: int = 1,
        negative_dt: str = "error",
    ) -> None:
        super().__init__()
        self.input_size = positive_size("input_size", input_size, least=0)
        self.hidden_size = positive_size("hidden_size", hidden_size)
        check_flag("bias", bias)
        check_placement(device, dtype)
        self.set_solver(solver, unfolds, negative_dt)
        # Rows: update gate f, reset gate r, candidate u, m each.
        self.weight_ih = nn.Parameter(torch.empty(3 * hidden_size, input_size, device=device, dtype=dtype))
        self.weight_hh = nn.Parameter(torch.empty(3 * hidden_size, hidden_size, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(3 * hidden_size, device=device, dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw one Glorot-uniform kernel over [x, h] for each gate and for the candidate; set biases to 0."""
        reset_joint_kernels(self.weight_ih, self.weight_hh)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def values(self) -> None:
        return None

    def fastest_decay(self) -> float:
        return 1.0

    def input_terms(self, values: Any, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight_ih, self.bias)

    def split(self, values: Any, terms: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        m = self.hidden_size
        gates = torch.sigmoid(torch.addmm(terms[:, : 2 * m], h, self.weight_hh[: 2 * m].t()))
        update, reset = gates.chunk(2, -1)
        candidate = torch.tanh(torch.addmm(terms[:, 2 * m :], reset * h, self.weight_hh[2 * m :].t()))
        return update, update * candidate

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, solver={self.solver!r}, unfolds={self.unfolds}"
