"""The cells in C: a row for each kind, with its arrays and the code of one step.

A cell that is an ODE has `terms`, the input's contribution, and `split`, its right-hand side as (decay, drive); the
step is the solver's. Any other cell has `advance`. All are written in terms of the macros of an arithmetic. A mixed
memory is an LSTM's step before that of any cell.

A matrix is stored by rows. If enough of its entries are zero, only the others are stored, with the numbers of their
columns, so that a sparse network costs what it has.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lrcnet.export.c_cfc import cfc_code
from lrcnet.export.c_diagonal import ELASTANCE_CODE, diagonal_code
from lrcnet.export.network import NetworkData


@dataclass(frozen=True)
class Kind:
    """One kind of cell.

    Attributes:
        code: its C functions, given the network's switches.
        terms: numbers per unit that an input contributes.
        exponentials: evaluations of sigmoid or tanh per unit and evaluation of the right-hand side.
        per_synapse: whether every stored entry of a matrix has a sigmoid of its own.
        is_ode: whether the step is a solver's.
        takes_dt: whether a step depends on the time that it takes.
        has_memory: whether there is a second state c.
    """

    code: Callable[[dict[str, Any]], str]
    terms: int
    exponentials: int
    per_synapse: bool = False
    is_ode: bool = True
    takes_dt: bool = True
    has_memory: bool = False


# start and source are null for a dense matrix.
_MATRIX = """\
typedef struct { array w; const unsigned short *start, *source; int n; } matrix;

/* out[i] += sum_j w[first + i, j] x[j] for some rows */
static void add_product(const matrix *a, int first, int rows, const num *x, num *out) {
  int i;
  for (i = 0; i < rows; i++) {
    int row = first + i, j = 0;
    int p = a->start ? a->start[row] : row * a->n, end = a->start ? a->start[row + 1] : p + a->n;
    wide sum = out[i];
    for (; p < end; p++, j++) sum += TIMES(a->w, p, x[a->source ? a->source[p] : j]);
    out[i] = SUM(sum);
  }
}
"""

_LINEAR_TERMS = """\
static void terms(const cell *c, const num *x, num *t) {
  int i;
  for (i = 0; i < ROWS * UNITS; i++) t[i] = LOAD(c->bias, i);
  add_product(&c->in, 0, ROWS * UNITS, x, t);
}
"""


# Input, forget, candidate and output gate of an LSTM, UNITS rows each.
_REMEMBER = """
static void remember(const num *sums, num *h, num *memory) {
  int i;
  for (i = 0; i < UNITS; i++) {
    memory[i] = ADD(MUL(sigmoid(sums[UNITS + i]), memory[i]), MUL(sigmoid(sums[i]), tangent(sums[2 * UNITS + i])));
    h[i] = MUL(sigmoid(sums[3 * UNITS + i]), tangent(memory[i]));
  }
}
"""

_MIXED_MEMORY = """
typedef struct { matrix in, rec; array bias; } mixed;

/* the LSTM beside a cell, which goes on from its answer h */
static void mix(const mixed *c, const num *x, num *h, num *memory) {
  num sums[4 * UNITS];
  int i;
  for (i = 0; i < 4 * UNITS; i++) sums[i] = LOAD(c->bias, i);
  add_product(&c->in, 0, 4 * UNITS, x, sums);
  add_product(&c->rec, 0, 4 * UNITS, h, sums);
  remember(sums, h, memory);
}
"""


def _liquid(switches: dict[str, Any]) -> str:
    elastance, saturated = switches["elastance"], switches["saturated"]
    has_w = elastance != "none"
    synapse_arrays = "a, b, g, k, o" if has_w else "a, b, g, k"
    vectors = ", ".join(["g_l", "e_l", *(["p"] if has_w else []), *(["k_eps"] if elastance == "symmetric" else [])])
    eps = f"    {ELASTANCE_CODE[elastance].format(w='w[i]')}\n" if has_w else ""
    forget, update = ("sigmoid(f[i])", "tangent(u[i])") if saturated else ("f[i]", "u[i]")
    return f"""\
typedef struct {{ array {synapse_arrays}; const unsigned short *start, *source; int n; }} synapses;
typedef struct {{ synapses in, rec; array {vectors}OUTPUT_MAP; }} cell;

