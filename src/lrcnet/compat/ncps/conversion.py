"""Turn a module of ncps, or of `lrcnet.compat.ncps.torch`, into a layer of this library with equal outputs."""

from typing import Any

import torch
from torch import Tensor, nn

from lrcnet.cells import CfCCell as NativeCfCCell
from lrcnet.cells import WiredCfCCell as NativeWiredCfCCell
from lrcnet.cells.cfc_equation import ACTIVATIONS
from lrcnet.cfc_layers import CfC as NativeCfC
from lrcnet.cfc_layers import WiredCfC
from lrcnet.compat.ncps.torch import LTC, CfC, CfCCell, LTCCell, WiredCfCCell
from lrcnet.compat.ncps.torch.sequence import LSTMCell
from lrcnet.layers import LTC as NativeLTC
from lrcnet.layers import RecurrentLayer
from lrcnet.mixed_memory import MixedMemory
from lrcnet.wirings import NCP, Wiring

# A leak potential of 0 has no k = g e / e_l; this one instead changes the drive by less than float32 rounds.
_SMALLEST_POTENTIAL = 1e-6
_ACTIVATION_NAMES = {"LeCun": "lecun_tanh", "SiLU": "silu", "ReLU": "relu", "Tanh": "tanh", "GELU": "gelu"}
assert set(_ACTIVATION_NAMES.values()) == set(ACTIVATIONS)


class Projected(nn.Module):
    """A layer followed by a linear map of its output: ncps' option `proj_size`."""

    def __init__(self, layer: nn.Module, projection: nn.Linear) -> None:
        super().__init__()
        self.layer, self.projection = layer, projection

    def forward(self, input: Tensor, hx: Any = None, *, dt: Any = None) -> tuple[Tensor, Any]:
        """Run the layer, and map its output."""
        output, state = self.layer(input, hx, dt=dt)
        return self.projection(output), state


@torch.no_grad()
def convert(module: nn.Module) -> nn.Module:
    """Return a layer of this library with the weights of an LTC or CfC of ncps, and equal outputs.

    The layer is called as torch.nn.GRU is: it takes dt in place of timespans, its states have a first axis of layers,
    and it always returns the whole sequence. With mixed memory it is a `lrcnet.MixedMemory`, with proj_size a layer
    with a linear map.

    An LTC's letters are g = w / C, g_l = (gleak + epsilon) / C, e_l = vleak gleak / (gleak + epsilon) and
    k = g e / e_l, with C the capacitance and e the reversal potentials; `circuit(reversal_potentials=True)` gives them
    back.

    Args:
        module: an `LTC` or `CfC` of ncps.torch or of lrcnet.compat.ncps.torch.

    Raises:
        TypeError: for any other module.

    >>> from lrcnet.compat import ncps
    >>> theirs = ncps.torch.LTC(3, ncps.wirings.AutoNCP(12, 2))
    >>> ours, x = ncps.convert(theirs), torch.randn(2, 7, 3)
    >>> torch.allclose(ours(x)[0], theirs(x)[0], atol=1e-5)
    True
    """
    twin = _make_twin(module)
    cell = twin.rnn_cell
    layer = _convert_ltc(cell, twin) if isinstance(cell, LTCCell) else _convert_cfc(cell, twin)
    converted: nn.Module = _add_memory(layer, twin.lstm) if twin.use_mixed else layer
    projection = getattr(twin, "fc", None)
    converted = Projected(converted, projection) if isinstance(projection, nn.Linear) else converted
    return converted.train(module.training)


