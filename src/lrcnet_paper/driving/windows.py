"""Sequences of frames from a recording, and weights that draw bends as often as straight road."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from lrcnet.errors import positive_size
from lrcnet_paper.driving.recording import DriveRecording

CLASSES = (1 / 400, 1 / 100)
"""Largest curvature of the road (1/m) in a straight window, and in a gentle bend; the rest are sharp."""


class Windows(Dataset[tuple[Tensor, None, Tensor]]):
    """Sequences of consecutive frames; no sequence runs from one drive into the next.

    `windows[index]` is `(frames, None, curvature)`: (time, 48, 160, 3) in uint8 and (time,) in 1/m, with a batch axis
    before them if the index is a list, a slice or a tensor.

    Args:
        recording: recording of the frames, which stay on the disk until a window is read.
        length: frames per window; the paper has 32.
        stride: frames from the start of one window to the start of the next.

    Raises:
        ValueError: if no drive is long enough for a window.

    Attributes:
        kind: 0 straight, 1 gentle bend, 2 sharp bend, (window,), int64.
        weights: sampling weights that make all kinds that occur equally likely, (window,), float64, of sum 1.
    """

    def __init__(self, recording: DriveRecording, length: int = 32, *, stride: int = 8) -> None:
        self.recording = recording
        self.length, self._stride = positive_size("length", length), positive_size("stride", stride)
        pairs = zip(recording.starts[:-1].tolist(), recording.starts[1:].tolist(), strict=True)
        first = [np.arange(start, end - length + 1, stride, dtype=np.int64) for start, end in pairs]
        self._first = np.concatenate(first) if first else np.empty(0, np.int64)
        if not len(self._first):
            raise ValueError(f"a drive must have {length} frames for a window, but none has; record longer ones")
        # Where the road's curvature is not known, the steered curvature decides.
        bend = np.where(np.isnan(recording.road_curvature), recording.curvature, recording.road_curvature)
        largest = np.abs(bend)[self._first[:, None] + np.arange(length)].max(1)
        self.kind = torch.from_numpy(np.digitize(largest, CLASSES))
        counts = torch.bincount(self.kind, minlength=len(CLASSES) + 1)
        self.weights = 1 / (counts[self.kind].double() * (counts > 0).sum())

    def __len__(self) -> int:
        return len(self._first)

    def __getitem__(self, index: int | slice | Sequence[int] | Tensor) -> tuple[Tensor, None, Tensor]:
        starts = np.asarray(self._first[index if isinstance(index, (int, slice)) else np.asarray(index)])
        frames = self.recording.frames
        windows = [torch.from_numpy(np.array(frames[i : i + self.length])) for i in starts.reshape(-1).tolist()]
        curvature = torch.from_numpy(self.recording.curvature[starts[..., None] + np.arange(self.length)])
        return (torch.stack(windows) if starts.ndim else windows[0]), None, curvature

    def draw_balanced(self, count: int, generator: torch.Generator) -> Tensor:
        """Draw the numbers of `count` windows so that each kind is drawn equally often, (count,), int64."""
        return torch.multinomial(self.weights, count, replacement=True, generator=generator)
