"""The public functions of generated C: reset and step, the header that declares them, and the self-test."""

from dataclasses import replace

import numpy as np

from lrcnet.export.c_blocks import block_step_lines
from lrcnet.export.c_cells import KINDS, has_memory
from lrcnet.export.c_numbers import Arithmetic, float_literal
from lrcnet.export.c_tables import float_array, head_code, int_array
from lrcnet.export.names import Names
from lrcnet.export.network import NetworkData
from lrcnet.export.vectors import Vectors


def _signature(network: NetworkData) -> str:
    name, gap = network.name, ", float dt" if network.timed else ""
    reading = f"const float x[{network.inputs}]" if network.embedding is None else "int token"
    return f"void {name}_step({name}_state *state, {reading}{gap}, float y[{network.outputs}])"


def header_code(network: NetworkData, arithmetic: str, names: Names | None = None) -> str:
    """Return the header: sizes, the state of a stream, and two functions."""
    name, upper, units = network.name, network.name.upper(), network.cells[0].units
    number = "float" if arithmetic == "float32" else "int32_t"
    members = [f"  {number} h[{len(network.cells)}][{units}];"]
    if has_memory(network):
        members.append(f"  {number} c[{len(network.cells)}][{units}];")
    if network.pooling != "last":
        members.append(f"  float pooled[{network.cells[0].outputs}];")
    if network.pooling != "last" or network.fill_first_gap:
        members.append("  uint32_t readings;")
    size, reading = f"INPUTS {network.inputs}", "reading x"
    if network.embedding is not None:
        size, reading = f"TOKENS {len(network.embedding)}", "token (one outside the vocabulary counts as token 0)"
    gap = "dt is the time since the previous reading, in the unit of the training data. " if network.timed else ""
    return "\n".join(
        [
            f"/* {name}: a recurrent network, one reading at a time. Written by lrcnet; do not edit. */",
            f"#ifndef {upper}_H\n#define {upper}_H",
            "#include <stdint.h>",
            f"#define {upper}_{size}\n#define {upper}_OUTPUTS {network.outputs}",
            '#ifdef __cplusplus\nextern "C" {\n#endif',
            "\n/* The state of one stream. */",
            f"typedef struct {{\n{chr(10).join(members)}\n}} {name}_state;",
            "\n/* Start a stream. */",
            f"void {name}_reset({name}_state *state);",
            f"\n/* Take one {reading}, and write the answer to y. {gap}*/",
            *([] if names is None else _name_lines(names)),
            f"{_signature(network)};",
            "\n#ifdef __cplusplus\n}\n#endif",
            "#endif\n",
        ]
    )


