"""The diagonal LRC in C: units that see their own state and all inputs; see `lrcnet.cells.diagonal`."""

from typing import Any

ELASTANCE_CODE = {
    "asymmetric": "num eps = sigmoid({w});",
    "symmetric": "num half = LOAD(c->k_eps, i), eps = sigmoid(ADD({w}, half)) - sigmoid(ADD({w}, -half));",
}
"""The elastance of a unit by name, given the expression of its argument w."""


def diagonal_vectors(switches: dict[str, Any]) -> list[str]:
    """Return the vectors of a cell in the order of the members of its struct."""
    mixed, widths = switches["synapses"] == "mixed", ["k_eps"] if switches["elastance"] == "symmetric" else []
    own = ["bias", *(["g_l"] if mixed else []), "e_l", *widths, "a", "b", "g", "k", "o"]
    return own + (
        ["g_in", "k_in", *(["widest"] if switches["limited"] else [])] if mixed else ["w_in", "slope", "offset"]
    )


def diagonal_code(switches: dict[str, Any]) -> str:
    """Return the C functions of diagonal LRC cells."""
    mixed = switches["synapses"] == "mixed"
    if mixed:
        source, inputs = "", "x"
        sums = """\
    num open = sigmoid(t[i]), f = ADD(LOAD(c->g_l, i), TIMES(c->g_in, i, open));
    num z = ADD(LOAD(c->g_l, i), TIMES(c->k_in, i, open)), w = ADD(t[UNITS + i], TIMES(c->o, i, h[i]));
"""
    else:
        source = """\
  num open[COLUMNS];
  for (i = 0; i < c->in.n; i++) open[i] = sigmoid(ADD(TIMES(c->slope, i, x[i]), LOAD(c->offset, i)));
"""
        inputs = "open"
        sums = "    num f = t[i], z = t[UNITS + i], w = ADD(LOAD(c->w_in, i), TIMES(c->o, i, h[i]));\n"
    limit = (
        "  for (i = 0; i < UNITS; i++)\n"
        "    t[UNITS + i] = TIMES(c->widest, i, tangent(DIV(t[UNITS + i], LOAD(c->widest, i))));\n"
    )
    return f"""\
typedef struct {{ matrix in; array {", ".join(diagonal_vectors(switches))}; }} cell;

static void terms(const cell *c, const num *x, num *t) {{
  int i;
{source}  for (i = 0; i < 2 * UNITS; i++) t[i] = LOAD(c->bias, i);
  add_product(&c->in, 0, 2 * UNITS, {inputs}, t);
{limit if switches["limited"] else ""}}}

static void split(const cell *c, const num *t, const num *h, num *decay, num *drive) {{
  int i;
  for (i = 0; i < UNITS; i++) {{
    num own = sigmoid(ADD(TIMES(c->a, i, h[i]), LOAD(c->b, i)));
{sums}    {ELASTANCE_CODE[switches["elastance"]].format(w="w")}
    num forget = sigmoid(ADD(f, TIMES(c->g, i, own))), push = tangent(ADD(z, TIMES(c->k, i, own)));
    decay[i] = MUL(eps, forget);
    drive[i] = MUL(eps, TIMES(c->e_l, i, push));
  }}
}}
"""
