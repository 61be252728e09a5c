"""The fused scan as torch.library operators: schema, CPU implementation, fake, autograd.

Axes: T time, B batch, n inputs, m hidden units, K unfoldings. x is (T, B, n), or (B, T, n) if batch_first.
"""

import warnings
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lrcnet.errors import DivergenceWarning
from lrcnet.kernels import native

ELASTANCES = ("none", "asymmetric", "symmetric")
SOLVERS = ("euler", "hybrid", "exponential")
DTYPES = (torch.float32, torch.float64)
NEGATIVE_ADVICE = "sort the readings by time, or pass negative_dt='clamp' or 'allow' to the layer"
ONCE = (
    "the fused kernel is differentiable once, but a second derivative was asked for; use "
    'backend="reference" for this layer'
)

_TENSORS = (
    "Tensor x, Tensor? h0, Tensor? dt, Tensor a, Tensor b, Tensor g, Tensor k, Tensor g_l, Tensor e_l, Tensor? o, "
    "Tensor? p, Tensor? k_eps, Tensor? input_scale, Tensor? input_shift"
)
_SWITCHES = "float dt_value, bool saturated, str elastance, str solver, int unfolds, bool batch_first"
_GRADIENTS = 14  # as many as _TENSORS names, in its order

torch.library.define("lrcnet::scan", f"({_TENSORS}, {_SWITCHES}, bool check_dt, bool keep) -> (Tensor, Tensor)")
torch.library.define(
    "lrcnet::scan_backward",
    f"(Tensor? grad, {_TENSORS}, {_SWITCHES}, Tensor states, Tensor saved, bool want_x, bool want_dt) -> "
    f"({', '.join(['Tensor'] * _GRADIENTS)})",
)


class Sizes(NamedTuple):
    """What the shapes of a call say."""

    steps: int
    batch: int
    inputs: int
    units: int

    @classmethod
    def of(cls, x: Tensor, g_l: Tensor, batch_first: bool) -> "Sizes":
        batch, steps = (x.shape[0], x.shape[1]) if batch_first else (x.shape[1], x.shape[0])
        return cls(steps, batch, x.shape[2], g_l.shape[0])

    def states(self, batch_first: bool) -> tuple[int, int, int]:
        return (self.batch, self.steps, self.units) if batch_first else (self.steps, self.batch, self.units)

    def saved(self, elastance: str, unfolds: int) -> tuple[int, ...]:
        """F, U, then w with an elastance, then the state before each unfolding where there are several."""
        planes = 2 + (elastance != "none") + (unfolds > 1)
        return (self.steps, unfolds, self.batch, planes, self.units)


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def _time_and_batch(tensor: Tensor | None, batch_first: bool) -> tuple[int, int]:
    """Strides along time and batch."""
    if tensor is None:
        return 0, 0
    return (tensor.stride(1), tensor.stride(0)) if batch_first else (tensor.stride(0), tensor.stride(1))


class _Call:
    """The arguments of the compiled functions; keeps what they point to alive."""

    def __init__(
        self,
        x: Tensor,
        h0: Tensor | None,
        dt: Tensor | None,
        *parameters: Tensor | None,
        dt_value: float,
        saturated: bool,
        elastance: str,
        solver: str,
        unfolds: int,
        batch_first: bool,
    ) -> None:
        # Addresses are handed to C from here on: a wrong size must not get further than this.
        check(x, h0, dt, *parameters, elastance=elastance, batch_first=batch_first)
        self.sizes = sizes = Sizes.of(x, parameters[4], batch_first)  # type: ignore[arg-type]
        self.batch_first = batch_first
        self.x, self.dt, self.dt_value = x, dt, dt_value
        self.h0 = None if h0 is None else h0.contiguous()
        self.parameters = [None if p is None else p.contiguous() for p in parameters]
        self.is_double = x.dtype == torch.float64
        self.model = (
            saturated,
            ELASTANCES.index(elastance),
            SOLVERS.index(solver),
            unfolds,
            sizes.inputs,
            sizes.units,
            *(_address(p) for p in self.parameters),
        )

    def sequence(self, states: Tensor, saved: Tensor) -> tuple[Any, ...]:
        return (
            torch.get_num_threads(),
            self.sizes.steps,
            self.sizes.batch,
            self.x.data_ptr(),
            *_time_and_batch(self.x, self.batch_first),
            self.x.stride(2),
            _address(self.h0),
            _address(self.dt),
            *_time_and_batch(self.dt, self.batch_first),
            self.dt_value,
            states.data_ptr(),
            *_time_and_batch(states, self.batch_first),
            _address(saved) if saved.numel() else 0,
        )


