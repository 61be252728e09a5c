"""Gets VISTA 2.0.6 to run: with numpy 2, without a display, quietly (needs the extra `vista` and Mesa's libEGL)."""

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
    """numpy with the name `int`, which was taken out of it."""

    int = int

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class _Renderers:
    """pyrender with one renderer per size of picture, for whoever closes one closes them all.

    They draw a second picture of things on the road, of which there are none: it is black, and not drawn.
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


def _silent(message: str) -> None:
    """Their logging looks up the caller's source for every message, also for those that nobody sees."""


@cache
def load_vista() -> Any:
    """Their package, ready to use.

    Raises:
        ImportError: with what to install.
    """
    # Chosen when OpenGL is imported.
    os.environ.setdefault("PYOPENGL_PLATFORM", "egl")
    muted = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            # They compare strings by `is`, and write regular expressions in plain strings.
            warnings.simplefilter("ignore")
            for name in ("imageio_ffmpeg", "vista"):
                importlib.import_module(name)
            _patch_vista()
    except ModuleNotFoundError as error:
        raise ImportError(f"{MISSING} ({error})") from error
    except (ImportError, AttributeError, OSError) as error:
        # This is what PyOpenGL raises where it finds no library of the platform.
        raise ImportError(f"{NO_EGL} ({error})") from error
    finally:
        logging.disable(muted)
    return importlib.import_module("vista")


def _patch_vista() -> None:
    def part(name: str) -> Any:
        return importlib.import_module(f"vista.{name}")

    part("entities.sensors.camera_utils.CameraParams").np = _OldNumpy()
    part("entities.sensors.Camera").FFReader = TraceVideo
    synthesis = part("entities.sensors.camera_utils.ViewSynthesis")
    synthesis.pyrender = _Renderers(synthesis.pyrender)
    for level in ("debug", "info", "warning"):
        setattr(part("utils.logging"), level, _silent)
    logging.getLogger("Vista").setLevel(logging.ERROR)
    # Finds out whether there is anything that draws.
    synthesis.pyrender.OffscreenRenderer(16, 16)
