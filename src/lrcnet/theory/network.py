"""The models that the theory covers: one recurrent cell, its input map, and a linear read-out of its state.

Axes: m states, n inputs, J = m + n rows of y = [h, x], K outputs.
"""

import copy
import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from lrcnet.cells.base import Cell
from lrcnet.cells.checks import read_number
from lrcnet.cells.liquid import LiquidCell
from lrcnet.continuous_layer import ContinuousLayer
from lrcnet.errors import positive_size
from lrcnet.layers import RecurrentLayer
from lrcnet.liquid import Circuit
from lrcnet.neural_ode import LRCField, MLPField, NeuralODE

Readout = nn.Linear | Tensor | None
Model = nn.Module | tuple[nn.Module, Readout]

ACCEPTED = (
    "pass (layer, readout) with a layer or cell of lrcnet and readout an nn.Linear, a (K, m) tensor or None; or a "
    "module that has one such layer and, after it, one nn.Linear"
)
# One step of these is bounded by the proof of Theorem 1 or by our extension of it.
BOUNDED_SOLVERS = ("euler", "hybrid", "exponential")


@dataclass(frozen=True)
class Network:
    """A model in the form that the theory needs: a float64 copy, independent of the caller's parameters.

    Attributes:
        cell: the recurrence, computed by the plain loop.
        readout: Q (K, m), with the output map folded in; 0 for the units of a wiring that are no motor neurons.
        offset: (K,), so that the output is Q h + offset.
        batch_first: whether the layer's sequences are (B, T, n) rather than (T, B, n).
    """

    cell: Cell
    readout: Tensor
    offset: Tensor
    batch_first: bool
    circuit: Circuit | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "circuit", _fold_input_map(self.cell) if isinstance(self.cell, LiquidCell) else None)

    @property
    def hidden_size(self) -> int:
        """m."""
        return self.cell.hidden_size

    @property
    def input_size(self) -> int:
        """n."""
        return self.cell.input_size

    @property
    def solver(self) -> str:
        """The solver's name; "" for a cell that is not an ODE."""
        return str(getattr(self.cell, "solver", ""))

    @property
    def unfolds(self) -> int:
        """Solver steps per input."""
        return int(getattr(self.cell, "unfolds", 1))


def read_model(model: Model) -> Network:
    """Convert a model to a `Network`.

    Args:
        model: a layer or cell of lrcnet, with its state (after the output map, if it has one) as the output; a pair
            (layer, readout); or a module that has exactly one recurrent layer and after it, in the order of
            registration, one nn.Linear. Modules before the layer (an embedding, a convolutional head) only compute its
            inputs. Operations in `forward` that are not modules cannot be detected: for a network with a nonlinear
            function after the layer, pass the pair.

    Raises:
        ValueError, TypeError: for anything else.
    """
    if isinstance(model, tuple):
        if len(model) != 2:
            raise TypeError(
                f"a model given as a tuple must be (layer, readout), but has {len(model)} parts; {ACCEPTED}"
            )
        layer, readout = model
    else:
        layer, readout = _find_parts(model)
    cell, batch_first = _cell_of(layer)
    cell = copy.deepcopy(cell).double().requires_grad_(False)
    if isinstance(cell, LiquidCell):
        cell.backend = "reference"
    matrix, offset = _readout_of(readout, cell)
    return Network(cell, matrix, offset, batch_first)


def bounded_circuit(network: Network) -> Circuit:
    """Return the circuit for the bounds of Theorem 1, with the input map folded into the input rows of a, b, o.

    Raises:
        ValueError: if no bound is known for this model.
    """
    cell = network.cell
    if not isinstance(cell, LiquidCell) or not cell.saturated:
        raise ValueError(
            f"the Lipschitz bound is proved for STC, LRC and LRCU, whose gates are bounded, but the model is an "
            f"{type(cell).__name__.removesuffix('Cell')}; use empirical_lipschitz for it"
        )
    if cell.solver not in BOUNDED_SOLVERS:
        raise ValueError(
            f"the Lipschitz bound covers the solvers {', '.join(BOUNDED_SOLVERS)}, but the solver is {cell.solver!r}; "
            "use empirical_lipschitz, or build the model with one of these"
        )
    assert network.circuit is not None
    return network.circuit


def check_dt(dt: float) -> float:
    """Return dt if it is one finite number that is not negative."""
    number = read_number(dt)
    if number is None:
        raise TypeError(f"dt must be one number, but is {dt!r}; compute the bound for the largest dt that occurs")
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"dt must be finite and >= 0, but is {dt}; pass the elapsed time between two readings")
    return number


