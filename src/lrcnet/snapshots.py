"""The state of streams as bytes: a line of JSON that describes the arrays, then their numbers, and no code."""

import json
import zlib
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from lrcnet.timestamps import Moment

_MAGIC = b"lrcnet-stream-1\n"


class StreamPlace(Protocol):
    """The parts of a stream's state that a snapshot holds."""

    moment: Moment | None
    held: Tensor | None

    @property
    def states(self) -> tuple[Tensor, ...]:
        """The tensors of the state."""


def pack_streams(signature: list[Any], places: Mapping[Any, StreamPlace]) -> bytes:
    """Return streams by name as bytes.

    Raises:
        TypeError: for a name that is not a string, a whole number or None.
    """
    arrays: list[bytes] = []
    rows = []
    for name, place in places.items():
        if not (name is None or isinstance(name, str | int)):
            raise TypeError(f"a stream's name must be a string or a whole number, but is {name!r}; rename it")
        tensors = [*place.states, *([] if place.held is None else [place.held])]
        arrays += [tensor.detach().cpu().double().numpy().astype("<f8").tobytes() for tensor in tensors]
        shapes = [list(tensor.shape) for tensor in tensors]
        rows.append([name, place.moment, shapes, place.held is not None])
    body = json.dumps({"signature": signature, "streams": rows}).encode() + b"\n" + b"".join(arrays)
    return _MAGIC + zlib.crc32(body).to_bytes(4, "little") + body


def unpack_streams(
    content: bytes, signature: list[Any], dtype: torch.dtype
) -> dict[Any, tuple[Moment | None, tuple[Tensor, ...], Tensor | None]]:
    """Return the streams of a snapshot by name: time, states and held reading.

    Raises:
        ValueError: for damaged bytes, or those of another kind of model.
    """
    start = len(_MAGIC) + 4
    damaged = "the snapshot of a stream is damaged or none at all; take it with Stream.snapshot()"
    if not isinstance(content, bytes) or content[: len(_MAGIC)] != _MAGIC:
        raise ValueError(damaged)
    body = content[start:]
    if zlib.crc32(body).to_bytes(4, "little") != content[len(_MAGIC) : start]:
        raise ValueError(damaged)
    line, _, numbers = body.partition(b"\n")
    described = json.loads(line)
    if described["signature"] != signature:
        raise ValueError(
            f"a snapshot belongs to one kind of model, but it was taken from {described['signature']} and this stream "
            f"is {signature}; restore it into the same model"
        )
    values, places = np.frombuffer(numbers, "<f8"), {}
    used = 0
    for name, moment, shapes, holds in described["streams"]:
        tensors = []
        for shape in shapes:
            size = int(np.prod(shape))
            tensors.append(torch.from_numpy(values[used : used + size].copy()).reshape(shape).to(dtype))
            used += size
        held = tensors.pop() if holds else None
        places[name] = (None if moment is None else Moment(*moment), tuple(tensors), held)
    return places
