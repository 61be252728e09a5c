"""A learning-rate range test: train for a few steps at growing rates, and see at which rate the loss falls best.

Reference: L. N. Smith, Cyclical learning rates for training neural networks, WACV 2017, section 3.3.
"""

import importlib
import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from lrcnet.errors import DivergenceError, check_kind, positive_size

LossOfBatch = Callable[[nn.Module, Any], Tensor]
Criterion = Callable[[Tensor, Tensor], Tensor]
OptimizerFactory = Callable[..., torch.optim.Optimizer]

FEWEST_STEPS = 10
# The sweep ends when the loss has risen from its smallest value by this many times that value, or the fall before it.
_RISE_AT_END = 3.0
# Weight of earlier losses in the running mean that decides about the end.
_MEMORY = 0.7
# Width of the smoothing, as a share of the sweep.
_WIDTH = 0.04
# The fall of the loss ends where it has risen again by this share of it.
_RISE_AFTER_FALL = 0.5
# A smaller fall of the loss, as a share of its start or in standard deviations of its noise, is no fall.
_LEAST_FALL, _LEAST_FALL_IN_NOISE = 0.02, 2.0


@dataclass(frozen=True)
class RateSweep:
    """The result of `find_rate`.

    Attributes:
        rates: the learning rates tried, growing.
        losses: the training loss before the step at each rate.
        smoothed: the losses, averaged over neighbouring rates.
        suggestion: the rate to train with; None if no rate lowered the loss.
        diverged: whether the sweep ended early because the loss exploded.
    """

    rates: tuple[float, ...]
    losses: tuple[float, ...]
    smoothed: tuple[float, ...]
    suggestion: float | None
    diverged: bool

    @property
    def title(self) -> str:
        """The result in one sentence."""
        if self.suggestion is None:
            return f"No rate from {self.rates[0]:.1g} to {self.rates[-1]:.1g} lowers the loss"
        lowest = end_of_fall(np.asarray(self.smoothed))
        if lowest == len(self.rates) - 1:
            end = "the largest rate tried"
        else:
            end = f"{self.rates[lowest]:.1g} and " + (
                f"explodes at {self.rates[-1]:.1g}" if self.diverged else "rises beyond it"
            )
        return f"Train at {self.suggestion:.1g}: the loss falls up to {end}"

    def draw(self, path: str | Path) -> Path:
        """Draw the loss over the rate with the suggestion marked, to a file that matplotlib can write; needs [plot]."""
        from matplotlib.figure import Figure

        from lrcnet.pages import palette

        with palette.figure_style():
            figure = Figure(figsize=(6, 3.5), layout="constrained")
            axes = figure.subplots()
            axes.semilogx(self.rates, self.losses, color=palette.GREY, linewidth=0.8, label="loss of each batch")
            axes.semilogx(self.rates, self.smoothed, color=palette.BLUE, linewidth=2.2, label="smoothed")
            if self.suggestion is not None:
                height = float(np.interp(math.log(self.suggestion), np.log(self.rates), self.smoothed))
                axes.axvline(self.suggestion, color=palette.VERMILION, linestyle="--", linewidth=1.2)
                label = f"suggestion {self.suggestion:.2g}"
                axes.plot([self.suggestion], [height], "o", color=palette.VERMILION, label=label)
            # An explosion at the end would flatten the rest, so the fall alone sets the height.
            fall = self.smoothed[: end_of_fall(np.asarray(self.smoothed)) + 1]
            low, high = min(self.losses), max(*fall, self.losses[0])
            margin = 0.08 * (high - low) or 1.0
            axes.set(xlabel="learning rate", ylabel="training loss", ylim=(low - margin, high + 3 * margin))
            axes.set_title(self.title)
            axes.legend(loc="best")
            figure.savefig(path, dpi=150)
        return Path(path)


