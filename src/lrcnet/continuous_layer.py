"""Sequence layers of cells in continuous time: their unit of time, their first gap, and steps too long for a solver.

Axes: T time, B batch.
"""

import inspect
import math
import sys
import warnings
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from lrcnet.cells.base import ODECell
from lrcnet.cells.checks import read_number
from lrcnet.errors import FirstGapWarning, StabilityWarning, check_flag, describe_kind
from lrcnet.recurrent_layer import RecurrentLayer, keyword_only
from lrcnet.sequence import Sequences
from lrcnet.tracing import values_are_readable

AUTO = "auto"
# A limit such as 4/3 is not a float32: the nearest one above it is no longer step.
_ROUNDING = 1 + 1e-6


class ContinuousLayer(RecurrentLayer):
    """A stack of cells in continuous time, ODEs or CfCs; a gap of `time_scale` is one unit of time of the cells.

    Args:
        time_scale: the layer computes with dt / time_scale. A number, or "auto": the median gap of the first call in
            training mode, or of `calibrate_time`. dt=None is one step of 1 whatever the scale. The scale is part of the
            state dict, as the buffer `time_unit`, unless it is 1.
        time_feature: feed dt / time_scale as one more input, and take a step of 1 for every reading, as for a GRU.
        fill_first_gap: whether a first gap of 0 counts as one time_scale; a gap is the first one if no state is given.
        time_warnings: whether to warn, once each, of steps that may be unstable and of first gaps of 0.
        arguments, options: as in `RecurrentLayer`.
    """

    time_unit: Tensor | None

    def __init__(
        self,
        *arguments: Any,
        time_scale: float | str = 1.0,
        time_feature: bool = False,
        fill_first_gap: bool = False,
        time_warnings: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, time_feature=time_feature, **options)
        self._given_scale = _check_scale(time_scale)
        self.fill_first_gap = check_flag("fill_first_gap", fill_first_gap)
        check_flag("time_warnings", time_warnings)
        self.register_buffer("time_unit", None)
        self._reset_time_scale()
        watches = time_warnings and not self.time_feature
        # Other cells are stable for every dt, and a gap of 0 does not make them ignore a reading.
        ode = self._first_ode_cell
        self._watches_first_gap = watches and not self.fill_first_gap and ode is not None
        self._watches_steps = watches and ode is not None and ode.is_explicit
        # `step` takes its shortest path up to this size, which it compares anyway, in place of a check of its own.
        readable = self._watches_steps and not next(self.parameters()).is_meta
        self._longest_quick_step = self._find_longest_stable_step() if readable else sys.float_info.max

    @classmethod
    def options(cls) -> dict[str, inspect.Parameter]:
        return {**super().options(), **keyword_only(ContinuousLayer.__init__)}

    @property
    def time_scale(self) -> float | str:
        """The gap that counts as 1, or "auto" as long as it is not known."""
        unit = self.time_unit
        if self._needs_calibration:
            return AUTO
        if unit is None:
            return 1.0
        return self._given_scale if unit.is_meta else float(unit)

    @torch.no_grad()
    def calibrate_time(self, dt: Any) -> float:
        """Set `time_scale` to the median of the gaps above 0, and return it.

        Gaps of 0 are padding, simultaneous readings, or a first gap that nobody knows. Wrap the layer in
        DistributedDataParallel afterwards, or each process uses its own median in the first iteration.

        Args:
            dt: a number, a tensor or an array of any shape, or a PackedSequence.

        Raises:
            ValueError: if no gap is above 0.

        >>> layer = lrcnet.LRCU(3, 5, time_scale="auto")
        >>> layer.calibrate_time(torch.tensor([[0.0, 3600.0, 1800.0, 7200.0]]))
        3600.0
        """
        try:
            gaps = dt.data if isinstance(dt, PackedSequence) else torch.as_tensor(dt)
            gaps = gaps if gaps.is_floating_point() else gaps.double()
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(
                f"dt must be numbers, but is {describe_kind(dt)}; pass the gaps between readings"
            ) from error
        gaps = gaps[(gaps > 0) & gaps.isfinite()]
        if not gaps.numel():
            raise ValueError(
                f"the time scale of {self.mode} is the median of the gaps above 0, but dt has none; pass gaps of the "
                "training data, or a number as time_scale"
            )
        self._set_time_unit(gaps.median().item())
        return float(self.time_scale)

    def step(self, x: Tensor, state: Tensor | None = None, dt: float | Tensor | None = None) -> tuple[Tensor, Tensor]:
        if dt is not None and not self._is_calibrated():
            raise RuntimeError(self._describe_missing_scale())
        return super().step(x, state, dt)

    def reset_parameters(self) -> None:
        """Draw new initial values for every cell, and forget a time scale that was calibrated."""
        super().reset_parameters()
        self._reset_time_scale()

    def extra_repr(self) -> str:
        parts = [super().extra_repr()]
        if self.time_scale != 1:
            scale = self.time_scale
            parts.append(f"time_scale={scale!r}" if isinstance(scale, str) else f"time_scale={scale:g}")
        parts += [f"{name}=True" for name in ("time_feature", "fill_first_gap") if getattr(self, name)]
        return ", ".join(parts)

    def _prepare_time(self, sequences: Sequences, *, given: bool, first: bool) -> Sequences:
        dt = sequences.dt
        if given and not (isinstance(dt, Tensor) and not dt.numel()):
            if not self._is_calibrated():
                if not (self.training and _is_readable(dt, self.time_unit)):
                    raise RuntimeError(self._describe_missing_scale())
                self.calibrate_time(dt)
            if _is_readable(dt):
                self._warn_of_gaps(dt, first)
            dt = self._in_units(dt, sequences.x)
            if first and self.fill_first_gap:
                dt = _fill_first_gap(dt, sequences.x)
            sequences = Sequences(sequences.x, dt, sequences.lengths)
        return super()._prepare_time(sequences, given=given, first=first)

    def _in_units(self, dt: float | Tensor, x: Tensor) -> float | Tensor:
        unit = self.time_unit
        if unit is None:
            return dt
        if values_are_readable(unit):
            return dt / unit.item()
        size = dt / unit
        return size if isinstance(dt, Tensor) else size.expand(x.shape[:2])

    def _set_time_unit(self, value: float) -> None:
        if self.time_unit is None:
            self.time_unit = next(self.parameters()).new_tensor(value).detach()
        else:
            # In place: DistributedDataParallel broadcasts the tensor that it was given.
            self.time_unit.fill_(value)
        self._needs_calibration = math.isnan(value)

    def _reset_time_scale(self) -> None:
        scale = self._given_scale
        self._needs_calibration = False
        if scale != 1 or self.time_unit is not None:
            with torch.no_grad():
                self._set_time_unit(math.nan if isinstance(scale, str) else scale)

    def _is_calibrated(self) -> bool:
        unit = self.time_unit
        if self._needs_calibration and unit is not None and values_are_readable(unit):
            # A broadcast may have filled it in.
            self._needs_calibration = math.isnan(unit.item())
        return not self._needs_calibration

    def _describe_missing_scale(self) -> str:
        return (
            f"{self.mode} has time_scale='auto' but no scale yet, and it is not set in eval mode, by step, or while "
            "torch traces; call its method calibrate_time(dt) with gaps of the training data, run it once in training "
            "mode, or pass a number as time_scale"
        )

    @property
    def _first_ode_cell(self) -> ODECell | None:
        cell = self.cells[0]
        return cell if isinstance(cell, ODECell) else None

    def _find_longest_stable_step(self) -> float:
        """Return the longest step, in units of time, that no cell's solver overshoots; infinite if there is none."""
        steps = [cell.longest_stable_step() for cell in self.cells if isinstance(cell, ODECell)]
        return min(steps, default=math.inf)

    def _warn_of_gaps(self, dt: float | Tensor, first: bool) -> None:
        """Warn, once each, of a step that may be unstable and of first gaps of 0 in the first batch."""
        if self._watches_steps:
            longest = dt.detach().max().item() if isinstance(dt, Tensor) else dt
            # Parameters change in training, and with them the limit of an LTC or a CTRNN.
            limit = self._find_longest_stable_step() * float(self.time_scale)
            if longest > limit * _ROUNDING:
                self._watches_steps, self._longest_quick_step = False, sys.float_info.max
                warnings.warn(self._describe_long_step(longest, limit), StabilityWarning, stacklevel=_find_caller())
        if self._watches_first_gap and first and isinstance(dt, Tensor) and len(dt) > 1:
            # A data set treats all its sequences alike, so the first batch is enough.
            self._watches_first_gap = False
            if not dt[0].any() and dt.any():
                warnings.warn(
                    f"the first gap of every sequence is 0, so no time passes and {self.mode} ignores the first "
                    "reading; pass fill_first_gap=True (it then counts as one time_scale), or fill in the median gap",
                    FirstGapWarning,
                    stacklevel=_find_caller(),
                )

    def _describe_long_step(self, longest: float, limit: float) -> str:
        cell = self._first_ode_cell
        assert cell is not None
        scale = f"a time_scale of {float(self.time_scale) * longest / limit:.2g} or more"
        if self.time_unit is None:
            scale = f"time_scale='auto' (the median gap) or {scale}"
        solver = "solver='exponential'" if "exponential" in cell.solvers else "lrcnet.LRC with solver='exponential'"
        certified = cell.longest_certified_step() < math.inf
        promise = "contracts" if certified else "is stable"
        beyond = "two states may move apart" if certified else "states may grow instead of decaying"
        return (
            f"dt is up to {longest:g}, but {self.mode} with {cell.unfolds} explicit {cell.solver} step(s) per reading "
            f"{promise} only up to dt = {limit:.3g}: beyond, {beyond}; pass {scale}, or use {solver}, which "
            f"{promise} for every dt"
        )

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        # torch's own place for state dicts of an older version: those have no time_unit.
        key = f"{prefix}time_unit"
        if key in state_dict:
            stored = state_dict[key]
            if self.time_unit is None:
                self._set_time_unit(1.0)
            self._needs_calibration = not stored.is_meta and bool(stored.isnan())
        elif any(name.startswith(f"{prefix}cells.") for name in state_dict) and self.time_unit is not None:
            if self._needs_calibration:
                self._set_time_unit(1.0)
            state_dict[key] = self.time_unit
        super()._load_from_state_dict(state_dict, prefix, *others)


