"""What some tests need beside torch: without it they are skipped, and with CI=true they fail."""

import os

import pytest


def refuse(reason: str) -> None:
    """A skip with its reason, except where everything must be there: then a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"with CI=true the worlds from elsewhere must run, but: {reason}")
    pytest.skip(reason)


def needs_world(name: str) -> None:
    """Goes on if the world of this name can be made on this machine."""
    try:
        if name == "carracing":
            from lrcnet_paper.driving.race_car import load_car_racing

            load_car_racing()
        elif name == "vista":
            from lrcnet_paper.driving.vista_simulator import load_vista

            load_vista()
    except ImportError as error:
        refuse(str(error))