def check(
    x: Tensor, h0: Tensor | None, dt: Tensor | None, *parameters: Tensor | None, elastance: str, batch_first: bool
) -> None:
    """Raise unless every tensor has the shape, dtype and device that x and g_l imply."""
    names = ("a", "b", "g", "k", "g_l", "e_l", "o", "p", "k_eps", "input_scale", "input_shift")
    given = dict(zip(names, parameters, strict=True))
    g_l = given["g_l"]
    if x.dim() != 3 or g_l is None or g_l.dim() != 1:
        raise ValueError(f"x must have 3 dimensions and g_l one, but x has {x.dim()}; add the batch and time axes")
    sizes = Sizes.of(x, g_l, batch_first)
    rows, m = sizes.inputs + sizes.units, sizes.units
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("a", "b", "g", "k", "o"), (rows, m))
    shapes |= dict.fromkeys(("g_l", "e_l", "p", "k_eps"), (m,))
    shapes |= dict.fromkeys(("input_scale", "input_shift"), (sizes.inputs,))
    shapes |= {"h0": (sizes.batch, m), "dt": (x.shape[0], x.shape[1])}
    needed = {"a", "b", "g", "k", "g_l", "e_l"}
    if elastance != "none":
        needed.add("o")
    if elastance == "symmetric":
        needed.add("k_eps")
    for name, tensor in {**given, "h0": h0, "dt": dt}.items():
        if tensor is None:
            if name in needed:
                raise ValueError(f"{name} must be given with elastance={elastance!r}, but is None")
            continue
        if tensor.shape != shapes[name]:
            raise ValueError(f"{name} must have shape {shapes[name]}, but has {tuple(tensor.shape)}")
        if tensor.dtype != x.dtype or tensor.device != x.device:
            raise ValueError(
                f"{name} must be {x.dtype} on {x.device} as x is, but is {tensor.dtype} on {tensor.device}; convert one"
            )


def scan_on_cpu(
    x: Tensor,
    h0: Tensor | None,
    dt: Tensor | None,
    a: Tensor,
    b: Tensor,
    g: Tensor,
    k: Tensor,
    g_l: Tensor,
    e_l: Tensor,
    o: Tensor | None,
    p: Tensor | None,
    k_eps: Tensor | None,
    input_scale: Tensor | None,
    input_shift: Tensor | None,
    dt_value: float,
    saturated: bool,
    elastance: str,
    solver: str,
    unfolds: int,
    batch_first: bool,
    check_dt: bool,
    keep: bool,
) -> tuple[Tensor, Tensor]:
    parameters = (a, b, g, k, g_l, e_l, o, p, k_eps, input_scale, input_shift)
    call = _Call(
        x,
        h0,
        dt,
        *parameters,
        dt_value=dt_value,
        saturated=saturated,
        elastance=elastance,
        solver=solver,
        unfolds=unfolds,
        batch_first=batch_first,
    )
    if check_dt and dt is None and dt_value < 0:
        raise ValueError(f"dt must be >= 0, but is {dt_value:g}; {NEGATIVE_ADVICE}")
    states = x.new_empty(call.sizes.states(batch_first))
    saved = x.new_empty(call.sizes.saved(elastance, unfolds) if keep else (0,))
    found = native.call("scan")(call.is_double, check_dt, *call.model, *call.sequence(states, saved))
    if found is not None:
        _tell(found)
    return states, saved


def _tell(found: tuple[Any, ...]) -> None:
    """Raise for a negative dt, warn of a state that stopped being finite."""
    kind, t, sample, *value = found
    if kind == "dt":
        raise ValueError(f"dt must be >= 0, but dt[t={t}, sample={sample}] is {value[0]:g}; {NEGATIVE_ADVICE}")
    warnings.warn(
        f"the state stopped being finite at step {t} of sample {sample} although the input is finite; use a stable "
        "solver ('hybrid' or 'exponential'), more unfolds or a smaller dt",
        DivergenceWarning,
        stacklevel=2,
    )


def _scan_fake(
    x: Tensor,
    h0: Tensor | None,
    dt: Tensor | None,
    a: Tensor,
    b: Tensor,
    g: Tensor,
    k: Tensor,
    g_l: Tensor,
    e_l: Tensor,
    o: Tensor | None,
    p: Tensor | None,
    k_eps: Tensor | None,
    input_scale: Tensor | None,
    input_shift: Tensor | None,
    dt_value: float,
    saturated: bool,
    elastance: str,
    solver: str,
    unfolds: int,
    batch_first: bool,
    check_dt: bool,
    keep: bool,
) -> tuple[Tensor, Tensor]:
    sizes = Sizes.of(x, g_l, batch_first)
    return (
        x.new_empty(sizes.states(batch_first)),
        x.new_empty(sizes.saved(elastance, unfolds) if keep else (0,)),
    )


