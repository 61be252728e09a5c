"""`lrcnet explain`: what a trained network does: a page about its inside, and how sensitive its output is."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor, nn

    from lrcnet.tasks import Task
    from lrcnet.theory import Domain

HELP = "look into a trained network: attention, activity and gates on a page; its Lipschitz constant"
EXAMPLE = "lrcnet explain runs/person_coarse_lrcu-s_seed0 --data data --html inside.html"
SEQUENCES = 64


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="a run's folder, or one of its .ckpt files")
    parser.add_argument("--html", metavar="FILE", help="write a page about what it looks at and what its neurons do")
    parser.add_argument("--lipschitz", action="store_true", help="print bound, tighter bound, empirical value, ratio")
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="measure on the task's test split, whose files are here; of a driving policy, on the recording in here",
    )
    parser.add_argument(
        "--samples",
        type=int,
        metavar="N",
        help="sequences of the test split, or frames per season, to look at (default: 64 with --lipschitz)",
    )
    parser.add_argument(
        "--inputs",
        type=float,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="range of the layer's inputs without --data (default: -1 1); with --data it is the range of the data",
    )
    parser.add_argument("--dt", type=float, default=1.0, help="time that one input is held for (default: 1)")


def run(arguments: argparse.Namespace) -> int:
    if not arguments.lipschitz and not arguments.html:
        raise ValueError("say what to explain: --lipschitz, or --html FILE for a page")
    if arguments.samples is not None and arguments.samples < 1:
        raise ValueError(f"--samples must be at least 1, but is {arguments.samples}")
    if arguments.data and arguments.inputs:
        raise ValueError("--inputs is the range of the data where --data is given; leave one of them out")
    from lrcnet.training.trained import load_trained

    trained = load_trained(arguments.checkpoint)
    if arguments.html:
        from lrcnet.report.explanation import explain, write_explanation

        write_explanation(trained, explain(trained, arguments.data, arguments.samples), arguments.html)
        print(f"written to {arguments.html}")
    if not arguments.lipschitz:
        return 0
    rows = lipschitz(trained.network, trained.task, arguments)
    width = max(len(name) for name, _ in rows)
    for name, value in [("weights", trained.file.name), *rows]:
        print(f"{name:<{width}}  {value if isinstance(value, str) else f'{value:.6g}'}")
    return 0


def lipschitz(network: nn.Module, task: Task, arguments: argparse.Namespace) -> list[tuple[str, str | float]]:
    """Rows of a table: bound, tighter bound, empirical value and their ratios."""
    from lrcnet.theory import Domain, empirical_lipschitz, lipschitz_bound, visited_points
    from lrcnet.theory.network import bounded_circuit, read_model

    read = read_model(network)
    data, reason = None, ""
    try:
        bounded_circuit(read)
    except ValueError as error:
        reason = str(error)
    if arguments.data:
        data = visited_points(network, _test_inputs(network, task, arguments), dt=arguments.dt)
        domain = Domain.around(*data)
    else:
        low, high = arguments.inputs or (-1.0, 1.0)
        domain = _states(network, (low, high), arguments.dt, known=not reason)
    found = empirical_lipschitz(network, data, domain=domain, dt=arguments.dt)
    rows: list[tuple[str, str | float]] = [("domain", _describe(domain))]
    if reason:
        rows += [("bound", f"none: {reason}")]
    else:
        bounds = [lipschitz_bound(network, domain, arguments.dt, kind=kind) for kind in ("paper", "tighter")]
        names = ("bound", "tighter bound (ours)")
        if bounds[0].unfolds > 1:
            names = (f"bound, over {bounds[0].unfolds} unfoldings (ours)", "tighter bound (ours)")
        rows += [(name, bound.value) for name, bound in zip(names, bounds, strict=True)]
    if found.over_data is not None:
        rows += [("empirical value over the data", found.over_data)]
    rows += [("empirical value", found.value)]
    if not reason and found.value:
        rows += [("ratio bound / empirical", bounds[0].value / found.value)]
        rows += [("ratio tighter / empirical", bounds[1].value / found.value)]
    return rows


def _test_inputs(network: nn.Module, task: Task, arguments: argparse.Namespace) -> Tensor:
    """The first sequences of the test split, as the recurrent layer sees them."""
    import torch

    x, _, _ = task.load("test", arguments.data)[: arguments.samples or SEQUENCES]
    embedding = getattr(network, "embedding", None)
    with torch.no_grad():
        inputs: Tensor = x if embedding is None else embedding(x)
    return inputs


def _states(network: nn.Module, inputs: tuple[float, float], dt: float, known: bool) -> Domain:
    """The invariant states of a bounded model, -1 to 1 of another."""
    from lrcnet.theory import Domain

    return Domain.invariant(network, inputs=inputs, dt=dt) if known else Domain((-1.0, 1.0), inputs)


def _describe(domain: Domain) -> str:
    import torch

    def largest(pair: tuple[float | Tensor, float | Tensor]) -> float:
        return max(float(torch.as_tensor(side).abs().max()) for side in pair)

    return f"|h| up to {largest(domain.states):.4g}, |x| up to {largest(domain.inputs or (0.0, 0.0)):.4g}"
