"""The training steps between two evaluations, the only part of a run whose overhead per step matters."""

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
    """Train from one evaluation to the next; the constraints hold after every step.

    Args:
        fabric: a Fabric that has been launched.
        model, optimiser: the values that `fabric.setup` returned.
        problem: the source of the batches and of their loss.
        schedule: learning rate as a function of the step's number in the run.
        done, stop: first and last position, in the problem's unit (epochs or iterations).
        clip: largest norm of the gradient; None for no clipping.
        on_step: called after every step.

    Returns:
        Sum of the losses of this process' samples, and the number of samples.

    Raises:
        DivergenceError: when a loss is not finite.
    """
    network = model.module
    alone = fabric.world_size == 1
    # In a single process Fabric's wrapper of a full-precision forward pass does nothing, but takes a twentieth of an
    # ODE iteration, so it is bypassed.
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
        # With several processes, one that stops alone would leave the others waiting; they check at the end of the
        # epoch.
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
