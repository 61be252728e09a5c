"""The measured Lipschitz constant: the largest spectral norm of the output's Jacobian that a search reaches."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lrcnet.errors import check_kind, positive_size
from lrcnet.theory.domain import Domain
from lrcnet.theory.jacobian import output_jacobian, points_per_chunk
from lrcnet.theory.network import Model, Network, check_dt, read_model

Points = tuple[Tensor, Tensor]
Data = Tensor | Points

# Number of random points that are evaluated for each starting point of gradient ascent.
CANDIDATES = 16
# First step of gradient ascent, as a fraction of the box's width.
FIRST_STEP = 0.05


@dataclass(frozen=True)
class EmpiricalLipschitz:
    """A lower bound on the Lipschitz constant of y = [h, x] -> Q h_new; float(measured) is its value.

    Attributes:
        value: the largest spectral norm of all points evaluated.
        over_data: the largest norm over the given data, None without data.
        by_ascent: the largest norm that gradient ascent reached inside the box, None without a box.
        state, inputs: (m,) and (n,), the point at which the norm is `value`.
    """

    value: float
    over_data: float | None
    by_ascent: float | None
    state: Tensor
    inputs: Tensor

    def __float__(self) -> float:
        return self.value


def empirical_lipschitz(
    model: Model,
    data: Data | None = None,
    *,
    domain: Domain | None = None,
    dt: float | Tensor = 1.0,
    starts: int = 16,
    steps: int = 60,
    seed: int = 0,
) -> EmpiricalLipschitz:
    """Measure the largest spectral norm of the output's Jacobian, over data and by gradient ascent inside a box.

    Args:
        model: as in `lipschitz_bound`, with any cell of lrcnet (LTC too) and any fixed-step solver.
        data: (states (N, m), inputs (N, n)); or sequences of inputs in the layer's layout, which are run from a zero
            state and evaluated at every step.
        domain: the box of the ascent, which starts from the best data inside it and from the best of random points.
        dt: the time for which one input is held; with (states, inputs) also one value per point, (N,), and the ascent
            then uses the largest.
        starts: the number of ascents, which run at the same time.
        steps: the number of steps of each ascent; 0 evaluates the starting points only.
        seed: random seed for the random points.

    Returns:
        The measured value; the true constant is at least as large.

    Raises:
        ValueError: without data and domain, for data of a wrong shape or with a Jacobian that is not finite.

    >>> layer, readout = lrcnet.LTC(3, 5), torch.nn.Linear(5, 1)
    >>> measured = lrcnet.theory.empirical_lipschitz((layer, readout), torch.randn(20, 4, 3))
    >>> measured.value == measured.over_data
    True
    """
    network = read_model(model)
    positive_size("starts", starts)
    positive_size("steps", steps, least=0)
    if data is None and domain is None:
        raise ValueError("empirical_lipschitz needs data, a domain or both, but has neither; pass one")
    over_data: float | None = None
    by_ascent: float | None = None
    best: list[tuple[float, Tensor]] = []
    data_points: Tensor | None = None
    if data is not None:
        h, x, step = _read_points(network, data, dt)
        data_points = torch.cat([h, x], -1)
        norms = spectral_norms(network, h, x, step)
        order = norms.argsort(descending=True)
        data_points = data_points[order]
        over_data = float(norms[order[0]])
        best.append((over_data, data_points[0]))
    if domain is not None:
        check_kind("domain", domain, Domain, "a lrcnet.theory.Domain")
        largest = check_dt(float(dt.max()) if isinstance(dt, Tensor) else dt)
        by_ascent, top = _ascend(network, domain.ends(network), data_points, largest, starts, steps, seed)
        best.append((by_ascent, top))
    value, y = max(best, key=lambda pair: pair[0])
    m = network.hidden_size
    return EmpiricalLipschitz(value, over_data, by_ascent, y[:m], y[m:])


@torch.no_grad()
def visited_points(model: Model, inputs: Tensor, *, h0: Tensor | None = None, dt: float = 1.0) -> Points:
    """Return every y = [h, x] of a network's run: the state before each step, and the input of that step.

    Args:
        model: as in `empirical_lipschitz`.
        inputs: sequences in the layer's layout, (T, B, n), (B, T, n) if batch_first, or (T, n).
        h0: initial states (B, m) or (m,); zeros if None.
        dt: the time between two readings.

    Returns:
        States (N, m) and inputs (N, n) in float64, N = B T, one sequence after the other.

    >>> states, inputs = lrcnet.theory.visited_points(lrcnet.LRCU(3, 5, batch_first=True), torch.randn(4, 20, 3))
    >>> states.shape, inputs.shape
    (torch.Size([80, 5]), torch.Size([80, 3]))
    """
    network = read_model(model)
    before, _, x = trajectories(network, inputs, h0, check_dt(dt))
    return before.flatten(0, 1), x.flatten(0, 1)


def _read_numbers(what: str, given: Tensor, like: Tensor) -> Tensor:
    """Return a tensor in the dtype and on the device of another, detached."""
    check_kind(what, given, Tensor, "a tensor")
    if given.is_complex() or given.is_sparse or given.is_meta:
        raise ValueError(f"{what} must hold real numbers, but are {given.dtype} on {given.device}; convert them")
    return given.detach().to(like)


@torch.no_grad()
def trajectories(network: Network, inputs: Tensor, h0: Tensor | None, dt: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the states before and after each step, (B, T, m) each, and the inputs (B, T, n), all in float64."""
    like, (m, n) = network.readout, (network.hidden_size, network.input_size)
    x = _read_numbers("sequences", inputs, like)
    if x.dim() == 2:
        x = x.unsqueeze(0 if network.batch_first else 1)
    if x.dim() != 3 or x.shape[-1] != n or not x.shape[0] * x.shape[1]:
        raise ValueError(
            f"sequences must have {n} features in the last of 2 or 3 dimensions and at least one step, but have shape "
            f"{tuple(inputs.shape)}"
        )
    x = x.transpose(0, 1) if network.batch_first else x
    if h0 is None:
        first = torch.zeros(x.shape[1], m).to(like)
    else:
        first = _read_numbers("h0", h0, like)
        if tuple(first.shape) not in ((m,), (1, m), (x.shape[1], m)):
            raise ValueError(f"h0 must have shape ({x.shape[1]}, {m}) or ({m},), but has {tuple(first.shape)}")
        first = first.expand(x.shape[1], m)
    after = network.cell.scan(x, first, dt)
    before = torch.cat([first.unsqueeze(0), after[:-1]])
    return before.transpose(0, 1), after.transpose(0, 1), x.transpose(0, 1)


