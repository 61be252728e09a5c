"""Files and folders that others wrote: nothing in them is trusted."""

import gzip
import io
import json
import lzma
import os
import pickle
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lrcnet_paper.driving.recording import open_recording, write_recording
from lrcnet_paper.interpret.neurons import correlation
from lrcnet_paper.models.recurrent import recurrent_layer
from lrcnet_paper.results.collected import collect
from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.road_seeds import split_roads
from lrcnet_paper.tasks import unpack
from lrcnet_paper.tasks.imdb_files import read_keras, read_texts
from lrcnet_paper.tasks.person_files import read_coarse, read_official
from lrcnet_paper.tasks.psmnist import read_idx
from lrcnet_paper.training import run_folder
from lrcnet_paper.training.checkpoint import save_best
from lrcnet_paper.training.result import Result
from lrcnet_paper.training.spec import RunSpec
from lrcnet_paper.training.trained_network import load_trained


class Call:
    """Pickles as a call of a function, and a state for its result."""

    def __init__(self, function: Any, arguments: tuple[Any, ...], state: Any = None) -> None:
        self.parts = (function, arguments, state) if state is not None else (function, arguments)

    def __reduce__(self) -> Any:
        return self.parts


def write_keras(path: Path, content: bytes) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|O", "fortran_order": False, "shape": (2,)})
    labels = io.BytesIO()
    np.save(labels, np.array([0, 1]))
    with zipfile.ZipFile(path, "w") as archive:
        for split in ("train", "test"):
            archive.writestr(f"x_{split}.npy", header.getvalue() + content)
            archive.writestr(f"y_{split}.npy", labels.getvalue())


def test_real_pickles_of_arrays_are_read(tmp_path: Path) -> None:
    for protocol in range(2, 5):
        reviews = np.empty(2, dtype=object)
        reviews[:] = [[1, 2], [3]]
        write_keras(tmp_path / "imdb.npz", pickle.dumps(reviews, protocol=protocol))
        read = read_keras(tmp_path / "imdb.npz")["train"]
        assert read.ranks.tolist() == [1, 2, 3]
        reviews[1] = np.array([3, 4, 5])
        write_keras(tmp_path / "imdb.npz", pickle.dumps(reviews, protocol=protocol))
        assert read_keras(tmp_path / "imdb.npz")["test"].ranks.tolist() == [1, 2, 3, 4, 5]


def test_a_pickle_cannot_build_a_dtype_that_points_anywhere(tmp_path: Path) -> None:
    # A structured dtype's state holds fields and offsets that numpy believes.
    state = (3, "|", None, ("a",), {"a": (np.dtype("O"), 1 << 40)}, 8, 1, 63)
    hostile = Call(np.dtype, ("V8", False, True), state)
    write_keras(tmp_path / "imdb.npz", pickle.dumps(hostile))
    with pytest.raises(ValueError, match="'V8' is not allowed"):
        read_keras(tmp_path / "imdb.npz")


@pytest.mark.parametrize(
    "state",
    [
        (1, (2,), np.dtype("O"), False, [[1]]),
        (1, (1 << 40,), np.dtype("O"), False, []),
        (1, (2,), np.dtype("i8"), False, b"short"),
        (1, (-2,), np.dtype("i8"), False, b""),
        (1, (2,), None, False, b"x" * 16),
    ],
)
def test_a_pickled_array_must_hold_as_many_numbers_as_it_states(tmp_path: Path, state: Any) -> None:
    rebuild, arguments = np.empty(0).__reduce__()[:2]
    write_keras(tmp_path / "imdb.npz", pickle.dumps(Call(rebuild, arguments, state)))
    with pytest.raises(ValueError, match=r"imdb\.npz must hold arrays"):
        read_keras(tmp_path / "imdb.npz")


def result(**changes: Any) -> dict[str, Any]:
    spec = {"task": "person", "variant": "coarse", "model": "gru", "budget": "paper", **changes}
    return {
        "spec": spec,
        "rate": 0.1,
        "unit": "epoch",
        "parameters": 1,
        "epochs": 3,
        "updates": 3,
        "best_epoch": 1,
        "seconds_per_epoch": 1.0,
        "metrics": {"accuracy": 0.5},
        "status": "finished",
        "versions": {},
        "machine": {},
    }


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "*", "a/b", "..", "a\nb", "[a]", ".hidden"])
@pytest.mark.parametrize("field", ["task", "variant", "model", "solver"])
def test_names_of_a_run_cannot_lead_out_of_a_folder(field: str, name: str) -> None:
    with pytest.raises(ValueError, match=f"{field} must be a name of letters"):
        Result.from_dict(result(**{field: name}))


def test_collecting_deletes_only_shorter_versions_of_the_same_run(tmp_path: Path) -> None:
    short, long = (Result.from_dict({**result(), "epochs": epochs}) for epochs in (3, 5))
    other = Result.from_dict(result(variant="coarse-clean"))
    collect([FinishedRun(short), FinishedRun(other)], tmp_path)
    collect([FinishedRun(long)], tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*.json")) == [
        "coarse-clean_gru_paper_3_seed0.json",
        "coarse_gru_paper_5_seed0.json",
    ]


