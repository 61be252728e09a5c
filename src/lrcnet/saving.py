"""Modules that remember how they were built, and save themselves as a folder of weights and JSON.

A folder holds two files: `model.safetensors`, the state dict, and `config.json`, the class and its arguments as plain
data. Neither can hold code. Reading a folder is the task of `lrcnet.folders`.
"""

import hashlib
import inspect
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from lrcnet.errors import check_kind
from lrcnet.version import __version__
from lrcnet.wirings import Wiring

FORMAT = 1
"""The version of the folder's layout; it grows if an older reader could not read a newer folder."""
CONFIG, WEIGHTS = "config.json", "model.safetensors"
# These are not the network's: they are chosen anew wherever it is loaded.
_NOT_STORED = ("device", "dtype")

_CLASSES: dict[str, type[nn.Module]] = {}


class Saveable:
    """A mixin for modules: `save` writes a folder that `lrcnet.load` reads.

    The arguments of the constructor are recorded when an instance is made. Numbers, strings, None, lists of these and
    wirings are stored as they are; an argument that is a module is stored as the attribute of the same name.
    """

    _arguments: Mapping[str, Any]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _CLASSES[class_name(cls)] = cls  # type: ignore[assignment]
        if "__init__" in cls.__dict__:
            # Otherwise help() would show the arguments of __new__.
            parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
            cls.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]

    # Hidden from type checkers, which read the arguments of a class from its constructor.
    if not TYPE_CHECKING:

        def __new__(cls, *arguments: Any, **options: Any) -> Any:
            """Make an instance that knows its arguments."""
            make = super().__new__
            module = make(cls) if make is object.__new__ else make(cls, *arguments, **options)
            try:
                bound = inspect.signature(cls).bind_partial(*arguments, **options).arguments
            except TypeError:  # The constructor has the better message.
                bound = {}
            module.__dict__["_arguments"] = _plain_arguments(bound)
            return module

    def save(self, directory: str | os.PathLike[str], extra: Mapping[str, Any] | None = None) -> Path:
        """Write the model into a folder, which is created if necessary; see `save`."""
        return save(self, directory, extra)


def class_name(kind: type) -> str:
    """Return the name of a class in a folder: its own if it is one of this library, else with its module."""
    return kind.__name__ if kind.__module__.startswith("lrcnet.") else f"{kind.__module__}.{kind.__qualname__}"


def save(model: object, directory: str | os.PathLike[str], extra: Mapping[str, Any] | None = None) -> Path:
    """Write a model as a folder of weights and JSON, and return the folder.

    Each file is written under another name first and then renamed, so an interrupted call damages no earlier model.

    Args:
        model: a layer, a `Classifier`, a `Tagger` or a `Forecaster`.
        directory: the folder; other files in it stay.
        extra: more plain data for `config.json`, which `lrcnet.folders.read_extra` returns.

    Raises:
        TypeError: if the model, or an argument that it was built with, cannot be described as plain data.
        ValueError: if a model built from the description could not load the state dict.

    >>> import tempfile
    >>> folder = lrcnet.LRCU(3, 5).save(tempfile.mkdtemp())
    >>> lrcnet.load(folder)
    LRCU(
      3, 5
      (cells): ModuleList(
        (0): LRCUCell(3, 5, elastance='symmetric', solver='euler', unfolds=1, backend='auto')
      )
    )
    """
    check_kind("directory", directory, (str, os.PathLike), "the path of a folder")
    if extra is not None:
        check_kind("extra", extra, Mapping, "a dictionary of plain data")
    save_safetensors = import_safetensors().save
    description = describe(model)
    assert isinstance(model, nn.Module)  # describe refuses anything else
    state = {name: value.detach().cpu().contiguous().clone() for name, value in model.state_dict().items()}
    _check_description(model, description, state)
    weights = save_safetensors(state)
    config = {
        "format": FORMAT,
        "lrcnet": __version__,
        "model": description,
        "weights": {"file": WEIGHTS, "sha256": hashlib.sha256(weights).hexdigest()},
        "extra": dict(extra or {}),
    }
    try:
        text = json.dumps(config, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise TypeError(f"extra must be data that JSON has, but is not ({error}); convert it") from error
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / WEIGHTS, weights)
    write_whole(folder / CONFIG, text.encode())
    return folder


