"""Fitting runs: one (`run`), or a grid of them (`run_all`); what they are (`RunSpec`) and what they leave (`Result`).

Nothing heavy is imported before a run starts.
"""

from lrcnet_paper.training.grid import run_all
from lrcnet_paper.training.result import Result
from lrcnet_paper.training.single_run import run
from lrcnet_paper.training.spec import RunSpec

__all__ = ["Result", "RunSpec", "run", "run_all"]
