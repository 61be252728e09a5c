"""Random calls of every layer, and their values and gradients against the plain loop in float64.

A case draws a network, a wiring, a solver, the form of input, state, dt and incoming gradient (strides, lazy bits,
packed), the dtype, hooks on saved tensors, and parameters that are not plain memory.
"""

import copy
from typing import Any, NamedTuple

import torch
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from tests import tolerances
from tests.fuzz.networks import (
    CFC_MODES,
    FUSED,
    NETWORKS,
    SOLVERS,
    WIRINGS,
    Options,
    output_size,
    plain_loops,
    state_size,
)
from tests.fuzz.outcomes import RIGHT, WRONG, Outcome

FORMS = ("plain", "transposed", "every second", "expanded", "offset", "conjugate", "negated view", "zero tensor")
HOOKS = ("none", "clone", "other strides", "negated")
PACKINGS = ("no", "sorted", "unsorted")
GAPS = ("none", "number", "scalar tensor", "tensor", "packed", "packed otherwise")


class KernelCase(NamedTuple):
    """One call; every field is drawn on its own."""

    layer: str
    solver: str
    unfolds: int
    elastance: str
    parametrisation: str
    constraint: str
    flags: tuple[bool, bool, bool]
    depth: int
    bidirectional: bool
    batch_first: bool
    double: bool
    sizes: tuple[int, int, int, int]
    forms: tuple[str, str, str, str]
    letters: str
    packing: str
    gaps: str
    hooks: str
    wiring: float | str | None
    mode: str
    threads: int
    seed: int


CASES = st.builds(
    KernelCase,
    layer=st.sampled_from((*FUSED, *NETWORKS)),
    # The kernels' own solvers more often than those whose loop stays in Python.
    solver=st.sampled_from((*SOLVERS[:3], *SOLVERS)),
    unfolds=st.sampled_from((1, 1, 2, 3)),
    elastance=st.sampled_from(("symmetric", "asymmetric")),
    parametrisation=st.sampled_from(("scaled", "ab", "sigma-mu")),
    constraint=st.sampled_from(("clamp", "softplus")),
    flags=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    depth=st.sampled_from((1, 1, 1, 2)),
    bidirectional=st.sampled_from((False, False, True)),
    batch_first=st.booleans(),
    double=st.booleans(),
    # Long sequences of many inputs as well: a wiring of few samples then has a list of its inputs' synapses.
    sizes=st.tuples(
        st.integers(0, 4) | st.just(20), st.integers(0, 20), st.integers(1, 5) | st.just(40), st.integers(1, 34)
    ),
    forms=st.tuples(*[st.sampled_from(FORMS)] * 4),
    letters=st.sampled_from(("plain", "transposed", "every second", "offset", "conjugate", "negated view")),
    packing=st.sampled_from(PACKINGS),
    gaps=st.sampled_from(GAPS),
    hooks=st.sampled_from(HOOKS),
    wiring=st.sampled_from(WIRINGS),
    mode=st.sampled_from(CFC_MODES),
    threads=st.integers(1, 2),
    seed=st.integers(0, 2**31),
)


def shape_as(form: str, values: Tensor) -> Tensor:
    """Return a tensor of equal values with other strides or lazy bits; zeros for "zero tensor", equal rows expanded."""
    if form == "transposed":
        return values.transpose(0, -1).contiguous().transpose(0, -1)
    if form == "every second":
        return torch.stack([values, torch.full_like(values, torch.nan)], -1).flatten(-2)[..., ::2]
    if form == "expanded" and values.shape[:1].numel():
        return values[:1].expand(values.shape)
    if form == "offset":
        return torch.cat([values.new_full((1,), torch.nan), values.flatten()])[1:].view(values.shape)
    if form == "conjugate":
        return torch.complex(torch.full_like(values, torch.nan), -values).conj().imag
    if form == "negated view":
        return torch._neg_view(-values)
    if form == "zero tensor":
        return torch._efficientzerotensor(values.shape, dtype=values.dtype)
    return values


def _plain(values: Tensor) -> Tensor:
    """Return the values in memory of their own, in float64."""
    return (values + torch.zeros(values.shape, dtype=values.dtype)).detach().double().contiguous()


def unpack_hook(kind: str) -> Any:
    """Return a hook that gives a saved tensor back in another form."""
    change = {"clone": torch.clone, "other strides": lambda v: shape_as("every second", v)}
    change["negated"] = lambda v: shape_as("negated view", v)
    return lambda values: change[kind](values) if values.is_floating_point() and values.dim() else values


class _Call(NamedTuple):
    """The arguments of a call, plain tensors in the layout of the layer; c is the second part of a pair of states."""

    x: Tensor
    hx: Tensor
    c: Tensor
    dt: Any
    direction: Tensor


def normalise(case: KernelCase) -> KernelCase:
    """Return the case with the layout and the sizes that its network takes."""
    network, (steps, batch, inputs, units) = NETWORKS[case.layer], case.sizes
    if case.packing != "no":
        steps, batch = max(1, steps), max(1, batch)
    if network.dense_saved and case.hooks == "other strides":
        case = case._replace(hooks="clone")
    if network.only_forward:
        case = case._replace(bidirectional=False, batch_first=True)
    return case._replace(sizes=(steps, batch, inputs, units))


def _options(case: KernelCase) -> Options:
    fields = {name: value for name, value in case._asdict().items() if name in Options._fields}
    return Options(inputs=case.sizes[2], units=case.sizes[3], **fields)


