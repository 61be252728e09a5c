"""A training iteration of the Neural-ODE tasks: the LRC's Euler steps beside the Neural ODE's Dormand-Prince.

The iteration is the trainer's own: a batch drawn, loss, gradients, optimiser, constraints. Dormand-Prince needs more
steps as a field takes shape, so all have trained for a while before they are timed. One thread: the networks are too
small to share.
"""

from collections.abc import Callable
from itertools import count

import torch

from lrcnet import models, tasks
from lrcnet.benchmarks.measure import Measurement, best_in_turn
from lrcnet.tasks.neural_ode import SYSTEMS

BEFORE, ITERATIONS = 500, 25
LRC_MS, NEURAL_ODE_MS = 5.0, 30.0


def measure() -> list[Measurement]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [row for variant in SYSTEMS for row in _iterations(variant)]
    finally:
        torch.set_num_threads(threads)


def _iterations(variant: str) -> list[Measurement]:
    names = ("lrc-s", "lrc-a", "neural-ode")
    seconds = best_in_turn(*(_trainer(variant, name) for name in names), repeats=4, rounds=3)
    ms = dict(zip(names, (1e3 * s / ITERATIONS for s in seconds), strict=True))
    other = "Neural ODE by torchdiffeq's Dormand-Prince"
    found = []
    for name in ("lrc-s", "lrc-a"):
        what = f"{name.upper()}, {variant}, one training iteration"
        found.append(Measurement(what, ms[name], "ms", "goal", LRC_MS, ms[name] / LRC_MS, 1.0))
        found.append(Measurement(what, ms[name], "ms", other, ms["neural-ode"], ms[name] / ms["neural-ode"]))
    what = f"{other}, {variant}, one training iteration"
    ratio = ms["neural-ode"] / NEURAL_ODE_MS
    return [*found, Measurement(what, ms["neural-ode"], "ms", "goal", NEURAL_ODE_MS, ratio, 1.0)]


def _trainer(variant: str, name: str) -> Callable[[], object]:
    """Trains further by ITERATIONS at each call, BEFORE of them at once."""
    from lightning.fabric import Fabric

    from lrcnet.training.loop import train
    from lrcnet.training.optimiser import make_optimiser, make_schedule
    from lrcnet.training.problem import Share
    from lrcnet.training.trajectories import TrajectoryProblem

    task = tasks.find("neural-ode", variant)
    torch.manual_seed(0)
    fabric = Fabric(accelerator="cpu", devices=1)
    network = models.build(name, task)
    rate = task.recipe.learning_rate
    model, optimiser = fabric.setup(network, make_optimiser(network, task.recipe, rate))
    problem = TrajectoryProblem(task, 10**6, task.recipe.batch_size, 0, Share(0, 1, torch.device("cpu")))
    schedule = make_schedule("constant", rate, 10**6)

    def advance(done: int, stop: int) -> object:
        return train(
            fabric, problem, model, optimiser, schedule=schedule, done=done, stop=stop, clip=None, on_step=lambda: None
        )

    advance(0, BEFORE)
    starts = count(BEFORE, ITERATIONS)
    return lambda: advance(start := next(starts), start + ITERATIONS)
