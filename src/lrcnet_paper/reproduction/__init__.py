"""The pipelines behind `lrcnet reproduce` and `lrcnet report`, as functions that a notebook can call."""

from lrcnet_paper.reproduction.pipeline import Reproduction, check_names, measure, reproduce, write_report
from lrcnet_paper.reproduction.plan import is_done, plan_runs

__all__ = ["Reproduction", "check_names", "is_done", "measure", "plan_runs", "reproduce", "write_report"]
