"""Videos of VISTA's traces, read and written through the ffmpeg that imageio-ffmpeg brings."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Frame = NDArray[np.uint8]


class TraceVideo:
    """A video that is read frame by frame, with the interface of VISTA's own reader, which it replaces.

    VISTA's reader does not run with numpy 2, and waits forever at the end of a video.

    Args:
        path: the video.
        custom_size: height and width to scale frames to.
        verbose: not used.

    Raises:
        ValueError: if ffmpeg finds no video in the file.

    Attributes:
        frame_num: number of the frame in `image`; -1 before the first frame is read.
        image: the last frame read, (height, width, 3), in the order blue, green, red.
        fps: frames per second.
    """

    def __init__(self, path: str, custom_size: tuple[int, int], verbose: bool = False) -> None:
        self._path, self._size = path, custom_size
        self.fps = _frame_rate(Path(path))
        self.frame_num = -1
        self.image: Frame = np.zeros((*custom_size, 3), np.uint8)
        self._process: subprocess.Popen[bytes] | None = None

    def frame_to_secs(self, frame: int) -> float:
        """Return the time at which a frame is shown, s."""
        return frame / self.fps

    def seek(self, seconds: float) -> None:
        """Move to a time; the next frame that is read is the one shown then."""
        self.close()
        height, width = self._size
        # Half a frame earlier, because a frame's own time is subject to rounding.
        start = max(0.0, seconds - 0.5 / self.fps)
        command = [_ffmpeg(), "-loglevel", "error", "-nostdin", "-ss", f"{start:.6f}", "-i", self._path]
        command += ["-s", f"{width}x{height}", "-f", "rawvideo", "-pix_fmt", "bgr24", "-"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.frame_num = round(seconds * self.fps) - 1

    def read(self) -> tuple[bool, Frame]:
        """Read the next frame; the first value is always true.

        Raises:
            ValueError: at the end of the video.
        """
        if self._process is None:
            self.seek(0.0)
        assert self._process is not None
        assert self._process.stdout is not None
        height, width = self._size
        data = self._process.stdout.read(height * width * 3)
        if len(data) < height * width * 3:
            name = Path(self._path).name
            raise ValueError(f"{name} must have as many frames as its .csv says, but ends after {self.frame_num + 1}")
        self.image = np.frombuffer(data, np.uint8).reshape(height, width, 3)
        self.frame_num += 1
        return True, self.image

    def close(self) -> None:
        """End ffmpeg; `seek` starts it again."""
        if self._process is not None:
            assert self._process.stdout is not None
            self._process.kill()
            self._process.stdout.close()
            self._process.wait()
            self._process = None

    def __del__(self) -> None:
        if getattr(self, "_process", None) is not None:
            self.close()


def write_video(path: Path, frames: Iterable[Frame], *, size: tuple[int, int], rate: int = 30) -> None:
    """Write a video without loss (FFV1).

    Args:
        path: path of the video, which ends in .avi.
        frames: (height, width, 3), uint8, RGB.
        size: height and width.
        rate: frames per second.

    Raises:
        OSError: if ffmpeg cannot write it.
    """
    command = [_ffmpeg(), "-loglevel", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24"]
    command += ["-s", f"{size[1]}x{size[0]}", "-r", str(rate), "-i", "-", "-c:v", "ffv1", "-pix_fmt", "bgr0", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        for frame in frames:
            process.stdin.write(np.ascontiguousarray(frame).tobytes())
    if process.returncode:
        raise OSError(f"ffmpeg could not write {path.name}; is there space left in its folder?")


def _frame_rate(path: Path) -> float:
    report = subprocess.run(
        [_ffmpeg(), "-nostdin", "-i", str(path)], capture_output=True, text=True, check=False
    ).stderr
    match = re.search(r"Video:.*?, ([\d.]+) fps", report)
    if match is None:
        raise ValueError(f"{path.name} must be a video, but ffmpeg finds none in it; copy or record it again")
    return float(match.group(1))


def _ffmpeg() -> str:
    import imageio_ffmpeg

    return str(imageio_ffmpeg.get_ffmpeg_exe())
