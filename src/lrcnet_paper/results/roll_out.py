"""Roll-outs of finished Neural-ODE runs from their last checkpoint, saved in the run's folder for pictures."""

from __future__ import annotations

import os
from pathlib import Path

from lrcnet_paper.results.reading import PREDICTION_FILE
from lrcnet_paper.training.result import FILE_NAME, Result


def save_roll_outs(folder: str | os.PathLike[str]) -> int:
    """Write `prediction.npz` (times, states) into every finished trajectory run below a folder that has none yet.

    The roll-out follows the protocol: 1000 points from the initial state alone, by the network's own solver.

    Returns:
        The number of files written.
    """
    count = 0
    for path in sorted(Path(folder).rglob(FILE_NAME)):
        target = path.parent / PREDICTION_FILE
        if target.exists() and target.stat().st_mtime >= path.stat().st_mtime:
            continue
        result = Result.read(path)
        if result.task == "neural-ode" and result.status == "finished" and _save(path.parent, target):
            count += 1
    return count


def _save(folder: Path, target: Path) -> bool:
    import numpy as np
    import torch

    from lrcnet.errors import DivergenceError
    from lrcnet_paper.tasks.neural_ode import trajectory
    from lrcnet_paper.training.atomic_files import write_atomically
    from lrcnet_paper.training.checkpoint import LAST
    from lrcnet_paper.training.trained_network import load_trained

    if not (folder / LAST).exists():
        return False
    trained = load_trained(folder / LAST)
    times, truth = trajectory(trained.spec.variant)
    try:
        with torch.no_grad():
            states = trained.network(truth[:1].float(), times.float())[:, 0]
    except DivergenceError:
        return False
    arrays = {"times": times.numpy(), "states": states.numpy()}
    write_atomically(target, lambda file: np.savez_compressed(file, **arrays))
    return True
