"""A drive as a GIF (needs Pillow) or an MP4 (needs imageio-ffmpeg too): camera, map and steering."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lrcnet.pages import palette
from lrcnet_paper.driving import HEIGHT, STEP, WIDTH, add_noise
from lrcnet_paper.report.drive_charts import SAFE_STEERING
from lrcnet_paper.report.drive_map import make_road_maps
from lrcnet_paper.report.drive_pictures import pillow
from lrcnet_paper.report.drive_set import DriveSet
from lrcnet_paper.report.replay import Replay

Pixels = NDArray[np.uint8]

WIDE, GAP, LINE = 640, 10, 20
LOWER = 190
FINE = 2
"""The lower panels are drawn this many times larger and scaled down, which smooths their lines."""
SWATCH = 60
GIF_INTERVAL = 4
"""Least number of steps from one picture of a GIF to the next: 7.5 pictures per second keep the file small."""
ATTENTION = (214, 0, 140)
STRENGTH = 0.6
COLOURS = (palette.VERMILION, palette.GREEN)
"""One per policy; the expert is blue."""
LAST_SECONDS = 1.2
"""Time for which the last picture stays, so that a crash can be read."""


def write_gif(drives: DriveSet, path: Path, *, clip: tuple[float, float] | None = None) -> Path:
    """Write the drives of the first season and level of noise as an animated GIF that repeats.

    Args:
        drives: the drives.
        path: the GIF file.
        clip: first and last moment, s; None for the whole drive.

    Raises:
        ValueError: for a clip outside the drive.
        ImportError: if Pillow is not installed.
    """
    image = pillow()
    pictures, seconds = _film(drives, clip, GIF_INTERVAL)
    frames = [image.fromarray(pixels) for pixels in pictures]
    # One palette for all frames: it keeps still parts still, and pixels that do not change need no bytes. The swatches
    # make sure that the few pixels of thin lines and text keep their colours.
    inks = (palette.INK, palette.GRID, palette.BLUE, *COLOURS)
    swatches = [np.asarray(image.new("RGB", (WIDE, SWATCH), ink)) for ink in inks]
    sample = np.concatenate([*map(np.asarray, frames[:: max(1, len(frames) // 6)]), *swatches])
    colours = image.fromarray(sample).quantize(128)
    frames = [frame.quantize(palette=colours, dither=image.Dither.NONE) for frame in frames]
    # GIF counts in 1/100 s.
    pause = [max(2, round(100 * seconds)) * 10] * (len(frames) - 1) + [round(1000 * LAST_SECONDS)]
    path.parent.mkdir(parents=True, exist_ok=True)
    frames[0].save(path, "GIF", save_all=True, append_images=frames[1:], duration=pause, loop=0, optimize=False)
    return path


def write_mp4(drives: DriveSet, path: Path, *, clip: tuple[float, float] | None = None) -> Path:
    """Write the drives of the first season and level of noise as an MP4; arguments as for `write_gif`.

    Raises:
        ImportError: if imageio-ffmpeg or Pillow is not installed.
    """
    ffmpeg = video_writer()
    pictures, seconds = _film(drives, clip)
    path.parent.mkdir(parents=True, exist_ok=True)
    first = next(pictures)
    writer = ffmpeg.write_frames(str(path), (first.shape[1], first.shape[0]), fps=1 / seconds, macro_block_size=2)
    writer.send(None)
    last = first
    writer.send(first.tobytes())
    for last in pictures:
        writer.send(last.tobytes())
    for _ in range(round(LAST_SECONDS / seconds)):
        writer.send(last.tobytes())
    writer.close()
    return path


def video_writer() -> Any:
    """Import and return imageio_ffmpeg, which brings its own ffmpeg.

    Raises:
        ImportError: if it is not installed; the message says how to install it.
    """
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise ImportError(
            "an MP4 needs imageio-ffmpeg, which is not installed; run: pip install 'lrcnet[film]', or write a GIF"
        ) from error
    return imageio_ffmpeg


def _film(drives: DriveSet, clip: tuple[float, float] | None, least: int = 1) -> tuple[Iterator[Pixels], float]:
    """Return the pictures of a film, at least `least` steps apart, and the time from one to the next, s."""
    replays = drives.select(drives.seasons[0], drives.noises[0])
    longest = max(replay.seconds for replay in replays)
    start, end = (0.0, longest) if clip is None else clip
    if not 0 <= start < min(end, longest):
        raise ValueError(
            f"a clip must begin before its end and within the drive of {longest:.1f} s, but is {start:g} to {end:g} s"
        )
    interval = max(least, *(replay.frame_interval for replay in replays))
    steps = range(round(start / STEP), round(min(end, longest) / STEP) + 1, interval)
    scene = _Scene(drives, replays)
    return (scene.draw(step) for step in steps), interval * STEP


class _Scene:
    """Draws one moment of the drives: cameras above, map and steering below."""

    def __init__(self, drives: DriveSet, replays: list[Replay]) -> None:
        self._replays, self._labels, self._noise = replays, drives.labels, drives.noises[0]
        self._steps = max(replay.steps for replay in replays)
        road = make_road_maps({"": replays})[""]
        self._places = [road.place(replay.x, replay.y, replay.direction)[:2] for replay in replays]
        self._road, self._box = road.points, road.box
        largest = max(float(np.abs(replay.action).max()) for replay in replays)
        self._reach = max(SAFE_STEERING, 1.1 * largest)

    def draw(self, step: int) -> Pixels:
        """Return the picture of a step, (row, column, 3)."""
        cameras = self._cameras(step)
        lower = np.concatenate([self._map(step), self._steering(step)], 1)
        return np.concatenate([cameras, lower])

    def _cameras(self, step: int) -> Pixels:
        image, draw_on, font = _tools()
        count = len(self._replays)
        scale = WIDE // count // WIDTH
        canvas = image.new("RGB", (WIDE, LINE + HEIGHT * scale + GAP), palette.PAPER)
        pen = draw_on(canvas)
        for k, (replay, label) in enumerate(zip(self._replays, self._labels, strict=True)):
            left = k * (WIDE // count) + (GAP // 2 if k else 0)
            pixels = np.kron(self._camera(replay, step), np.ones((scale, scale, 1), np.uint8))
            canvas.paste(image.fromarray(pixels), (left, LINE))
            pen.text((left + 2, 2), label, fill=COLOURS[k], font=font(14))
            ended = step >= replay.steps
            words = replay.ending if ended else f"{step * STEP:.1f} s, {replay.distance[min(step, replay.steps)]:.0f} m"
            pen.text((left + WIDE // count - GAP, 2), words, fill=palette.INK, font=font(14), anchor="ra")
        return np.asarray(canvas)

    def _camera(self, replay: Replay, step: int) -> Pixels:
        number = min(step // replay.frame_interval, len(replay.frames) - 1)
        frame = torch.from_numpy(replay.frames[number])
        noisy = add_noise(frame, self._noise, torch.Generator().manual_seed(number))
        bright = noisy.double() / 255 if noisy.dtype is torch.uint8 else noisy.double()
        if replay.attention is not None:
            share = torch.from_numpy(replay.attention[number]).double().repeat_interleave(2, 0).repeat_interleave(2, 1)
            share = (share / 255 * STRENGTH).unsqueeze(-1)
            bright = bright * (1 - share) + share * torch.tensor(ATTENTION) / 255
        pixels: Pixels = bright.mul(255).round().to(torch.uint8).numpy()
        return pixels

    def _panel(self, wide: int, draw: Callable[[Any, Callable[[int], Any]], None]) -> Pixels:
        image, draw_on, font = _tools()
        canvas = image.new("RGB", (wide * FINE, LOWER * FINE), palette.PAPER)
        draw(draw_on(canvas), lambda size: font(size * FINE))
        return np.asarray(canvas.resize((wide, LOWER), image.Resampling.LANCZOS))

    def _map(self, step: int) -> Pixels:
        wide = WIDE // 2
        left, top, box_wide, box_high = self._box
        scale = min(wide / box_wide, LOWER / box_high) * FINE
        shift = (LOWER * FINE - box_high * scale) / 2

        def place(x: Any, y: Any) -> list[tuple[float, float]]:
            across, down = (np.atleast_1d(np.asarray(v, float)) for v in (x, y))
            return list(zip(((across - left) * scale).tolist(), ((down - top) * scale + shift).tolist(), strict=True))

        def draw(pen: Any, _: Callable[[int], Any]) -> None:
            pen.line(place(*self._road.T), fill=palette.GRID, width=5 * FINE, joint="curve")
            # The first policy comes last, so that its car lies above the other's.
            for k in reversed(range(len(self._replays))):
                (x, y), replay = self._places[k], self._replays[k]
                now = min(step, replay.steps)
                pen.line(place(x[: now + 1], y[: now + 1]), fill=COLOURS[k], width=2 * FINE, joint="curve")
                at_x, at_y = place(x[now], y[now])[0]
                radius = 5 * FINE
                if now == replay.steps and replay.crashed:
                    for sign in (1, -1):
                        ends = [(at_x - radius, at_y - sign * radius), (at_x + radius, at_y + sign * radius)]
                        pen.line(ends, fill=COLOURS[k], width=3 * FINE)
                else:
                    corners = (at_x - radius, at_y - radius, at_x + radius, at_y + radius)
                    fill = COLOURS[k] if k == 0 else palette.PAPER
                    pen.ellipse(corners, fill=fill, outline=COLOURS[k], width=2 * FINE)

        return self._panel(wide, draw)

    def _steering(self, step: int) -> Pixels:
        wide, high, edge = (WIDE - WIDE // 2) * FINE, LOWER * FINE, 34 * FINE
        plot = high - edge - 8 * FINE

        def place(values: NDArray[np.float64]) -> list[tuple[float, float]]:
            across = np.arange(len(values)) / max(self._steps, 1) * (wide - 12 * FINE) + 4 * FINE
            down = edge + plot * (0.5 - values.clip(-self._reach, self._reach) / (2 * self._reach))
            return list(zip(across.tolist(), down.tolist(), strict=True))

        def draw(pen: Any, font: Callable[[int], Any]) -> None:
            at = 4 * FINE
            for words, colour in zip(
                ("steering:", "expert", *self._labels), ("", palette.BLUE, *COLOURS), strict=False
            ):
                pen.text((at, 6 * FINE), words, fill=colour or palette.INK, font=font(13))
                at += pen.textlength(words, font=font(13)) + 8 * FINE
            pen.line(place(np.zeros(self._steps + 1)), fill=palette.GRID, width=FINE)
            main = self._replays[0]
            curves = [(main.advice, palette.BLUE)]
            curves += [(replay.action, colour) for replay, colour in zip(self._replays, COLOURS, strict=False)]
            for values, colour in curves:
                points = place(values[: step + 1])
                if len(points) > 1:
                    pen.line(points, fill=colour, width=2 * FINE, joint="curve")

        return self._panel(WIDE - WIDE // 2, draw)


def _tools() -> tuple[Any, Any, Callable[[int], Any]]:
    """Return Pillow's Image module, its pen, and a function from size to font."""
    from PIL import ImageDraw, ImageFont

    return pillow(), ImageDraw.Draw, ImageFont.load_default
