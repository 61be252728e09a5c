"""Made-up measurements on driving policies: attention, correlation and activity, in the form that analyses keep."""

import random
from dataclasses import replace

import torch

from lrcnet_paper.artefacts import correlation
from lrcnet_paper.artefacts.activity import cells as activity
from lrcnet_paper.artefacts.attention import similarity as attention
from lrcnet_paper.artefacts.attention.figures import pack_map
from lrcnet_paper.artefacts.driving_runs import wants
from lrcnet_paper.artefacts.policy_measurements import SEASONS
from lrcnet_paper.interpret import WatchedDrive, box

# How similar the attention stays, and how closely neurons follow the road.
LEVELS = {"lstm": 0.4, "gru": 0.36, "mgu": 0.32, "lrcu-a": 0.5, "lrcu-s": 0.7}


def analyses(model, seed):
    """What the three artefacts would have measured."""
    noise = random.Random(f"{model}{seed}")
    torch.manual_seed(noise.randrange(10**6))
    level = LEVELS[model] + noise.gauss(0, 0.01)
    source = {
        "checkpoint": "best.ckpt",
        "run": f"driving own {model}",
        "seed": seed,
        "done": 80,
        "unit": "epoch",
        "loss": ["validation loss", 0.14],
    }
    boxes = {
        season: {
            f"{v:g}": box((level + 0.3 - v + 0.1 * torch.randn(50)).clamp(0, 1)).as_dict() for v in attention.VARIANCES
        }
        for season in SEASONS
    }
    maps = {season: {v: pack_map(torch.rand(48, 160)) for v in ("0", "0.1", "0.2")} for season in SEASONS}
    driven = {season: [drive(level, 9 + seed)] for season in SEASONS}
    return {
        "attention": {"source": source, "similarity": boxes, "maps": maps},
        "correlation": {"source": source, **correlation.measure(driven)},
        "activity": {"source": source, **activity.measure({season: drives[0] for season, drives in driven.items()})},
    }


def drive(level, neurons):
    """A winding road, and neurons that follow it as closely as the level says, every other one turned round."""
    time = torch.linspace(0, 12, 600)
    curvature = 0.02 * torch.sin(time)
    signs = torch.tensor([1.0, -1.0]).repeat(neurons)[:neurons]
    activity = 50 * curvature.unsqueeze(1) * signs + (1 / level - 1) * torch.randn(600, neurons)
    heading = torch.cumsum(curvature * 1000 / 600, 0)
    step = 1000 / 600
    x, y = torch.cumsum(step * heading.cos(), 0), torch.cumsum(step * heading.sin(), 0)
    return WatchedDrive(x, y, curvature, curvature, activity, True)


def interpreted(run):
    """A finished run with the measurements, if it is one of a policy that the artefacts look into."""
    if not wants(run.result) or run.result.status != "finished":
        return run
    return replace(run, analyses={**run.analyses, **analyses(run.result.model, run.result.seed)})
