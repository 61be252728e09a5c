"""Fitting runs: one (`run`), or a grid of them (`run_all`); what they are (`RunSpec`) and what they leave (`Result`).

Nothing heavy is imported before a run starts.
"""

from lrcnet.training.grid import run_all
from lrcnet.training.result import Result
from lrcnet.training.run import run
from lrcnet.training.spec import RunSpec

__all__ = ["Result", "RunSpec", "run", "run_all"]
