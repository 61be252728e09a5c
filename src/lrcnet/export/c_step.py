"""The public functions of generated C: reset and step, the header that declares them, and the self-test."""

import numpy as np

from lrcnet.export.c_cells import KINDS
from lrcnet.export.c_numbers import Arithmetic, float_literal
from lrcnet.export.c_tables import float_array, head_code
from lrcnet.export.network import NetworkData
from lrcnet.export.vectors import Vectors


def _signature(network: NetworkData) -> str:
    name, gap = network.name, ", float dt" if network.timed else ""
    return f"void {name}_step({name}_state *state, const float x[{network.inputs}]{gap}, float y[{network.outputs}])"


def header_code(network: NetworkData, arithmetic: str) -> str:
    """Return the header: sizes, the state of a stream, and two functions."""
    name, upper, units = network.name, network.name.upper(), network.cells[0].units
    number = "float" if arithmetic == "float32" else "int32_t"
    members = [f"  {number} h[{len(network.cells)}][{units}];"]
    if KINDS[network.kind].has_memory:
        members.append(f"  {number} c[{len(network.cells)}][{units}];")
    if network.pooling != "last":
        members.append(f"  float pooled[{units}];")
    if network.pooling != "last" or network.fill_first_gap:
        members.append("  uint32_t readings;")
    gap = "dt is the time since the previous reading, in the unit of the training data. " if network.timed else ""
    return "\n".join(
        [
            f"/* {name}: a recurrent network, one reading at a time. Written by lrcnet; do not edit. */",
            f"#ifndef {upper}_H\n#define {upper}_H",
            "#include <stdint.h>",
            f"#define {upper}_INPUTS {network.inputs}\n#define {upper}_OUTPUTS {network.outputs}",
            '#ifdef __cplusplus\nextern "C" {\n#endif',
            "\n/* The state of one stream. */",
            f"typedef struct {{\n{chr(10).join(members)}\n}} {name}_state;",
            "\n/* Start a stream. */",
            f"void {name}_reset({name}_state *state);",
            f"\n/* Take one reading x, and write the answer to y. {gap}*/",
            f"{_signature(network)};",
            "\n#ifdef __cplusplus\n}\n#endif",
            "#endif\n",
        ]
    )


def step_code(network: NetworkData, numbers: Arithmetic) -> str:
    """Return the definitions of reset and step."""
    columns = network.cells[0].inputs
    widest = max(columns, network.cells[0].units)
    lines = [
        f"void {network.name}_reset({network.name}_state *state) {{",
        f"  static const {network.name}_state start = {{0}};",
        "  *state = start;",
        "}\n",
        f"{_signature(network)} {{",
        f"  num values[{widest}], t[TERMS * UNITS];",
        *_time_lines(network),
        *_input_lines(network),
        "  for (l = 0; l < LAYERS; l++) {",
        "    terms(&cells[l], values, t);",
        f"    advance(&cells[l], t, state->h[l], {_last_argument(network)});",
        f"    for (i = 0; i < UNITS; i++) values[i] = {_output_of_a_cell(network)};",
        "  }",
        *_pooling_lines(network),
        *_answer_lines(network),
        "}\n",
    ]
    return head_code(network, numbers) + "\n" + "\n".join(lines)


def _time_lines(network: NetworkData) -> list[str]:
    lines = ["  int i, l;"]
    uses_gap = KINDS[network.kind].is_ode and not network.time_feature
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
    if not kind.is_ode:
        return "state->c[l]" if kind.has_memory else "0"
    return "FROM_FLOAT(gap)" if network.timed and not network.time_feature else "ONE"


def _input_lines(network: NetworkData) -> list[str]:
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


def _output_of_a_cell(network: NetworkData) -> str:
    if "output_scale" not in network.cells[0].vectors:
        return "state->h[l][i]"
    return "TIMES(cells[l].output_scale, i, state->h[l][i]) + LOAD(cells[l].output_shift, i)"


def _pooling_lines(network: NetworkData) -> list[str]:
    if network.pooling == "last":
        return []
    lines = ["  state->readings++;", "  for (i = 0; i < UNITS; i++) {", "    float value = TO_FLOAT(values[i]);"]
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
        return ["  for (i = 0; i < UNITS; i++) y[i] = TO_FLOAT(values[i]);"]
    answer = "TO_FLOAT(sum)"
    if network.target_scale is not None:
        answer = f"target_mean[l] + target_scale[l] * {answer}"
    if network.residual:
        answer += " + x[l]"
    return [
        f"  for (l = 0; l < {network.outputs}; l++) {{",
        "    num sum = LOAD(head_bias, l);",
        "    for (i = 0; i < UNITS; i++) sum += TIMES(head_weight, l * UNITS + i, values[i]);",
        f"    y[l] = {answer};",
        "  }",
    ]


def test_code(network: NetworkData, numbers: Arithmetic, vectors: Vectors) -> str:
    """Return a main() that compares a stream with the answers of the float64 network."""
    name, (count, inputs), outputs = network.name, vectors.x.shape, network.outputs
    largest = float(np.abs(vectors.y).max(initial=0.0)) or 1.0
    gap = ", test_dt[t]" if network.timed else ""
    tables = [float_array("test_x", vectors.x.ravel()), float_array("test_y", vectors.y.ravel())]
    if network.timed:
        tables.append(float_array("test_dt", vectors.dt))
    return f"""\
#ifdef {name.upper()}_TEST
#include <stdio.h>
/* {count} readings, and the answers of the network in float64 */
{"".join(tables)}
int main(void) {{
  {name}_state state;
  float y[{outputs}], worst = 0.0f, limit = {float_literal(numbers.tolerance * largest)};
  int t, i;
  {name}_reset(&state);
  for (t = 0; t < {count}; t++) {{
    {name}_step(&state, test_x + t * {inputs}{gap}, y);
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