def _new_gradients(inputs: tuple[Tensor | None, ...], want_x: bool, want_dt: bool, sizes: Sizes) -> list[Tensor]:
    """Room for each gradient, empty where none is wanted. The first state always gets one."""
    x = inputs[0]
    assert x is not None
    wanted = [want_x, True, want_dt, *(tensor is not None for tensor in inputs[3:])]
    shapes = [x.shape, (sizes.batch, sizes.units), x.shape[:2], *(() if p is None else p.shape for p in inputs[3:])]
    return [x.new_empty(shape if want else (0,)) for shape, want in zip(shapes, wanted, strict=True)]


def scan_backward_on_cpu(grad: Tensor | None, *arguments: Any) -> tuple[Tensor, ...]:
    inputs, (dt_value, saturated, elastance, solver, unfolds, batch_first) = arguments[:14], arguments[14:20]
    states, saved, want_x, want_dt = arguments[20:]
    call = _Call(
        *inputs,
        dt_value=dt_value,
        saturated=saturated,
        elastance=elastance,
        solver=solver,
        unfolds=unfolds,
        batch_first=batch_first,
    )
    gradients = _new_gradients(inputs, want_x, want_dt, call.sizes)
    into = [gradient.data_ptr() if gradient.numel() else 0 for gradient in gradients]
    x, h0, dt, *parameters = into
    native.call("scan_backward")(
        call.is_double,
        *call.model,
        *call.sequence(states, saved),
        _address(grad),
        *_time_and_batch(grad, batch_first),
        0 if grad is None else grad.stride(2),
        x,
        *(_time_and_batch(gradients[0], batch_first) if x else (0, 0)),
        h0,
        dt,
        *(_time_and_batch(gradients[2], batch_first) if dt else (0, 0)),
        *parameters,
    )
    return tuple(gradients)


def _scan_backward_fake(grad: Tensor | None, *arguments: Any) -> tuple[Tensor, ...]:
    inputs, batch_first, (want_x, want_dt) = arguments[:14], arguments[19], arguments[22:]
    return tuple(_new_gradients(inputs, want_x, want_dt, Sizes.of(inputs[0], inputs[7], batch_first)))


class _Scan(torch.autograd.Function):
    """The gradient of lrcnet::scan, which is lrcnet::scan_backward."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor]:
        with torch._C._AutoDispatchBelowAutograd():
            states, saved = torch.ops.lrcnet.scan.default(*arguments)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*arguments[:14], states, saved)
        ctx.switches, ctx.kept = arguments[14:20], arguments[21]
        return states, saved

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        if not ctx.kept:
            raise RuntimeError(
                "lrcnet::scan was called with keep=False, so nothing was kept for its gradient; pass keep=True"
            )
        *inputs, states, saved = ctx.saved_tensors
        needs = ctx.needs_input_grad
        gradients = torch.ops.lrcnet.scan_backward.default(
            grads[0], *inputs, *ctx.switches, states, saved, needs[0], needs[2]
        )
        wanted = [gradient if need else None for gradient, need in zip(gradients, needs[:14], strict=True)]
        return (*wanted, *[None] * 8)


class _ScanBackward(torch.autograd.Function):
    """There is no second derivative; asking for it says what to use instead."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, ...]:
        with torch._C._AutoDispatchBelowAutograd():
            gradients: tuple[Tensor, ...] = torch.ops.lrcnet.scan_backward.default(*arguments)
        return gradients

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> None:
        raise RuntimeError(ONCE)


def _with_gradient(function: type[torch.autograd.Function], operator: Any) -> Any:
    """The operator's autograd kernel.

    torch.library.register_autograd would do, but it reads the operator's schema on every call, which takes longer than
    a small layer's whole forward pass.
    """

    def call(*arguments: Any) -> Any:
        tracked = torch.is_grad_enabled() and any(isinstance(a, Tensor) and a.requires_grad for a in arguments)
        if tracked:
            return function.apply(*arguments)  # type: ignore[no-untyped-call]
        with torch._C._AutoDispatchBelowAutograd():
            return operator(*arguments)

    return call


torch.library.impl("lrcnet::scan", "CPU", scan_on_cpu)
torch.library.impl("lrcnet::scan_backward", "CPU", scan_backward_on_cpu)
torch.library.register_fake("lrcnet::scan", _scan_fake)
torch.library.register_fake("lrcnet::scan_backward", _scan_backward_fake)
torch.library.impl("lrcnet::scan", "Autograd", _with_gradient(_Scan, torch.ops.lrcnet.scan.default))
torch.library.impl(
    "lrcnet::scan_backward", "Autograd", _with_gradient(_ScanBackward, torch.ops.lrcnet.scan_backward.default)
)