static void receive(const synapses *y, const num *x, num *t) {{
  num *f = t, *u = t + UNITS{", *w = t + 2 * UNITS" if has_w else ""};
  int i;
  for (i = 0; i < UNITS; i++) {{
    wide forget = f[i], push = u[i]{", bend = w[i]" if has_w else ""};
    int j = 0, p = y->start ? y->start[i] : i * y->n, end = y->start ? y->start[i + 1] : p + y->n;
    for (; p < end; p++, j++) {{
      num value = x[y->source ? y->source[p] : j];
      num open = sigmoid(ADD(TIMES(y->a, p, value), LOAD(y->b, p)));
      forget += TIMES(y->g, p, open);
      push += TIMES(y->k, p, open);
{"      bend += TIMES(y->o, p, value);" + chr(10) if has_w else ""}    }}
    f[i] = SUM(forget);
    u[i] = SUM(push);
{"    w[i] = SUM(bend);" + chr(10) if has_w else ""}  }}
}}

static void terms(const cell *c, const num *x, num *t) {{
  int i;
  for (i = 0; i < UNITS; i++) {{
    t[i] = t[UNITS + i] = LOAD(c->g_l, i);
{"    t[2 * UNITS + i] = LOAD(c->p, i);" + chr(10) if has_w else ""}  }}
  receive(&c->in, x, t);
}}

static void split(const cell *c, const num *t, const num *h, num *decay, num *drive) {{
  num sums[TERMS], *f = sums, *u = sums + UNITS{", *w = sums + 2 * UNITS" if has_w else ""};
  int i;
  for (i = 0; i < TERMS; i++) sums[i] = t[i];
  receive(&c->rec, h, sums);
  for (i = 0; i < UNITS; i++) {{
{eps}    num forget = {forget}, push = TIMES(c->e_l, i, {update});
    decay[i] = {"MUL(eps, forget)" if has_w else "forget"};
    drive[i] = {"MUL(eps, push)" if has_w else "push"};
  }}
}}
"""


def _ctrnn(switches: dict[str, Any]) -> str:
    return (
        _linear_cell("bias, rate", 1)
        + """
static void split(const cell *c, const num *t, const num *h, num *decay, num *drive) {
  int i;
  for (i = 0; i < UNITS; i++) drive[i] = t[i];
  add_product(&c->rec, 0, UNITS, h, drive);
  for (i = 0; i < UNITS; i++) {
    drive[i] = tangent(drive[i]);
    decay[i] = LOAD(c->rate, i);
  }
}
"""
    )


def _gru_ode(switches: dict[str, Any]) -> str:
    return (
        _linear_cell("bias", 3)
        + """
static void split(const cell *c, const num *t, const num *h, num *decay, num *drive) {
  num gates[2 * UNITS], passed[UNITS];
  int i;
  for (i = 0; i < 2 * UNITS; i++) gates[i] = t[i];
  add_product(&c->rec, 0, 2 * UNITS, h, gates);
  for (i = 0; i < UNITS; i++) {
    decay[i] = sigmoid(gates[i]);
    passed[i] = MUL(sigmoid(gates[UNITS + i]), h[i]);
    drive[i] = t[2 * UNITS + i];
  }
  add_product(&c->rec, 2 * UNITS, UNITS, passed, drive);
  for (i = 0; i < UNITS; i++) drive[i] = MUL(decay[i], tangent(drive[i]));
}
"""
    )


def _reset_before_gru(switches: dict[str, Any]) -> str:
    # One explicit Euler step of GRU-ODE with dt = 1.
    return (
        _gru_ode(switches)
        + """
static void advance(const cell *c, const num *t, num *h, num *memory) {
  num decay[UNITS], drive[UNITS];
  int i;
  (void)memory;
  split(c, t, h, decay, drive);
  for (i = 0; i < UNITS; i++) h[i] += drive[i] - MUL(decay[i], h[i]);
}
"""
    )


def _mgu(switches: dict[str, Any]) -> str:
    return (
        _linear_cell("bias", 2)
        + """
static void advance(const cell *c, const num *t, num *h, num *memory) {
  num forget[UNITS], passed[UNITS], candidate[UNITS];
  int i;
  (void)memory;
  for (i = 0; i < UNITS; i++) forget[i] = t[i];
  add_product(&c->rec, 0, UNITS, h, forget);
  for (i = 0; i < UNITS; i++) {
    forget[i] = sigmoid(forget[i]);
    passed[i] = MUL(forget[i], h[i]);
    candidate[i] = t[UNITS + i];
  }
  add_product(&c->rec, UNITS, UNITS, passed, candidate);
  for (i = 0; i < UNITS; i++) h[i] += MUL(forget[i], tangent(candidate[i]) - h[i]);
}
"""
    )


def _gru(switches: dict[str, Any]) -> str:
    return (
        _linear_cell("bias, bias_n", 3)
        + """
