"""The expert always arrives and drives as people do: not quite on the centre line, a little late, back after a push."""

import torch

from lrcnet_paper.driving import ARRIVED, RUNNING, World, expert_drive


def test_the_expert_never_crashes() -> None:
    world = World(range(1000, 1200), length=400.0)
    worst = torch.zeros(len(world), dtype=torch.float64)
    for step in expert_drive(world, world.expert(), frames=False):
        running = step.status == RUNNING
        worst = torch.maximum(worst, torch.where(running, step.state.offset.abs(), 0.0))
    assert (world.status() == ARRIVED).all()
    assert worst.max() < 1.5
    # Pushes make the recordings worth learning from, because they contain recoveries.
    assert worst.median() > 0.3


def test_a_steady_expert_on_a_still_day_keeps_to_the_centre_line() -> None:
    world = World(range(50), length=300.0)
    for step in expert_drive(world, world.expert(noise=0.0), frames=False):
        assert step.state.offset.abs().max() < 0.35


def test_noise_is_smooth() -> None:
    expert = World(range(20)).expert()
    wander = torch.stack([expert.wander(i / 30) for i in range(300)])
    assert wander.abs().max() <= 0.2
    assert wander.diff(dim=0).abs().max() < 0.02


def test_a_drive_depends_on_its_seed_alone() -> None:
    def actions(seeds: list[int], which: int) -> torch.Tensor:
        world = World(seeds, length=200.0)
        return torch.stack([step.action[which] for step in expert_drive(world, world.expert(), frames=False)][:200])

    assert torch.equal(actions([8, 9], 1), actions([9], 0))
