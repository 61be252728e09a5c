"""Names of the numbers that an exported network takes and returns, for those who use its file without Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Names(NamedTuple):
    """What each number of a reading and of an answer is."""

    inputs: Sequence[str]
    outputs: Sequence[str]


def read_names(extra: dict[str, Any]) -> Names | None:
    """Return the names that `lrcnet fit` left in a folder (`lrcnet.folders.read_extra`), or None."""
    fitted = extra.get("own_data")
    if fitted is None:
        return None
    channels = [str(name) for name in extra["channels"]]
    measured = [f"1 if {name} was measured, else 0" for name in channels] if extra["mask"] else []
    schema = fitted["schema"]
    outputs = [f"logit of class {name}" for name in fitted["classes"]]
    if not outputs:
        outputs = channels if schema["task"] == "forecast" else [str(schema["target"])]
    return Names([*channels, *measured], outputs)
