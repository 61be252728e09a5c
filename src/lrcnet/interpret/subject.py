"""A trained network to explain: the contract between `lrcnet explain` and the packages that read run folders.

A reader is a function `read(path) -> Subject | None`, registered as an entry point of the group `lrcnet.readers`; it
returns None for a path that it does not recognise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from torch import Tensor, nn

from lrcnet.plugins import find_entry_points


class Subject(ABC):
    """A trained network to be explained.

    Attributes:
        network: the network, in evaluation mode.
        weights: name of the file that holds its weights.
    """

    network: nn.Module
    weights: str

    @abstractmethod
    def layer_inputs(self, data: str, samples: int) -> Tensor:
        """Return inputs (sample, time, feature) of the recurrent layer for the first `samples` test sequences."""

    @abstractmethod
    def write_page(self, path: str, data: str | None, samples: int | None, beside: Subject | None = None) -> None:
        """Write an offline HTML page about the network, or about it and another one beside it."""


def read_subject(path: str) -> Subject:
    """Read a trained network with the first registered reader that recognises the path.

    Raises:
        ValueError: if no reader recognises it.
    """
    readers = find_entry_points("lrcnet.readers")
    for point in readers.values():
        subject: Subject | None = point.load()(Path(path))
        if subject is not None:
            return subject
    raise ValueError(
        f"CHECKPOINT must be the folder of a trained network or a checkpoint file in it, but {path} is neither "
        f"(readers asked: {', '.join(readers) or 'none'}); check the path"
    )
