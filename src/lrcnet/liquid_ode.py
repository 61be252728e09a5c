"""LiquidODE: learn the differential equation behind measured trajectories, and run it from anywhere.

Axes: N times, d state dimensions.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor

from lrcnet.data import Array, as_times
from lrcnet.errors import DivergenceError, check_number, check_seed, one_of, positive_size
from lrcnet.neural_ode import LRCField, MLPField, NeuralODE
from lrcnet.solvers import FieldSolverName
from lrcnet.trajectories import Trajectories, Windows, cut_windows, read_trajectories

FieldName = Literal["lrc", "mlp"]
# The longest step of a fixed-step solver, in the unit of time in which the state changes by its standard deviation.
LONGEST_STEP = 0.5
MOST_SUBSTEPS = 20
# Share of the iterations with short windows; the rest has windows three times as long.
SHORT_SHARE = 0.6
LARGEST_GRADIENT = 1.0


class LiquidODE:
    """A Neural ODE of measured trajectories, dy/dt = f(y), with f an LRC or an MLP.

    States are standardised inside, and time is counted in the unit in which they change by one standard deviation.
    Training rolls the field out over short windows, each from one reading; missing readings do not count.

    Args:
        field: "lrc" or "mlp".
        units: number of hidden units of the field.
        solver: of the roll-outs; a fixed-step solver takes as many substeps as the gaps need.
        window: number of readings of a window in the first part of training; later three times as many.
        iterations: number of training steps.
        batch_size: number of windows per step.
        learning_rate: of Adam; it decays to a hundredth.
        random_state: the seed of initial weights and batches.

    Attributes:
        model_: the trained NeuralODE, in standardised states and time.
        history_: the loss of every iteration.

    >>> import numpy as np
    >>> times = np.linspace(0, 10, 60)
    >>> values = np.stack([np.cos(times), -np.sin(times)], -1)
    >>> ode = lrcnet.LiquidODE(iterations=30, random_state=0).fit(times, values)
    >>> ode.simulate([1.0, 0.0], times).shape
    (60, 2)
    """

    model_: NeuralODE

    def __init__(
        self,
        *,
        field: FieldName = "lrc",
        units: int = 16,
        solver: FieldSolverName = "rk4",
        window: int = 5,
        iterations: int = 400,
        batch_size: int = 64,
        learning_rate: float = 0.01,
        random_state: int = 0,
    ) -> None:
        self.field = one_of("field", field, ("lrc", "mlp"))
        self.units = positive_size("units", units)
        self.solver = solver
        self.window = positive_size("window", window, least=2)
        self.iterations = positive_size("iterations", iterations)
        self.batch_size = positive_size("batch_size", batch_size)
        self.learning_rate = check_number("learning_rate", learning_rate, 0)
        check_seed("random_state", random_state)
        self.random_state = random_state

    def fit(self, times: Any, values: Any) -> Self:
        """Learn from trajectories.

        Args:
            times: (N,), the same for all trajectories, or one array per trajectory; numbers or dates (in seconds).
            values: (N, d), (trajectories, N, d), or a list of arrays (N_i, d). NaN stands for a missing reading.

        Raises:
            ValueError: for wrong shapes or bad times; the message names the trajectory.
            DivergenceError: if the loss stops being finite.
        """
        data = read_trajectories(times, values)
        rows = np.concatenate(data.values)
        self._mean = np.nanmean(rows, 0)
        spread = np.nanstd(rows, 0)
        self._scale = np.where(spread > 0, spread, 1.0)
        self._unit = _time_unit(data, self._scale)
        self._data = data
        generator = torch.Generator().manual_seed(self.random_state)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.random_state)
            field = LRCField(data.size, self.units) if self.field == "lrc" else MLPField(data.size, (self.units,) * 2)
            self.model_ = NeuralODE(field, solver=self.solver, substeps=self._substeps(data))
            self._train(generator)
        return self

    @torch.no_grad()
    def simulate(self, start: Any, times: Any) -> Array:
        """Return the states at `times` from a new start at the first of them.

        Args:
            start: (d,), or (trajectories, d).
            times: (N,), numbers or dates.

        Returns:
            (N, d), or (trajectories, N, d).
        """
        first = np.asarray(start, dtype=np.float64)
        if first.shape[-1:] != self._mean.shape or first.ndim > 2:
            raise ValueError(
                f"start must be ({len(self._mean)},) or (trajectories, {len(self._mean)}), but is {first.shape}"
            )
        clock = as_times(np.asarray(times), "times")
        path = self._roll_out(np.atleast_2d(first), clock)
        return path[0] if first.ndim == 1 else path

    @torch.no_grad()
    def extrapolate(self, times: Any, trajectory: int = 0) -> Array:
        """Return the states (N, d) at later times, from the last complete reading of a trajectory of the training data.

        Args:
            times: (N,), all after that reading.
            trajectory: its number.
        """
        values, clock = self._data.values[trajectory], self._data.times[trajectory]
        last = int(np.flatnonzero(~np.isnan(values).any(1))[-1])
        later = as_times(np.asarray(times), "times")
        if not later[0] > clock[last]:
            raise ValueError(
                f"times must be after the last complete reading, at {clock[last]:g}, but start at {later[0]:g}; use "
                "simulate for earlier ones"
            )
        return self._roll_out(values[last : last + 1], np.concatenate([clock[last : last + 1], later]))[0, 1:]

    @torch.no_grad()
    def derivative(self, states: Any) -> Array:
        """Return dy/dt (..., d) at states (..., d), in the caller's units."""
        given = np.asarray(states, dtype=np.float64)
        scaled = torch.tensor((given - self._mean) / self._scale, dtype=torch.float32).reshape(-1, len(self._mean))
        slope = self.model_.field(torch.zeros(()), scaled).numpy().reshape(given.shape)
        result: Array = slope * self._scale / self._unit
        return result

    def phase_portrait(self, path: str | Path, axes: tuple[int, int] = (0, 1)) -> Path:
        """Draw the field, the readings and the trained trajectories in two dimensions of the state.

        Args:
            path: the picture, such as portrait.png.
            axes: the two dimensions; the others are held at their mean.
        """
        from matplotlib.figure import Figure

        from lrcnet.pages import palette

        if len(self._mean) < 2:
            raise ValueError("a phase portrait needs two state dimensions, but the trajectories have one")
        first, second = axes
        low, high = (bound(np.concatenate(self._data.values), 0) for bound in (np.nanmin, np.nanmax))
        grid = np.tile(self._mean, (15, 15, 1))
        x, y = np.meshgrid(np.linspace(low[first], high[first], 15), np.linspace(low[second], high[second], 15))
        grid[..., first], grid[..., second] = x, y
        slope = self.derivative(grid)[..., [first, second]] / self._scale[[first, second]]
        arrows = slope / (np.linalg.norm(slope, axis=-1, keepdims=True) + 1e-9)
        with palette.figure_style():
            figure = Figure(figsize=(5, 4.2), layout="constrained")
            panel = figure.subplots()
            panel.quiver(x, y, arrows[..., 0], arrows[..., 1], color=palette.GREY, alpha=0.6)
            for i, (clock, values) in enumerate(zip(self._data.times, self._data.values, strict=True)):
                start = int(np.flatnonzero(~np.isnan(values).any(1))[0])
                curve = self.simulate(values[start], np.linspace(clock[start], clock[-1], 200))
                labels = ("readings", "learned") if i == 0 else (None, None)
                panel.plot(values[:, first], values[:, second], ".", color=palette.BLUE, label=labels[0], markersize=4)
                panel.plot(curve[:, first], curve[:, second], "-", color=palette.VERMILION, label=labels[1])
            panel.set(xlabel=f"state {first}", ylabel=f"state {second}")
            panel.legend(loc="best")
            figure.savefig(path, dpi=150)
        return Path(path)

    def _roll_out(self, starts: Array, clock: Array) -> Array:
        scaled = torch.tensor((starts - self._mean) / self._scale, dtype=torch.float32)
        t = torch.tensor((clock - clock[0]) / self._unit, dtype=torch.float32)
        model = self.model_
        # New times may be further apart than those of training.
        gap = float(t.diff().abs().max()) if len(t) > 1 else 0.0
        fine = NeuralODE(model.field, solver=self.solver, substeps=max(1, math.ceil(gap / LONGEST_STEP)))
        states: Array = fine(scaled, t).transpose(0, 1).double().numpy()
        path: Array = states * self._scale + self._mean
        return path

    def _substeps(self, data: Trajectories) -> int:
        gaps = np.concatenate([np.diff(clock) for clock in data.times]) / self._unit
        return int(np.clip(math.ceil(np.quantile(gaps, 0.95) / LONGEST_STEP), 1, MOST_SUBSTEPS))

    def _train(self, generator: torch.Generator) -> None:
        optimizer = torch.optim.Adam(self.model_.parameters(), self.learning_rate)
        decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.iterations, self.learning_rate / 100)
        self.history_: list[float] = []
        short = math.ceil(SHORT_SHARE * self.iterations)
        for length, iterations in ((self.window, short), (3 * self.window, self.iterations - short)):
            windows = self._windows(length)
            for _ in range(iterations):
                chosen = torch.randperm(windows.times.shape[1], generator=generator)[: self.batch_size]
                loss = self._loss(windows, chosen)
                if not bool(loss.isfinite()):
                    raise DivergenceError(
                        f"the loss must stay finite, but is {float(loss)} at iteration {len(self.history_) + 1}; use a "
                        "shorter window or a smaller learning_rate"
                    )
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(self.model_.parameters(), LARGEST_GRADIENT)
                optimizer.step()
                decay.step()
                self.history_.append(float(loss.detach()))

    def _windows(self, length: int) -> Windows:
        windows = cut_windows(self._data, length)
        times = (windows.times - windows.times[:1]) / self._unit
        values = (windows.values - torch.tensor(self._mean)) / torch.tensor(self._scale)
        return Windows(times.float(), values.float())

    def _loss(self, windows: Windows, chosen: Tensor) -> Tensor:
        target = windows.values[:, chosen]
        states = self.model_(target[0], windows.times[:, chosen])
        known = ~target.isnan()
        error = states - torch.where(known, target, states.detach())
        loss: Tensor = error.square().sum() / known[1:].sum()
        return loss


def _time_unit(data: Trajectories, scale: Array) -> float:
    """Return the time in which the standardised state moves by about 1: one over the root mean square of its slope."""
    slopes = [
        (np.diff(values, axis=0) / scale / np.diff(clock)[:, None]).ravel()
        for clock, values in zip(data.times, data.values, strict=True)
    ]
    whole = np.concatenate(slopes)
    whole = whole[~np.isnan(whole)]
    speed = float(np.sqrt(np.mean(whole**2))) if len(whole) else 0.0
    return 1 / speed if speed > 0 else 1.0
