"""Checks of a liquid layer on its first call: can its state leave zero, and do its synapses respond to its inputs?

Both faults are silent. The network runs, and never learns.

Axes: m hidden units, n inputs.
"""

import warnings

import torch
from torch import Tensor, nn

from lrcnet.circuit import Circuit, Switches
from lrcnet.errors import DeadLayerWarning, InputRangeWarning
from lrcnet.liquid import affine
from lrcnet.sequence import Sequences
from lrcnet.tracing import are_ordinary, dispatcher_needed
from lrcnet.value_checks import refuse_freed

# Beyond this |a y + b|, the slope of a synapse is below 0.14 % of its largest.
SATURATED_BEYOND = 8.0
# A channel is out of range if more than this share of its synapses are saturated, over all readings. At the default
# initial values this is a centred channel with a standard deviation of about 35, or one of 7 +- 0.7; at the paper's,
# one of about 15, or 3 +- 0.3. Metres in a room (person activity, 0.74 at the paper's) are within the range.
LARGEST_SHARE = 0.9
# Synapses, over all readings, that are looked at; more readings than this allows are thinned out.
_MOST_SYNAPSES = 1 << 18
# A single reading, as a stream has it, says nothing about the range of a channel.
FEWEST_READINGS = 16
# From warnings.warn to the line that called the layer: this file's function, the layer's hook, its `prepare`, `_run`
# and `forward`, and two functions of nn.Module.
_STACK = 8


def values_may_be_checked(*tensors: Tensor) -> bool:
    """Whether the numbers are there to be looked at: nobody traces, transforms or intercepts what runs now."""
    return not dispatcher_needed() and are_ordinary(*tensors) and not any(tensor.is_meta for tensor in tensors)


def check_memory(layer: nn.Module) -> None:
    """Raise if the storage of a parameter was freed: torch's own operators would read it all the same, and crash.

    Raises:
        ValueError: naming the first such parameter.
    """
    for name, parameter in layer.named_parameters():
        refuse_freed(name, parameter)


def is_dead(circuit: Circuit, switches: Switches) -> bool:
    """Return whether a state of zero can neither leave zero nor receive a gradient, in every unit.

    From h = 0 a unit moves by eps(w) U(u) e_l, and its output by output_scale times that. A factor vanishes whatever
    the inputs are if

    - e_l = 0;
    - U(u) = 0: k = 0 in all its synapses and g_l = 0, because u = sum_j k_j s_j + g_l with s_j > 0;
    - eps(w) = 0: k_eps = 0 in the symmetric elastance; the asymmetric one and 1 are never zero;
    - output_scale = 0, if there is an output map.

    One vanishing factor is harmless: its gradient is the product of the others, and descent revives it. With two, every
    gradient has a factor of zero. The forget gate plays no part, because it multiplies h = 0.
    """
    zero = [circuit.e_l == 0, (circuit.k == 0).all(0) & (circuit.g_l == 0)]
    if switches.elastance == "symmetric" and circuit.k_eps is not None:
        zero.append(circuit.k_eps == 0)
    if circuit.output_scale is not None:
        zero.append(circuit.output_scale == 0)
    return bool((torch.stack(zero).sum(0) >= 2).all())


def warn_of_dead_cells(owner: str, places: list[str]) -> None:
    """Warn that the cells at some places of a layer are dead."""
    where = "" if not places else f" ({', '.join(places)})"
    warnings.warn(
        f"the state of this {owner}{where} cannot leave zero and none of its gradients differs from zero, so it will "
        "never learn: at least two of e_l, of k together with g_l, of k_eps and of output_scale are zero in all units. "
        "Call reset_parameters() on the layer, and leave its parameters out of your own initialisation loop",
        DeadLayerWarning,
        stacklevel=_STACK,
    )


def thin_out(sequences: Sequences, synapses: int) -> Tensor:
    """Return some readings (readings, n) of time-major sequences, evenly spread, without padding."""
    x, lengths = sequences.x, sequences.lengths
    steps, batch = x.shape[:2]
    most = max(FEWEST_READINGS, _MOST_SYNAPSES // max(1, synapses))
    index = torch.arange(0, steps * batch, max(1, -(-steps * batch // most)), device=x.device)
    t, sample = index // max(1, batch), index % max(1, batch)
    if lengths is not None:
        inside = t < lengths[sample]
        t, sample = t[inside], sample[inside]
    return x.detach()[t, sample]


def saturated_shares(circuit: Circuit, readings: Tensor) -> Tensor:
    """Return the share (n,) of saturated synapses of each input channel, over readings (readings, n)."""
    m = circuit.g_l.shape[0]
    y = affine(readings, circuit.input_scale, circuit.input_shift)
    arguments = torch.addcmul(circuit.b[m:], y.unsqueeze(-1), circuit.a[m:])
    saturated = (arguments.abs() > SATURATED_BEYOND).to(readings.dtype).mean(0)
    if circuit.mask is None:
        return saturated.mean(1)
    # An input without synapses has none that are saturated.
    exists = circuit.mask[m:]
    return (saturated * exists).sum(1) / exists.sum(1).clamp(min=1)


def warn_if_out_of_range(owner: str, circuit: Circuit, readings: Tensor) -> None:
    """Warn if the synapses of some input channel are saturated at nearly all readings (readings, n)."""
    far = (saturated_shares(circuit, readings) > LARGEST_SHARE).nonzero().flatten().tolist()
    if not far:
        return
    channel = readings[:, far[0]]
    channel = channel[channel.isfinite()]
    listed = ", ".join(str(one) for one in far[:5]) + (" ..." if len(far) > 5 else "")
    remedy = (
        "scale the data yourself, or build the layer with input_map=True and call layer.calibrate(x)"
        if circuit.input_scale is None
        else "call layer.calibrate(x) with a batch of training data before training, or scale the data yourself"
    )
    warnings.warn(
        f"inputs of this {owner} are far outside the range of its synapses: more than {LARGEST_SHARE:.0%} of them are "
        f"saturated at {len(far)} of {readings.shape[1]} channels ({listed}); channel {far[0]} has mean "
        f"{channel.mean().item():.3g} and standard deviation {channel.std(correction=0).item():.3g}, where mean 0 and "
        f"standard deviation 1 are right. The layer learns little from such a channel: {remedy}",
        InputRangeWarning,
        stacklevel=_STACK,
    )
