"""Closed-loop drives along which the correlation and activity artefacts record the neurons of a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lrcnet_paper.artefacts.policy_measurements import SEASONS
from lrcnet_paper.results.provenance import provenance_of
from lrcnet_paper.road_seeds import NEURON_DRIVES, first_seeds

if TYPE_CHECKING:
    from lrcnet_paper.interpret import WatchedDrive
    from lrcnet_paper.models.policy import Policy

    DrivesBySeason = Mapping[str, Sequence[WatchedDrive]]


class RoadPlan(NamedTuple):
    """Number of roads per season, and the length of each in metres."""

    roads: int
    length: float


SMOKE, FULL = RoadPlan(1, 12.0), RoadPlan(2, 1000.0)


def drive_run(folder: Path) -> tuple[dict[str, Any], DrivesBySeason]:
    """Return the provenance of a run's policy, and its drives.

    The drives of the last run are cached, because two artefacts measure them.
    """
    from lrcnet_paper.training.trained_network import load_trained

    # The time stamp is part of the cache's key: a run that was continued is driven again.
    return _drive_run(folder, load_trained(folder).file.stat().st_mtime_ns)


@lru_cache(maxsize=1)
def _drive_run(folder: Path, changed: int) -> tuple[dict[str, Any], DrivesBySeason]:
    from lrcnet_paper.models.policy import Policy
    from lrcnet_paper.training.trained_network import load_trained

    trained = load_trained(folder)
    assert isinstance(trained.network, Policy)
    provenance = provenance_of(trained)
    return provenance, drive_roads(trained.network, SMOKE if trained.spec.budget == "smoke" else FULL)


def drive_roads(policy: Policy, plan: RoadPlan) -> DrivesBySeason:
    """Drive a policy in the closed loop over roads that no policy was trained on, in both seasons."""
    from lrcnet_paper.driving import World
    from lrcnet_paper.interpret import drive_and_watch

    roads = first_seeds(NEURON_DRIVES, plan.roads)
    worlds = {season: World(roads, season=season, length=plan.length) for season in SEASONS}
    return {season: drive_and_watch(policy, world) for season, world in worlds.items()}
