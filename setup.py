"""Build the fused kernels, once per instruction set, and explain in one sentence why they could not be built.

The environment variable LRCNET_KERNELS says how badly they are wanted:

    auto      build them; a machine without a C++ compiler gets the package without them (the default)
    required  build them or stop
    off       leave them out

A missing source file and a compile error always stop the build: the first means an incomplete copy of lrcnet, the
second a bug in it or a broken compiler, and an installation without kernels would hide either.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError, OptionError, PlatformError

SOURCES = "src/lrcnet/kernels/csrc"
# Compiled once per instruction set; the other two once.
KERNELS = "kernels.cpp"
MODULE = ["module.cpp", "threads.cpp"]
# The file that takes the place of the compiled module and holds the reason; lrcnet.kernels.native reads it.
NOTE = "_native_missing.txt"
FLAGS = [
    "-std=c++17",
    "-O3",
    "-fvisibility=hidden",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
    "-Wall",
    "-Wextra",
    "-Wno-psabi",
]
AVX512 = ["-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mfma", "-mprefer-vector-width=512"]
# Every processor of the architecture has the baseline, SSE2 or NEON. It comes first, because it must compile.
INSTRUCTION_SETS = {
    "baseline": [],
    "avx2": ["-mavx2", "-mfma"],
    "avx512": AVX512,
    # AMD's Zen 4 divides a vector faster than it refines an estimate of the reciprocal.
    "zen4": [*AVX512, "-DLRCNET_FAST_DIVISION"],
}
X86 = platform.machine().lower() in ("x86_64", "amd64")
# Uses the widest registers, so that an assembler too old for them fails here as well.
PROBE = "typedef float Vector __attribute__((vector_size(64)));\nVector twice(Vector x) { return x + x; }\n"
SETTINGS = ("auto", "required", "off")
# pip keeps the wheel that it built from a source distribution and would install it again.
REINSTALL = "run `pip install --force-reinstall --no-deps --no-cache-dir lrcnet`"


class Failure(NamedTuple):
    """A reason for having no kernels.

    Args:
        problem: the fact, as a clause.
        remedy: the user's next step, as an imperative.
        tolerable: whether the package may be installed without kernels for this reason.
    """

    problem: str
    remedy: str
    tolerable: bool


def read_setting(environment):
    """Return LRCNET_KERNELS, or `auto` where it is not set."""
    setting = environment.get("LRCNET_KERNELS") or "auto"
    if setting not in SETTINGS:
        raise OptionError(f"LRCNET_KERNELS must be one of {', '.join(SETTINGS)}, but is {setting!r}; unset it for auto")
    return setting


def missing_sources(folder, names):
    """Return which of these source files, and of the files that they include by quotes, are not in the folder."""
    waiting, seen, missing = list(names), set(), []
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        path = Path(folder) / name
        if path.is_file():
            waiting += re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE)
        else:
            missing.append(name)
    return sorted(missing)


def source_missing(names):
    """Return the failure of a copy of lrcnet that lacks kernel sources."""
    return Failure(
        f"source missing: {', '.join(names)} not found in {SOURCES}, so this copy of lrcnet is incomplete",
        "take a complete copy, or set LRCNET_KERNELS=off to install without the fused kernels",
        tolerable=False,
    )


def shorten(error):
    """Return an error's text, or the exit code alone where the text would repeat the whole command."""
    cause = error.args[0] if error.args else error
    return f"exit code {cause.returncode}" if isinstance(cause, subprocess.CalledProcessError) else str(error)


def diagnose(error, program, include_folders):
    """Return the failure behind a compiler's error.

    Args:
        error: the exception that the build raised.
        program: the C++ compiler's name or path; None where it is not one that takes the flags of GCC and clang.
        include_folders: the folders that should hold Python.h.
    """
    if program is None or shutil.which(program) is None:
        where = f"{program} was not found" if program else "the kernels need g++ or clang++"
        remedy = f"install g++ or clang++ (the variable CXX names another compiler) and {REINSTALL}"
        return Failure(f"no C++ compiler ({where})", remedy, tolerable=True)
    if not any((Path(folder) / "Python.h").is_file() for folder in include_folders):
        remedy = f"install them (Debian and Ubuntu: python3-dev, Fedora: python3-devel) and {REINSTALL}"
        return Failure("no Python headers (Python.h was not found)", remedy, tolerable=True)
    return Failure(
        f"compile error: {program} is installed but failed on the kernels ({shorten(error)}), which is a bug in lrcnet "
        "or a compiler that is broken or older than C++17",
        "read the compiler's messages above and report them, or set LRCNET_KERNELS=off to install without the fused "
        "kernels",
        tolerable=False,
    )


