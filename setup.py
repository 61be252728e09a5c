"""Builds the fused kernels, once per instruction set; without a compiler the package still installs."""

import platform
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCES = "src/lrcnet/kernels/csrc"
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
# Best first, as the module tries them. The baseline is what every processor of the architecture has: SSE2, or NEON.
INSTRUCTION_SETS = {
    "avx512": ["-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mfma", "-mprefer-vector-width=512"],
    "avx2": ["-mavx2", "-mfma"],
    "baseline": [],
}
X86 = platform.machine().lower() in ("x86_64", "amd64")


class BuildKernels(build_ext):
    """Compiles kernels.cpp once per instruction set and links all into one module."""

    def run(self):
        try:
            super().run()
        except Exception as error:
            self.explain(error)

    def build_extension(self, ext):
        try:
            built = self.compile_kernels(ext)
            ext.extra_objects = list(built.values())
            ext.define_macros += [(f"LRCNET_HAVE_{name.upper()}", "1") for name in built]
            super().build_extension(ext)
        except Exception as error:
            self.explain(error)

    def compile_kernels(self, ext):
        """Object files by instruction set; one the compiler does not know is left out, the baseline must compile."""
        built, left_out = {}, []
        for name, flags in INSTRUCTION_SETS.items():
            if name != "baseline" and not X86:
                continue
            try:
                (built[name],) = self.compiler.compile(
                    [f"{SOURCES}/kernels.cpp"],
                    output_dir=str(Path(self.build_temp) / name),
                    macros=[("LRCNET_TABLE", f"lrcnet_{name}"), ("LRCNET_NAME", f'"{name}"')],
                    extra_postargs=[*ext.extra_compile_args, *flags],
                    depends=ext.depends,
                )
            except Exception as error:
                if name == "baseline":
                    raise
                left_out.append(f"lrcnet: built without {name} kernels: {error}")
        print(*left_out, sep="\n", end="\n" if left_out else "", file=sys.stderr)
        return built

    def explain(self, error):
        print(
            f"lrcnet: the fused kernels were not built ({error}). The package works without them, with the plain "
            "PyTorch loop; for the kernels install a C++17 compiler (g++ or clang++) and reinstall.",
            file=sys.stderr,
        )


setup(
    ext_modules=[
        Extension(
            "lrcnet.kernels._native",
            sources=[f"{SOURCES}/module.cpp", f"{SOURCES}/threads.cpp"],
            depends=[str(path) for path in sorted(Path(SOURCES).glob("*.h"))],
            extra_compile_args=FLAGS,
            extra_link_args=["-pthread", "-ldl"] if sys.platform == "linux" else [],
            language="c++",
            py_limited_api=True,
            optional=True,
        )
    ],
    cmdclass={"build_ext": BuildKernels},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