def _draw(case: KernelCase, layer: Any, dtype: torch.dtype) -> _Call:
    steps, batch, inputs, _ = case.sizes
    directions = 2 if case.bidirectional else 1
    lead = (batch, steps) if case.batch_first else (steps, batch)
    states = (case.depth * directions, batch, state_size(layer))

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, dtype=torch.float64).to(dtype)

    gaps: Any = None
    if not NETWORKS[case.layer].timed(_options(case)):
        pass
    elif case.gaps == "number":
        gaps = float(torch.rand(()))
    elif case.gaps == "scalar tensor":
        gaps = torch.rand((), dtype=dtype)
    elif case.gaps != "none":
        gaps = shape_as(case.forms[2], torch.rand(lead, dtype=dtype))
    return _Call(
        shape_as(case.forms[0], normal(*lead, inputs)),
        shape_as(case.forms[1], normal(*states)),
        shape_as(case.forms[1], normal(*states)),
        gaps,
        shape_as(case.forms[3], normal(*lead, output_size(layer, directions))),
    )


def _pack(case: KernelCase, call: _Call, *, as_given: bool) -> tuple[Any, Any]:
    """Return input and dt, packed if the case says so; without `as_given` both in the plainest way."""
    if case.packing == "no":
        return call.x, call.dt
    batch = call.x.shape[0 if case.batch_first else 1]
    steps = call.x.shape[1 if case.batch_first else 0]
    lengths = torch.randint(1, steps + 1, (batch,), generator=torch.Generator().manual_seed(case.seed))
    lengths[:1] = steps  # The padded form of dt is as long as the longest sequence.
    ordered = case.packing == "sorted"
    if ordered:
        lengths = lengths.sort(descending=True).values

    def pack(values: Tensor, enforce_sorted: bool) -> PackedSequence:
        return pack_padded_sequence(values, lengths, batch_first=case.batch_first, enforce_sorted=enforce_sorted)

    gaps = call.dt
    if as_given and isinstance(gaps, Tensor) and gaps.dim() and case.gaps.startswith("packed"):
        gaps = pack(gaps, ordered and case.gaps == "packed")
    return pack(call.x, ordered), gaps


def _run(case: KernelCase, layer: Any, call: _Call, *, as_given: bool) -> dict[str, Tensor]:
    """Return the output, the last states, and the gradient of everything."""
    names = ("x", "hx", "c") if NETWORKS[case.layer].has_pair else ("x", "hx")
    leaves = {name: getattr(call, name).detach().requires_grad_() for name in names}
    x, gaps = _pack(case, call._replace(x=leaves["x"]), as_given=as_given)
    start = (leaves["hx"], leaves["c"]) if "c" in leaves else leaves["hx"]
    # A layer without a time feature has no dt at all.
    time = {} if gaps is None else {"dt": gaps}
    if as_given and case.hooks != "none":
        with torch.autograd.graph.saved_tensors_hooks(lambda v: v.detach(), unpack_hook(case.hooks)):
            output, last = layer(x, start, **time)
    else:
        output, last = layer(x, start, **time)
    direction = call.direction
    if isinstance(output, PackedSequence):
        output, _ = pad_packed_sequence(output, batch_first=case.batch_first)
    last = torch.cat(last, -1) if isinstance(last, tuple) else last
    given = {**leaves, **dict(layer.named_parameters())}
    if not output.requires_grad:  # No step was taken.
        return {"output": output, "last": last.detach()}
    gradients = torch.autograd.grad(output, list(given.values()), direction, allow_unused=True, retain_graph=True)
    answer = {"output": output.detach(), "last": last.detach()}
    return answer | {name: g for name, g in zip(given, gradients, strict=True) if g is not None}


def _replace_letters(layer: nn.Module, form: str) -> None:
    for module in layer.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            setattr(module, name, nn.Parameter(shape_as(form, parameter.detach())))


def attack(case: KernelCase) -> Outcome:
    """Run a case on the kernels and on the plain loop in float64, and compare."""
    case = normalise(case)
    torch.manual_seed(case.seed)
    dtype = torch.float64 if case.double else torch.float32
    layer = NETWORKS[case.layer].build(_options(case))
    call = _draw(case, layer, dtype)
    truth_layer = copy.deepcopy(layer).double()
    dt = _plain(call.dt) if isinstance(call.dt, Tensor) else call.dt
    plain = _Call(_plain(call.x), _plain(call.hx), _plain(call.c), dt, _plain(call.direction))
    with plain_loops(truth_layer):
        truth = _run(case, truth_layer, plain, as_given=False)
    if case.letters != "plain":
        _replace_letters(layer, case.letters)
    before = torch.get_num_threads()
    torch.set_num_threads(case.threads)
    try:
        answer = _run(case, layer, call, as_given=True)
    finally:
        torch.set_num_threads(before)
    # Without a step one of the two has no gradient, and the other one zeros.
    for name in answer.keys() | truth.keys():
        present = answer.get(name, truth.get(name))
        zeros = torch.zeros(present.shape, dtype=torch.float64)
        problem = _compare(answer.get(name, zeros), truth.get(name, zeros), case.double)
        if problem:
            return Outcome(WRONG, f"{name} {problem} in {case}")
    return Outcome(RIGHT)


def _compare(value: Tensor, expected: Tensor, double: bool) -> str:
    if value.shape != expected.shape:
        return f"has shape {tuple(value.shape)}, not {tuple(expected.shape)}"
    if not expected.numel():
        return ""
    scale = max(1.0, expected.abs().max().item())
    error = (value.double() - expected).abs().max().item()
    allowed = scale * (tolerances.FUZZ_FLOAT64 if double else tolerances.FUZZ_FLOAT32)
    return "" if error <= allowed else f"is off by {error:.2g} at a scale of {scale:.2g}"
