"""Run folders in which a file is missing, damaged, swapped or a link: commands that read them say so or work."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from hypothesis import strategies as st

from lrcnet_paper.results.reading import read_runs, trained_so_far
from lrcnet_paper.training.run_folder import claim, first_threads, lock_folder, read_spec
from lrcnet_paper.training.single_run import finished_result
from lrcnet_paper.training.spec import RunSpec
from lrcnet_paper.training.trained_network import load_trained
from tests.fuzz.bad_files import RESULT, Damage, damage

SPEC = RunSpec("person", "coarse", "gru", budget="paper")
FILES = {
    "config.json": json.dumps({"run": SPEC.as_dict(), "resolved": {}}).encode(),
    "environment.json": json.dumps({"versions": {}, "machine": {"threads": 1}}).encode(),
    "metrics.csv": b"epoch,train_loss\n1,0.5\n2,0.25\n",
    "timings.csv": b"epoch,seconds\n1,0.5\n2,0.25\n",
    "result.json": json.dumps(RESULT).encode(),
    "analyses/attention.json": b'{"value": 1}',
    "last.ckpt": b"no checkpoint",
    ".lock": b"",
}
READERS = {
    "read runs": read_runs,
    "trained so far": trained_so_far,
    "read the run": read_spec,
    "threads": first_threads,
    "finished": lambda folder: finished_result(folder, SPEC),
    "claim": lambda folder: claim(folder, SPEC, {}),
    "load": load_trained,
    "lock": lambda folder: lock_folder(folder, patience=0).__enter__(),
}


class BadFolder(NamedTuple):
    """A reader, a file of the folder, and what happened to it."""

    reader: str
    file: str
    change: str
    damage: tuple[Damage, ...]


CASES = st.builds(
    BadFolder,
    st.sampled_from(tuple(READERS)),
    st.sampled_from(tuple(FILES)),
    st.sampled_from(("missing", "damaged", "folder", "link to nothing", "link to itself", "swapped", "empty")),
    st.lists(
        st.builds(
            Damage,
            st.sampled_from(("flip", "set", "cut", "drop", "insert")),
            st.floats(0, 1),
            st.integers(0, 255),
            st.integers(1, 64),
        ),
        min_size=1,
        max_size=2,
    ).map(tuple),
)


def attack(case: BadFolder) -> None:
    """Make the folder, change a file, and read the folder."""
    with TemporaryDirectory() as name:
        folder = Path(name) / "run"
        for file, content in FILES.items():
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        _change(folder / case.file, case)
        READERS[case.reader](folder)


def _change(path: Path, case: BadFolder) -> None:
    content = path.read_bytes()
    path.unlink()
    if case.change == "damaged":
        path.write_bytes(damage(content, case.damage))
    elif case.change == "folder":
        path.mkdir()
    elif case.change == "link to nothing":
        path.symlink_to(path.parent / "nothing")
    elif case.change == "link to itself":
        path.symlink_to(path)
    elif case.change == "swapped":
        path.write_bytes(FILES["metrics.csv" if case.file != "metrics.csv" else "result.json"])
    elif case.change == "empty":
        path.write_bytes(b"")
