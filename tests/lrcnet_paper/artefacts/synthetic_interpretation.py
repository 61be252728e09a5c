"""Synthetic measurements on driving policies: attention, correlation and activity, in the form of stored analyses."""

import random
from dataclasses import replace

import torch

from lrcnet_paper.artefacts import correlation
from lrcnet_paper.artefacts.activity import cells as activity
from lrcnet_paper.artefacts.attention import similarity as attention
from lrcnet_paper.artefacts.attention.figures import pack_map
from lrcnet_paper.artefacts.driving_runs import POLICIES, wants, wants_shared_head
from lrcnet_paper.artefacts.policy_measurements import SEASONS
from lrcnet_paper.driving.camera import REGIONS
from lrcnet_paper.interpret import WatchedDrive, box

# Similarity of the attention under noise, and correlation of the neurons with the road.
LEVELS = {"lstm": 0.4, "gru": 0.36, "mgu": 0.32, "lrcu-a": 0.5, "lrcu-s": 0.7}


def analyses(model, seed):
    """Build the measurements of the three artefacts."""
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
            reading: {
                f"{v:g}": box((level + mean - v + 0.1 * torch.randn(50)).clamp(0, 1)).as_dict()
                for v in attention.VARIANCES
            }
            for reading, mean in (("normalised", 0.3), ("pixels", 0.1))
        }
        for season in SEASONS
    }
    maps = {season: {v: pack_map(torch.rand(48, 160)) for v in ("0", "0.1", "0.2")} for season in SEASONS}
    driven = {season: [drive(level, 9 + seed)] for season in SEASONS}
    shares = {season: {"attention": region_shares(level, season), "area": area()} for season in SEASONS}
    return {
        "attention": {"source": source, "similarity": boxes, "maps": maps, "regions": shares},
        "correlation": {"source": source, "kind": correlation.CLOSED, **correlation.measure(driven)},
        "activity": {"source": source, **measured_activity(driven)},
    }


def measured_activity(driven):
    """Return the stored activity of some drives by season."""
    return {season: [activity.measure(one) for one in drives] for season, drives in driven.items()}


def region_shares(level, season):
    """Build shares of attention: the higher the level, the more on the horizon; in winter more on the roadside."""
    roadside = 0.2 * (1 - level) + (0.1 if season == "winter" else 0.0)
    return {"sky": 0.1, "horizon": 0.5 * level, "road": 0.9 - 0.5 * level - roadside, "roadside": roadside}


def area():
    """Build the areas of the regions."""
    return dict.fromkeys(REGIONS, 0.25)


def shared_head_correlation(model, seed):
    """Build the correlations of a model on a shared head."""
    noise = random.Random(f"{model}{seed}shared")
    level = LEVELS[model] + noise.gauss(0, 0.01)
    source = {"checkpoint": "best.ckpt", "run": f"driving own {model}", "seed": seed, "done": 80, "unit": "epoch",
              "loss": ["validation loss", 0.14]}  # fmt: skip
    seasons = {season: {"r": [[level + 0.02 * (i - 9) for i in range(19)]], "metres": [2000.0]} for season in SEASONS}
    return {"correlation": {"source": source, "kind": correlation.SHARED, **seasons}}


def drive(level, neurons):
    """Build a drive over a winding road; the neurons follow it as closely as `level`, every other one inverted."""
    time = torch.linspace(0, 12, 600)
    curvature = 0.02 * torch.sin(time)
    signs = torch.tensor([1.0, -1.0]).repeat(neurons)[:neurons]
    activity = 50 * curvature.unsqueeze(1) * signs + (1 / level - 1) * torch.randn(600, neurons)
    heading = torch.cumsum(curvature * 1000 / 600, 0)
    step = 1000 / 600
    x, y = torch.cumsum(step * heading.cos(), 0), torch.cumsum(step * heading.sin(), 0)
    return WatchedDrive(x, y, curvature, curvature, activity, True, torch.stack([x, y], 1))


def add_analyses(run):
    """Add the measurements to a finished run if the artefacts measure its policy."""
    if run.result.status == "finished" and wants_shared_head(run.result, POLICIES):
        measured = shared_head_correlation(run.result.model, run.result.seed)
        return replace(run, analyses={**run.analyses, **measured})
    if not wants(run.result) or run.result.status != "finished":
        return run
    return replace(run, analyses={**run.analyses, **analyses(run.result.model, run.result.seed)})
