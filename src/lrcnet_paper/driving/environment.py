"""Our own world as a gymnasium environment, `lrcnet/LaneKeeping-v0`, single and vectorised (needs gymnasium).

Importing this module registers it:

    import gymnasium, lrcnet_paper.driving.environment
    environment = gymnasium.make("lrcnet/LaneKeeping-v0", season="winter")
    environments = gymnasium.make_vec("lrcnet/LaneKeeping-v0", num_envs=32)

An observation is the camera frame, (48, 160, 3) in uint8; an action is the curvature to steer, (1,) in 1/m. As in
VISTA, an episode ends (`terminated`) when the car is more than half the road's width (2 m) from its centre line, when
its heading differs by more than pi/10, or at the end of the road; `info["outcome"]` says which. The reward of a step is
1 - (offset / 2 m)^2, and 0 if the car left the road or turned away.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from lrcnet.errors import positive_size
from lrcnet_paper.driving.camera import HEIGHT, WIDTH
from lrcnet_paper.driving.road import ROAD_WIDTH
from lrcnet_paper.driving.vehicle import ARRIVED, LARGEST_CURVATURE, RUNNING, STEP
from lrcnet_paper.driving.world import World

ID = "lrcnet/LaneKeeping-v0"
OUTCOMES = ("running", "left the road", "turned away", "arrived")
"""Outcome of each code of `vehicle.drive_status`."""
_LARGEST_SEED = 2**31 - 1

Frames = NDArray[np.uint8]
Numbers = NDArray[np.float64]


def observation_space() -> Any:
    """Return the space of one camera frame."""
    return spaces.Box(0, 255, (HEIGHT, WIDTH, 3), np.uint8)


def action_space() -> Any:
    """Return the space of curvatures that the car can steer, 1/m."""
    return spaces.Box(-LARGEST_CURVATURE, LARGEST_CURVATURE, (1,), np.float32)


def _require_world(world: World | None) -> World:
    if world is None:
        raise gymnasium.error.ResetNeeded("there is no road yet; call reset() before anything else")
    return world


def _measure(world: World) -> dict[str, Numbers]:
    """Return quantities that the camera does not show, each (batch,): metres, radians, m/s, 1/m."""
    state = world.state
    quantities = {
        "arc": state.arc,
        "offset": state.offset,
        "heading": state.heading,
        "curvature": state.curvature,
        "road_curvature": world.road_curvature,
        "speed": world.speed,
    }
    # Copies, because the world changes its arrays in place.
    return {name: value.numpy().copy() for name, value in quantities.items()}


def _rewards(world: World, status: torch.Tensor) -> Numbers:
    reward = 1 - (world.state.offset / (ROAD_WIDTH / 2)) ** 2
    return torch.where((status == RUNNING) | (status == ARRIVED), reward, 0.0).numpy()


class LaneKeeping(gymnasium.Env[Frames, NDArray[np.float32]]):
    """One car on one road.

    Args:
        season: "summer", "winter" or "mixed".
        length: length of the road, m.
        render_mode: None or "rgb_array", which renders the observation.

    `reset(options={"road": N})` takes the road of seed N; otherwise the environment's generator draws a seed.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": round(1 / STEP)}  # noqa: RUF012

    def __init__(self, season: str = "mixed", length: float = 1000.0, render_mode: str | None = None) -> None:
        self.observation_space, self.action_space = observation_space(), action_space()
        self.render_mode = render_mode
        self._season, self._length = season, length
        self._world: World | None = None

    @property
    def world(self) -> World:
        """The world behind the environment.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset.
        """
        return _require_world(self._world)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Frames, dict[str, Any]]:
        super().reset(seed=seed)
        option = (options or {}).get("road")
        road = int(self.np_random.integers(_LARGEST_SEED)) if option is None else int(option)
        self._world = World([road], season=self._season, length=self._length)
        return self.world.frames()[0].numpy(), self._info(RUNNING)

    def step(self, action: NDArray[np.float32]) -> tuple[Frames, float, bool, bool, dict[str, Any]]:
        status = self.world.step(torch.from_numpy(np.asarray(action, np.float64).reshape(1)))
        reward = float(_rewards(self.world, status)[0])
        code = int(status[0])
        return self.world.frames()[0].numpy(), reward, code != RUNNING, False, self._info(code)

    def _info(self, code: int) -> dict[str, Any]:
        numbers = {name: float(value[0]) for name, value in _measure(self.world).items()}
        return {**numbers, "road": self.world.seeds[0], "outcome": OUTCOMES[code]}

    def render(self) -> Frames | None:
        return self.world.frames()[0].numpy() if self.render_mode == "rgb_array" else None


class LaneKeepingVector(VectorEnv[Frames, NDArray[np.float32], NDArray[Any]]):
    """Many cars, each on its own road, advanced and rendered as one batch. An ended episode restarts at the next step.

    Args:
        num_envs: number of cars.
        season, length, render_mode: as `LaneKeeping` takes them.
    """

    metadata: dict[str, Any] = {**LaneKeeping.metadata, "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self, num_envs: int = 1, season: str = "mixed", length: float = 1000.0, render_mode: str | None = None
    ) -> None:
        self.num_envs, self.render_mode = positive_size("num_envs", num_envs), render_mode
        self.single_observation_space, self.single_action_space = observation_space(), action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._season, self._length = season, length
        self._generators: list[np.random.Generator] = []
        self._ended = np.zeros(num_envs, dtype=bool)
        self._world: World | None = None

    @property
    def world(self) -> World:
        """The world behind the environments; see `LaneKeeping.world`."""
        return _require_world(self._world)

    def _draw_road(self, place: int) -> int:
        return int(self._generators[place].integers(_LARGEST_SEED))

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Frames, dict[str, Any]]:
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else seed or [None] * self.num_envs
        # Car i with seed s gets the same roads as a single environment with seed s.
        if not self._generators or any(one is not None for one in seeds):
            self._generators = [gymnasium.utils.seeding.np_random(one)[0] for one in seeds]
        roads = [self._draw_road(i) for i in range(self.num_envs)]
        self._world = World(roads, season=self._season, length=self._length)
        self._ended[:] = False
        return self.world.frames().numpy(), self._info()

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[Frames, Numbers, NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        status = self.world.step(torch.from_numpy(np.asarray(actions, np.float64).reshape(self.num_envs)))
        reward = _rewards(self.world, status)
        ended = np.flatnonzero(self._ended).tolist()
        if ended:
            self.world.restart(ended, [self._draw_road(i) for i in ended])
            status, reward[ended] = self.world.status(), 0.0
        self._ended = (status != RUNNING).numpy()
        info = self._info()
        info["outcome"] = np.array([OUTCOMES[code] for code in status.tolist()])
        return self.world.frames().numpy(), reward, self._ended.copy(), np.zeros(self.num_envs, dtype=bool), info

    def _info(self) -> dict[str, Any]:
        return {**_measure(self.world), "road": np.array(self.world.seeds)}

    def render(self) -> tuple[Frames, ...] | None:
        return tuple(self.world.frames().numpy()) if self.render_mode == "rgb_array" else None


def register() -> None:
    """Register the environment with gymnasium; a second call changes nothing."""
    if ID not in gymnasium.registry:
        module = "lrcnet_paper.driving.environment"
        gymnasium.register(ID, entry_point=f"{module}:LaneKeeping", vector_entry_point=f"{module}:LaneKeepingVector")


register()
