"""The layout keeps its promises: imports go down only, importing is light, files stay small."""

import ast
import subprocess
import sys
from pathlib import Path

import lrcnet

SOURCE = Path(lrcnet.__file__).parent
# From the ground up; a module may import from its own level or below.
LEVELS = [
    {"errors", "version", "tracing"},
    {"constraints", "solvers", "circuit"},
    {"kernels"},
    {"parallel_adjoint"},
    {"liquid", "environment"},
    {"cells"},
    {"sequence", "layers", "torch_layers", "neural_ode"},
    {"models", "tasks", "driving", "interpret", "theory"},
    {"training"},
    {"paper", "report", "benchmarks"},
    {"commands"},
    {"cli"},
    {"__main__"},
]
# These know no network at all; tasks may use the worlds to make their recordings.
INDEPENDENT = {"tasks": {"tasks", "driving"}, "driving": {"driving"}}


def level(package: str) -> int:
    return next(i for i, names in enumerate(LEVELS) if package in names)


def imported_packages(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "lrcnet":
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("lrcnet.")}
    return found


def modules() -> list[tuple[Path, str]]:
    return [
        (path, path.relative_to(SOURCE).parts[0].removesuffix(".py"))
        for path in SOURCE.rglob("*.py")
        if path != SOURCE / "__init__.py"
    ]


def test_imports_go_down_only() -> None:
    for path, package in modules():
        for other in imported_packages(path):
            assert level(other) <= level(package), f"{path.relative_to(SOURCE)} imports {other}, which stands above it"
            if package in INDEPENDENT:
                assert other in INDEPENDENT[package] | {"errors", "version"}, (
                    f"{path.relative_to(SOURCE)} must not know {other}"
                )


def test_files_stay_small() -> None:
    sizes = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path, _ in modules()}
    assert {name: size for name, size in sizes.items() if size > 400} == {}


def test_every_file_says_what_it_holds() -> None:
    for path, _ in modules():
        assert ast.get_docstring(ast.parse(path.read_text())), f"{path.relative_to(SOURCE)} has no docstring"


def test_importing_the_library_imports_torch_and_numpy_only() -> None:
    code = (
        "import sys, torch, numpy; before = set(sys.modules); import lrcnet; "
        "new = {name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names); print(new)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() in ("{'lrcnet'}", "{'lrcnet', 'torch'}", "{'torch', 'lrcnet'}"), shown


def test_public_names_exist() -> None:
    for name in lrcnet.__all__:
        assert hasattr(lrcnet, name)