@pytest.mark.parametrize(
    "change", [{"rate": "x"}, {"metrics": [1]}, {"metrics": {"a": "b"}}, {"epochs": "3"}, {"seconds_per_epoch": None}]
)
def test_a_result_has_numbers_where_numbers_belong(tmp_path: Path, change: dict[str, Any]) -> None:
    (tmp_path / "result.json").write_text(json.dumps({**result(), **change}))
    with pytest.raises(ValueError, match="must be"):
        Result.read(tmp_path)


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "LARGEST_UNPACKED", 1 << 20)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(2 << 20))
    with pytest.raises(ValueError, match="must unpack to at most 1 MB"), unpack.unpack(tmp_path / "bomb.zip", tmp_path):
        pass


def pack_reviews(path: Path) -> None:
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo("train/pos/1_9.txt")
        info.size = 2 << 20
        archive.addfile(info, io.BytesIO(bytes(info.size)))


@pytest.mark.parametrize(
    ("name", "write", "read"),
    [
        ("images.gz", lambda path: path.write_bytes(gzip.compress(bytes(2 << 20))), read_idx),
        ("person.txt.gz", lambda path: path.write_bytes(gzip.compress(b"\n" * (2 << 20))), read_official),
        ("person.txt.xz", lambda path: path.write_bytes(lzma.compress(b"\n" * (2 << 20))), read_official),
        ("coarse.npz", lambda path: np.savez_compressed(path, sequence=np.zeros(2 << 20, np.int8)), read_coarse),
        ("reviews.tar.gz", pack_reviews, lambda path: read_texts(path, {})),
    ],
)
def test_a_small_file_that_holds_much_is_refused(
    name: str,
    write: Callable[[Path], Any],
    read: Callable[[Path], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unpack, "LARGEST_UNPACKED", 1 << 20)
    write(tmp_path / name)
    assert (tmp_path / name).stat().st_size < 10_000
    with pytest.raises(ValueError, match="must unpack to at most 1 MB"):
        read(tmp_path / name)


def test_an_encrypted_archive_is_a_value_error(tmp_path: Path) -> None:
    # The bit that says so is in two places of a zip file.
    path = tmp_path / "locked.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", "b")
    content = bytearray(path.read_bytes())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="without a password"), unpack.unpack(path, tmp_path):
        pass


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e999"])
def test_person_data_must_be_finite(tmp_path: Path, number: str) -> None:
    line = f"A01,010-000-024-033,633790226051280329,27.05.2009 14:03:25:127,4.06,{number},0.3,walking\n"
    (tmp_path / "data.txt").write_text(line)
    with pytest.raises(ValueError, match=r"line 1 of data\.txt must have finite numbers"):
        read_official(tmp_path / "data.txt")


def write_drive(folder: Path, **changes: Any) -> None:
    labels = {"curvature": np.zeros(3), "season": np.zeros(3), "road": np.zeros(3)}
    write_recording(folder, {}, labels, np.array([1, 2]), lambda frames: None)
    with np.load(folder / "labels.npz") as stored:
        arrays = {**stored, **changes}
    np.savez(folder / "labels.npz", **arrays)


@pytest.mark.parametrize(
    "changes",
    [
        {"starts": np.array([0, 5, 3])},
        {"starts": np.array(3)},
        {"starts": np.array([-1, 3])},
        {"offset": np.zeros(2, np.float32)},
        {"season": np.zeros(3, np.int64)},
        {"curvature": np.array([0, np.nan, 0], np.float32)},
        {"road": np.array([object()] * 3)},
    ],
)
def test_a_recording_whose_arrays_do_not_fit_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    write_drive(tmp_path)
    open_recording(tmp_path)
    write_drive(tmp_path, **changes)
    with pytest.raises(ValueError, match="make it again"):
        open_recording(tmp_path)


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(victim)
    with pytest.raises(ValueError, match="is a link"), run_folder.lock_folder(tmp_path / "run"):
        pass
    assert victim.read_text() == "precious"


def test_a_command_may_be_corrected_before_anything_was_trained(tmp_path: Path) -> None:
    first, second = (RunSpec("person", "coarse", "gru", seed=seed) for seed in (0, 1))
    run_folder.claim(tmp_path, first, {})
    run_folder.claim(tmp_path, second, {})
    assert run_folder.read_spec(tmp_path) == second
    (tmp_path / "metrics.csv").write_text("epoch\n1\n")
    with pytest.raises(ValueError, match="holds another run"):
        run_folder.claim(tmp_path, first, {})


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    def full(self: Path, *arguments: Any, **options: Any) -> Any:
        return real(Path("/dev/full") if self.name.endswith(".part") else self, *arguments, **options)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(OSError, match=r"No space left on device: .*"):
        save_best(tmp_path, torch.nn.Linear(300, 300), 1)


def test_samples_cannot_be_mixed_by_an_option() -> None:
    with pytest.raises(ValueError, match="batch_first is set by the tasks"):
        recurrent_layer("lrcu-s", 3, batch_first=False)


def test_correlation_with_nan_is_an_error() -> None:
    with pytest.raises(ValueError, match="must be finite"):
        correlation(torch.tensor([[0.0], [torch.nan], [1.0]]), torch.arange(3.0))


@pytest.mark.parametrize("counts", [(2 * 10**7, 5), (-1, 5), (1, 10**8)])
def test_splits_of_roads_never_overlap(counts: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"count must be at (most|least)"):
        split_roads(*counts)


def test_a_config_that_lies_is_refused(tmp_path: Path) -> None:
    for content in (
        b"\xff\xfe",
        b"[]",
        b'{"run": {"task": "../x", "variant": "a", "model": "b"}}',
        struct.pack("d", 1),
    ):
        (tmp_path / "config.json").write_bytes(content)
        with pytest.raises(ValueError, match=r"config\.json is not the description of a run"):
            load_trained(tmp_path)
