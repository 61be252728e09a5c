"""The mask of a wiring beside the letters of a network: its size, its values, and the checks when letters are loaded.

Axes: m hidden units, n inputs, J = m + n presynaptic rows.
"""

from typing import Any

import torch
from torch import Tensor

from lrcnet.errors import positive_size
from lrcnet.wirings import Wiring


def count_units(hidden_size: int | None, wiring: object) -> int:
    """Return the number of units that hidden_size, a wiring or both say.

    Raises:
        TypeError: if neither is given, or the wiring is none.
        ValueError: if they disagree.
    """
    if wiring is None:
        if hidden_size is None:
            raise TypeError("hidden_size must be given without a wiring, but is missing; pass the number of units")
        return positive_size("hidden_size", hidden_size)
    if not isinstance(wiring, Wiring):
        raise TypeError(f"wiring must be one of lrcnet.wirings, but is a {type(wiring).__name__}; make one of these")
    if hidden_size is not None and hidden_size != wiring.units:
        raise ValueError(
            f"hidden_size must equal the units of the wiring, {wiring.units}, but is {hidden_size}; leave it out"
        )
    return wiring.units


def apply_mask(name: str, value: Tensor, mask: Tensor) -> Tensor:
    """Return the values (J, m) of a letter with 0 where a synapse is missing; a and b may have others there.

    Raises:
        ValueError: if another letter has a value other than 0 there.
    """
    extra = (value != 0) & ~mask
    if name not in ("a", "b") and bool(extra.any()):
        j, i = (int(v) for v in extra.nonzero()[0])
        raise ValueError(
            f"{name} must be 0 where the wiring has no synapse, but {name}[{j}, {i}] = {value[j, i].item():g}; set it "
            "to 0, or use a wiring with this synapse"
        )
    return torch.where(mask, value, 0.0)


def read_mask(wiring: Wiring | None, buffer: Tensor | None) -> Tensor | None:
    """Return the mask (J, m) on the device of its buffer, which may be empty memory, as to_empty() leaves it."""
    if wiring is None or buffer is None:
        return None
    return torch.as_tensor(wiring.polarities() != 0, device=buffer.device)


def check_saved_mask(state_dict: dict[str, Any], key: str, own: Tensor | None) -> str | None:
    """Return the sentence for a state dict with other synapses, or None if it may be loaded."""
    given = state_dict.get(key)
    if own is None or given is None or given.is_meta:
        return None
    if given.shape != own.shape or not torch.equal(given.to(own), own):
        return (
            f"{key} must be that of this network's wiring, but the state dict has other synapses; build the network "
            "with the wiring that was saved"
        )
    return None
