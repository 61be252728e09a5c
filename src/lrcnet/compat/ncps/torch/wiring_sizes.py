"""The sizes of a wired cell under the names that ncps gives them."""

from lrcnet.wirings import Wiring


class WiringSizes:
    """A mixin for cells that keep their wiring as `_wiring`."""

    _wiring: Wiring

    @property
    def state_size(self) -> int:
        """The number of units."""
        return self._wiring.units

    @property
    def sensory_size(self) -> int:
        """The number of inputs."""
        return int(self._wiring.input_dim or 0)

    @property
    def motor_size(self) -> int:
        """The number of motor neurons."""
        return self._wiring.output_size

    @property
    def output_size(self) -> int:
        """The number of features of the output."""
        return self.motor_size

    @property
    def synapse_count(self) -> int:
        """The number of synapses between units."""
        return self._wiring.synapse_count

    @property
    def sensory_synapse_count(self) -> int:
        """The number of synapses from inputs; ncps counts those between units here."""
        return self._wiring.sensory_synapse_count