def _check_scale(given: object) -> float | str:
    """Return a time scale if it is "auto" or a number above 0."""
    if isinstance(given, str) and given == AUTO:
        return AUTO
    number = read_number(given)
    if number is None:
        raise TypeError(
            f"time_scale must be a number above 0 or 'auto', but is {describe_kind(given)}; pass one of these"
        )
    if not 0 < number < math.inf:
        raise ValueError(
            f"time_scale must be a finite number above 0, but is {given}; pass the length of a typical gap"
        )
    return number


def _find_caller() -> int:
    """Return the `stacklevel` of a warning that points at the code that called a layer or a network around it.

    The function that warns has level 1; the frames of this package and of torch above it are passed over.
    """
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("lrcnet", "torch"):
        level, frame = level + 1, frame.f_back
    return level


def _is_readable(*values: float | Tensor | None) -> bool:
    return values_are_readable(*(value for value in values if isinstance(value, Tensor)))


def _fill_first_gap(dt: float | Tensor, x: Tensor) -> float | Tensor:
    """Return dt, a number or (T, B), with a first gap of 0 replaced by 1."""
    if not isinstance(dt, Tensor):
        if dt != 0:
            return dt
        dt = x.new_zeros(x.shape[:2])
    start = dt[:1]
    return torch.cat([torch.where(start == 0, torch.ones_like(start), start), dt[1:]])
