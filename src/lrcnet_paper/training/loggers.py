"""Logging to TensorBoard, Weights & Biases and MLflow, beside the CSV file that every run writes."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Any

from lrcnet.errors import one_of
from lrcnet_paper.training.atomic_files import write_text
from lrcnet_paper.training.checkpoint import Row
from lrcnet_paper.training.spec import RunSpec

LOGGERS = ("tensorboard", "wandb", "mlflow")
# Holds the id of the run in MLflow, which does not accept an id of ours.
MLFLOW_RUN = "mlflow_run.txt"


class Loggers:
    """Passes each row of metrics to the chosen services.

    Args:
        names: names among `LOGGERS`.
        folder: folder of the run; a service that keeps files keeps them below it.
        spec: the run; its fields are logged as hyper-parameters.
    """

    def __init__(self, names: tuple[str, ...], folder: Path, spec: RunSpec) -> None:
        self._loggers: list[Any] = []
        for name in names:
            # MLflow refuses parameters that change, and the length changes when a run is continued for longer.
            known = one_of("logger", name, LOGGERS) == "mlflow" and (folder / MLFLOW_RUN).exists()
            self._loggers.append(_make_logger(name, folder, spec))
            if not known:
                self._loggers[-1].log_hyperparams(spec.as_dict())

    def log(self, row: Row, unit: str) -> None:
        """Log a row, with its epoch or iteration as the step."""
        for logger in self._loggers:
            logger.log_metrics({name: value for name, value in row.items() if name != unit}, step=int(row[unit]))

    def __enter__(self) -> Loggers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for logger in self._loggers:
            logger.finalize("success" if kind is None else "failed")


def _make_logger(name: str, folder: Path, spec: RunSpec) -> Any:
    run = spec.folder_name()
    try:
        if name == "tensorboard":
            from lightning.fabric.loggers.tensorboard import TensorBoardLogger

            return TensorBoardLogger(folder, name="tensorboard", version="")
        if name == "wandb":
            from lightning.pytorch.loggers import WandbLogger

            # The same id after a kill, so that the service continues the same run.
            return WandbLogger(name=run, id=run, save_dir=folder, project="lrcnet", resume="allow")
        return _make_mlflow(folder, run)
    except ImportError as error:
        raise ImportError(
            f"--{name} needs {name}, which is not installed; run: pip install 'lrcnet[{name}]'"
        ) from error


def _make_mlflow(folder: Path, name: str) -> Any:
    """Return a logger for the MLflow run that belongs to this folder, or for a new one."""
    from lightning.pytorch.loggers import MLFlowLogger
    from mlflow.exceptions import MlflowException

    address = os.environ.get("MLFLOW_TRACKING_URI")
    if address is None:
        # A run folder must need no database. MLflow still supports plain files if this variable asks for them.
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    note = folder / MLFLOW_RUN
    known = note.read_text(encoding="utf-8").strip() if note.exists() else None
    logger = MLFlowLogger("lrcnet", run_name=name, tracking_uri=address, save_dir=str(folder / "mlflow"), run_id=known)
    try:
        given = logger.run_id
    except MlflowException as error:
        if known is None:
            raise
        reason = " ".join(str(error).split())
        raise ValueError(
            f"the MLflow run that {note} names must be where MLflow looks, but is not ({reason}); delete that file to "
            "begin a new one"
        ) from error
    write_text(note, f"{given}\n")
    return logger