def spectral_norms(network: Network, h: Tensor, x: Tensor, dt: Tensor) -> Tensor:
    """Compute ||do/dy||_2 (N,) at N points, without gradients."""
    size = points_per_chunk(network)
    norms = []
    for first, part in zip(
        range(0, len(h), size), zip(*(torch.split(points, size) for points in (h, x, dt)), strict=True), strict=True
    ):
        with torch.no_grad():
            jacobian = output_jacobian(network, *part)
        if not bool(jacobian.isfinite().all()):
            point = first + int((~jacobian.isfinite()).nonzero()[0, 0])
            raise ValueError(f"the Jacobian at point {point} is not finite; states and inputs must be finite numbers")
        norms.append(_norm(jacobian))
    return torch.cat(norms)


def _norm(jacobian: Tensor) -> Tensor:
    """Compute the spectral norm of each (K, J) from the smaller Gram matrix, which is much faster than an SVD here."""
    if jacobian.shape[-2] == 1:
        row_norm: Tensor = torch.linalg.vector_norm(jacobian.squeeze(-2), dim=-1)
        return row_norm
    short = jacobian if jacobian.shape[-2] <= jacobian.shape[-1] else jacobian.transpose(-1, -2)
    squares: Tensor = torch.linalg.eigvalsh(short @ short.transpose(-1, -2))
    return squares[..., -1].clamp(min=0).sqrt()