def describe(model: object) -> dict[str, Any]:
    """Return the class, the dtype and the arguments of a model as plain data."""
    if not isinstance(model, Saveable):
        raise TypeError(
            f"a folder holds the layers and models of lrcnet, but was given a {type(model).__name__}; for a "
            "model of your own, save its state_dict() or derive it from huggingface_hub.PyTorchModelHubMixin"
        )
    assert isinstance(model, nn.Module)
    arguments: dict[str, Any] = {}
    for name in inspect.signature(type(model)).parameters:
        if name in _NOT_STORED:
            continue
        if name in model._arguments:
            arguments[name] = _as_plain(f"{name} of {type(model).__name__}", model._arguments[name])
        elif model._modules.get(name) is not None:
            arguments[name] = {"model": describe(model._modules[name])}
    values = [value for value in model.state_dict().values() if value.is_floating_point()]
    dtype = str(values[0].dtype).removeprefix("torch.") if values else "float32"
    return {"class": class_name(type(model)), "dtype": dtype, "arguments": arguments}


def build(description: Mapping[str, Any]) -> nn.Module:
    """Build a new model from its description; random generators are left as they are.

    Raises:
        ValueError: if the class is not known, or does not take the arguments.
    """
    with torch.random.fork_rng(devices=[]):
        return _build(description)


def _build(description: Mapping[str, Any]) -> nn.Module:
    name = description["class"]
    kind = _CLASSES.get(name)
    if kind is None:
        raise ValueError(
            f"the class of a model must be one of lrcnet's or of an imported module, but is {name!r}; import the "
            "module that defines it, or update lrcnet"
        )
    arguments = {key: _build_argument(value) for key, value in description["arguments"].items()}
    model: nn.Module = kind(**arguments)
    return model.to(getattr(torch, description["dtype"]))


def _build_argument(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return _build(value["model"]) if "model" in value else Wiring.from_json(json.dumps(value["wiring"]))


def _check_description(model: nn.Module, description: Mapping[str, Any], state: Mapping[str, Tensor]) -> None:
    """Raise unless a model built from the description can load the state dict."""
    try:
        build(description).load_state_dict(state)
    except RuntimeError as error:
        raise ValueError(
            f"a model can be saved if its arguments describe it, but {type(model).__name__} was changed after it was "
            f"built: {' '.join(str(error).split())}; remove pruning or parametrisations first"
        ) from error


def _plain_arguments(bound: Mapping[str, Any]) -> dict[str, Any]:
    """Return bound arguments with **options merged and without modules, which are attributes of the model."""
    arguments = {name: value for name, value in bound.items() if not isinstance(value, nn.Module)}
    options = arguments.pop("options", {})
    return {**arguments, **options}


def _as_plain(what: str, value: Any) -> Any:
    if isinstance(value, Tensor) or hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_as_plain(what, part) for part in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Wiring):
        return {"wiring": json.loads(value.to_json())}
    raise TypeError(
        f"a folder holds numbers, strings, lists and wirings, but {what} is a {type(value).__name__}; build the model "
        "with plain arguments to save it"
    )


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under another name, then rename it: a reader sees the old file or the new one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException as error:
        os.unlink(name)
        if isinstance(error, OSError) and error.errno and error.filename is None:
            # A full disk is found while writing, when the system no longer knows the file's name.
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
        raise


def import_safetensors() -> Any:
    """Return safetensors.torch, or say how to install it."""
    try:
        import safetensors.torch
    except ImportError as error:
        raise ImportError(
            "folders of models need safetensors, which is not installed; run: pip install 'lrcnet[export]'"
        ) from error
    return safetensors.torch
