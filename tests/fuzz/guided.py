"""Coverage-guided fuzzing of the readers of files from outside, by atheris.

    python -m tests.fuzz.guided FORMAT [libFuzzer's arguments, such as -max_total_time=60]

FORMAT is a name in `tests.fuzz.bad_files.FORMATS`. The first inputs are right files; libFuzzer changes them so that new
lines of the readers run. It stops at the first error that is not clear. Needs `pip install "lrcnet[fuzz]"`.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

READERS = [
    *(f"lrcnet.{name}" for name in ("data", "folders", "own_data", "safe_loading", "saving", "snapshots", "wirings")),
    *("lrcnet_paper.archive_sets", "lrcnet_paper.driving", "lrcnet_paper.results", "lrcnet_paper.tasks"),
    *("lrcnet_paper.training", "zipfile", "tarfile", "pickle"),
]
"""The modules whose lines count as new; equations and kernels would only slow the start down."""


def main(arguments: list[str]) -> None:
    try:
        import atheris
    except ImportError:
        raise SystemExit("coverage-guided fuzzing needs atheris; run: pip install 'lrcnet[fuzz]'") from None
    with atheris.instrument_imports(include=READERS):
        from tests.fuzz import bad_files
        from tests.fuzz.outcomes import BAD, watch

    if not arguments or arguments[0] not in bad_files.FORMATS:
        raise SystemExit(f"the first argument must be one of {', '.join(bad_files.FORMATS)}")
    name, *options = arguments

    def test_one_input(data: bytes) -> None:
        outcome = watch(lambda: bad_files.read_bytes(name, data))
        if outcome.kind in BAD:
            raise AssertionError(outcome.detail)

    with TemporaryDirectory() as folder:
        (Path(folder) / "right").write_bytes(bad_files.content_of(name))
        atheris.Setup([sys.argv[0], *options, folder], test_one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
