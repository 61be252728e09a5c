"""Packages that some tests need besides torch: without them the tests are skipped, and with CI=true they fail."""

import os

import pytest


def refuse(reason: str) -> None:
    """Skip a test with a reason; fail it if CI=true, where everything must be installed."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"with CI=true VISTA and CarRacing must run, but: {reason}")
    pytest.skip(reason)


def needs_world(name: str) -> None:
    """Skip the test unless the world of this name can be made on this machine."""
    try:
        if name == "carracing":
            from lrcnet_paper.driving.race_car import load_car_racing

            load_car_racing()
        elif name == "vista":
            from lrcnet_paper.driving.vista_simulator import load_vista

            load_vista()
    except ImportError as error:
        refuse(str(error))
