"""Wirings without layers: every synapse, or a random part of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from lrcnet.errors import check_flag
from lrcnet.wirings.base import Matrix, Wiring, check_sparsity, pick_seed


class _Unstructured(Wiring):
    """A wiring that draws its synapses from one stream: those between neurons first, then those from inputs."""

    def __init__(self, units: int, output_dim: int | None, seed: int | None) -> None:
        super().__init__(units)
        self.set_output_dim(self.units if output_dim is None else output_dim)
        self._seed = pick_seed(seed)

    def draw_synapses(self) -> None:
        source = np.random.default_rng(self._seed)
        # The stream continues where the constructor's ended.
        self._draw_recurrent(source)
        self.sensory_adjacency_matrix = self._draw_sensory(source)

    def _draw_recurrent(self, source: np.random.Generator) -> Matrix:
        """Return the polarities between neurons, (m, m)."""
        raise NotImplementedError

    def _draw_sensory(self, source: np.random.Generator) -> Matrix:
        """Return the polarities from inputs to neurons, (n, m)."""
        raise NotImplementedError


class FullyConnected(_Unstructured):
    """All synapses, two thirds of them excitatory.

    Args:
        units: number of neurons.
        output_dim: number of motor neurons; all units if None.
        erev_init_seed: random seed of the polarities.
        self_connections: whether a neuron has a synapse to itself.
    """

    def __init__(
        self,
        units: int,
        output_dim: int | None = None,
        erev_init_seed: int | None = 1111,
        self_connections: bool = True,
    ) -> None:
        super().__init__(units, output_dim, erev_init_seed)
        self.self_connections = check_flag("self_connections", self_connections)
        self.adjacency_matrix = self._draw_recurrent(np.random.default_rng(self._seed))

    def arguments(self) -> dict[str, Any]:
        return {
            "units": self.units,
            "output_dim": self.output_dim,
            "erev_init_seed": self._seed,
            "self_connections": self.self_connections,
        }

    def _draw_recurrent(self, source: np.random.Generator) -> Matrix:
        matrix = np.zeros((self.units, self.units), dtype=np.int32)
        present = np.ones_like(matrix, dtype=bool)
        if not self.self_connections:
            np.fill_diagonal(present, False)
        matrix[present] = _draw_polarities(source, int(present.sum()))
        return matrix

    def _draw_sensory(self, source: np.random.Generator) -> Matrix:
        return _draw_polarities(source, (self.input_dim or 0, self.units))


class Random(_Unstructured):
    """A random part of all synapses, two thirds of them excitatory.

    Args:
        units: number of neurons.
        output_dim: number of motor neurons; all units if None.
        sparsity_level: share of the synapses that are missing, at least 0 and below 1.
        random_seed: random seed of synapses and polarities.
    """

    def __init__(
        self,
        units: int,
        output_dim: int | None = None,
        sparsity_level: float = 0.0,
        random_seed: int | None = 1111,
    ) -> None:
        super().__init__(units, output_dim, random_seed)
        self.sparsity_level = check_sparsity(sparsity_level)
        self.adjacency_matrix = self._draw_recurrent(np.random.default_rng(self._seed))

    def arguments(self) -> dict[str, Any]:
        return {
            "units": self.units,
            "output_dim": self.output_dim,
            "sparsity_level": self.sparsity_level,
            "random_seed": self._seed,
        }

    def _draw_recurrent(self, source: np.random.Generator) -> Matrix:
        return self._draw_part(source, self.units, polarities_each=1)

    def _draw_sensory(self, source: np.random.Generator) -> Matrix:
        # ncps draws the polarity of a sensory synapse twice and uses the second.
        return self._draw_part(source, self.input_dim or 0, polarities_each=2)

    def _draw_part(self, source: np.random.Generator, rows: int, polarities_each: int) -> Matrix:
        matrix = np.zeros(rows * self.units, dtype=np.int32)
        count = int(np.round(matrix.size * (1 - self.sparsity_level)))
        if matrix.size:
            places = source.choice(matrix.size, size=count, replace=False)
            matrix[places] = _draw_polarities(source, (count, polarities_each))[:, -1]
        return matrix.reshape(rows, self.units)


def _draw_polarities(source: np.random.Generator, shape: int | tuple[int, int]) -> Matrix:
    return source.choice(np.array([-1, 1, 1], dtype=np.int32), size=shape)
