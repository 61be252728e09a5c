"""Data files that are damaged, cut short or lie about their sizes: a reader gives a clear error or right data."""

import gzip
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from hypothesis import strategies as st

import lrcnet
import lrcnet.data
from lrcnet.own_data.files import read_file
from lrcnet.wirings import AutoNCP, Wiring
from lrcnet_paper.archive_sets import read_ts
from lrcnet_paper.driving.recording import open_recording, write_recording
from lrcnet_paper.results.collected import read_collected
from lrcnet_paper.tasks.imdb_files import read_keras, read_ranks, read_texts, read_word_index
from lrcnet_paper.tasks.person_files import ACTIVITIES, TAGS, read_coarse, read_official
from lrcnet_paper.tasks.physionet_files import read_stays
from lrcnet_paper.tasks.psmnist import read_idx
from lrcnet_paper.tasks.uea import read_published
from lrcnet_paper.tasks.unpack import unpack
from lrcnet_paper.training.checkpoint import READ_ERRORS, read_checkpoint
from lrcnet_paper.training.result import Result
from tests.fuzz.outcomes import CLEAR, WRONG, Outcome


class Damage(NamedTuple):
    """A change of a file: some of its bytes, given by their place from 0 to 1."""

    kind: str
    place: float
    value: int
    length: int


class BadFile(NamedTuple):
    """A file of a format, and how it is damaged."""

    format: str
    damage: tuple[Damage, ...]


class Format(NamedTuple):
    """A file name, content that is right, and the function that reads it."""

    name: str
    content: Callable[[], bytes]
    read: Callable[[Path], Any]


def _npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _keras() -> bytes:
    reviews = np.empty(3, dtype=object)
    reviews[:] = [[1, 2], [3], [4, 5, 6]]
    labels = np.array([0, 1, 1])
    return _npz(x_train=reviews, y_train=labels, x_test=reviews, y_test=labels)


def _ranks() -> bytes:
    parts = {"tokens": np.arange(5), "offsets": np.array([0, 2, 5]), "labels": np.array([0, 1])}
    return _npz(**{f"{split}_{name}": value for split in ("train", "test") for name, value in parts.items()})


def _official() -> bytes:
    lines = [
        f"A0{1 + i // 6},{TAGS[i % 4]},{633790226051280329 + i * 10**6},27.05.2009 14:03:25:127,{i}.5,1.25,0.5,"
        f"{list(ACTIVITIES)[i % 11]}"
        for i in range(12)
    ]
    return ("\n".join(lines) + "\n").encode()


def _coarse() -> bytes:
    return _npz(
        sequence=np.array([0, 0, 1]),
        sequence_names=np.array(["A01", "A02"]),
        tag=np.array([0, 1, 2]),
        tag_names=np.array(TAGS),
        xyz_decimetre=np.ones((3, 3), np.int16),
        activity=np.array([0, 1, 2]),
        activity_names=np.array(list(ACTIVITIES)),
    )


def _idx() -> bytes:
    return bytes([0, 0, 8, 3]) + b"".join(n.to_bytes(4, "big") for n in (2, 3, 4)) + bytes(range(24))


def _texts() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for split in ("train", "test"):
            for opinion in ("pos", "neg"):
                text = b"good film"
                info = tarfile.TarInfo(f"aclImdb/{split}/{opinion}/1_9.txt")
                info.size = len(text)
                archive.addfile(info, io.BytesIO(text))
    return file.getvalue()


