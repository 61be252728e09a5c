"""Where the data comes from and where it lies: official addresses with checksums, and the search for local files.

A data folder has one folder per source (`mnist`, `imdb`, `person_activity`). It is looked for in this order: the
argument, the environment variable `LRCNET_DATA`, the user's cache folder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

ENVIRONMENT = "LRCNET_DATA"


@dataclass(frozen=True)
class RemoteFile:
    """One file as its publisher offers it.

    Attributes:
        name: how it is called here.
        urls: addresses, tried in turn. One that ends in `.zip` is an archive that holds `name`, unless `name` ends so.
        checksum: "sha256:..." or "md5:..." of the file (not of an archive around it).
        megabytes: what the download weighs, for people.
    """

    name: str
    urls: tuple[str, ...]
    checksum: str
    megabytes: float


@dataclass(frozen=True)
class Source:
    """The files of one benchmark.

    Attributes:
        task: the benchmark's name.
        folder: name of its folder inside a data folder.
        files: what `lrcnet data get` fetches.
        homepage: the publisher's page.
        citation: whom to cite.
        licence: terms of use.
    """

    task: str
    folder: str
    files: tuple[RemoteFile, ...]
    homepage: str
    citation: str
    licence: str


def _mnist(name: str, sha256: str, megabytes: float) -> RemoteFile:
    # The original server no longer answers reliably; these two carry its very bytes, as the checksum proves.
    mirrors = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/")
    return RemoteFile(name, tuple(mirror + name for mirror in mirrors), f"sha256:{sha256}", megabytes)


_KERAS = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"
_UCI = "https://archive.ics.uci.edu/"

SOURCES: Mapping[str, Source] = MappingProxyType(
    {
        "person": Source(
            "person",
            "person_activity",
            (
                RemoteFile(
                    "ConfLongDemo_JSI.txt",
                    (
                        f"{_UCI}ml/machine-learning-databases/00196/ConfLongDemo_JSI.txt",
                        f"{_UCI}static/public/196/localization+data+for+person+activity.zip",
                    ),
                    # The publisher states no SHA-256; the MD5 is all there is to check this one by.
                    "md5:280a677ae0d673ec9a50ada480d8a529",
                    21.5,
                ),
            ),
            f"{_UCI}dataset/196/localization+data+for+person+activity",
            "Vidulin, Lustrek, Kaluza, Piltaver, Krivec (2010): Localization Data for Person Activity. "
            "UCI Machine Learning Repository, doi 10.24432/C57G8X",
            "CC BY 4.0",
        ),
        "imdb": Source(
            "imdb",
            "imdb",
            (
                RemoteFile(
                    "aclImdb_v1.tar.gz",
                    ("https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",),
                    "sha256:c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
                    84.1,
                ),
                RemoteFile(
                    "imdb_word_index.json",
                    (f"{_KERAS}imdb_word_index.json",),
                    "sha256:027313fe9a320280f3bf0fac5baf58c4a683cf39a7ed9c3d3d3912bde4284cf6",
                    1.6,
                ),
                RemoteFile(
                    "imdb.npz",
                    (f"{_KERAS}imdb.npz",),
                    "sha256:69664113be75683a8fe16e3ed0ab59fda8886cb3cd7ada244f7d9544e4676b9f",
                    17.5,
                ),
            ),
            "https://ai.stanford.edu/~amaas/data/sentiment/",
            "Maas, Daly, Pham, Huang, Ng, Potts (2011): Learning Word Vectors for Sentiment Analysis. ACL",
            "none stated; the authors ask for the citation",
        ),
        "psmnist": Source(
            "psmnist",
            "mnist",
            (
                _mnist(
                    "train-images-idx3-ubyte.gz",
                    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                    9.9,
                ),
                _mnist(
                    "train-labels-idx1-ubyte.gz",
                    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                    0.03,
                ),
                _mnist(
                    "t10k-images-idx3-ubyte.gz",
                    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                    1.6,
                ),
                _mnist(
                    "t10k-labels-idx1-ubyte.gz",
                    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
                    0.005,
                ),
            ),
            "http://yann.lecun.com/exdb/mnist/",
            "LeCun, Bottou, Bengio, Haffner (1998): Gradient-based learning applied to document recognition. "
            "Proceedings of the IEEE 86",
            "CC BY-SA 3.0",
        ),
    }
)
"""The benchmarks that need files; the others generate their data."""


def source(task: str) -> Source:
    """The source of that task.

    Raises:
        ValueError: for a name without one; the message lists those that have.
    """
    if task not in SOURCES:
        raise ValueError(f"task with data to fetch must be one of {list(SOURCES)}; got {task!r}")
    return SOURCES[task]


def cache_folder() -> Path:
    """The user's cache folder for this library, whether or not it exists."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "lrcnet"


def search_path(data: str | os.PathLike[str] | None = None) -> list[Path]:
    """The data folders to look in, in this order, whether or not they exist."""
    # An explicit folder is the only one searched: falling back from it would train on other data than was asked for.
    if data is not None:
        return [Path(data).expanduser()]
    named = os.environ.get(ENVIRONMENT)
    return ([Path(named).expanduser()] if named else []) + [cache_folder()]


def _missing(task: str, wanted: Iterable[str], searched: Sequence[Path]) -> FileNotFoundError:
    places = ", ".join(str(place) for place in searched)
    return FileNotFoundError(
        f"the task {task!r} needs {' or '.join(wanted)}, which is not in {places}; get the official files with "
        f"`lrcnet data get {task}`, or point --data or {ENVIRONMENT} to a folder that has them "
        f"(in it, or in its folder {SOURCES[task].folder!r})"
    )


def find_file(task: str, names: Sequence[str], data: str | os.PathLike[str] | None = None) -> Path:
    """The first of some files (or folders) that exists.

    Args:
        task: a name in `SOURCES`.
        names: file names in order of preference.
        data: a data folder, the task's own folder, or one of these files itself; None searches `LRCNET_DATA`, then the
            cache.

    Raises:
        ValueError: for a task without files.
        FileNotFoundError: when none of them exists; the message says how to get them.
    """
    folder = source(task).folder
    roots = search_path(data)
    for root in roots:
        if data is not None and root.name in names and root.exists():
            return root
        for place in (root / folder, root):
            for name in names:
                if (place / name).exists():
                    return place / name
    raise _missing(task, names, roots)


def find_files(
    task: str, groups: Iterable[Sequence[str]], data: str | os.PathLike[str] | None = None
) -> tuple[Path, ...]:
    """Find one file (or folder) of each group, as `find_file` does.

    If `data` is one of the files itself, the files of the other groups may lie beside it.

    Args:
        task: a name in `SOURCES`.
        groups: for each file, its names in order of preference.
        data: as in `find_file`.

    Raises:
        FileNotFoundError: when a group has no file; the message says how to get it.
    """
    paths: list[Path] = []
    for names in groups:
        try:
            paths.append(find_file(task, names, data))
        except FileNotFoundError:
            if data is None or not paths:
                raise
            paths.append(find_file(task, names, paths[0].parent))
    return tuple(paths)
