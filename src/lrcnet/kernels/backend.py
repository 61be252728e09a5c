"""The contract of a backend: a second, fast implementation of the liquid equation behind the plain loop.

    s_ji = sigmoid(a_ji y_j + b_ji), f_i = sum_j g_ji s_ji + g_l_i, u_i = sum_j k_ji s_ji + g_l_i
    w_i = sum_j o_ji y_j + p_i
    dh/dt = eps(w) (-F(f) h + U(u) e_l),  y = [h, input_scale x + input_shift]

A backend constrains by itself: values of g, g_l and k_eps below 0 count as 0, and their gradient passes if a descent
step would raise them. If `switches.scaled`, it multiplies each letter by its unit in `lrcnet.circuit.LETTERS` first. If
the circuit has a mask, a, b, g, k and o of a missing synapse count as 0 and get a gradient of 0, whatever they hold. It
ignores the output map. The plain loop of `lrcnet.cells` is the specification; a backend's
error against float64 truth is at most twice the plain float32 loop's, three times for gradients.

Axes: T time, B batch, n inputs, m hidden units.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lrcnet.circuit import Circuit, Switches


class KeptGates(NamedTuple):
    """The gates that a scan computed in the first unfolding of every step, each (T, B, m), without gradient.

    F(f) and U(u), and the argument w of the elastance, or None without one.
    """

    forget: Tensor
    update: Tensor
    w: Tensor | None


class Network(NamedTuple):
    """One layer of a stack, for `Backend.step_stack`.

    Attributes:
        memory: a dictionary that belongs to this network alone, in which a backend may keep the results of its checks
            between steps; None if the tensors of the circuit are new ones at every step.
    """

    circuit: Circuit
    switches: Switches
    memory: dict[str, Any] | None = None


class Backend(ABC):
    """One implementation: a file of its own beside this one, and a line in `lrcnet.kernels.BACKENDS`.

    A method may be called whenever `reasons` has just returned an empty list for the same arguments.
    """

    name: str

    @abstractmethod
    def reasons(self, x: Tensor, switches: Switches, units: int) -> list[str]:
        """Return why this backend cannot serve a call now, one clause each; empty if it can.

        Args:
            x: the input of the call, of any shape.
            switches: with the solver `lrcnet.circuit.SLOPE` if `derivative` is to be called.
            units: m.
        """

    @abstractmethod
    def scan(
        self,
        circuit: Circuit,
        switches: Switches,
        x: Tensor,
        h: Tensor | None,
        dt: float | Tensor,
        *,
        keep_gates: bool = False,
    ) -> tuple[Tensor, KeptGates | None]:
        """Return all states (T, B, m) of sequences, with gradients for every tensor, and their gates if asked for.

        Args:
            x: (T, B, n), any strides.
            h: first states (B, m); zeros if None.
            dt: a number, or (T, B); a 0-dimensional tensor gets no gradient.

        Raises:
            ValueError: for a dt that is NaN, or negative if switches.check_dt, naming the first one; for a wrong shape
                or dtype.
        """

    @abstractmethod
    def step(self, circuit: Circuit, switches: Switches, x: Tensor, h: Tensor, dt: float | Tensor) -> Tensor:
        """Return the states after one input, shaped like h; no gradient is recorded.

        Meant for few samples and little overhead; for many samples, `scan` over one step shares their weights.

        Args:
            x: (B, n), any strides.
            h: (B, m), or the same numbers in another shape.
            dt: a number, or (B,).

        Raises:
            ValueError: as `scan`.
        """

    def step_stack(self, networks: Sequence[Network], x: Tensor, h: Tensor, dt: float) -> Tensor:
        """Return the states of a stack of networks after one input, shaped like h; no gradient is recorded.

        Args:
            networks: the layers; the inputs of each but the first are the first states of the layer below.
            x: (B, n), any strides.
            h: (L, B, m), or (L, m) for one sample.
            dt: a number.

        Raises:
            ValueError: as `scan`.
        """
        if len(networks) == 1:
            return self.step(networks[0].circuit, networks[0].switches, x, h, dt)
        states = []
        for network, start in zip(networks, h.view(len(networks), len(x), -1), strict=True):
            circuit = network.circuit
            states.append(self.step(circuit, network.switches, x[:, : len(circuit.a) - circuit.units], start, dt))
            x = states[-1]
        return torch.stack(states).view(h.shape)

    @abstractmethod
    def derivative(self, circuit: Circuit, switches: Switches, x: Tensor, h: Tensor) -> Tensor:
        """Return dh/dt (B, m) at states h (B, m) under inputs x (B, n), with gradients if they are enabled.

        The solver, the unfoldings and dt of the switches do not matter.
        """

    def diagonal_reasons(self, x: Tensor, switches: Switches, units: int) -> list[str]:
        """Return why `scan_diagonal` cannot serve a call now, as `reasons` does for the others."""
        return ["it has no kernel for diagonal networks"]

    def scan_diagonal(
        self, letters: Tensor, switches: Switches, terms: Tensor, h: Tensor, dt: float | Tensor, *, mixed: bool
    ) -> Tensor:
        """Return all states (T, B, m) of a diagonal LRC, with gradients; see `lrcnet.kernels.diagonal.scan`."""
        raise NotImplementedError

    def scan_diagonal_inputs(
        self,
        letters: Tensor,
        switches: Switches,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        h: Tensor,
        dt: float | Tensor,
        *,
        mixed: bool,
    ) -> Tensor:
        """Return the same from inputs and their map; see `lrcnet.kernels.diagonal_inputs.scan_inputs`."""
        raise NotImplementedError
