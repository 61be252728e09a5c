"""The official sources of the data: addresses, checksums, citations and licences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class RemoteFile:
    """One file as its publisher offers it.

    Attributes:
        name: name of the local file.
        urls: addresses, tried in turn. An address that ends in `.zip` is an archive that holds `name`, unless `name`
            itself ends in `.zip`.
        checksum: "sha256:..." or "md5:..." of the file (not of an archive around it); "" if the publisher states none
            and the bytes could not be checked, so that only the reader of the file checks its content.
        megabytes: size of the download, for people.
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
        files: the files that `lrcnet data get` downloads.
        homepage: the publisher's page.
        citation: the publication to cite.
        licence: terms of use.
    """

    task: str
    folder: str
    files: tuple[RemoteFile, ...]
    homepage: str
    citation: str
    licence: str


def _mnist(name: str, sha256: str, megabytes: float) -> RemoteFile:
    # The original server no longer answers reliably; these two mirrors carry the same bytes, as the checksum proves.
    mirrors = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/")
    return RemoteFile(name, tuple(mirror + name for mirror in mirrors), f"sha256:{sha256}", megabytes)


_MNIST = (
    _mnist("train-images-idx3-ubyte.gz", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609", 9.9),
    _mnist("train-labels-idx1-ubyte.gz", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", 0.03),
    _mnist("t10k-images-idx3-ubyte.gz", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6", 1.6),
    _mnist("t10k-labels-idx1-ubyte.gz", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", 0.005),
)


def _mnist_source(task: str) -> Source:
    return Source(
        task,
        "mnist",
        _MNIST,
        "http://yann.lecun.com/exdb/mnist/",
        "LeCun, Bottou, Bengio, Haffner (1998): Gradient-based learning applied to document recognition. "
        "Proceedings of the IEEE 86",
        "CC BY-SA 3.0",
    )


def _uea(name: str, half: str, sha256: str) -> RemoteFile:
    urls = (
        f"https://www.timeseriesclassification.com/aeon-toolkit/{name}.zip",
        f"https://timeseriesclassification.com/aeon-toolkit/{name}.zip",
    )
    return RemoteFile(f"{name}_{half}.ts", urls, f"sha256:{sha256}", 9.0)


_PHYSIONET = "https://physionet.org/files/challenge-2012/1.0.0/"
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
                    # The publisher states no SHA-256, only this MD5.
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
        "psmnist": _mnist_source("psmnist"),
        "event-mnist": _mnist_source("event-mnist"),
        "physionet": Source(
            "physionet",
            "physionet2012",
            (
                RemoteFile("set-a.tar.gz", (f"{_PHYSIONET}set-a.tar.gz",), "", 6.6),
                RemoteFile("set-b.tar.gz", (f"{_PHYSIONET}set-b.tar.gz",), "", 6.6),
                RemoteFile(
                    "Outcomes-a.txt",
                    (f"{_PHYSIONET}Outcomes-a.txt",),
                    "sha256:2613ea60ccda29f87571a7d6b09ad130858a8ccd66325bd073365925026883c2",
                    0.1,
                ),
                RemoteFile(
                    "Outcomes-b.txt",
                    (f"{_PHYSIONET}Outcomes-b.txt",),
                    "sha256:1305f29734da374a809483229a99f33a9230aa8d4fa74b1a2d6ad788136423d5",
                    0.1,
                ),
            ),
            "https://physionet.org/content/challenge-2012/1.0.0/",
            "Silva, Moody, Scott, Celi, Mark (2012): Predicting in-hospital mortality of ICU patients: the "
            "PhysioNet/Computing in Cardiology Challenge 2012. Computing in Cardiology 39",
            "Open Data Commons Attribution License v1.0",
        ),
        "uea": Source(
            "uea",
            "uea",
            (
                _uea("SelfRegulationSCP1", "TRAIN", "841e9e5031d38aa407396a017e61173674282ecdd8010375f24350cf13083ff2"),
                _uea("SelfRegulationSCP1", "TEST", "d55b2ea9980bd86fcdf2905593d18f0ee9333a7e3ef3687b828776bcb749de20"),
                _uea("SelfRegulationSCP2", "TRAIN", "41c6a0310dc5c96155181509c4024ea139aa6ed38bb2252124b056fac8235fae"),
                _uea("SelfRegulationSCP2", "TEST", "1c2656ee44046ded9b901a4345cfb094f5585a2317919e2653a17708b2b38a70"),
            ),
            "https://www.timeseriesclassification.com/",
            "Bagnall, Dau, Lines, Flynn, Large, Bostrom, Southam, Keogh (2018): The UEA multivariate time series "
            "classification archive. arXiv 1811.00075",
            "none stated; the archive asks for the citation",
        ),
    }
)
"""The benchmarks that need files; the other ones generate their data."""


def find_source(task: str) -> Source:
    """Return the source of a task's data.

    Raises:
        ValueError: for a task without a source; the message lists the tasks that have one.
    """
    if task not in SOURCES:
        raise ValueError(f"task with data to fetch must be one of {list(SOURCES)}; got {task!r}")
    return SOURCES[task]