def announce(failure, setting):
    """Return the sentence that the person who builds the package reads: the problem, its consequence, the remedy."""
    if not failure.tolerable:
        consequence = "the build stops"
    elif setting == "required":
        consequence = "the build stops because LRCNET_KERNELS=required"
    else:
        consequence = "the package is installed without fused kernels and uses the plain PyTorch loop"
    return f"lrcnet: {failure.problem}; {consequence}; {failure.remedy}."


def installed_reason(failure):
    """Return the reason that the installed package gives for having no kernels."""
    return (
        f"the compiled kernels are not part of this installation ({failure.problem} when it was installed); "
        f"{failure.remedy}"
    )


def record(module, failure):
    """Write the reason beside the place of the compiled module, or remove an old one if the module was built."""
    note = module.with_name(NOTE)
    if failure is None:
        note.unlink(missing_ok=True)
        return
    # A module of an earlier build would be installed as if it belonged to these sources.
    module.unlink(missing_ok=True)
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(installed_reason(failure), encoding="utf-8")


class BuildKernels(build_ext):
    """Compile kernels.cpp once per instruction set and link all objects into one module."""

    failure = None

    def build_extension(self, ext):
        setting = read_setting(os.environ)
        self.failure = self.try_to_build(ext, setting)
        if self.failure is not None:
            sentence = announce(self.failure, setting)
            if setting == "required" or not self.failure.tolerable:
                raise BaseError(sentence)
            print(sentence, file=sys.stderr)
            ext.optional = True
        record(Path(self.get_ext_fullpath(ext.name)), self.failure)

    def copy_extensions_to_source(self):
        super().copy_extensions_to_source()
        for ext in self.extensions:
            record(Path(self.get_ext_fullpath(ext.name)), self.failure)

    def try_to_build(self, ext, setting):
        """Build the module; return the failure if there is one."""
        if setting == "off":
            return Failure("LRCNET_KERNELS was off", f"unset LRCNET_KERNELS and {REINSTALL}", tolerable=True)
        missing = missing_sources(SOURCES, [KERNELS, *MODULE])
        if missing:
            return source_missing(missing)
        try:
            objects = self.compile_kernels(ext)
            ext.extra_objects = list(objects.values())
            ext.define_macros += [(f"LRCNET_HAVE_{name.upper()}", "1") for name in objects]
            super().build_extension(ext)
        # PlatformError: Windows without Visual C++.
        except (CCompilerError, PlatformError) as error:
            program = getattr(self.compiler, "compiler_so_cxx", [None])[0]
            return diagnose(error, program, self.include_dirs)
        return None

    def compile_kernels(self, ext):
        """Return the object files by instruction set, without those sets that the compiler does not know."""
        objects = {}
        for name, flags in INSTRUCTION_SETS.items():
            if name != "baseline" and not (X86 and self.knows(name, flags)):
                continue
            (objects[name],) = self.compiler.compile(
                [f"{SOURCES}/{KERNELS}"],
                output_dir=str(Path(self.build_temp) / name),
                macros=[("LRCNET_TABLE", f"lrcnet_{name}"), ("LRCNET_NAME", f'"{name}"')],
                extra_postargs=[*ext.extra_compile_args, *flags],
                depends=ext.depends,
            )
        return objects

    def knows(self, name, flags):
        """Return whether the compiler takes these flags; print a message if it does not."""
        probe = Path(self.build_temp) / "probe.cpp"
        probe.write_text(PROBE, encoding="utf-8")
        try:
            self.compiler.compile([str(probe)], output_dir=self.build_temp, extra_postargs=["-Wno-psabi", *flags])
        except CCompilerError as error:
            problem = f"the compiler does not know {flags[0]} ({shorten(error)})"
            print(f"lrcnet: built without {name} kernels: {problem}", file=sys.stderr)
            return False
        return True


if __name__ == "__main__":
    setup(
        ext_modules=[
            Extension(
                "lrcnet.kernels._native",
                sources=[f"{SOURCES}/{name}" for name in MODULE],
                # A change in any of them links the module anew.
                depends=["setup.py", *(str(path) for path in sorted(Path(SOURCES).iterdir()))],
                extra_compile_args=FLAGS,
                extra_link_args=["-pthread", "-ldl"] if sys.platform == "linux" else [],
                language="c++",
                py_limited_api=True,
            )
        ],
        cmdclass={"build_ext": BuildKernels},
        options={"bdist_wheel": {"py_limited_api": "cp311"}},
    )
