"""Tiny files in the formats of the real ones, and the real ones where this machine has them."""

import gzip
import json
import lzma
import os
import tarfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from lrcnet_paper.tasks.person_files import ACTIVITIES, TAGS


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with the real files, from LRCNET_DATA or ../shared/data beside the repository."""
    beside = Path(__file__).resolve().parents[4] / "shared" / "data"
    folder = Path(os.environ.get("LRCNET_DATA") or beside)
    if not folder.is_dir():
        pytest.skip("the real data is not on this machine: set LRCNET_DATA to its folder")
    return folder


@pytest.fixture(scope="session")
def real_file(real_data):
    """Return a real file by its path in the data folder, or skip the test and name the file."""

    def find(name: str) -> Path:
        if not (real_data / name).exists():
            pytest.skip(f"{name} is not in {real_data.name}")
        return real_data / name

    return find


def person_rows(sequences: dict[str, int]) -> list[str]:
    """Return lines of the official format from sequence name -> number of rows; each sequence has one negative gap."""
    rows = []
    for number, (name, count) in enumerate(sequences.items()):
        ticks = 633790226051280329 + number * 10**10
        for row in range(count):
            ticks += -50_000 if row == 7 else 270_296
            activity = list(ACTIVITIES)[(row // 5 + number) % len(ACTIVITIES)]
            place = f"{row / 7:.15f},{number + 0.25},{-row / 3}"
            rows.append(f"{name},{TAGS[row % 4]},{ticks},27.05.2009 14:03:25:127,{place},{activity}\n")
    return rows


ALL_SEQUENCES = {f"{person}0{take}": 60 + 3 * take for person in "ABCDE" for take in range(1, 6)}


@pytest.fixture
def person_file(tmp_path):
    """Write a tiny official file and return its path."""

    def write(name: str = "ConfLongDemo_JSI.txt", sequences: dict[str, int] = ALL_SEQUENCES) -> Path:
        path = tmp_path / "person_activity" / name
        path.parent.mkdir(exist_ok=True)
        text = "".join(person_rows(sequences)).encode()
        pack = {".xz": lzma.compress, ".gz": gzip.compress}.get(path.suffix, bytes)
        path.write_bytes(pack(text))
        return path

    return write


@pytest.fixture
def coarse_file(tmp_path):
    """Write the coarse arrays of the tiny official file; keyword arguments replace arrays, None drops one."""

    def write(**changed) -> Path:
        path = tmp_path / "person_activity" / "person_activity_coarse.npz"
        path.parent.mkdir(exist_ok=True)
        fields = [row.rstrip("\n").split(",") for row in person_rows(ALL_SEQUENCES)]
        names = list(ALL_SEQUENCES)
        activities = list(ACTIVITIES)[::-1]
        arrays = {
            "sequence": np.array([names.index(f[0]) for f in fields], dtype=np.uint8),
            "sequence_names": np.array(names),
            "tag": np.array([TAGS.index(f[1]) for f in fields], dtype=np.uint8),
            "tag_names": np.array(TAGS),
            "xyz_decimetre": np.array([[int(float(v) * 10) for v in f[4:7]] for f in fields], dtype=np.int16),
            "activity": np.array([activities.index(f[7]) for f in fields], dtype=np.uint8),
            "activity_names": np.array(activities),
        } | changed
        np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
        return path

    return write


REVIEWS = {
    "train/pos/0_9.txt": "The film -- it's GREAT!<br />The best.",
    "train/pos/10_7.txt": "good\u00a0film",
    "train/pos/2_10.txt": "É a film, (the) film",
    "train/neg/0_1.txt": "bad bad zzz",
    "train/neg/1_4.txt": "",
    "test/pos/0_8.txt": "the the the",
    "test/neg/0_2.txt": "rare word\tthe\nend",
}
WORD_INDEX = {"the": 1, "film": 2, "it's": 3, "br": 4, "great": 5, "best": 6, "bad": 7, "good\u00a0film": 8, "é": 9}
RANKS = {
    "train": [[1, 2, 3, 5, 4, 1, 6], [9, 0, 2, 1, 2], [8], [7, 7, 0], []],
    "test": [[1, 1, 1], [0, 0, 1, 0]],
}
LABELS = {"train": [1, 1, 1, 0, 0], "test": [1, 0]}


@pytest.fixture
def imdb_folder(tmp_path):
    """Write the reviews as a folder or an archive, with the word index beside it; return the reviews' path."""

    def write(name: str = "aclImdb_v1.tar.gz", reviews: dict[str, str] = REVIEWS) -> Path:
        folder = tmp_path / "imdb"
        folder.mkdir(exist_ok=True)
        (folder / "imdb_word_index.json").write_text(json.dumps(WORD_INDEX), encoding="utf-8")
        path = folder / name
        extra = {"README": "read me", "train/unsup/0_0.txt": "neither", "train/urls_pos.txt": "http://nowhere"}
        files = {f"aclImdb/{k}": v.encode() for k, v in (reviews | extra).items()}
        if "tar" not in name:
            for inner, content in files.items():
                place = path / inner.removeprefix("aclImdb/")
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
            return path
        with tarfile.open(path, "w:xz" if name.endswith("xz") else "w:gz") as archive:
            for inner, content in files.items():
                info = tarfile.TarInfo(inner)
                info.size = len(content)
                archive.addfile(info, BytesIO(content))
        return path

    return write


def idx(array: np.ndarray) -> bytes:
    """Return the bytes of an idx file."""
    header = bytes([0, 0, 8, array.ndim]) + b"".join(int(n).to_bytes(4, "big") for n in array.shape)
    return header + array.astype(np.uint8).tobytes()
