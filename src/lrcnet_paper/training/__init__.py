"""Training: one run (`train` by names, `run` by a `RunSpec`) or a grid of runs (`run_all`), each with a `Result`.

Lightning, Ray and the loggers are imported only when a run starts.
"""

from lrcnet_paper.training.by_name import train
from lrcnet_paper.training.grid import run_all
from lrcnet_paper.training.result import Result
from lrcnet_paper.training.single_run import run
from lrcnet_paper.training.spec import RunSpec

__all__ = ["Result", "RunSpec", "run", "run_all", "train"]
