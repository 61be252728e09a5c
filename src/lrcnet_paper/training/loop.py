"""The training steps between two evaluations: all that happens often enough for its time to count."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from lrcnet.constraints import project_
from lrcnet.errors import DivergenceError
from lrcnet_paper.training.problems import Problem

if TYPE_CHECKING:
    from lightning.fabric import Fabric
    from lightning.fabric.wrappers import _FabricModule, _FabricOptimizer


def train_steps(
    fabric: Fabric,
    problem: Problem,
    model: _FabricModule,
    optimiser: _FabricOptimizer,
    *,
    schedule: Callable[[int], float],
    done: int,
    stop: int,
    clip: float | None,
    on_step: Callable[[], None],
) -> tuple[float, float]:
    """Train from one evaluation to the next, in epochs or iterations; the constraints hold after every step.

    Args:
        fabric, model, optimiser: as `fabric.setup` returned them.
        problem: where the batches and their loss come from.
        schedule: learning rate of each step of the run.
        done, stop: from where to where, in the problem's unit.
        clip: largest norm of the gradient, None for no clipping.
        on_step: called after every step.

    Returns:
        Sum of the losses of this process' samples, and how many these were.

    Raises:
        DivergenceError: when a loss is not finite.
    """
    network = model.module
    alone = fabric.world_size == 1
    # Alone, what Fabric wraps around a full-precision forward pass does nothing, in a twentieth of an ODE iteration.
    called = network if alone else model
    step = problem.steps(done)
    losses, samples = 0.0, 0
    for batch in problem.batches(done, stop):
        rate = schedule(step)
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.zero_grad()
        loss = problem.loss(called, batch)
        fabric.backward(loss if alone else loss * batch.weight)
        value = loss.item()
        # One process that stops alone would leave the others waiting, so these look at the end of the epoch.
        if alone and not math.isfinite(value):
            raise DivergenceError(f"the loss became {value} at step {step + 1}; try a smaller --lr, or --clip 1")
        if clip is not None:
            fabric.clip_gradients(model, optimiser, max_norm=clip, error_if_nonfinite=False)
        optimiser.step()
        project_(network)
        if batch.weight:
            losses += value * len(batch.samples[0])
            samples += len(batch.samples[0])
        step += 1
        on_step()
    return losses, float(samples)
