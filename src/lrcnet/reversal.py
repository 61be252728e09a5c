"""Reversal potentials: the other way to write the drive of a synapse, k = g e / e_l.

A synapse drives a unit by k e_l in this library and by g e in ncps and in biology, where e is the potential at which
its current changes sign.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

Letters = Mapping[str, Tensor | None]


def with_reversal_potentials(circuit: Letters) -> dict[str, Tensor | None]:
    """Return a circuit with the reversal potentials e (J, m) in place of k; e is 0 where there is no synapse.

    Raises:
        ValueError: if a synapse has no conductance but a drive, which no e expresses.
    """
    g, k, e_l = circuit["g"], circuit["k"], circuit["e_l"]
    assert g is not None
    assert k is not None
    assert e_l is not None
    closed, drive = g == 0, k * e_l
    if bool((closed & (drive != 0)).any()):
        j, i = (int(v) for v in (closed & (drive != 0)).nonzero()[0])
        raise ValueError(
            f"a synapse must have g > 0 to have a reversal potential, but g[{j}, {i}] = 0 and k[{j}, {i}] = "
            f"{k[j, i].item():g}; set k to 0 there, or read k itself"
        )
    e = torch.where(closed, torch.zeros_like(drive), drive / torch.where(closed, torch.ones_like(g), g))
    return {("e" if name == "k" else name): (e if name == "k" else value) for name, value in circuit.items()}


def without_reversal_potentials(circuit: Letters) -> Letters:
    """Return a circuit with k in place of reversal potentials e, if it has them.

    Raises:
        ValueError: if e comes without g and e_l, or beside k, or a leak potential is 0.
    """
    if circuit.get("e") is None:
        return circuit
    g, e, e_l = (circuit.get(name) for name in ("g", "e", "e_l"))
    if g is None or e_l is None or circuit.get("k") is not None:
        raise ValueError("reversal potentials e must come with g and e_l and without k, but do not; k is g e / e_l")
    g, e, e_l = torch.as_tensor(g), torch.as_tensor(e), torch.as_tensor(e_l)
    if bool((e_l == 0).any()):
        raise ValueError("e_l must not be 0 where reversal potentials e are given, but is; k is g e / e_l")
    return {**{name: value for name, value in circuit.items() if name != "e"}, "k": g * e / e_l}
