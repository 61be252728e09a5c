"""The contact sheet of the documentation shows every scene in both seasons."""

import pytest
import torch

from lrcnet_paper.driving.own_world_contact_sheet import SCENES, contact_sheet, make_scene, write_enlarged


def test_every_scene_is_on_the_sheet() -> None:
    image = contact_sheet(appearances=1)
    assert image.shape == (48 * len(SCENES), 2 * 160, 3)
    rows = image.view(len(SCENES), 48, 320, 3).float()
    assert min((rows[i] - rows[j]).abs().mean().item() for i in range(len(rows)) for j in range(i)) > 2


def test_bends_turn_to_the_side_of_their_name() -> None:
    for name in SCENES:
        road, _ = make_scene(name)
        ahead = road.direction[0, 45].item()
        if "left" in name or "right" in name:
            assert (ahead > 0.05) is ("left" in name)
    assert torch.equal(make_scene("straight")[0].curvature, torch.zeros(1, 320, dtype=torch.float64))


def test_the_file_is_small(tmp_path) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed: pip install 'lrcnet[driving]'")
    write_enlarged(contact_sheet(), tmp_path / "sheet.png")
    assert (tmp_path / "sheet.png").stat().st_size < 300_000
