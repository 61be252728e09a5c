"""Models as folders: `model.save(directory)` writes weights and JSON, `lrcnet.load(directory)` reads them.

Nothing in a folder is executed. The class of a model is looked up among those that are imported already.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from torch import nn

from lrcnet import layers, models, neural_ode
from lrcnet.saving import CONFIG, FORMAT, WEIGHTS, build, import_safetensors, save

__all__ = ["load", "read_extra", "save"]
# Importing them makes their classes known to `build`.
_HOMES = (layers, models, neural_ode)


def load(directory: str | os.PathLike[str]) -> Any:
    """Read a model from a folder that `save` wrote; the model is in eval mode, on the CPU.

    Raises:
        ValueError: if a file is missing, damaged, of a newer version, or does not belong to the other one.

    >>> import tempfile
    >>> layer, x = lrcnet.LRCU(3, 5, time_scale=60.0), torch.randn(7, 2, 3)
    >>> same = lrcnet.load(layer.save(tempfile.mkdtemp()))
    >>> bool((same(x, dt=30.0)[0] == layer(x, dt=30.0)[0]).all())
    True
    """
    folder = Path(directory)
    config = _read_config(folder)
    content = _read_weights(folder, config["weights"]["sha256"])
    try:
        model = build(config["model"])
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(
            f"{folder / CONFIG} does not describe a model of this version of lrcnet ({error}); update lrcnet, or save "
            "the model again"
        ) from error
    _load_state(model, content, folder)
    return model.eval()


def read_extra(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the data that `save` was given beside the model."""
    extra: dict[str, Any] = _read_config(Path(directory))["extra"]
    return extra


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    if not path.is_file():
        raise ValueError(
            f"the folder of a model must hold {CONFIG}, but {folder} does not; write one with model.save(directory)"
        )
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        complete = isinstance(config["weights"]["sha256"], str) and isinstance(config["model"]["arguments"], dict)
        complete = complete and isinstance(config["extra"], dict) and isinstance(config["format"], int)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not the description of a model ({error!r}); save the model again") from error
    if not complete:
        raise ValueError(f"{path} is not the description of a model; save the model again")
    if config["format"] > FORMAT:
        raise ValueError(
            f"{path} has format {config['format']}, but this version of lrcnet reads formats up to {FORMAT}; update "
            "lrcnet"
        )
    return dict(config)


def _read_weights(folder: Path, digest: str) -> bytes:
    path = folder / WEIGHTS
    if not path.is_file():
        raise ValueError(f"the folder of a model must hold {WEIGHTS}, but {folder} does not; save the model again")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != digest:
        raise ValueError(
            f"{path} is damaged, or does not belong to {CONFIG} beside it: its checksum differs; save the model again"
        )
    return content


def _load_state(model: nn.Module, content: bytes, folder: Path) -> None:
    safetensors = import_safetensors()
    try:
        model.load_state_dict(safetensors.load(content))
    except RuntimeError as error:
        details = " ".join(str(error).split())
        raise ValueError(
            f"{folder / WEIGHTS} does not fit the model that {CONFIG} describes: {details}; save the model again"
        ) from error
