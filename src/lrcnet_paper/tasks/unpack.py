"""Unpacking of tar and zip archives; nothing is written outside the folder they are unpacked into."""

from __future__ import annotations

import errno
import lzma
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

LARGEST_UNPACKED = 1 << 30
"""Bytes of all files of an archive together; the largest of our sources has 0.3 of this."""


def check_unpacked_size(archive: str, size: int) -> None:
    """Raise if an archive would fill the disk or the memory."""
    if size > LARGEST_UNPACKED:
        raise ValueError(
            f"{archive} must unpack to at most {LARGEST_UNPACKED >> 20} MB, but has {size >> 20} MB; get it again"
        )


def members_of(archive: tarfile.TarFile, name: str) -> Iterator[tarfile.TarInfo]:
    """Yield the members of a tar archive as long as all of them together are not too large."""
    total = 0
    for member in archive:
        total += member.size
        check_unpacked_size(name, total)
        yield member


def read_decompressed(stream: BufferedIOBase, name: str) -> bytes:
    """Return what is left of a stream that decompresses a file, if it is not too large: a small file may hold much."""
    content = bytearray()
    while block := stream.read(1 << 20):
        content += block
        check_unpacked_size(name, len(content))
    return bytes(content)


_BROKEN = (tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error)


def _safe_path(name: str, archive: str) -> PurePosixPath:
    """Return the member's path after checking that it stays below the folder on every system."""
    path = PurePosixPath(name)
    windows = PureWindowsPath(name)
    if path.is_absolute() or windows.drive or windows.root or ".." in path.parts or ".." in windows.parts:
        raise ValueError(f"every path in {archive} must stay inside the folder it is unpacked into; {name!r} does not")
    return path


def _write(stream: IO[bytes], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # "x" never follows a link and never overwrites: a second member of the same name is an error.
    with target.open("xb") as file:
        shutil.copyfileobj(stream, file, 1 << 20)


def _untar(path: Path, folder: Path) -> None:
    with tarfile.open(path, "r|*") as archive:
        for member in members_of(archive, path.name):
            target = folder / _safe_path(member.name, path.name)
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
            elif member.isfile():
                stream = archive.extractfile(member)
                if stream is not None:
                    _write(stream, target)
            else:
                raise ValueError(f"{path.name} must hold files and folders only; {member.name!r} is a link or a device")


def _unzip(path: Path, folder: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        # zipfile reads no more of a member than its stated size.
        check_unpacked_size(path.name, sum(member.file_size for member in archive.infolist()))
        for member in archive.infolist():
            if not member.filename:
                raise ValueError(f"{path.name} must name every file in it, but one has no name; download it again")
            target = folder / _safe_path(member.filename, path.name)
            kind = stat.S_IFMT(member.external_attr >> 16)
            if member.is_dir():
                target.mkdir(parents=True, exist_ok=True)
            elif kind in (0, stat.S_IFREG):
                with archive.open(member) as stream:
                    _write(stream, target)
            else:
                raise ValueError(f"{path.name} must hold files and folders only; {member.filename!r} is a link")


@contextmanager
def unpack(path: Path, scratch: Path) -> Iterator[Path]:
    """Unpack an archive into a folder that is deleted at the end of the `with` block, also after an error.

    Args:
        path: a .zip, .tar, .tar.gz or .tar.xz file.
        scratch: parent of that folder.

    Raises:
        ValueError: for a path that leads out of the folder, a link, a device, or a truncated archive.
    """
    staging = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=scratch))
    folder = staging / "content"
    folder.mkdir()
    try:
        try:
            (_unzip if zipfile.is_zipfile(path) else _untar)(path, folder)
        # tarfile raises a TypeError for a gzip header that ends early.
        except (*_BROKEN, EOFError, TypeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path.name} must be a complete tar or zip archive and is not ({error})") from error
        except (RuntimeError, NotImplementedError) as error:  # zipfile's errors for encryption and rare compressions
            raise ValueError(f"{path.name} must be an archive that can be read without a password ({error})") from error
        except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
            raise ValueError(f"{path.name} must name each file once; {error.filename!r} comes twice") from error
        except OSError as error:
            # An offset that lies outside the archive.
            if error.filename is not None or error.errno != errno.EINVAL:
                raise
            raise ValueError(f"{path.name} must be a complete tar or zip archive and is not ({error})") from error
        yield folder
    finally:
        shutil.rmtree(staging)