def _stays() -> bytes:
    stay = "Time,Parameter,Value\n00:00,RecordID,7\n00:00,Age,54\n00:07,HR,73\n00:37,HR,77\n"
    outcome = "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n7,6,1,5,-1,0\n"
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, text in (("set-a/7.txt", stay), ("Outcomes-a.txt", outcome)):
            info = tarfile.TarInfo(f"physionet2012/{name}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return file.getvalue()


def _splits() -> bytes:
    return b'{"Toy": {"1": {"val": [0, 3], "test": [1]}}}'


def _ts() -> bytes:
    return b"# a set\n@problemName Toy\n@dimensions 2\n@classLabel true a b\n@data\n1,2.5,3:4,5,6:a\n7,8,9:1,?,3:b\n"


def _zip() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/a.txt", "hello " * 20)
        archive.writestr("b.txt", "world")
    return file.getvalue()


def _checkpoint() -> bytes:
    file = io.BytesIO()
    torch.save({"format": 1, "model": {"weight": torch.arange(30.0)}, "done": 3}, file)
    return file.getvalue()


RESULT = {
    "spec": {"task": "person", "variant": "coarse", "model": "gru", "budget": "paper"},
    "rate": 0.1,
    "unit": "epoch",
    "parameters": 1,
    "epochs": 3,
    "updates": 3,
    "best_epoch": 1,
    "seconds_per_epoch": 1.0,
    "metrics": {"accuracy": 0.5},
    "status": "finished",
    "versions": {"python": "3.11"},
    "machine": {"cores": 2},
}


def _unpack(path: Path) -> Any:
    with unpack(path, path.parent) as folder:
        return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())


def _recording(path: Path) -> Any:
    with TemporaryDirectory() as name:
        folder = Path(name)
        labels = {"curvature": np.zeros(3), "season": np.zeros(3), "road": np.zeros(3)}
        write_recording(folder, {}, labels, np.array([1, 2]), lambda frames: None)
        (folder / "labels.npz").write_bytes(path.read_bytes())
        return len(open_recording(folder))


def _labels() -> bytes:
    numbers = ("curvature", "offset", "heading", "speed", "road_curvature")
    return _npz(
        **{name: np.zeros(3, np.float32) for name in numbers},
        season=np.zeros(3, np.uint8),
        road=np.zeros(3, np.int64),
        starts=np.array([0, 1, 3]),
    )


def _model(file: str) -> bytes:
    with TemporaryDirectory() as folder:
        torch.manual_seed(0)
        return (lrcnet.LRCU(3, 4).save(folder) / file).read_bytes()


def _load_model(path: Path) -> Any:
    """Load a model of which one file is given, and the other one right."""
    for file in ("config.json", "model.safetensors"):
        if file != path.name:
            (path.parent / file).write_bytes(_model(file))
    return lrcnet.load(path.parent)(torch.ones(2, 1, 3))[0]


def _stream() -> lrcnet.Stream:
    torch.manual_seed(0)
    return lrcnet.Stream(lrcnet.LRCU(3, 4))


def _snapshot() -> bytes:
    stream = _stream()
    stream([1.0, 2.0, 3.0], 0.5)
    return stream.snapshot()


def _table(path: Path) -> Any:
    frame = read_file(path)
    return lrcnet.data.from_long(frame, "who", "at", ["v"], "label").x


FORMATS: dict[str, Format] = {
    "model, description": Format("config.json", lambda: _model("config.json"), _load_model),
    "model, weights": Format("model.safetensors", lambda: _model("model.safetensors"), _load_model),
    "stream": Format("snapshot", _snapshot, lambda path: _stream().restore(path.read_bytes())),
    "table": Format("table.csv", lambda: b"who,at,v,label\n1,0,2.5,a\n1,1,,a\n2,0.5,3,b\n", _table),
    "wiring": Format(
        "wiring.json",
        lambda: AutoNCP(8, 2).to_json().encode(),
        lambda path: Wiring.from_json(path.read_text("utf-8", "replace")),
    ),
    "ts": Format("set.ts", lambda: b"@classLabel true a b\n@data\n1,2,3:4,5,6:a\n2,?,1:0,1,2:b\n", read_ts),
    "keras": Format("imdb.npz", _keras, read_keras),
    "ranks": Format("ranks.npz", _ranks, read_ranks),
    "words": Format("words.json", lambda: b'{"the": 1, "film": 2}', read_word_index),
    "texts": Format("texts.tar.gz", _texts, lambda path: read_texts(path, {"good": 1, "film": 2})),
    "person": Format("person.txt", _official, read_official),
    "person, compressed": Format("person.txt.gz", lambda: gzip.compress(_official(), mtime=0), read_official),
    "coarse": Format("coarse.npz", _coarse, read_coarse),
    "idx": Format("images", _idx, read_idx),
    "idx, compressed": Format("images.gz", lambda: gzip.compress(_idx(), mtime=0), read_idx),
    "ts, compressed": Format("toy.ts.xz", lambda: lzma.compress(_ts()), read_ts),
    "stays": Format("stays.tar.gz", _stays, lambda path: read_stays([path], ["a"])),
    "splits": Format(
        "splits.json",
        lambda: b'{"Toy": {"1": {"val": [0, 3], "test": [1]}}}',
        lambda p: read_published(p, "Toy", "1", 5),
    ),
    "zip": Format("archive.zip", _zip, _unpack),
    "tar": Format("archive.tar.gz", _texts, _unpack),
    "checkpoint": Format("last.ckpt", _checkpoint, read_checkpoint),
    "result": Format("result.json", lambda: json.dumps(RESULT).encode(), Result.read),
    "collected": Format("run.json", lambda: json.dumps(RESULT).encode(), read_collected),
    "recording": Format("labels.npz", _labels, _recording),
}

