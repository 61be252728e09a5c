"""A training iteration of the Neural-ODE tasks: LRC and Neural ODE against a Neural ODE by torchdiffeq alone.

The iteration is the trainer's own: it draws a batch and computes loss, gradients, optimiser step and constraints.
Dormand-Prince needs more steps as a field takes shape, so all networks train for a while before they are timed. One
thread is used, because the networks are too small to share among several.
"""

from collections.abc import Callable
from itertools import count

import torch

from lrcnet.benchmarks.measure import Measurement, best_in_turn, threads
from lrcnet.neural_ode import NeuralODE
from lrcnet_paper import models, tasks
from lrcnet_paper.tasks.neural_ode import SYSTEMS

BEFORE, ITERATIONS = 500, 25
LRC_MS, NEURAL_ODE_MS = 5.0, 30.0


def measure() -> list[Measurement]:
    with threads(1):
        return [row for variant in SYSTEMS for row in _iterations(variant)]


# (model, backend); the reference backend leaves the gradient to autograd, one solver step after another.
OURS = (("lrc-s", "auto"), ("lrc-a", "auto"), ("neural-ode", "auto"))
PLAIN = ("neural-ode", "reference")
LABELS = {"lrc-s": "LRC-S", "lrc-a": "LRC-A", "neural-ode": "Neural ODE"}


def _iterations(variant: str) -> list[Measurement]:
    sides = (*OURS, PLAIN)
    seconds = best_in_turn(*(_trainer(variant, *side) for side in sides), repeats=4, rounds=3)
    ms = dict(zip(sides, (1e3 * s / ITERATIONS for s in seconds), strict=True))
    measurements = []
    for side in OURS:
        name = side[0]
        goal = NEURAL_ODE_MS if name == "neural-ode" else LRC_MS
        what = f"{LABELS[name]}, {variant}, one training iteration"
        measurements += [
            Measurement(what, ms[side], "ms", "goal", goal, ms[side] / goal, 1.0),
            Measurement(what, ms[side], "ms", "Neural ODE by torchdiffeq alone", ms[PLAIN], ms[side] / ms[PLAIN]),
        ]
    return measurements


def _trainer(variant: str, name: str, backend: str = "auto") -> Callable[[], object]:
    """Train for `BEFORE` iterations and return a function that trains for `ITERATIONS` more at each call."""
    from lightning.fabric import Fabric

    from lrcnet_paper.training.loop import train_steps
    from lrcnet_paper.training.optimisers import make_optimiser
    from lrcnet_paper.training.problems import ProblemSettings, ProcessShare, problem_class
    from lrcnet_paper.training.schedules import make_schedule

    task = tasks.find("neural-ode", variant)
    torch.manual_seed(0)
    fabric = Fabric(accelerator="cpu", devices=1)
    network = models.build(name, task)
    assert isinstance(network, NeuralODE)
    network.backend = backend
    rate = task.recipe.learning_rate
    model, optimiser = fabric.setup(network, make_optimiser(network, task.recipe, rate))
    settings = ProblemSettings(10**6, task.recipe.batch_size, seed=0)
    problem = problem_class(task)(task, settings, ProcessShare(0, 1, torch.device("cpu")))
    schedule = make_schedule("constant", rate, 10**6)

    def advance(done: int, stop: int) -> object:
        return train_steps(
            fabric, problem, model, optimiser, schedule=schedule, done=done, stop=stop, clip=None, on_step=lambda: None
        )

    advance(0, BEFORE)
    starts = count(BEFORE, ITERATIONS)
    return lambda: advance(start := next(starts), start + ITERATIONS)