def _ascend(
    network: Network, ends: Points, data_points: Tensor | None, dt: float, starts: int, steps: int, seed: int
) -> tuple[float, Tensor]:
    """Maximise the spectral norm in a box by projected gradient ascent; return the largest norm and its point."""
    low, high = ends
    m, width = network.hidden_size, high - low
    generator = torch.Generator(low.device).manual_seed(seed)
    draw = torch.rand(starts * CANDIDATES, low.shape[0], dtype=low.dtype, device=low.device, generator=generator)
    candidates = low + draw * width
    if data_points is not None:
        inside = data_points[((data_points >= low) & (data_points <= high)).all(-1)]
        candidates = torch.cat([inside[:starts], candidates])
    step = torch.full((candidates.shape[0],), dt, dtype=low.dtype, device=low.device)
    norms = spectral_norms(network, candidates[:, :m], candidates[:, m:], step)
    value, order = norms.topk(min(starts, candidates.shape[0]))
    y = candidates[order]
    best, where = float(value[0]), y[0].clone()
    # Each coordinate has its own step size, which grows while the slope keeps its sign and shrinks when the sign
    # changes. So the ascent works for peaks of any width and for any scale of the norm.
    rate = torch.full_like(y, FIRST_STEP)
    before = torch.zeros_like(y)
    for _ in range(steps):
        norm, slope = _norm_and_slope(network, y, step[: y.shape[0]])
        top = int(norm.argmax())
        if float(norm[top]) > best:
            best, where = float(norm[top]), y[top].clone()
        turn = torch.sign(slope * before)
        rate = (rate * torch.where(turn < 0, 0.5, torch.where(turn > 0, 1.2, 1.0))).clamp(max=0.25)
        y = torch.minimum(torch.maximum(y + rate * width * torch.sign(slope), low), high)
        before = slope
    return best, where


def _norm_and_slope(network: Network, y: Tensor, dt: Tensor) -> Points:
    """Compute ||do/dy||_2 (N,) at N points, and its gradient (N, J)."""
    m, y = network.hidden_size, y.detach().requires_grad_(True)
    norm = _norm(output_jacobian(network, y[:, :m], y[:, m:], dt))
    (slope,) = torch.autograd.grad(norm.sum(), y)
    # The norm has no gradient where singular values are equal; such a point does not move.
    return norm.detach(), slope.nan_to_num(0.0, 0.0, 0.0)


def _read_points(network: Network, data: Data, dt: float | Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the states (N, m), inputs (N, n) and time steps (N,) of the data."""
    like, (m, n) = network.readout, (network.hidden_size, network.input_size)
    if isinstance(data, Tensor):
        if isinstance(dt, Tensor) and dt.dim():
            raise ValueError("dt must be one number for sequences, but is a tensor; pass (states, inputs) with dt (N,)")
        before, _, inputs = trajectories(network, data, None, check_dt(float(dt)))
        h, x = before.flatten(0, 1), inputs.flatten(0, 1)
    else:
        if not isinstance(data, tuple | list) or len(data) != 2:
            raise TypeError(f"data must be (states, inputs) or a tensor of sequences, but is a {type(data).__name__}")
        h, x = (_read_numbers("data", part, like) for part in data)
        if h.dim() != 2 or x.dim() != 2 or (h.shape[1], x.shape[1]) != (m, n) or h.shape[0] != x.shape[0] or not len(h):
            raise ValueError(
                f"data must be states (N, {m}) and inputs (N, {n}) with N at least 1, but have shapes {tuple(h.shape)} "
                f"and {tuple(x.shape)}"
            )
    if isinstance(dt, Tensor):
        if dt.shape not in ((), h.shape[:1]) or not bool((dt >= 0).all() and dt.isfinite().all()):
            raise ValueError(f"dt must be finite, >= 0 and of shape ({h.shape[0]},), one value per point of the data")
        return h, x, dt.to(like).expand(h.shape[0])
    return h, x, torch.full((h.shape[0],), check_dt(dt)).to(like)