CASES = st.builds(
    BadFile,
    st.sampled_from(tuple(FORMATS)),
    st.lists(
        st.builds(
            Damage,
            st.sampled_from(("flip", "set", "cut", "drop", "repeat", "insert", "large number")),
            st.floats(0, 1),
            st.integers(0, 255),
            st.integers(1, 64),
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
)


@cache
def _right_answer() -> torch.Tensor:
    torch.manual_seed(0)
    output: torch.Tensor = lrcnet.LRCU(3, 4).eval()(torch.ones(2, 1, 3))[0]
    return output.detach()


@cache
def content_of(name: str) -> bytes:
    """Return a right file of a format, the same in every attack."""
    return FORMATS[name].content()


def damage(content: bytes, changes: tuple[Damage, ...]) -> bytes:
    """Return a file after all changes."""
    data = bytearray(content)
    for kind, place, value, length in changes:
        at = min(int(place * len(data)), max(0, len(data) - 1))
        if kind == "flip" and data:
            data[at] ^= 1 << (value % 8)
        elif kind == "set" and data:
            data[at] = value
        elif kind == "cut":
            del data[at:]
        elif kind == "drop":
            del data[at : at + length]
        elif kind == "repeat":
            data[at:at] = data[at : at + length]
        elif kind == "insert":
            data[at:at] = bytes([value]) * length
        else:  # A size that lies.
            data[at : at + 4] = b"\xff\xff\xff\x7f"
    return bytes(data)


def attack(case: BadFile) -> Outcome | None:
    """Read the damaged file."""
    return read_bytes(case.format, damage(content_of(case.format), case.damage))


def read_bytes(name: str, content: bytes) -> Outcome | None:
    """Read a file of a format; what is read from it must be data that a right file could hold."""
    entry = FORMATS[name]
    with TemporaryDirectory() as folder:
        path = Path(folder) / entry.name
        path.write_bytes(content)
        try:
            answer = entry.read(path)
        except READ_ERRORS as error:
            # Every caller of read_checkpoint turns these errors into its own sentence.
            if name == "checkpoint":
                return Outcome(CLEAR)
            # A sentence about the file, wherever it was raised.
            if isinstance(error, ValueError) and "must" in str(error) and len(str(error).split()) >= 5:
                return Outcome(CLEAR)
            raise
    if name == "checkpoint" and not torch.equal(answer["model"]["weight"], torch.arange(30.0)):
        return Outcome(WRONG, "other weights were loaded")
    if name.startswith("model") and not torch.equal(answer, _right_answer()):
        return Outcome(WRONG, "a damaged model gave other numbers")
    if name == "table" and not bool(answer.isfinite().all()):
        return Outcome(WRONG, "numbers that are not finite were read")
    if name.startswith("person") and not all(np.isfinite(one.features).all() for one in answer):
        return Outcome(WRONG, "numbers that are not finite were loaded")
    return None