def find_rate(
    model: nn.Module,
    loader: Iterable[Any],
    *,
    loss: Criterion | LossOfBatch | None = None,
    optimizer: torch.optim.Optimizer | OptimizerFactory = torch.optim.Adam,
    low: float = 1e-5,
    high: float = 1.0,
    steps: int = 100,
    progress: bool = True,
) -> RateSweep:
    """Find a learning rate by a range test: one training step per rate, the rates growing from `low` to `high`.

    The model, the optimiser and the random generators are the same before and after, to the bit: parameters, buffers,
    gradients, training mode, and the generators of torch, numpy, Python and the loader.

    The suggestion is a third of the rate at which the smoothed loss is smallest before it rises again, but not above
    the rate at which it falls most steeply. The minimum lies where steps begin to do as much harm as good, so a rate
    has to stay below it; a sweep meets each rate for one step only, and a network that trains at the same rate for long
    tolerates less. The steepest fall is where a step does most good, but it is a difference of noisy numbers, so it
    serves as a bound only.

    Args:
        model: any module; it is trained in training mode.
        loader: yields batches (x, y) or (x, dt, y), for which the model is called as model(x) or model(x, dt=dt); with
            a `loss` of your own, anything. It is started again when it ends before the sweep does.
        loss: a criterion of torch (a module, or a function of torch.nn.functional), called with the model's output and
            y; or your own function of (model, batch). None means cross-entropy if y holds integers, else the mean
            squared error. If a model returns a tuple, as nn.GRU does, its first element is the output.
        optimizer: a class or a function, called as optimizer(parameters, lr=rate); or an optimiser of the model's
            parameters, whose groups keep the ratio of their rates.
        low, high: the first and the last rate.
        steps: number of rates, equally spaced on a logarithmic scale.
        progress: whether to show a progress bar on a terminal, if tqdm is installed.

    Raises:
        ValueError: for an empty loader, a batch that needs a `loss` of its own, rates in the wrong order, too few
            steps, or a loss that gives no gradients.
        DivergenceError: if the loss is not finite before the first step.

    >>> model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    >>> x = torch.randn(64, 3)
    >>> sweep = lrcnet.find_rate(model, [(x, x.sum(1, keepdim=True))])
    >>> 1e-3 < sweep.suggestion < 1
    True
    """
    for name, rate in (("low", low), ("high", high)):
        check_kind(name, rate, (int, float), "a number")
    if not 0 < low < high < math.inf:
        raise ValueError(f"low must be above 0 and below high, but low is {low:g} and high is {high:g}; swap or change")
    positive_size("steps", steps, least=FEWEST_STEPS)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError("the model must have a parameter that requires a gradient, but it has none")
    loss_of_batch = _as_loss_of_batch(loss)
    rates = np.geomspace(low, high, steps)
    with _restore_afterwards(model, optimizer, loader):
        model.train()
        own = optimizer if isinstance(optimizer, torch.optim.Optimizer) else optimizer(model.parameters(), lr=low)
        batches = _show_progress(zip(rates, _repeat(loader), strict=False), steps, progress)
        losses, diverged = _sweep(model, own, loss_of_batch, batches)
    smoothed = smooth(losses)
    tried = rates[: len(losses)]
    return RateSweep(
        rates=tuple(tried.tolist()),
        losses=tuple(losses),
        smoothed=tuple(smoothed.tolist()),
        suggestion=suggest(tried, np.asarray(losses), smoothed),
        diverged=diverged,
    )


