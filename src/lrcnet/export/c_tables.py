"""The constant arrays of a network in C; matrices with many zeros are stored without them."""

import textwrap
from collections.abc import Sequence

import numpy as np

from lrcnet.export.c_numbers import Arithmetic, float_literal
from lrcnet.export.network import Array, CellData, NetworkData

# Below this share of entries that are not zero, column numbers cost less than the zeros.
_DENSE = 0.7
_MOST_ENTRIES = 65_535  # the numbers of columns and rows are 16-bit


def groups_of(cell: CellData) -> list[str]:
    """Return the groups of a cell's matrices in the order of the members of its struct: "in", "rec" ..."""
    return list(dict.fromkeys(name.split("_")[0] for name in cell.matrices))


def present_entries(cell: CellData, group: str) -> np.ndarray:
    """Return which entries of a group's matrices (rows, columns) are stored: all, if few are zero."""
    matrices = {name: value for name, value in cell.matrices.items() if name.startswith(f"{group}_")}
    # A synapse without conductance, weight and coupling has no effect, whatever its slope and offset.
    deciding = [value for name, value in matrices.items() if name.split("_")[1] not in ("a", "b")]
    present = np.any([value != 0 for value in deciding], axis=0)
    sparse = present.mean() < _DENSE and present.sum() <= _MOST_ENTRIES
    return present if sparse else np.ones_like(present)


def tables_code(network: NetworkData, numbers: Arithmetic) -> str:
    """Return the arrays of all cells, the table `cells`, and those of their memories and blocks if they have some."""
    parts: list[str] = []
    cells, memories, blocks = [], [], []
    for index, cell in enumerate(network.cells):
        prefix = f"l{index}"
        if cell.parts:
            rows = [
                _members_code(part, f"{prefix}_p{number}", numbers, parts, [part.units, len(part.matrices["in_w"])])
                for number, part in enumerate(cell.parts)
            ]
            parts.append(_table_code("part", f"{prefix}_parts", rows))
            cells.append(f"{{{prefix}_parts}}")
        else:
            cells.append(_members_code(cell, prefix, numbers, parts))
        if cell.memory:
            memories.append(_members_code(cell.memory, f"{prefix}_memory", numbers, parts))
        if cell.block:
            blocks.append(_members_code(cell.block, f"{prefix}_block", numbers, parts))
    tables = [_table_code("cell", "cells", cells)]
    if memories:
        tables.append(_table_code("mixed", "memories", memories))
    if blocks:
        tables.append(_table_code("block", "blocks", blocks))
    if network.encoder:
        encoder = _members_code(network.encoder, "encoder", numbers, parts)
        tables.append(f"static const linear encoder = {encoder};\n")
    return "".join([*parts, *tables])


def _members_code(cell: CellData, prefix: str, numbers: Arithmetic, parts: list[str], sizes: Sequence[int] = ()) -> str:
    """Write the arrays of a cell; return the initialiser of its struct."""
    members = [_group_code(cell, group, f"{prefix}_{group}", numbers, parts) for group in groups_of(cell)]
    members += [_array_code(cell.vectors[name], f"{prefix}_{name}", numbers, parts) for name in vector_names(cell)]
    return "{" + ", ".join([*members, *map(str, sizes)]) + "}"


def _table_code(kind: str, name: str, rows: Sequence[str]) -> str:
    return f"static const {kind} {name}[] = {{\n" + ",\n".join(f"  {row}" for row in rows) + "\n};\n"


def vector_names(cell: CellData) -> list[str]:
    """Return the vectors of a cell in the order of the members of its struct."""
    order = ("bias", "bias_n", "rate", "g_l", "e_l", "p", "k_eps", "output_scale", "output_shift")
    known = [name for name in order if name in cell.vectors]
    return known + [name for name in cell.vectors if name not in order]


def _group_code(cell: CellData, group: str, prefix: str, numbers: Arithmetic, parts: list[str]) -> str:
    """Write the matrices of a group; return the initialiser of its struct."""
    present = present_entries(cell, group)
    names = [name for name in cell.matrices if name.startswith(f"{group}_")]
    members = [
        _array_code(cell.matrices[name][present], f"{prefix}_{name.split('_')[1]}", numbers, parts) for name in names
    ]
    start = source = "0"
    if not present.all():
        start, source = f"{prefix}_start", f"{prefix}_source"
        ends = np.concatenate([[0], present.sum(1).cumsum()])
        parts.append(_declare("unsigned short", start, [str(value) for value in ends]))
        parts.append(_declare("unsigned short", source, [str(value) for value in np.nonzero(present)[1]]))
    return "{" + ", ".join([*members, start, source, str(present.shape[1])]) + "}"


def _array_code(values: Array, name: str, numbers: Arithmetic, parts: list[str]) -> str:
    """Write an array; return the initialiser of a struct `array` that refers to it."""
    stored, shift = numbers.store(values)
    parts.append(_declare(numbers.weight, name, stored))
    return f"{{{name}, {shift}}}" if numbers.weight != "float" else f"{{{name}}}"


def _declare(kind: str, name: str, values: Sequence[str]) -> str:
    text = textwrap.fill(", ".join(values or ["0"]), 110, initial_indent="  ", subsequent_indent="  ")
    return f"static const {kind} {name}[] = {{\n{text}\n}};\n"


def float_array(name: str, values: Array) -> str:
    """Return a constant array of floats, such as the scaling of inputs, in either arithmetic."""
    return _declare("float", name, [float_literal(value) for value in values])


def int_array(name: str, values: Array) -> str:
    """Return a constant array of whole numbers, such as tokens."""
    return _declare("int", name, [str(int(value)) for value in values])


def head_code(network: NetworkData, numbers: Arithmetic) -> str:
    """Return the arrays of the read-out and of the scaling of inputs and answers, those that the network has."""
    parts: list[str] = []
    if network.input_mean.any():
        parts.append(float_array("input_mean", network.input_mean))
    if (network.input_scale != 1).any():
        parts.append(float_array("input_scale", network.input_scale))
    if network.input_shift.any():
        parts.append(float_array("input_shift", network.input_shift))
    if network.embedding is not None:
        embedding = _array_code(network.embedding, "token_values", numbers, parts)
        parts.append(f"static const array embedding = {embedding};\n")
    if network.head is not None:
        weight = _array_code(network.head[0], "head_w", numbers, parts)
        bias = _array_code(network.head[1], "head_b", numbers, parts)
        parts.append(f"static const array head_weight = {weight}, head_bias = {bias};\n")
    if network.target_mean is not None and network.target_scale is not None:
        parts += [float_array("target_mean", network.target_mean), float_array("target_scale", network.target_scale)]
    return "".join(parts)
