"""Trajectories of finished Neural-ODE runs, rolled out from their last checkpoint and kept beside it for pictures."""

from __future__ import annotations

import os
from pathlib import Path

from lrcnet_paper.results.finished import PREDICTION_FILE
from lrcnet_paper.training.result import FILE_NAME, Result


def save_roll_outs(folder: str | os.PathLike[str]) -> int:
    """Writes `prediction.npz` (times, states) into every finished trajectory run below a folder that has none yet.

    The roll-out is the protocol's: 1000 points by Euler steps from the initial state alone.

    Returns:
        How many were written.
    """
    written = 0
    for path in sorted(Path(folder).rglob(FILE_NAME)):
        place = path.parent
        fresh = place / PREDICTION_FILE
        if fresh.exists() and fresh.stat().st_mtime >= path.stat().st_mtime:
            continue
        result = Result.read(place)
        if result.task == "neural-ode" and result.status == "finished" and _save(place, fresh):
            written += 1
    return written


def _save(place: Path, target: Path) -> bool:
    import numpy as np
    import torch

    from lrcnet.errors import DivergenceError
    from lrcnet_paper.tasks.neural_ode import trajectory
    from lrcnet_paper.training.checkpoint import LAST
    from lrcnet_paper.training.files import write_atomically
    from lrcnet_paper.training.trained import load_trained

    if not (place / LAST).exists():
        return False
    trained = load_trained(place / LAST)
    times, truth = trajectory(trained.spec.variant)
    try:
        with torch.no_grad():
            states = trained.network(truth[:1].float(), times.float(), solver="euler")[:, 0]
    except DivergenceError:
        return False
    arrays = {"times": times.numpy(), "states": states.numpy()}
    write_atomically(target, lambda file: np.savez_compressed(file, **arrays))
    return True
