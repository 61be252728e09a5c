"""Compiles the kernels with the address, undefined-behaviour and thread sanitizers and runs the kernel tests on them.

    python tests/kernels/sanitize.py [pytest arguments]

The code of the widest instruction set goes through the same run where the machine does not have it: the compiler splits
its vectors, and its estimate of a reciprocal is cut from a division.
"""

import importlib.util
import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src/lrcnet/kernels/csrc"
COMPILER = os.environ.get("CXX", "g++")
FLAGS = "-std=c++17 -O1 -g -fPIC -fno-omit-frame-pointer -fno-sanitize-recover=all -Wno-psabi -ffp-contract=fast"
X86 = platform.machine() in ("x86_64", "AMD64")
# name -> flags of one build of kernels.cpp each; the module knows them as its own instruction sets.
NARROW = ["-mavx2", "-mfma"] if X86 else []
BUILDS = {
    "avx2": NARROW,
    "baseline": [*NARROW, "-DLRCNET_VECTOR_BYTES=64", "-DLRCNET_SHARED=6", "-DLRCNET_WIDE"],
}
MODULE = "LRCNET_SANITIZED_MODULE"


class Sanitizer(NamedTuple):
    """The compiler's name of a sanitizer, its library, further flags, and the tests that run under it."""

    name: str
    library: str
    flags: list[str]
    options: dict[str, str]
    builds: tuple[str, ...]
    tests: list[str]


_TESTS = [
    f"tests/kernels/test_{name}.py" for name in ("values", "operator", "backend", "boundary", "wired", "shared_units")
]
_LOOPS = "tests/cells/test_gated_sequence.py::test_compiled_loops_equal_the_plain_loop_on_any_number_of_threads"
SANITIZERS = (
    Sanitizer(
        "address,undefined",
        "libasan.so",
        [],
        # Python keeps memory to its end on purpose; what the kernels allocate they free in the same call.
        {"ASAN_OPTIONS": "detect_leaks=0"},
        tuple(BUILDS),
        [
            *_TESTS,
            _LOOPS,
            "-k",
            "not compiles and not exports and not fork and not opcheck and not recorded_program and not limit "
            "and not parallel_region and not no_memory",
        ],
    ),
    Sanitizer(
        "thread",
        "libtsan.so",
        # It does not see how the threads of OpenMP wait for each other; those of the C++ library it does.
        ["-DLRCNET_OWN_THREADS"],
        {"TSAN_OPTIONS": "halt_on_error=1 exitcode=66 ignore_noninstrumented_modules=1"},
        ("baseline",),
        # A program in a process of its own runs the module that is installed, or forks.
        [
            "tests/kernels/test_threads.py",
            "tests/kernels/test_shared_units.py",
            _LOOPS,
            "-k",
            "not fork and not limit and not parallel_region and not no_memory and not python_threads",
        ],
    ),
)


def build(folder: Path, sanitizer: Sanitizer) -> Path:
    """The module, as setup.py builds it but with a sanitizer."""
    flags = [*FLAGS.split(), f"-fsanitize={sanitizer.name}", *sanitizer.flags]
    include = f"-I{sysconfig.get_paths()['include']}"
    objects = []
    jobs = []
    for name, extra in BUILDS.items():
        table = [f"-DLRCNET_TABLE=lrcnet_{name}", f'-DLRCNET_NAME="{name}"']
        jobs.append((SOURCES / "kernels.cpp", folder / f"{name}.o", [*table, *extra]))
    jobs.append((SOURCES / "module.cpp", folder / "module.o", [include, "-DLRCNET_HAVE_AVX2=1"]))
    jobs.append((SOURCES / "threads.cpp", folder / "threads.o", []))
    running = []
    for source, target, extra in jobs:
        running.append(subprocess.Popen([COMPILER, *flags, *extra, "-c", str(source), "-o", str(target)]))
        objects.append(str(target))
    if any(process.wait() for process in running):
        raise SystemExit("the kernels did not compile with sanitizers")
    library = folder / "_native.abi3.so"
    subprocess.run(
        [COMPILER, "-shared", f"-fsanitize={sanitizer.name}", *objects, "-o", str(library), "-pthread", "-ldl"],
        check=True,
    )
    return library


def load_sanitized_module(path: str) -> None:
    """Put the sanitized module where lrcnet looks for its own; lrcnet must not have been imported yet."""
    assert "lrcnet" not in sys.modules
    import torch  # noqa: F401  # The module looks for torch's threads when it is loaded.

    spec = importlib.util.spec_from_file_location("lrcnet.kernels._native", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["lrcnet.kernels._native"] = module
    spec.loader.exec_module(module)


# As a pytest plugin, which pytest imports before any conftest.py; these import lrcnet before pytest calls a plugin.
if MODULE in os.environ:
    load_sanitized_module(os.environ[MODULE])


def run(sanitizer: Sanitizer, arguments: list[str]) -> int:
    """Run the tests on all builds under one sanitizer, side by side; return the largest exit code."""
    with tempfile.TemporaryDirectory() as folder:
        library = build(Path(folder), sanitizer)
        # The C++ library beside the sanitizer's: torch throws, and the sanitizer must know the real throw by then.
        preloaded = [
            subprocess.run([COMPILER, f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout
            for name in (sanitizer.library, "libstdc++.so")
        ]

        def test(name: str) -> int:
            environment = {
                **os.environ,
                **sanitizer.options,
                MODULE: str(library),
                "LD_PRELOAD": " ".join(path.strip() for path in preloaded),
                "LRCNET_ISA": name,
                # This tree's own sources, whichever tree the package was installed from.
                "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
            }
            plugin = ["-p", "tests.kernels.sanitize", "-p", "no:cacheprovider"]
            command = [sys.executable, "-m", "pytest", "-q", *plugin, *sanitizer.tests, *arguments]
            ended = subprocess.run(
                command,
                env=environment,
                cwd=ROOT,
                check=False,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            print(f"sanitizer {sanitizer.name}, {name}:\n{ended.stdout}", flush=True)
            return ended.returncode

        # The builds share nothing but the source, so that each gets a core of its own.
        with ThreadPoolExecutor(len(sanitizer.builds)) as pool:
            return max(pool.map(test, sanitizer.builds))


def main(arguments: list[str]) -> int:
    return max(run(sanitizer, arguments) for sanitizer in SANITIZERS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
