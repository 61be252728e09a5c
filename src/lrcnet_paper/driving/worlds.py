"""Worlds by name: our own, VISTA and CarRacing."""

from __future__ import annotations

from collections.abc import Sequence

from lrcnet.errors import one_of
from lrcnet_paper.driving.drivable import Drivable
from lrcnet_paper.driving.recording import FolderPath
from lrcnet_paper.driving.world import World

WORLDS = ("own", "vista", "carracing")


def make_world(
    name: str,
    seeds: Sequence[int],
    *,
    season: str = "mixed",
    length: float = 1000.0,
    traces: Sequence[FolderPath] | None = None,
) -> Drivable:
    """Make a world at the beginning of its drives.

    Args:
        name: "own"; "vista" (needs the extra `vista` and Mesa's libEGL); "carracing" (needs the extra `carracing`).
        seeds: one per car.
        season: "summer", "winter" or "mixed"; CarRacing is always green and has no winter.
        length: length of the road, m; in VISTA at most the recorded length.
        traces: VISTA only: folders of traces in its format, one per car. Without them, traces are recorded in our own
            world from the seeds, and are kept in a temporary folder as long as the world lives.

    Raises:
        ValueError: for an unknown name, an empty list of seeds, a season that the world does not have, or traces that
            it cannot use.
        ImportError: if a package is missing; the message says which command installs it.

    >>> len(make_world("own", [1, 2], season="winter"))
    2
    """
    one_of("name", name, WORLDS)
    if traces is not None and name != "vista":
        raise ValueError(f"only VISTA takes traces, but name is {name!r}; leave them out or choose 'vista'")
    if name == "own":
        return World(seeds, season=season, length=length)
    if name == "carracing":
        from lrcnet_paper.driving.car_racing import CarRacingWorld

        if one_of("season", season, ("summer", "winter", "mixed")) == "winter":
            raise ValueError("CarRacing has no winter; leave season at 'mixed' or choose another world")
        return CarRacingWorld(seeds, length=length)
    from lrcnet_paper.driving.vista_world import RecordedVistaWorld, VistaWorld

    if traces is None:
        return RecordedVistaWorld(seeds, season=season, length=length)
    if len(traces) != len(seeds):
        raise ValueError(f"there must be one trace per seed, but there are {len(traces)} traces and {len(seeds)} seeds")
    return VistaWorld(traces, length=length)
