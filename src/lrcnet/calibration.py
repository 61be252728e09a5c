"""Calibration of the input map: scale and shift per channel, so that synapses see centred inputs of unit variance.

A synapse sigma(a y + b) responds to y within a few units around its centre -b / a, and is constant elsewhere. Data in
their own unit (hectopascals, pixel values, prices) lie outside of this range, and no learning rate brings a saturated
synapse back in reasonable time.

A calibrated map is fixed. Adam moves every parameter by about its learning rate, so a scale of 1 / 100 would be gone
after a step of 1e-2. Nothing is lost: a, b, o and p can express whatever the map could learn.

Axes: n inputs.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from lrcnet.liquid import LiquidParameters


def read_samples(owner: str, x: Tensor | PackedSequence, features: int) -> Tensor:
    """Return the readings of a batch as rows (readings, n) in float64 on the CPU; NaN stands for a missing value.

    Raises:
        TypeError: if x is neither a tensor nor a PackedSequence.
        ValueError: for a wrong shape, no readings at all, or an infinite value.
    """
    # The data of a PackedSequence hold no padding, so padding cannot enter the statistics.
    data = x.data if isinstance(x, PackedSequence) else x
    if not isinstance(data, Tensor):
        raise TypeError(f"{owner}.calibrate expects a tensor or a PackedSequence, but was given a {type(x).__name__}")
    if data.dim() not in (2, 3) or data.shape[-1] != features:
        raise ValueError(
            f"{owner}.calibrate expects the input of the layer, 2 or 3 dimensions with {features} features in the "
            f"last, but x has shape {tuple(data.shape)}; pass a batch as you pass it to the layer"
        )
    rows = data.detach().reshape(-1, features).to("cpu", torch.float64)
    if not len(rows):
        raise ValueError(f"{owner}.calibrate needs at least one reading, but x has shape {tuple(data.shape)}")
    if bool(rows.isinf().any()):
        channel = int(rows.isinf().any(0).nonzero()[0])
        raise ValueError(
            f"x must be finite, or NaN where a value is missing, but channel {channel} has an infinite value; replace "
            "it first"
        )
    return rows


def measure_channels(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation (n,) of each channel, missing values ignored; NaN if all are missing."""
    mean = rows.nanmean(0)
    return mean, (rows - mean).square().nanmean(0).sqrt()


@torch.no_grad()
def calibrate_cells(cells: Sequence[LiquidParameters], owner: str, x: Tensor | PackedSequence, features: int) -> None:
    """Set the input map of cells to scale = 1 / std and shift = -mean / std of a batch; see `LiquidLayer.calibrate`."""
    if cells[0].letter("input_scale") is None:
        raise ValueError(
            f"{owner}.calibrate needs the input map, but this layer has none; build it with input_map=True, or scale "
            "the data yourself"
        )
    rows = read_samples(owner, x, features)
    mean, std = measure_channels(rows)
    given = x.data if isinstance(x, PackedSequence) else x
    precision = torch.finfo(given.dtype if given.is_floating_point() else torch.float32).eps
    # A spread below the precision of the values is rounding, and dividing by it would blow rounding up to unit size.
    constant = std <= precision * mean.abs()
    scale = torch.where(constant, torch.ones_like(std), 1 / std)
    seen = mean.isfinite()
    for cell in cells:
        # A circuit is the one form that every parametrisation and constraint can be written from.
        circuit = cell.circuit()
        old_scale, old_shift = circuit["input_scale"], circuit["input_shift"]
        assert old_scale is not None
        assert old_shift is not None
        # Only the first channels: further ones, such as a time column, are not in x.
        for old, new in ((old_scale, scale), (old_shift, -mean * scale)):
            old[:features][seen.to(old.device)] = new[seen].to(old)
        cell.load_circuit(circuit)


def set_learnable(cells: Sequence[LiquidParameters], learnable: bool) -> None:
    """Let the input map of cells learn, or fix it."""
    for cell in cells:
        for name in ("input_scale", "input_shift"):
            parameter = cell._parameters.get(name)
            if parameter is not None:
                parameter.requires_grad_(learnable)