def convert_wiring(wiring: Any, input_size: int) -> Wiring:
    """Return a wiring of this library with the synapses of one of ncps, built for its inputs.

    Raises:
        ValueError: if it has layers, but is no NCP.
    """
    if not wiring.is_built():
        wiring.build(input_size)
    content = {
        "units": wiring.units,
        "input_dim": wiring.input_dim,
        "output_dim": wiring.output_dim,
        "adjacency_matrix": wiring.adjacency_matrix,
        "sensory_adjacency_matrix": wiring.sensory_adjacency_matrix,
    }
    if wiring.num_layers == 1:
        return Wiring.from_config(content)
    sizes = [len(wiring.get_neurons_of_layer(layer)) for layer in range(wiring.num_layers)]
    if len(sizes) != 3:
        raise ValueError(f"a wiring with layers must be an NCP, but is a {type(wiring).__name__}; use AutoNCP or NCP")
    # The numbers of synapses only matter for drawing, and these are drawn.
    inter, command, motor = sizes
    ours = NCP(inter, command, motor, sensory_fanout=1, inter_fanout=1, recurrent_command_synapses=0, motor_fanin=1)
    ours.take_matrices(content)
    return ours


def _make_twin(module: nn.Module) -> Any:
    """Return a module of `lrcnet.compat.ncps.torch` with the arguments and weights of a module of either library."""
    kind, given = type(module).__name__, module.__dict__ | module._modules
    if kind not in ("LTC", "CfC") or "rnn_cell" not in given:
        raise TypeError(f"convert expects an LTC or a CfC of ncps.torch, but was given a {kind}; pass one of these")
    cell: Any = given["rnn_cell"]
    units = given["wiring_or_units"]
    if not isinstance(units, int | Wiring):
        units = convert_wiring(units, given["input_size"])
    common = {name: given[name] for name in ("return_sequences", "batch_first")} | {"mixed_memory": given["use_mixed"]}
    twin: nn.Module
    if kind == "LTC":
        names = ("input_mapping", "output_mapping", "ode_unfolds", "epsilon", "implicit_param_constraints")
        twin = LTC(given["input_size"], units, **common, **{name: getattr(cell, f"_{name}") for name in names})
    elif isinstance(units, Wiring):
        mode = next(cell.children()).mode
        twin = CfC(given["input_size"], units, given["proj_size"], **common, mode=mode)
    else:
        backbone = _describe_backbone(cell)
        twin = CfC(given["input_size"], units, given["proj_size"], **common, mode=cell.mode, **backbone)
    like = next(module.parameters())
    twin.to(device=like.device, dtype=like.dtype).load_state_dict(module.state_dict())
    return twin


def _describe_backbone(cell: Any) -> dict[str, Any]:
    layers = [part for part in cell.backbone or () if isinstance(part, nn.Linear)]
    drops = [part.p for part in cell.backbone or () if isinstance(part, nn.Dropout)]
    if isinstance(cell, CfCCell):
        activation, dropout = cell.backbone_activation, cell.backbone_dropout
    else:
        activation = _ACTIVATION_NAMES[type(cell.backbone[1]).__name__] if layers else "lecun_tanh"
        dropout = drops[0] if drops else 0.0
    return {
        "backbone_layers": len(layers),
        "backbone_units": layers[0].out_features if layers else 0,
        "backbone_dropout": dropout,
        "activation": activation,
    }


