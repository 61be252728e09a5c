"""The fused scan on the CPU: a `Problem` as the arguments of the compiled functions, and their complaints."""

import warnings

from torch import Tensor

from lrcnet.errors import DivergenceWarning, describe_bad_dt, describe_divergence, is_bad_dt
from lrcnet.kernels import native
from lrcnet.kernels.kept_memory import new_kept
from lrcnet.kernels.problem import Arguments, Problem, address


def scan(problem: Problem, keep: bool) -> tuple[Tensor, Tensor]:
    """Return the states, laid out as x, and what the gradient needs, empty unless `keep`; see `operators.run`."""
    arguments, switches = Arguments(problem), problem.switches
    if problem.dt is None and is_bad_dt(problem.dt_value, switches.check_dt):
        raise ValueError(describe_bad_dt("", problem.dt_value))
    states = problem.x.new_empty(problem.states_shape())
    saved = new_kept(problem.x, problem.saved_shape() if keep else (0,))
    trouble = native.call("scan")(
        arguments.is_double, switches.check_dt, *arguments.model, *arguments.sequence(states, saved)
    )
    if trouble is not None:
        _report(*trouble)
    return states, saved


def _report(kind: str, t: int, sample: int, value: float = 0.0) -> None:
    """Raise for a dt that is NaN or negative, warn of a state that stopped being finite."""
    if kind == "dt":
        raise ValueError(describe_bad_dt(f"[t={t}, sample={sample}]", value))
    warnings.warn(describe_divergence(t, sample), DivergenceWarning, stacklevel=2)


def scan_backward(
    problem: Problem, grad: Tensor | None, states: Tensor, saved: Tensor, want_x: bool, want_dt: bool
) -> list[Tensor | None]:
    """Return the gradient of each of `TENSORS`, None for those that are absent or not wanted.

    Args:
        states, saved: as `scan` returned them, without gaps in memory.
    """
    arguments, gradients = Arguments(problem), problem.new_gradients(want_x, want_dt)
    x, h0, dt, *letters = gradients
    native.call("scan_backward")(
        arguments.is_double,
        *arguments.model,
        *arguments.sequence(states, saved),
        address("the gradient", grad),
        *arguments.strides(grad),
        0 if grad is None else grad.stride(2),
        address("x", x),
        *arguments.strides(x),
        address("h0", h0),
        address("dt", dt),
        *arguments.strides(dt),
        *(address("a letter", letter) for letter in letters),
    )
    return gradients
