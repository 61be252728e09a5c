"""Reading object arrays from .npz files without running code that a pickle may contain."""

from __future__ import annotations

import pickle
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray


def _latin1(text: str, encoding: str = "latin1") -> bytes:
    # Old pickle protocols spell bytes this way; an array needs no other codec.
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"codec {encoding!r} is not allowed")
    return text.encode("latin1")


def _array_builders() -> dict[tuple[str, str], Any]:
    # The function by which numpy itself pickles an array, under its old and its new module name.
    rebuild = cast(tuple[Any, ...], np.empty(0).__reduce__())[0]
    return {
        ("numpy.core.multiarray", "_reconstruct"): rebuild,
        ("numpy._core.multiarray", "_reconstruct"): rebuild,
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        ("_codecs", "encode"): _latin1,
    }


class _ArraysOnly(pickle.Unpickler):
    """An unpickler of arrays, lists and numbers; it refuses every other name before looking it up."""

    _allowed = _array_builders()

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._allowed:
            raise pickle.UnpicklingError(f"{module}.{name} is not allowed")
        return self._allowed[module, name]


def _read_member(stream: IO[bytes]) -> NDArray[Any]:
    version = npy.read_magic(stream)
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read_header(stream)
    if not dtype.hasobject:
        data = stream.read()
        count = int(np.prod(shape))
        if len(data) != count * dtype.itemsize:
            raise ValueError(f"the header states {count} numbers, the file has {len(data) // dtype.itemsize}")
        return np.frombuffer(data, dtype=dtype).reshape(shape)
    value = _ArraysOnly(stream).load()
    if not isinstance(value, np.ndarray):
        raise ValueError(f"the header states an array, the file has a {type(value).__name__}")
    return value


# The errors that numpy and pickle raise on bytes that are not an array.
_MALFORMED = (pickle.UnpicklingError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError, MemoryError)


def read_arrays(path: Path, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """Read one-dimensional arrays from an .npz file, object arrays of lists included.

    Args:
        path: the file.
        names: names of the arrays.

    Returns:
        name -> array.

    Raises:
        ValueError: for a file that is not a complete .npz, lacks an array, or has pickles of anything but arrays,
            lists and numbers.
    """
    result = {}
    try:
        with zipfile.ZipFile(path) as archive:
            present = archive.namelist()
            for name in names:
                if f"{name}.npy" not in present:
                    continue
                with archive.open(f"{name}.npy") as stream:
                    result[name] = _read_member(stream)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{path.name} must be a complete .npz file and is not ({error}); get it again") from error
    except _MALFORMED as error:
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path.name} must hold arrays of numbers and lists only and does not ({reason})") from error
    missing = [name for name in names if name not in result]
    if missing:
        raise ValueError(f"{path.name} must hold the arrays {list(names)}; it lacks {missing}")
    return result
