"""The units of stored parameters in a state dict, and their conversion.

A network that stores its letters in units (parametrisation="scaled") says so in its state dict: the entry `units` has
one number per letter, in the order of `LETTERS`, and a letter is its stored value times that number. A dict without
this entry holds the letters themselves, as every dict did before there were units. Units are powers of two, so that
converting loses nothing.
"""

import logging
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from lrcnet.circuit import LETTERS
from lrcnet.tracing import values_are_readable

_log = logging.getLogger("lrcnet")

ENTRY = "units"
# The entries that a letter is proportional to: its own, and while torch's pruning, weight norm or parametrize is in
# use, theirs. The direction of a weight norm has no unit.
_FORMS = ("{}", "{}_orig", "{}_g", "parametrizations.{}.original", "parametrizations.{}.original0")


def convert_units(
    state_dict: dict[str, Any], prefix: str, names: Mapping[str, str], own: Mapping[str, float], *, has_entry: bool
) -> None:
    """Convert the letters of a state dict, in place, from the units that it names to those of a network.

    Args:
        state_dict: a dict that may be changed.
        prefix: the place of the network in the dict, with its dot.
        names: letter -> name of the parameter that stores it.
        own: letter -> unit of the network.
        has_entry: whether the network itself has the entry `units`; the dict then gets it, with the network's numbers.

    Raises:
        ValueError: if the dict's units are not one number per letter.
    """
    key = prefix + ENTRY
    given = state_dict.pop(key, None)
    theirs = _read_units(key, given, own)
    likes = []
    for letter, name in names.items():
        for place in (prefix + form.format(name) for form in _FORMS):
            if place in state_dict:
                value = state_dict[place]
                likes.append(value)
                if theirs[letter] != own[letter]:
                    state_dict[place] = value.detach() * (theirs[letter] / own[letter])
    if has_entry and likes:
        if given is None:
            # A dict of named_parameters() looks the same as an old state dict, and would be read wrongly.
            _log.warning(
                "the state dict has no entry %s, so its values are read as the letters themselves, as layers with "
                "other parametrisations save them; load a whole state_dict(), not only named_parameters()",
                key,
            )
        # Beside the values: under assign=True the network itself may be on the meta device until now.
        state_dict[key] = torch.tensor(list(own.values()), device=likes[0].device, dtype=likes[0].dtype)


def _read_units(key: str, given: Tensor | None, own: Mapping[str, float]) -> dict[str, float]:
    """Return letter -> unit of a state dict with this entry."""
    if given is None:
        return dict.fromkeys(LETTERS, 1.0)
    if not values_are_readable(given):
        # On the meta device there are no numbers to convert, neither units nor values.
        return dict(own)
    numbers = given.tolist()
    if len(numbers) != len(LETTERS):
        raise ValueError(
            f"{key} must have {len(LETTERS)} numbers, one per letter, but has {len(numbers)}; carry the network over "
            "by circuit() and load_circuit()"
        )
    return dict(zip(LETTERS, numbers, strict=True))