def _name_lines(names: Names) -> list[str]:
    """Return a comment that says what each entry of a reading and of an answer is."""
    lines = [f"x[{i}]: {name}" for i, name in enumerate(names.inputs)]
    lines += [f"y[{i}]: {name}" for i, name in enumerate(names.outputs)]
    # A name must not end the comment, or make a trigraph.
    plain = [line.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?") for line in lines]
    return ["/* " + "\n * ".join(" ".join(line.split()) for line in plain) + " */"]


def step_code(network: NetworkData, numbers: Arithmetic) -> str:
    """Return the definitions of reset and step."""
    first = network.cells[0]
    arrays = f"values[{max(first.inputs, first.units)}]"
    if network.encoder:
        arrays = f"reading[{network.encoder.inputs}], inner[COLUMNS], values[MOTORS]"
    memory = ["    mix(&memories[l], values, state->h[l], state->c[l]);"] if network.cells[0].memory else []
    if network.encoder:
        loop = block_step_lines(network, _last_argument(network))
    else:
        loop = [
            "  for (l = 0; l < LAYERS; l++) {",
            *memory,
            "    terms(&cells[l], values, t);",
            f"    advance(&cells[l], t, state->h[l], {_last_argument(network)});",
            f"    for (i = 0; i < MOTORS; i++) values[i] = {_output_of_a_cell(network)};",
            "  }",
        ]
    lines = [
        f"void {network.name}_reset({network.name}_state *state) {{",
        f"  static const {network.name}_state start = {{0}};",
        "  *state = start;",
        "}\n",
        f"{_signature(network)} {{",
        f"  num {arrays}, t[TERMS];",
        *_time_lines(network),
        *_input_lines(network),
        *loop,
        *_pooling_lines(network),
        *_answer_lines(network),
        "}\n",
    ]
    return head_code(network, numbers) + "\n" + "\n".join(lines)


def _time_lines(network: NetworkData) -> list[str]:
    lines = ["  int i, l;"]
    uses_gap = KINDS[network.kind].takes_dt and not network.time_feature
    if network.timed:
        unit = "" if network.time_unit == 1 else f" / {float_literal(network.time_unit)}"
        lines.insert(0, f"  float gap = dt{unit};")
        if network.clamp_dt:
            lines.append("  if (!(gap >= 0.0f)) gap = 0.0f;")
        if network.fill_first_gap:
            lines.append("  if (!state->readings && gap == 0.0f) gap = 1.0f;")
            if network.pooling == "last":
                lines.append("  state->readings = 1;")
        if not uses_gap and not network.time_feature:
            lines.append("  (void)gap;")
    return lines


def _last_argument(network: NetworkData) -> str:
    kind = KINDS[network.kind]
    if not kind.takes_dt:
        return "state->c[l]" if kind.has_memory else "0"
    return "FROM_FLOAT(gap)" if network.timed and not network.time_feature else "ONE"


def _input_lines(network: NetworkData) -> list[str]:
    """Return the code that scales a reading, or looks up a token, for the first cell or for the encoder."""
    if network.encoder:  # its blocks take the gap
        lines = _value_lines(replace(network, encoder=None, time_feature=False))
        return [line.replace("values[", "reading[") for line in lines]
    return _value_lines(network)


def _value_lines(network: NetworkData) -> list[str]:
    if network.embedding is not None:
        return _token_lines(network)
    value = "x[i]"
    if network.input_mean.any():
        value = f"({value} - input_mean[i])"
    if (network.input_scale != 1).any():
        value += " * input_scale[i]"
    if network.input_shift.any():
        value += " + input_shift[i]"
    lines = [f"  for (i = 0; i < {network.inputs}; i++) values[i] = FROM_FLOAT({value});"]
    if network.time_feature:
        feature = value.replace("x[i]", "gap" if network.timed else "1.0f").replace("[i]", f"[{network.inputs}]")
        lines.append(f"  values[{network.inputs}] = FROM_FLOAT({feature});")
    return lines


def _token_lines(network: NetworkData) -> list[str]:
    """Return the code that looks up a token; the first cell's input map is part of the table."""
    assert network.embedding is not None
    count, width = network.embedding.shape
    lines = [
        f"  if (token < 0 || token >= {count}) token = 0;",
        f"  for (i = 0; i < {width}; i++) values[i] = LOAD(embedding, token * {width} + i);",
    ]
    if network.time_feature:
        feature = "gap" if network.timed else "1.0f"
        if network.input_scale[-1] != 1:
            feature += f" * {float_literal(network.input_scale[-1])}"
        if network.input_shift[-1]:
            feature += f" + {float_literal(network.input_shift[-1])}"
        lines.append(f"  values[{width}] = FROM_FLOAT({feature});")
    return lines


def _output_of_a_cell(network: NetworkData) -> str:
    first = network.cells[0]
    if "output_scale" not in first.vectors:
        # The motor neurons of a wired CfC are its last units.
        return f"state->h[l][{first.units - first.outputs} + i]" if first.parts else "state->h[l][i]"
    return "TIMES(cells[l].output_scale, i, state->h[l][i]) + LOAD(cells[l].output_shift, i)"


def _pooling_lines(network: NetworkData) -> list[str]:
    if network.pooling == "last":
        return []
    lines = ["  state->readings++;", "  for (i = 0; i < MOTORS; i++) {", "    float value = TO_FLOAT(values[i]);"]
    if network.pooling == "mean":
        lines += [
            "    state->pooled[i] += value;",
            "    values[i] = FROM_FLOAT(state->pooled[i] / (float)state->readings);",
        ]
    else:
        lines += [
            "    if (state->readings == 1 || value > state->pooled[i]) state->pooled[i] = value;",
            "    values[i] = FROM_FLOAT(state->pooled[i]);",
        ]
    return [*lines, "  }"]


def _answer_lines(network: NetworkData) -> list[str]:
    if network.head is None:
        return ["  for (i = 0; i < MOTORS; i++) y[i] = TO_FLOAT(values[i]);"]
    answer = "TO_FLOAT(SUM(sum))"
    if network.target_scale is not None:
        answer = f"target_mean[l] + target_scale[l] * {answer}"
    if network.residual:
        answer += " + x[l]"
    return [
        f"  for (l = 0; l < {network.outputs}; l++) {{",
        "    wide sum = LOAD(head_bias, l);",
        "    for (i = 0; i < MOTORS; i++) sum += TIMES(head_weight, l * MOTORS + i, values[i]);",
        f"    y[l] = {answer};",
        "  }",
    ]


def test_code(network: NetworkData, numbers: Arithmetic, vectors: Vectors) -> str:
    """Return a main() that compares a stream with the answers of the float64 network."""
    name, count, outputs = network.name, len(vectors.x), network.outputs
    largest = float(np.abs(vectors.y).max(initial=0.0)) or 1.0
    resolution = numbers.resolution * (1.0 if network.target_scale is None else float(network.target_scale.max()))
    gap = ", test_dt[t]" if network.timed else ""
    if network.embedding is None:
        tables, reading = [float_array("test_x", vectors.x.ravel())], f"test_x + t * {network.inputs}"
    else:
        tables, reading = [int_array("test_tokens", vectors.x)], "test_tokens[t]"
    tables.append(float_array("test_y", vectors.y.ravel()))
    if network.timed:
        tables.append(float_array("test_dt", vectors.dt))
    return f"""\
#ifdef {name.upper()}_TEST
#include <stdio.h>
/* {count} readings, and the answers of the network in float64 */
{"".join(tables)}
int main(void) {{
  {name}_state state;
  float y[{outputs}], worst = 0.0f, limit = {float_literal(numbers.tolerance * largest + resolution)};
  int t, i;
  {name}_reset(&state);
  for (t = 0; t < {count}; t++) {{
    {name}_step(&state, {reading}{gap}, y);
    for (i = 0; i < {outputs}; i++) {{
      float error = y[i] - test_y[t * {outputs} + i];
      if (error < 0.0f) error = -error;
      if (!(error <= worst)) worst = error;
    }}
  }}
  printf("{name}: largest error %g of answers up to %g: %s\\n", (double)worst, {largest:.6g},
         worst <= limit ? "ok" : "FAILED");
  return worst <= limit ? 0 : 1;
}}
#endif
"""
