"""C99 source of a network: one file and a header, no memory allocation, a step with dt, and a self-test.

The file holds constant arrays, the functions of one kind of cell, one solver, and the step through the whole stack.
Compiled with -D<NAME>_TEST it also has a main() that compares the step with the float64 network in Python.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lrcnet.errors import check_flag, one_of
from lrcnet.export.c_blocks import blocks_code
from lrcnet.export.c_cells import KINDS, cell_code, count_terms, widest_rows
from lrcnet.export.c_numbers import ARITHMETICS
from lrcnet.export.c_solvers import solver_code
from lrcnet.export.c_step import header_code, step_code, test_code
from lrcnet.export.c_tables import tables_code
from lrcnet.export.cost import Cost, count
from lrcnet.export.forms import network_of
from lrcnet.export.names import Names
from lrcnet.export.network import NetworkData, collect
from lrcnet.export.vectors import make_vectors
from lrcnet.saving import write_whole
from lrcnet.version import __version__


@dataclass(frozen=True)
class CSource:
    """Generated source: the text of the two files, and what a step costs."""

    name: str
    source: str
    header: str
    cost: Cost


def generate_c(
    model: Any,
    name: str = "net",
    *,
    arithmetic: str = "float32",
    own_exp: bool = False,
    timed: bool | None = None,
    readings: int = 24,
    names: Names | None = None,
) -> CSource:
    """Return the C99 source of a network.

    Args:
        model: a layer that looks back only, a Classifier, Regressor, Tagger or Forecaster around one, an LrcSSM, or a
            fitted estimator (see `export_onnx`).
        name: the prefix of every public name, a C identifier.
        arithmetic: "float32", or "int16" for 16-bit weights and integer arithmetic between the readings and the answer.
        own_exp: whether the source brings its own exponential, so that it needs no library at all.
        timed: whether dt is an argument of a step; None means yes if the layer can use it.
        readings: number of readings of the self-test.
        names: what the entries of a reading and of an answer are, for a comment in the header.

    >>> from lrcnet.export import generate_c
    >>> code = generate_c(lrcnet.LRCU(2, 3), "tiny")
    >>> "void tiny_step(tiny_state *state, const float x[2], float dt, float y[3]);" in code.header
    True
    """
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise ValueError(f"the name of a network must be a C identifier, but is {name!r}; use letters and digits")
    check_flag("own_exp", own_exp)
    numbers = ARITHMETICS[one_of("arithmetic", arithmetic, ARITHMETICS)]
    model = network_of(model)
    network = collect(model, name, timed)
    kind = KINDS[network.kind]
    sections = [
        _head(network, arithmetic, own_exp),
        _sizes(network),
        numbers.preamble,
        cell_code(network),
        blocks_code(network),
        solver_code(network.switches, numbers.literal) if kind.is_ode else "",
        tables_code(network, numbers),
        step_code(network, numbers),
        test_code(network, numbers, make_vectors(model, network, readings)),
    ]
    source = "\n".join(section for section in sections if section)
    return CSource(name, _drop_unused(source), header_code(network, arithmetic, names), count(network, numbers))


def export_c(
    model: Any,
    path: str | os.PathLike[str],
    *,
    arithmetic: str = "float32",
    own_exp: bool = False,
    timed: bool | None = None,
    names: Names | None = None,
) -> CSource:
    """Write the C99 source of a network as `path` and a header beside it; see `generate_c` for the arguments."""
    target = Path(path)
    if target.suffix != ".c":
        raise ValueError(f"the path of C source must end in .c, but is {target}; the header is written beside it")
    if re.search(r'["\\\x00-\x1f]', target.stem):
        # The source includes its header by this name.
        raise ValueError(f"a file of C source must have no quotes or backslashes in its name, but is {target.name!r}")
    name = re.sub(r"\W", "_", target.stem)
    code = generate_c(model, name, arithmetic=arithmetic, own_exp=own_exp, timed=timed, names=names)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target.with_suffix(".h"), code.header.encode())
    write_whole(target, code.source.replace(f'#include "{name}.h"', f'#include "{target.stem}.h"').encode())
    return code


def _head(network: NetworkData, arithmetic: str, own_exp: bool) -> str:
    numbers = ARITHMETICS[arithmetic]
    lines = [
        f"/* {network.name}: {_describe(network)}, {arithmetic}. Written by lrcnet {__version__}; do not edit.",
        f" * Self-test: cc -std=c99 -D{network.name.upper()}_TEST {network.name}.c -lm && ./a.out */",
        "#include <stdint.h>",
        f'#include "{network.name}.h"',
    ]
    if not numbers.own_exp:  # integers need no exponential of the library
        return "\n".join(lines) + "\n"
    return "\n".join(lines) + "\n" + (f"\n{numbers.own_exp}" if own_exp else "#include <math.h>\n#define EXP expf\n")


def _sizes(network: NetworkData) -> str:
    first = network.cells[0]
    sizes = {"LAYERS": len(network.cells), "UNITS": first.units, "MOTORS": first.outputs, "TERMS": count_terms(network)}
    sizes["COLUMNS"] = max(cell.inputs for cell in network.cells)
    if first.parts:
        sizes |= {"PARTS": len(first.parts), "ROWS": widest_rows(network)}
    return "".join(f"#define {name} {size}\n" for name, size in sizes.items())


def _describe(network: NetworkData) -> str:
    sizes = f"{network.inputs} inputs, {len(network.cells)} x {network.cells[0].units} units, {network.outputs} outputs"
    switches = ", ".join(f"{name} {value}" for name, value in network.switches.items())
    return f"{network.kind}, {sizes}" + (f" ({switches})" if switches else "")


def _drop_unused(source: str) -> str:
    """Remove macros and static functions that nobody uses, which a strict compiler would complain about."""
    definition = re.compile(r"^(?:static \w+ (\w+)\(|#define (\w+))", re.MULTILINE)
    while True:
        names = [function or macro for function, macro in definition.findall(source)]
        unused = [name for name in names if len(re.findall(rf"\b{name}\b", source)) == 1]
        if not unused:
            return source
        for name in unused:
            source = re.sub(rf"^#define {name}\b[^\n]*\n", "", source, flags=re.MULTILINE)
            source = re.sub(rf"(^/\*[^\n]*\*/\n)?^static \w+ {name}\(.*?^}}\n\n?", "", source, flags=re.M | re.S)
