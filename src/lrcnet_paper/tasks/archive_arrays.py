"""Reading object arrays from .npz files without running code that a pickle may contain."""

from __future__ import annotations

import lzma
import math
import pickle
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from .unpack import check_unpacked_size


def _latin1(text: str, encoding: str = "latin1") -> bytes:
    # Old pickle protocols spell bytes this way; an array needs no other codec.
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"codec {encoding!r} is not allowed")
    return text.encode("latin1")


class _PickledType:
    """Stands for numpy.dtype in a pickle: its name and byte order, nothing of which numpy sees unchecked.

    numpy.dtype itself must not be unpickled: its `__setstate__` follows addresses that the file chooses.
    """

    def __init__(self, name: object = None, *_: object) -> None:
        if not isinstance(name, str) or name not in _TYPES:
            raise pickle.UnpicklingError(f"dtype {name!r} is not allowed")
        self.dtype: np.dtype[Any] = np.dtype(_TYPES[name])

    def __setstate__(self, state: object) -> None:
        order = state[1] if isinstance(state, tuple) and len(state) > 1 else None
        if order not in ("<", ">", "|", "="):
            raise pickle.UnpicklingError(f"byte order {order!r} is not allowed")
        self.dtype = self.dtype.newbyteorder(order)


class _PickledArray:
    """Stands for numpy.ndarray in a pickle; `array` is built after its parts have been checked."""

    array: NDArray[Any]

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) != 5:
            raise pickle.UnpicklingError("an array must have five parts")
        _, shape, kind, _, data = state
        if not isinstance(kind, _PickledType) or not _is_shape(shape):
            raise pickle.UnpicklingError("an array must have a dtype and a shape")
        count, dtype = math.prod(shape), kind.dtype
        if dtype.hasobject:
            if len(shape) != 1 or not isinstance(data, list) or len(data) != count:
                raise pickle.UnpicklingError(f"an array of {count} objects must hold a list of them")
            self.array = np.empty(count, dtype=object)
            self.array[:] = [item.array if isinstance(item, _PickledArray) else item for item in data]
        else:
            if not isinstance(data, bytes) or len(data) != count * dtype.itemsize:
                raise pickle.UnpicklingError(f"an array of {count} numbers must hold their bytes")
            self.array = np.frombuffer(data, dtype=dtype).reshape(shape)


def _is_shape(shape: object) -> bool:
    return isinstance(shape, tuple) and all(type(size) is int and 0 <= size < 1 << 31 for size in shape)


def _new_array(kind: object = None, shape: object = None, *_: object) -> _PickledArray:
    # numpy always begins with an empty array, which its state then fills.
    if shape != (0,):
        raise pickle.UnpicklingError(f"an array of shape {shape!r} is not allowed")
    return _PickledArray()


# The dtypes that a pickle may name, as numpy spells them there.
_TYPES = {
    **dict.fromkeys(("O8", "O4", "O"), "O"),
    **{name: name for name in ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")},
}


class _ArraysOnly(pickle.Unpickler):
    """An unpickler of arrays, lists and numbers; it refuses every other name before looking it up."""

    # The function by which numpy pickles an array, under its old and its new module name.
    _allowed: ClassVar[dict[tuple[str, str], Any]] = {
        ("numpy.core.multiarray", "_reconstruct"): _new_array,
        ("numpy._core.multiarray", "_reconstruct"): _new_array,
        ("numpy", "ndarray"): None,
        ("numpy", "dtype"): _PickledType,
        ("_codecs", "encode"): _latin1,
    }

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
        count = math.prod(shape)
        if not _is_shape(shape) or not dtype.itemsize or len(data) != count * dtype.itemsize:
            raise ValueError(
                f"the header states {count} numbers of {dtype.itemsize} bytes, the file has {len(data)} bytes"
            )
        return np.frombuffer(data, dtype=dtype).reshape(shape)
    value = _ArraysOnly(stream).load()
    if not isinstance(value, _PickledArray):
        raise ValueError(f"the header states an array, the file has a {type(value).__name__}")
    return value.array


# The errors that numpy and pickle raise on bytes that are not an array.
_MALFORMED = (
    *(pickle.UnpicklingError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError, MemoryError),
    # numpy reads a header as Python source.
    *(SyntaxError, tokenize.TokenError),
)


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
                check_unpacked_size(path.name, archive.getinfo(f"{name}.npy").file_size)
                with archive.open(f"{name}.npy") as stream:
                    result[name] = _read_member(stream)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError) as error:
        # A RuntimeError means that the archive is encrypted; RecursionError is one too.
        raise ValueError(f"{path.name} must be a complete .npz file and is not ({error}); get it again") from error
    except OSError as error:
        if error.filename is not None:
            raise
        raise ValueError(f"{path.name} must be a complete .npz file and is not ({error}); get it again") from error
    except _MALFORMED as error:
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path.name} must hold arrays of numbers and lists only and does not ({reason})") from error
    missing = [name for name in names if name not in result]
    if missing:
        raise ValueError(f"{path.name} must hold the arrays {list(names)}; it lacks {missing}")
    return result
