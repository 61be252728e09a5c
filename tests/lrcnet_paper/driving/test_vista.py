"""VISTA: a car at rest gets the recorded frame, the path is the recorded one, and bad traces are refused."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from lrcnet_paper.driving import ARRIVED, LEFT_ROAD, RUNNING, TURNED_AWAY, World, drive
from lrcnet_paper.driving.vista_trace import FILES, record_trace
from lrcnet_paper.driving.vista_world import RecordedVistaWorld, VistaWorld
from tests.lrcnet_paper.driving.guided_policy import drive_with_guided_policy
from tests.lrcnet_paper.driving.needs import needs_world

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _simulator() -> None:
    needs_world("vista")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs_world("vista")
    return record_trace(tmp_path_factory.mktemp("traces") / "seven", 7, season="summer", length=180.0)


def test_a_car_at_rest_gets_the_frame_of_our_own_camera(trace: Path) -> None:
    vista, own = VistaWorld([trace]), World([7], season="summer", length=180.0)
    assert torch.equal(vista.frames(), own.frames())


def test_the_recorded_path_is_the_road_we_recorded_on(trace: Path) -> None:
    world = World([7], season="summer", length=180.0)
    own, recorded = world.centre_line(0), VistaWorld([trace]).centre_line(0)
    # VISTA's map begins to the north, ours to the east.
    turned = torch.stack([recorded[:, 1], -recorded[:, 0]], 1)
    assert torch.cdist(turned, own).amin(1).max() < 1.0


def test_a_car_beside_the_path_gets_nearly_the_frame_of_our_own_camera(trace: Path) -> None:
    vista, own = VistaWorld([trace]), World([7], season="summer", length=180.0)
    for _ in range(10):
        vista.step(torch.tensor([-0.012]))
        own.step(torch.tensor([-0.012]))
    own.state = type(own.state)(own.state.arc, vista.situation().offset, vista.situation().heading, own.state.steering)
    theirs, ours = vista.frames().float(), own.frames().float()
    straight_on = World([7], season="summer", length=180.0)
    straight_on.state = type(own.state)(own.state.arc, *torch.zeros(3, 1, dtype=torch.float64))
    far = (straight_on.frames().float() - ours).abs().mean()
    assert (theirs - ours).abs().mean() < 0.7 * far


def test_a_policy_drives_three_hundred_steps(trace: Path) -> None:
    outcomes, actions = drive_with_guided_policy(VistaWorld([trace]), 310)
    assert outcomes.steps.tolist() == [310]
    assert not outcomes.crashed.any()
    assert actions.isfinite().all()


def test_wrong_steering_leaves_the_road_and_the_experts_advice_arrives(trace: Path) -> None:
    lost = drive(VistaWorld([trace]), lambda frames, state: (torch.full((len(frames),), 0.05), state))
    assert lost.status[0] in (LEFT_ROAD, TURNED_AWAY)
    world = VistaWorld([trace], length=20.0)
    while world.status()[0] == RUNNING:
        world.step(world.advice())
    assert world.status()[0] == ARRIVED


def test_deleting_one_world_does_not_stop_another(trace: Path) -> None:
    """Closing one of VISTA's renderers closes all of them, so none is closed."""
    world, other = VistaWorld([trace]), VistaWorld([trace])
    before = world.frames()
    other.frames()
    del other
    world.step(world.advice())
    assert not torch.equal(world.frames(), before)


def test_traces_from_seeds_are_kept_in_the_given_folder(tmp_path: Path) -> None:
    world = RecordedVistaWorld([3], season="winter", length=10.0, folder=tmp_path)
    assert sorted(path.name for path in (tmp_path / "3").iterdir()) == sorted([*FILES, "trace.json"])
    assert torch.equal(world.frames(), World([3], season="winter", length=15.0).frames())


def test_a_camera_of_another_size_is_scaled_to_ours(trace: Path, tmp_path: Path) -> None:
    """The region of interest of a real car's camera is scaled to our frame."""
    other = tmp_path / "other"
    other.mkdir()
    for name in FILES:
        (other / name).write_bytes((trace / name).read_bytes())
    params = (other / "params.xml").read_text()
    values = dict(re.findall(r'name="(\w+)" value="([\d.,]+)"', params))
    for name in ("height", "width", "fx", "fy", "cx", "cy"):
        params = params.replace(
            f'name="{name}" value="{values[name]}"', f'name="{name}" value="{2 * float(values[name])}"'
        )
    twice = ",".join(str(2 * int(number)) for number in values["roi"].split(","))
    params = params.replace(f'name="roi" value="{values["roi"]}"', f'name="roi" value="{twice}"')
    (other / "params.xml").write_text(params)
    large, small = VistaWorld([other]).frames(), VistaWorld([trace]).frames()
    assert large.shape == (1, 48, 160, 3)
    assert (large.float() - small.float()).abs().mean() < 8


def test_a_video_that_ends_too_early_is_refused_by_name(trace: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    short = record_trace(tmp_path / "short", 7, season="summer", length=5.0)
    broken.mkdir()
    for name in FILES:
        (broken / name).write_bytes(((short if name.endswith(".avi") else trace) / name).read_bytes())
    world = VistaWorld([broken])
    with pytest.raises(ValueError, match=r"camera_front.avi must have as many frames as its .csv says"):
        drive(world, lambda frames, state: (world.advice(), state))


def test_bad_input_is_refused_by_name(trace: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="traces must name at least one folder"):
        VistaWorld([])
    with pytest.raises(ValueError, match="length must be at least 1 m"):
        VistaWorld([trace], length=0.0)
    with pytest.raises(FileNotFoundError, match="nowhere must be a trace with the files"):
        VistaWorld([tmp_path / "nowhere"])
    with pytest.raises(ValueError, match="seeds must name at least one road"):
        RecordedVistaWorld([])
    slow = tmp_path / "slow"
    slow.mkdir()
    for name in FILES:
        (slow / name).write_bytes((trace / name).read_bytes())
    speed = np.loadtxt(slow / "speed.csv", delimiter=",")
    speed[:, 1] = 1.0
    np.savetxt(slow / "speed.csv", speed, delimiter=",")
    with pytest.raises(ValueError, match=r"slow must have a stretch driven faster than 2.5 m/s"):
        VistaWorld([slow])


@pytest.mark.parametrize(
    ("hidden", "message"), [("vista", r"pip install 'lrcnet\[vista\]'"), ("OpenGL.EGL", "libegl1 and libgl1-mesa-dri")]
)
def test_a_missing_package_is_reported_with_its_command(hidden: str, message: str) -> None:
    kind = "ModuleNotFoundError" if hidden == "vista" else "ImportError"
    code = f"""
import importlib, sys
class Hidden:
    def find_spec(self, name, *rest):
        if name == {hidden!r}:
            raise {kind}("no " + name)
sys.meta_path.insert(0, Hidden())
from lrcnet_paper.driving import make_world
try:
    make_world("vista", [1])
except ImportError as error:
    print(error)
"""
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert re.search(message, printed), printed


def test_the_example_of_the_docs_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[3] / "docs" / "driving.md"
    examples = re.findall(r"^```py\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    assert examples
    for example in examples:
        exec(compile(example, page.name, "exec"), {})
