"""The public names of `lrcnet`: pinned here, imported on first use, and visible to type checkers."""

import ast
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import lrcnet

PUBLIC = [
    "CELLS",
    "CTRNN",
    "CTRNNCell",
    "CfC",
    "CfCCell",
    "Classifier",
    "DiagonalLRC",
    "DiagonalLRCCell",
    "DivergenceError",
    "DivergenceWarning",
    "FirstGapWarning",
    "Forecaster",
    "GRU",
    "GRUCell",
    "GRUODE",
    "GRUODECell",
    "LAYERS",
    "LRC",
    "LRCCell",
    "LRCField",
    "LRCU",
    "LRCUCell",
    "LSTM",
    "LSTMCell",
    "LTC",
    "LTCCell",
    "LiquidODE",
    "LrcSSM",
    "MGU",
    "MGUCell",
    "MLPField",
    "MixedMemory",
    "MixedMemoryCell",
    "NeuralODE",
    "Regressor",
    "ResetBeforeGRU",
    "ResetBeforeGRUCell",
    "SOLVERS",
    "STC",
    "STCCell",
    "StabilityWarning",
    "Stream",
    "Tagger",
    "TimeWarning",
    "WiredCfC",
    "WiredCfCCell",
    "__version__",
    "find_rate",
    "info",
    "load",
    "project_",
    "safe_globals",
]
# The modules that `import lrcnet` alone has always made accessible.
MODULES = ["cells", "constraints", "environment", "errors", "kernels", "layers", "liquid", "neural_ode", "sequence"]


def run_python(code: str) -> str:
    """Run code in a new interpreter, where nothing has been imported yet."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_public_names_are_these() -> None:
    assert sorted(lrcnet.__all__) == PUBLIC


def test_every_public_name_exists_and_is_listed() -> None:
    assert all(hasattr(lrcnet, name) for name in PUBLIC)
    assert set(PUBLIC) <= set(dir(lrcnet))


def test_a_star_import_brings_every_public_name() -> None:
    names: dict[str, object] = {}
    exec("from lrcnet import *", names)
    assert set(PUBLIC) <= names.keys()


def test_type_checkers_and_the_interpreter_take_each_name_from_the_same_module() -> None:
    tree = ast.parse(Path(lrcnet.__file__).read_text())
    (checked_only,) = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    ]
    imports = [node for node in checked_only.body if isinstance(node, ast.ImportFrom)]
    seen_by_type_checkers = {
        alias.name: str(node.module).removeprefix("lrcnet.") for node in imports for alias in node.names
    }
    assert seen_by_type_checkers == lrcnet._HOMES
    assert sorted([*seen_by_type_checkers, "__version__"]) == PUBLIC


def test_importing_the_package_imports_no_torch() -> None:
    assert run_python("import sys, lrcnet; print(lrcnet.__version__, 'torch' in sys.modules)") == (
        f"{lrcnet.__version__} False"
    )


def test_using_a_public_name_imports_torch_and_numpy_only() -> None:
    code = (
        "import sys, torch, numpy; before = set(sys.modules); import lrcnet; from lrcnet import *; "
        "new = {name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names); "
        "print(sorted(new - {'lrcnet', 'numpy', 'torch'}))"
    )
    assert run_python(code) == "[]"


def test_modules_are_attributes_of_the_package() -> None:
    names = run_python(f"import lrcnet; print(*(getattr(lrcnet, name).__name__ for name in {MODULES}))").split()
    assert names == [f"lrcnet.{name}" for name in MODULES]


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'lrcnet' has no attribute 'LRCX'"):
        lrcnet.LRCX  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'LRCX'"):
        exec("from lrcnet import LRCX")


def test_layers_pickle_into_an_interpreter_that_has_not_imported_lrcnet(tmp_path: Path) -> None:
    layer, x = lrcnet.LRCU(3, 5), torch.randn(4, 2, 3)
    file = tmp_path / "layer.pickle"
    file.write_bytes(pickle.dumps((layer, x)))
    code = (
        f"import pickle, pathlib; layer, x = pickle.loads(pathlib.Path({str(file)!r}).read_bytes()); "
        "print(type(layer).__module__, float(layer(x)[0].sum().detach()))"
    )
    module, total = run_python(code).split()
    assert module == "lrcnet.layers"
    assert float(total) == pytest.approx(float(layer(x)[0].sum().detach()))


@pytest.mark.skipif(lrcnet.kernels.unavailable() is not None, reason="the fused kernels are not built")
def test_importing_the_kernels_registers_the_operators_of_exported_programs(tmp_path: Path) -> None:
    layer, x = lrcnet.LRCU(3, 5).eval(), torch.randn(4, 2, 3)
    file = tmp_path / "layer.pt2"
    torch.export.save(torch.export.export(layer, (x,)), file)
    code = (
        f"import lrcnet.kernels, torch; program = torch.export.load({str(file)!r}); "
        "print('lrcnet.scan' in str(program.graph))"
    )
    assert run_python(code) == "True"
