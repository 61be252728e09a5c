"""Drives on one road that a page or a film shows together: by policy, season and noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lrcnet.pages import palette
from lrcnet_paper.report.replay import Replay

if TYPE_CHECKING:
    from lrcnet_paper.training.trained_network import TrainedNetwork

WORLDS = {
    "own": "the project's own synthetic world",
    "vista": "VISTA",
    "carracing": "gymnasium's CarRacing",
}


@dataclass(frozen=True)
class Setting:
    """Where drives took place.

    Attributes:
        world: "own", "vista" or "carracing".
        road: seed of the road and its appearance.
        seed: seed of the noise.
        trace: name of the user's own trace, which has its own road and season; "" for none.
    """

    world: str
    road: int
    seed: int
    trace: str = ""

    @property
    def place(self) -> str:
        """The world and the road."""
        return f"{WORLDS[self.world]}, {f'trace {self.trace}' if self.trace else f'road {self.road}'}"

    def weather(self, season: str) -> str:
        """Return the season, as far as the world has one."""
        if self.trace:
            return "as recorded"
        return "always summer" if self.world == "carracing" else season


@dataclass(frozen=True)
class RecordedDrive:
    """A drive and its conditions.

    Attributes:
        policy: index of the policy that drove.
        season: "summer" or "winter".
        noise: variance of the noise on pixels from 0 to 1.
        replay: the drive.
    """

    policy: int
    season: str
    noise: float
    replay: Replay


@dataclass(frozen=True)
class DriveSet:
    """Drives of one or two policies over one road, once for each season, level of noise and policy.

    Attributes:
        setting: the road.
        trained: the policies that drove.
        drives: the drives, by season, then noise, then policy.
    """

    setting: Setting
    trained: Sequence[TrainedNetwork]
    drives: Sequence[RecordedDrive]

    @property
    def seasons(self) -> list[str]:
        """The seasons, in order of the drives."""
        return list(dict.fromkeys(drive.season for drive in self.drives))

    @property
    def noises(self) -> list[float]:
        """The levels of noise, in order of the drives."""
        return list(dict.fromkeys(drive.noise for drive in self.drives))

    @property
    def labels(self) -> list[str]:
        """A name for each policy; two runs of one model differ by their seeds, or else by A and B."""
        names = [palette.model_label(trained.spec.model) for trained in self.trained]
        if len(set(names)) < len(names):
            names = [f"{name}, seed {trained.spec.seed}" for name, trained in zip(names, self.trained, strict=True)]
        if len(set(names)) < len(names):
            names = [f"{name} {letter}" for name, letter in zip(names, "AB", strict=True)]
        return names

    def select(self, season: str, noise: float) -> list[Replay]:
        """Return the drives of all policies in one season and at one level of noise."""
        return [drive.replay for drive in self.drives if (drive.season, drive.noise) == (season, noise)]

    def describe(self) -> list[str]:
        """Return one line for each drive: its policy and conditions, and how it ended."""
        return [
            f"{self.labels[drive.policy]}, {drive.season}, noise {drive.noise:g}: {drive.replay.ending}, "
            f"{drive.replay.seconds:.1f} s"
            for drive in self.drives
        ]
