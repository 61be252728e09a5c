"""Patches that let VISTA 2.0.6 run with numpy 2, without a display and quietly (needs the extra `vista` and libEGL)."""

from __future__ import annotations

import importlib
import logging
import os
import warnings
from functools import cache
from typing import Any

import numpy as np

from lrcnet_paper.driving.vista_video import TraceVideo

MISSING = "VISTA needs some packages; run: pip install 'lrcnet[vista]'"
NO_EGL = "VISTA needs Mesa's libEGL to draw without a display; install Debian's packages libegl1 and libgl1-mesa-dri"


class _OldNumpy:
    """numpy with the name `int`, which numpy has removed."""

    int = int

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class _SharedRenderers:
    """pyrender with one shared renderer per image size, because closing one renderer closes all of them.

    VISTA renders a second image of objects on the road. There are none, so a black image is returned without rendering.
    """

    def __init__(self, pyrender: Any) -> None:
        self._pyrender = pyrender

        class Renderer(pyrender.OffscreenRenderer):  # type: ignore[misc]
            def render(self, scene: Any, flags: int = 0) -> Any:
                if scene.mesh_nodes:
                    return super().render(scene, flags=flags)
                size = self.viewport_height, self.viewport_width
                return np.zeros((*size, 3), np.uint8), np.zeros(size, np.float32)

        self.OffscreenRenderer = cache(Renderer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pyrender, name)


def _discard(message: str) -> None:
    """Discard a log message: VISTA looks up the caller's source for every message, even for those it does not print."""


@cache
def load_vista() -> Any:
    """Import VISTA and patch it.

    Raises:
        ImportError: if a package or library is missing; the message says how to install it.
    """
    # OpenGL chooses its platform on import.
    os.environ.setdefault("PYOPENGL_PLATFORM", "egl")
    disabled_level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            # VISTA compares strings by `is`, and writes regular expressions in plain strings.
            warnings.simplefilter("ignore")
            for name in ("imageio_ffmpeg", "vista"):
                importlib.import_module(name)
            _patch_vista()
    except ModuleNotFoundError as error:
        raise ImportError(f"{MISSING} ({error})") from error
    except (ImportError, AttributeError, OSError) as error:
        # PyOpenGL raises one of these if it finds no library of the platform.
        raise ImportError(f"{NO_EGL} ({error})") from error
    finally:
        logging.disable(disabled_level)
    return importlib.import_module("vista")


def _patch_vista() -> None:
    def module(name: str) -> Any:
        return importlib.import_module(f"vista.{name}")

    module("entities.sensors.camera_utils.CameraParams").np = _OldNumpy()
    module("entities.sensors.Camera").FFReader = TraceVideo
    synthesis = module("entities.sensors.camera_utils.ViewSynthesis")
    synthesis.pyrender = _SharedRenderers(synthesis.pyrender)
    for level in ("debug", "info", "warning"):
        setattr(module("utils.logging"), level, _discard)
    logging.getLogger("Vista").setLevel(logging.ERROR)
    # Fails here if nothing can render.
    synthesis.pyrender.OffscreenRenderer(16, 16)
