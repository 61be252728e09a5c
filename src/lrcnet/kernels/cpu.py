"""The backend on the compiled library: whole sequences as one operator, single steps without torch's dispatcher.

Axes: T time, B batch, n inputs, m hidden units.
"""

from array import array
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lrcnet.circuit import Circuit, Switches, describe_mismatch
from lrcnet.errors import describe_bad_dt, find_bad_dt, is_bad_dt
from lrcnet.kernels import native
from lrcnet.kernels.backend import Network
from lrcnet.kernels.diagonal_inputs import scan_inputs
from lrcnet.kernels.operator_backend import OperatorBackend, limits_of_the_operator, slope_switches
from lrcnet.kernels.problem import IS_DOUBLE, recall_model, rewrite_model
from lrcnet.tracing import dispatcher_needed, resolve
from lrcnet.value_checks import refuse_freed

# Looked up once: a step of one sample takes so little time that a global's attribute is seen in it.
_empty_like = torch.empty_like
_step = None if native.unavailable() else native.call("step")


class CPUBackend(OperatorBackend):
    """The C++ kernels of csrc/."""

    name = "cpu"

    def reasons(self, x: Tensor, switches: Switches, units: int) -> list[str]:
        reasons = [] if _step is not None else [str(native.unavailable())]
        if not x.is_cpu:
            reasons.append(f"it runs on the CPU, but x is on {x.device}")
        return reasons + limits_of_the_operator(x, switches)

    def step(self, circuit: Circuit, switches: Switches, x: Tensor, h: Tensor, dt: float | Tensor) -> Tensor:
        return self._step((Network(circuit, switches),), x, h, dt)

    def step_stack(self, networks: Sequence[Network], x: Tensor, h: Tensor, dt: float) -> Tensor:
        return self._step(networks, x, h, dt)

    def _step(self, networks: Sequence[Network], x: Tensor, h: Tensor, dt: float | Tensor) -> Tensor:
        """Take one step of all networks of a stack in one call; see `Backend.step_stack`."""
        if _step is None:
            raise RuntimeError(native.unavailable())
        batch, inputs = x.shape
        dtype, count, check_dt = x.dtype, len(networks), networks[0].switches.check_dt
        # Not circuit.units: a property's call is seen in a step of one sample.
        units = 0 if (g_l := networks[0].circuit.g_l) is None else g_l.numel()
        models: list[int] = []
        kept: list[Any] = []
        for network in networks:
            if models:
                inputs = len(network.circuit.a) - units
                if not 0 <= inputs <= units:
                    raise ValueError(f"a layer must read 0 to {units} states of the layer below, but reads {inputs}")
            model = recall_model(network, x, inputs, units)
            if model is None:
                circuit, arguments = rewrite_model(network.circuit, network.switches, x, inputs, units)
                model = array("q", arguments)
                kept.append(circuit)
            kept.append(model)
            models.append(model.buffer_info()[0])
        is_double = IS_DOUBLE.get(dtype)
        if is_double is None or not (x.is_cpu and h.is_cpu and h.dtype is dtype and h.numel() == count * batch * units):
            raise ValueError(_describe_state(x, h, units))
        x_address, h_address = x.data_ptr(), h.data_ptr()
        if x.is_neg() or h.is_neg() or not h_address or not (x_address or not x.shape[1]) or not h.is_contiguous():
            x, h = resolve(x), resolve(h).contiguous()
            x_address, h_address = x.data_ptr(), h.data_ptr()
        dt_address = dt_stride = 0
        dt_value: float | Tensor = dt
        if isinstance(dt, Tensor):
            dt = resolve(dt)
            dt_address, dt_stride, dt_value = _read_steps(dt, x, check_dt)
        elif not dt >= 0 and is_bad_dt(dt, check_dt):
            raise ValueError(describe_bad_dt("", dt))
        out = _empty_like(h)
        x_batch, x_channel = x.stride()
        sample = (batch, x_address, x_batch, x_channel, h_address, dt_address, dt_stride, dt_value, out.data_ptr())
        _step(is_double, count, *models, *sample)
        return out

    def derivative(self, circuit: Circuit, switches: Switches, x: Tensor, h: Tensor) -> Tensor:
        if torch.is_grad_enabled() or dispatcher_needed():
            return super().derivative(circuit, switches, x, h)
        return self.step(circuit, slope_switches(switches), x, h, 1.0)

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
        return scan_inputs(x, weight, bias, h, dt, letters, switches, mixed=mixed)


def _describe_state(x: Tensor, h: Tensor, units: int) -> str:
    """Return the sentence for an input or a state that a step cannot read."""
    if not x.is_cpu or x.dtype not in IS_DOUBLE:
        return f"x must be float32 or float64 and on the CPU, but is {x.dtype} on {x.device}"
    shape = tuple(h.shape) if h.numel() == x.shape[0] * units else (x.shape[0], units)
    return describe_mismatch("h", h, shape, x)


def _read_steps(dt: Tensor, x: Tensor, check: bool) -> tuple[int, int, float]:
    """Check the dt of one step, (B,) or 0-dimensional; return address, stride and a value that is not used."""
    batch = x.shape[0]
    if dt.shape not in ((), (batch,)) or dt.dtype is not x.dtype or not dt.is_cpu:
        raise ValueError(describe_mismatch("dt", dt, (batch,) if dt.dim() else (), x))
    refuse_freed("dt", dt)
    bad = find_bad_dt(dt, check)
    if bool(bad.any()):
        steps = dt.expand(batch)
        sample = int(bad.expand(batch).nonzero()[0])
        raise ValueError(describe_bad_dt(f"[sample={sample}]", float(steps[sample])))
    return dt.data_ptr(), dt.stride(0) if dt.dim() else 0, 1.0
