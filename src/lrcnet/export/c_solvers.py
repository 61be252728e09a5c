"""One step of each fixed-step solver in C, from the same tables as in Python."""

from collections.abc import Callable
from typing import Any

from lrcnet.export.c_cells import KINDS
from lrcnet.export.network import NetworkData
from lrcnet.solvers import SOLVERS, ExplicitRungeKutta, Exponential, Hybrid

_OPENING = """\
static void advance(const cell *c, const num *t, num *h, num dt) {{
  num decay[UNITS], drive[UNITS], d = dt / {unfolds};
  int i, k;
  for (k = 0; k < {unfolds}; k++) {{
"""
_SPLIT_STEPS = {
    Hybrid: "h[i] = DIV(ADD(h[i], MUL(d, drive[i])), ADD(ONE, MUL(d, decay[i])));",
    Exponential: "h[i] = ADD(h[i], MUL(MUL(d, phi(-MUL(d, decay[i]))), ADD(drive[i], -MUL(decay[i], h[i]))));",
}


def evaluations(network: NetworkData) -> int:
    """Return how often a step evaluates the right-hand side."""
    if not KINDS[network.kind].is_ode:
        return 1
    method = SOLVERS[network.switches["solver"]]
    stages = len(method.weights) if isinstance(method, ExplicitRungeKutta) else 1
    return stages * int(network.switches["unfolds"])


def solver_code(switches: dict[str, Any], literal: Callable[[float], str]) -> str:
    """Return the C function `advance` of an ODE cell."""
    method, opening = SOLVERS[switches["solver"]], _OPENING.format(unfolds=switches["unfolds"])
    if isinstance(method, ExplicitRungeKutta):
        body = _explicit(method, literal)
    else:
        step = _SPLIT_STEPS[type(method)]  # adaptive solvers were refused before
        body = f"    split(c, t, h, decay, drive);\n    for (i = 0; i < UNITS; i++) {step}\n"
    return f"{opening}{body}  }}\n}}\n"


def _explicit(method: ExplicitRungeKutta, literal: Callable[[float], str]) -> str:
    stages = len(method.weights)
    lines = [f"    num slope[{stages}][UNITS], stage[UNITS];"] if stages > 1 else []
    for index, row in enumerate(method.matrix):
        at = "h"
        if index:
            at = "stage"
            lines.append(f"    for (i = 0; i < UNITS; i++) stage[i] = ADD(h[i], MUL(d, {_sum(row, literal)}));")
        lines.append(f"    split(c, t, {at}, decay, drive);")
        slope = f"ADD(drive[i], -MUL(decay[i], {at}[i]))"
        if stages == 1:
            lines.append(f"    for (i = 0; i < UNITS; i++) h[i] = ADD(h[i], MUL(d, {slope}));")
        else:
            lines.append(f"    for (i = 0; i < UNITS; i++) slope[{index}][i] = {slope};")
    if stages > 1:
        lines.append(f"    for (i = 0; i < UNITS; i++) h[i] = ADD(h[i], MUL(d, {_sum(method.weights, literal)}));")
    return "\n".join(lines) + "\n"


def _sum(weights: tuple[float, ...], literal: Callable[[float], str]) -> str:
    parts = [f"MUL({literal(weight)}, slope[{index}][i])" for index, weight in enumerate(weights) if weight]
    return f"SUM((wide){' + '.join(parts)})"