def _find_parts(module: nn.Module) -> tuple[nn.Module, Readout]:
    """Find the recurrent layer of a module and the linear read-out after it."""
    if not isinstance(module, nn.Module):
        raise TypeError(f"a model must be a module or (layer, readout), but is a {type(module).__name__}; {ACCEPTED}")
    if isinstance(module, RecurrentLayer | Cell | nn.RNNBase | nn.RNNCellBase):
        return module, None
    name = type(module).__name__
    if isinstance(module, NeuralODE | LRCField | MLPField):
        raise ValueError(f"the theory bounds one step of a recurrent layer, but {name} is a vector field; {ACCEPTED}")
    leaves = _leaves(module)
    recurrent = [i for i, leaf in enumerate(leaves) if isinstance(leaf, RecurrentLayer | Cell | nn.RNNBase)]
    if len(recurrent) != 1:
        raise ValueError(f"a model must have exactly one recurrent layer, but {name} has {len(recurrent)}; {ACCEPTED}")
    after = [m for m in leaves[recurrent[0] + 1 :] if not isinstance(m, nn.Dropout | nn.Identity)]
    if len(after) != 1 or not isinstance(after[0], nn.Linear):
        names = ", ".join(type(m).__name__ for m in after) or "nothing"
        raise ValueError(f"one nn.Linear must follow the recurrent layer of {name}, but {names} does; {ACCEPTED}")
    return leaves[recurrent[0]], after[0]


def _leaves(module: nn.Module) -> list[nn.Module]:
    """List the modules without children, in order of registration; a recurrent layer counts as one."""
    if isinstance(module, RecurrentLayer | Cell | nn.RNNBase):
        return [module]
    children = list(module.children())
    return [leaf for child in children for leaf in _leaves(child)] if children else [module]


def _cell_of(layer: nn.Module) -> tuple[Cell, bool]:
    """Return the only cell of a layer, and whether its sequences are batch-first."""
    if isinstance(layer, Cell):
        cell, batch_first = layer, False
    elif isinstance(layer, RecurrentLayer):
        if layer.num_layers != 1 or layer.bidirectional:
            what = "bidirectional" if layer.bidirectional else f"a stack of {layer.num_layers} layers"
            raise ValueError(
                f"the theory covers one {layer.mode} layer in one direction, but this one is {what}; pass its cells "
                "one by one"
            )
        first = layer.cells[0]
        assert isinstance(first, Cell)
        cell, batch_first = first, layer.batch_first
    else:
        raise ValueError(f"no Lipschitz constant is defined here for a {type(layer).__name__}; {ACCEPTED}")
    if getattr(layer, "time_feature", False):
        raise ValueError(
            f"the elapsed time of this {type(layer).__name__} is an input like any other; build it with "
            "time_feature=False and one more input column"
        )
    if isinstance(layer, ContinuousLayer) and layer.time_scale != 1:
        raise ValueError(
            f"the theory computes in units of time, but this {layer.mode} has time_scale={layer.time_scale}; pass its "
            "cell, layer.cells[0], and dt / time_scale"
        )
    return cell, batch_first


def _readout_of(readout: Readout, cell: Cell) -> tuple[Tensor, Tensor]:
    """Return Q (K, m) and its offset (K,), with the output map of a liquid cell folded in."""
    m = positive_size("hidden_size", cell.hidden_size)
    features = cell.output_size
    like = next(cell.parameters())
    if readout is None:
        matrix, offset = torch.eye(features).to(like), torch.zeros(features).to(like)
    elif isinstance(readout, nn.Linear):
        matrix = readout.weight.detach().to(like)
        offset = matrix.new_zeros(matrix.shape[0]) if readout.bias is None else readout.bias.detach().to(like)
    elif isinstance(readout, Tensor):
        matrix = readout.detach().to(like)
        offset = matrix.new_zeros(matrix.shape[0] if matrix.dim() else 0)
    else:
        raise TypeError(f"a readout must be an nn.Linear, a tensor or None, but is a {type(readout).__name__}")
    if matrix.dim() != 2 or matrix.shape[1] != features or not matrix.shape[0]:
        raise ValueError(f"the readout must have shape (K, {features}), K at least 1, but has {tuple(matrix.shape)}")
    # The motor neurons of a wiring come first.
    matrix = nn.functional.pad(matrix, (0, m - features))
    if isinstance(cell, LiquidCell) and cell.output_scale is not None and cell.output_shift is not None:
        matrix, offset = matrix * cell.letter("output_scale"), offset + matrix @ cell.letter("output_shift")
    return matrix, offset


@torch.no_grad()
def _fold_input_map(cell: LiquidCell) -> Circuit:
    """Return the same network without input map: a (scale x + shift) + b = (a scale) x + (a shift + b)."""
    circuit = cell.values()
    scale, shift = circuit.input_scale, circuit.input_shift
    if scale is not None and shift is not None:
        m = cell.hidden_size
        a, b, o, p = circuit.a.clone(), circuit.b.clone(), circuit.o, circuit.p
        b[m:] += a[m:] * shift.unsqueeze(-1)
        a[m:] *= scale.unsqueeze(-1)
        if o is not None:
            o = o.clone()
            p = shift @ o[m:] + (0 if p is None else p)
            o[m:] *= scale.unsqueeze(-1)
        circuit = circuit._replace(a=a, b=b, o=o, p=p)
    return circuit._replace(input_scale=None, input_shift=None, output_scale=None, output_shift=None, mask=None)
