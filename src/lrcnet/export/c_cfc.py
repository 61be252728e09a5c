"""The closed-form continuous-time cells CfC and WiredCfC in C.

A cell is a list of parts, each driven by the one before: one for a CfC, one per layer of the wiring for a WiredCfC. The
heads of a part stand below each other, as in `lrcnet.cells.cfc_equation`. Height and slope of the backbone's activation
are part of the weights.
"""

from typing import Any

from lrcnet.cells.cfc_equation import GATED_HEADS

_ACTIVATIONS = {
    "lecun_tanh": "tangent(z[i])",
    "tanh": "tangent(z[i])",
    "relu": "z[i] > 0 ? z[i] : 0",
    "silu": "MUL(z[i], sigmoid(z[i]))",
    "gelu": "gelu(z[i])",
}
_GATE = "num gate = sigmoid(ADD(z[2 * q->units + i], MUL(dt, z[3 * q->units + i])));"
_NEW_STATES = {
    "default": f"""\
      {_GATE}
      num from = tangent(z[i]), to = tangent(z[q->units + i]);
      h[i] = from + MUL(gate, to - from);
""",
    "no_gate": f"""\
      {_GATE}
      h[i] = tangent(z[i]) + MUL(gate, tangent(z[q->units + i]));
""",
    "pure": """\
      num rate = ADD(LOAD(q->leak, i), z[i] < 0 ? -z[i] : z[i]);
      h[i] = ADD(LOAD(q->asymptote, i), -TIMES(q->asymptote, i, MUL(power(-MUL(dt, rate)), z[i])));
""",
}


def heads_of(mode: str) -> int:
    """Return the number of heads per unit."""
    return 1 if mode == "pure" else GATED_HEADS


def cfc_code(switches: dict[str, Any]) -> str:
    """Return the C functions of CfC cells."""
    mode, layers = switches["mode"], switches["backbone_layers"]
    deeper = range(1, layers + 1)
    matrices = ", ".join(["in", "rec", *(f"deep{k}" for k in deeper)])
    vectors = ", ".join(["bias", *(f"bias{k}" for k in deeper)])
    vectors += ", leak, asymptote" if mode == "pure" else ""
    backbone = "".join(_layer_code(k, switches) for k in deeper)
    return f"""\
typedef struct {{ matrix {matrices}; array {vectors}; int units, width; }} part;
typedef struct {{ const part *parts; }} cell;

static void terms(const cell *c, const num *x, num *t) {{
  int i;
  for (i = 0; i < c->parts->width; i++) t[i] = LOAD(c->parts->bias, i);
  add_product(&c->parts->in, 0, c->parts->width, x, t);
}}

static void advance(const cell *c, const num *t, num *h, num dt) {{
  num z[ROWS]{", a[ROWS]" if layers else ""};
  const num *x = h;
  int i, p;
  for (p = 0; p < PARTS; p++) {{
    const part *q = c->parts + p;
    for (i = 0; i < q->width; i++) z[i] = p ? LOAD(q->bias, i) : t[i];
    if (p) add_product(&q->in, 0, q->width, x, z);
    add_product(&q->rec, 0, q->width, h, z);
{backbone}    for (i = 0; i < q->units; i++) {{
{_NEW_STATES[mode]}    }}
    x = h;
    h += q->units;
  }}
}}
"""


def _layer_code(k: int, switches: dict[str, Any]) -> str:
    """Return the code of the k-th layer behind the first one; the last one gives the heads."""
    last = k == switches["backbone_layers"]
    rows = f"{heads_of(switches['mode'])} * q->units" if last else "q->width"
    return f"""\
    for (i = 0; i < q->width; i++) a[i] = {_ACTIVATIONS[switches["activation"]]};
    for (i = 0; i < {rows}; i++) z[i] = LOAD(q->bias{k}, i);
    add_product(&q->deep{k}, 0, {rows}, a, z);
"""