static void advance(const cell *c, const num *t, num *h, num *memory) {
  num sums[3 * UNITS];
  int i;
  (void)memory;
  for (i = 0; i < 2 * UNITS; i++) sums[i] = t[i];
  for (i = 0; i < UNITS; i++) sums[2 * UNITS + i] = LOAD(c->bias_n, i);
  add_product(&c->rec, 0, 3 * UNITS, h, sums);
  for (i = 0; i < UNITS; i++) {
    num reset = sigmoid(sums[i]), keep = sigmoid(sums[UNITS + i]);
    num candidate = tangent(ADD(t[2 * UNITS + i], MUL(reset, sums[2 * UNITS + i])));
    h[i] = candidate + MUL(keep, h[i] - candidate);
  }
}
"""
    )


def _lstm(switches: dict[str, Any]) -> str:
    return (
        _linear_cell("bias", 4)
        + _REMEMBER
        + """
static void advance(const cell *c, const num *t, num *h, num *memory) {
  num sums[4 * UNITS];
  int i;
  for (i = 0; i < 4 * UNITS; i++) sums[i] = t[i];
  add_product(&c->rec, 0, 4 * UNITS, h, sums);
  remember(sums, h, memory);
}
"""
    )


def _linear_cell(vectors: str, rows: int) -> str:
    """Return the struct of a cell with matrices for input and state, and its `terms`."""
    struct = f"typedef struct {{ matrix in, rec; array {vectors}OUTPUT_MAP; }} cell;\n\n"
    return struct + _LINEAR_TERMS.replace("ROWS", str(rows))


KINDS: dict[str, Kind] = {
    "liquid": Kind(_liquid, terms=3, exponentials=4, per_synapse=True),
    "ctrnn": Kind(_ctrnn, terms=1, exponentials=1),
    "gru-ode": Kind(_gru_ode, terms=3, exponentials=3),
    "mgu": Kind(_mgu, terms=2, exponentials=2, is_ode=False, takes_dt=False),
    "gru-reset-before": Kind(_reset_before_gru, terms=3, exponentials=3, is_ode=False, takes_dt=False),
    "gru": Kind(_gru, terms=3, exponentials=3, is_ode=False, takes_dt=False),
    "lstm": Kind(_lstm, terms=4, exponentials=5, is_ode=False, takes_dt=False, has_memory=True),
    "cfc": Kind(cfc_code, terms=4, exponentials=3, is_ode=False),
    "diagonal": Kind(diagonal_code, terms=2, exponentials=6),
}
"""Every kind of cell by name; `lrcnet.export.network.COLLECTORS` gives a network its kind."""


def terms_per_unit(network: NetworkData) -> int:
    """Return the numbers per unit that an input contributes; without an elastance a liquid cell has one less."""
    without = network.kind == "liquid" and network.switches["elastance"] == "none"
    return KINDS[network.kind].terms - without


def count_terms(network: NetworkData) -> int:
    """Return the length of the array of an input's contribution: that of the widest cell."""
    widths = [len(cell.parts[0].matrices["in_w"]) for cell in network.cells if cell.parts]
    return max(widths, default=terms_per_unit(network) * network.cells[0].units)


def widest_rows(network: NetworkData) -> int:
    """Return the largest number of rows of a matrix among the parts of all cells."""
    return max(len(matrix) for cell in network.cells for part in cell.parts for matrix in part.matrices.values())


def has_memory(network: NetworkData) -> bool:
    """Return whether a stream has a second state c."""
    return KINDS[network.kind].has_memory or network.cells[0].memory is not None


def cell_code(network: NetworkData) -> str:
    """Return the C functions of a network's cells."""
    code = KINDS[network.kind].code(network.switches)
    mapped = "output_scale" in network.cells[0].vectors
    code = code.replace("OUTPUT_MAP", ", output_scale, output_shift" if mapped else "")
    if network.kind != "liquid" or network.cells[0].memory:
        code = _MATRIX + "\n" + code
    return code + (_REMEMBER + _MIXED_MEMORY if network.cells[0].memory else "")