def _convert_ltc(cell: LTCCell, twin: LTC) -> RecurrentLayer:
    capacitance, leak = cell.positive(cell.cm), cell.positive(cell.gleak)
    mask = torch.cat([cell.sparsity_mask, cell.sensory_sparsity_mask])
    sigma, mu = torch.cat([cell.sigma, cell.sensory_sigma]), torch.cat([cell.mu, cell.sensory_mu])
    g = cell.positive(torch.cat([cell.w, cell.sensory_w])) * mask / capacitance
    potential = cell.vleak * leak / (leak + cell._epsilon)
    potential = torch.where(potential.abs() < _SMALLEST_POTENTIAL, _SMALLEST_POTENTIAL, potential)
    letters: dict[str, Tensor | None] = {
        "a": sigma * mask,
        "b": -sigma * mu * mask,
        "g": g,
        "e": torch.cat([cell.erev, cell.sensory_erev]) * mask,
        "g_l": (leak + cell._epsilon) / capacitance,
        "e_l": potential,
    }
    maps_input, maps_output = cell.input_w is not None, cell.output_w is not None
    if maps_input:
        letters |= {"input_scale": cell.input_w, "input_shift": _shift(cell.input_b, cell.input_w)}  # type: ignore[dict-item]
    if maps_output:
        rest = torch.ones_like(cell.gleak)[cell.motor_size :]
        scale, shift = cell.output_w, _shift(cell.output_b, cell.output_w)
        letters |= {"output_scale": torch.cat([scale, rest]), "output_shift": torch.cat([shift, rest * 0])}  # type: ignore[list-item]
    dense = bool(mask.all()) and cell.motor_size == cell.state_size
    layer = NativeLTC(
        twin.input_size,
        cell.state_size,
        batch_first=twin.batch_first,
        device=cell.cm.device,
        dtype=cell.cm.dtype,
        unfolds=cell._ode_unfolds,
        input_map=maps_input,
        output_map=maps_output,
        wiring=None if dense else cell._wiring,
    )
    layer.load_circuit(letters)
    return layer


def _shift(shift: Any, scale: Any) -> Tensor:
    return torch.zeros_like(scale) if shift is None else shift


def _convert_cfc(cell: CfCCell | WiredCfCCell, twin: CfC) -> RecurrentLayer:
    like = next(cell.parameters())
    place: dict[str, Any] = {"batch_first": twin.batch_first, "device": like.device, "dtype": like.dtype}
    if isinstance(cell, WiredCfCCell):
        wired = WiredCfC(twin.input_size, wiring=cell._wiring, mode=cell.mode, dense_gates=True, **place)  # type: ignore[arg-type]
        native = wired.cells[0]
        assert isinstance(native, NativeWiredCfCCell)
        for part, source in zip(native.parts, cell.layers(), strict=True):
            assert isinstance(part, NativeCfCCell)
            _copy_cfc(source, part)
        return wired
    backbone = _describe_backbone(cell)
    layer = NativeCfC(twin.input_size, cell.hidden_size, mode=cell.mode, **backbone, **place)  # type: ignore[arg-type]
    dense = layer.cells[0]
    assert isinstance(dense, NativeCfCCell)
    _copy_cfc(cell, dense)
    return layer


def _copy_cfc(source: CfCCell, target: NativeCfCCell) -> None:
    weights = source.weights()
    weight_ih, weight_hh, bias = weights.first
    assert target.bias is not None
    assert bias is not None
    for into, value in ((target.weight_ih, weight_ih), (target.weight_hh, weight_hh), (target.bias, bias)):
        into.copy_(value)
    for layer, (weight, offset) in zip(target.deeper, weights.deeper, strict=True):
        assert isinstance(layer, nn.Linear)
        assert offset is not None
        layer.weight.copy_(weight)
        layer.bias.copy_(offset)
    if target.w_tau is not None and target.asymptote is not None:
        target.w_tau.copy_(source.w_tau[0])
        target.asymptote.copy_(source.A[0])


def _add_memory(layer: RecurrentLayer, source: LSTMCell) -> MixedMemory:
    mixed = MixedMemory(layer)
    memory: Any = mixed.memories[0]
    # Rows are candidate, input, forget and output there, and input, forget, candidate and output in torch.
    order = (1, 2, 0, 3)

    def arrange(rows: Tensor) -> Tensor:
        parts = rows.chunk(4)
        return torch.cat([parts[i] for i in order])

    memory.weight_ih.copy_(arrange(source.input_map.weight))
    memory.weight_hh.copy_(arrange(source.recurrent_map.weight))
    memory.bias_ih.copy_(arrange(source.input_map.bias))
    memory.bias_hh.zero_()
    units = layer.hidden_size
    memory.bias_hh[units : 2 * units] = 1.0
    return mixed