def smooth(losses: list[float]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return means over neighbouring steps with Gaussian weights; unlike a running mean, they do not lag behind."""
    # An explosion would lift the mean of its neighbours; a loss may rise above its start by as much as it falls below.
    limited = np.minimum(losses, 2 * losses[0] - min(losses))
    steps = np.arange(len(losses))
    width = max(1.0, _WIDTH * len(losses))
    weights = np.exp(-0.5 * ((steps[:, None] - steps) / width) ** 2)
    smoothed: np.ndarray[Any, np.dtype[np.float64]] = weights @ limited / weights.sum(1)
    return smoothed


def end_of_fall(smoothed: np.ndarray[Any, np.dtype[np.float64]]) -> int:
    """Return the step of the smallest smoothed loss before the loss has risen again by half of its fall.

    A network that was thrown off by too large a step may recover at a still larger rate, but nobody should train there.
    """
    lowest = np.minimum.accumulate(smoothed)
    fall = smoothed[0] - lowest
    risen = (fall > _LEAST_FALL * abs(smoothed[0])) & (smoothed - lowest > _RISE_AFTER_FALL * fall)
    end = int(np.argmax(risen)) if risen.any() else len(smoothed)
    return int(np.argmin(smoothed[:end]))


def suggest(
    rates: np.ndarray[Any, np.dtype[np.float64]],
    losses: np.ndarray[Any, np.dtype[np.float64]],
    smoothed: np.ndarray[Any, np.dtype[np.float64]],
) -> float | None:
    """Return the rate to train with by the rule of `find_rate`; None if the loss does not fall."""
    lowest = end_of_fall(smoothed)
    fall = float(smoothed[0] - smoothed[lowest])
    # By the median, which a few exploding losses do not change; the factor makes it a standard deviation.
    noise = 1.4826 * float(np.median(np.abs(losses - smoothed)[: lowest + 1]))
    if lowest < 2 or fall <= max(_LEAST_FALL * abs(float(smoothed[0])), _LEAST_FALL_IN_NOISE * noise):
        return None
    slope = np.gradient(smoothed[: lowest + 1], np.log(rates[: lowest + 1]))
    return min(float(rates[lowest]) / 3, float(rates[int(np.argmin(slope))]))


def _sweep(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_of_batch: LossOfBatch,
    batches: Iterable[tuple[float, Any]],
) -> tuple[list[float], bool]:
    """Take one step per rate; return the losses before the steps, and whether the last of them has exploded."""
    first_rate = float(optimizer.param_groups[0]["lr"])
    # A group of rate 0 is frozen and stays so; without any rate to compare with, all groups get the same.
    shares = [float(group["lr"]) / first_rate if first_rate else 1.0 for group in optimizer.param_groups]
    losses: list[float] = []
    running = smallest = math.inf
    for rate, batch in batches:
        for group, share in zip(optimizer.param_groups, shares, strict=True):
            group["lr"] = float(rate) * share
        optimizer.zero_grad()
        value = loss_of_batch(model, batch)
        number = _read_loss(value)
        if not math.isfinite(number):
            if not losses:
                raise DivergenceError(
                    f"the loss must be finite before the first step, but is {number}; look for NaN or infinite values "
                    "in the inputs, the targets and the model's parameters"
                )
            return losses, True
        losses.append(number)
        running = number if len(losses) == 1 else _MEMORY * running + (1 - _MEMORY) * number
        smallest = min(smallest, running)
        if running > smallest + _RISE_AT_END * max(abs(smallest), losses[0] - smallest):
            return losses, True
        value.backward()  # type: ignore[no-untyped-call]
        if len(losses) == 1 and all(parameter.grad is None for parameter in model.parameters()):
            raise ValueError("the loss must depend on the parameters of the model, but gave no gradient to any of them")
        optimizer.step()
    if not losses:
        raise ValueError("the loader must yield at least one batch, but yields none; check its data set and batch size")
    return losses, False


def _read_loss(value: Any) -> float:
    if not isinstance(value, Tensor) or value.numel() != 1:
        given = f"of shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
        raise ValueError(f"the loss must be a tensor of one number, but is {given}; average it over the batch")
    return float(value.detach())


def _as_loss_of_batch(loss: Criterion | LossOfBatch | None) -> LossOfBatch:
    """Return the loss as a function of (model, batch)."""
    is_criterion = isinstance(loss, nn.Module) or str(getattr(loss, "__module__", "")).startswith("torch.")
    if loss is not None and not is_criterion:
        return loss  # type: ignore[return-value]
    criterion: Any = loss or _default_criterion

    def loss_of_batch(model: nn.Module, batch: Any) -> Tensor:
        if not isinstance(batch, tuple | list) or isinstance(batch, PackedSequence) or len(batch) not in (2, 3):
            size = f" of {len(batch)}" if isinstance(batch, tuple | list) else ""
            raise ValueError(
                f"a batch must be (x, y) or (x, dt, y), but is a {type(batch).__name__}{size}; pass loss=function of "
                "(model, batch) for other batches"
            )
        device = next(model.parameters()).device
        x, *dt, y = (_move(part, device) for part in batch)
        output = model(x, dt=dt[0]) if dt else model(x)
        answer: Tensor = criterion(output[0] if isinstance(output, tuple) else output, y)
        return answer

    return loss_of_batch


def _move(part: Any, device: torch.device) -> Any:
    movable = isinstance(part, Tensor | PackedSequence)
    return part.to(device) if movable else part


def _default_criterion(output: Tensor, y: Tensor) -> Tensor:
    """Return the cross-entropy for integer targets (classes last in the output), else the mean squared error."""
    if not y.is_floating_point() and output.dim() == y.dim() + 1 and output.shape[:-1] == y.shape:
        return functional.cross_entropy(output.flatten(0, -2), y.flatten().long())
    if y.is_floating_point() and output.shape == y.shape:
        return functional.mse_loss(output, y)
    raise ValueError(
        f"without a loss, y must be integers of the output's shape without its last axis, or floating point of the "
        f"output's shape, but the output has shape {tuple(output.shape)} and y is {y.dtype} of shape {tuple(y.shape)}; "
        "pass loss=, such as torch.nn.BCEWithLogitsLoss()"
    )


def _repeat(loader: Iterable[Any]) -> Iterator[Any]:
    """Yield the batches of a loader again and again; none if it is empty."""
    if iter(loader) is loader:
        # An iterator cannot be started again: cycle keeps its batches.
        yield from itertools.cycle(loader)
        return
    while True:
        empty = True
        for batch in loader:
            empty = False
            yield batch
        if empty:
            return


def _show_progress(items: Iterable[Any], total: int, wanted: bool) -> Iterable[Any]:
    if not wanted:
        return items
    try:
        tqdm: Any = importlib.import_module("tqdm").tqdm
    except ImportError:
        return items
    # None hides the bar where the output is no terminal.
    bar: Iterable[Any] = tqdm(items, "finding the rate", total, leave=False, disable=None)
    return bar


@contextmanager
def _restore_afterwards(model: nn.Module, optimizer: Any, loader: Any) -> Iterator[None]:
    """Bring the model, the optimiser and all random generators back to their state, whatever happens in between."""
    restore_model, restore_random = _snapshot_model(model), _snapshot_generators(loader)
    is_optimizer = isinstance(optimizer, torch.optim.Optimizer)
    # state_dict() holds the optimiser's own tensors, which steps change in place.
    before = _copy_tensors(optimizer.state_dict()) if is_optimizer else None
    try:
        yield
    finally:
        restore_model()
        restore_random()
        if before is not None:
            optimizer.load_state_dict(before)


def _copy_tensors(value: Any) -> Any:
    """Copy nested dictionaries and lists with all tensors in them."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _copy_tensors(item) for key, item in value.items()}
    return type(value)(map(_copy_tensors, value)) if isinstance(value, list | tuple) else value


def _snapshot_model(model: nn.Module) -> Callable[[], None]:
    """Return a function that undoes any training of the model from now on."""
    tensors = [*model.parameters(), *model.buffers()]
    values = [tensor.detach().clone() for tensor in tensors]
    gradients = [None if p.grad is None else (p.grad, p.grad.detach().clone()) for p in model.parameters()]
    # Modules also remember things in attributes, such as their training mode, and may replace a buffer by a new tensor.
    attributes = [(module, dict(vars(module)), dict(module._buffers)) for module in model.modules()]

    @torch.no_grad()
    def restore() -> None:
        for module, own, buffers in attributes:
            vars(module).clear()
            vars(module).update(own)
            module._buffers.clear()
            module._buffers.update(buffers)
        for tensor, value in zip(tensors, values, strict=True):
            tensor.copy_(value)
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter.grad = None if gradient is None else gradient[0].copy_(gradient[1])

    return restore


def _snapshot_generators(loader: Any) -> Callable[[], None]:
    """Return a function that sets all random generators back to their present state."""
    # Loaders and augmentations still use numpy's global generator.
    of_torch, of_numpy, of_python = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
    of_devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    holders = (loader, getattr(loader, "sampler", None))
    own = {id(g): g for g in (getattr(h, "generator", None) for h in holders) if isinstance(g, torch.Generator)}
    states = [(generator, generator.get_state()) for generator in own.values()]

    def restore() -> None:
        torch.set_rng_state(of_torch)
        np.random.set_state(of_numpy)  # noqa: NPY002
        random.setstate(of_python)
        if of_devices:
            torch.cuda.set_rng_state_all(of_devices)
        for generator, state in states:
            generator.set_state(state)

    return restore
