"""Sequence layers whose cells may have a wiring: all units in the state, the motor neurons in the output."""

from typing import TYPE_CHECKING, Any

from lrcnet.continuous_layer import ContinuousLayer
from lrcnet.masks import count_units
from lrcnet.wirings import Wiring


class WiredLayer(ContinuousLayer):
    """A layer whose cells may have a wiring.

    With a wiring, hidden_size may be left out, `h_n` has all units and the output the motor neurons; each layer and
    direction gets a copy of the wiring that is built for its own inputs.
    """

    if not TYPE_CHECKING:

        def __init__(self, input_size, hidden_size=None, *arguments, wiring=None, **options):
            units = count_units(hidden_size, wiring)
            super().__init__(input_size, units, *arguments, wiring=wiring, **options)

    @property
    def wiring(self) -> Wiring | None:
        """The wiring of the first layer, built for its inputs; None without one."""
        cell: Any = self.cells[0]
        wiring: Wiring | None = cell.wiring
        return wiring

    def _cell_options(self, options: dict[str, Any], layer: int, size: int) -> dict[str, Any]:
        wiring = options["wiring"]
        # The first layer takes the wiring as it is given; the others read outputs of motor neurons instead of inputs.
        return options if wiring is None or layer == 0 else {**options, "wiring": wiring.rebuild(size)}
