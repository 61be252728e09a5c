"""Each service gets every row, offline, below the run's folder."""

import sys
import types

import pytest

RUN = ("neural-ode", "--variant", "spiral", "--model", "lrc-s", "--iterations", 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("tensorboard", "tensorboard/events.out.tfevents.*"),
        ("wandb", "wandb/offline-run-*/*.wandb"),
        ("mlflow", "mlflow/*/*/metrics/test_mean_absolute_error"),
    ],
)
def test_a_logger_keeps_the_metrics_in_the_runs_folder(start, tmp_path, name, pattern):
    pytest.importorskip(name, reason=f"the extra {name!r} is not installed")
    process = start(*RUN, f"--{name}", "--out", tmp_path / "run", WANDB_MODE="offline", WANDB_SILENT="true")
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    (file,) = (tmp_path / "run").glob(pattern)
    content = file.read_bytes()
    assert b"test_mean_absolute_error" in content or name == "mlflow"
    assert len(content) > 0


@pytest.mark.slow
def test_mlflow_goes_on_with_its_run_when_the_run_is_made_longer(start, tmp_path):
    pytest.importorskip("mlflow", reason="the extra 'mlflow' is not installed")
    for iterations in (3, 4):
        process = start(*RUN[:-1], iterations, "--mlflow", "--out", tmp_path / "run")
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    (file,) = (tmp_path / "run").glob("mlflow/*/*/metrics/test_mean_absolute_error")
    assert [line.split()[-1] for line in file.read_text().splitlines()] == ["3", "4"]


@pytest.fixture
def mlflow_runs(monkeypatch):
    """Stands in for MLflow: the runs that it knows, by their ids, with their parameters."""
    known = {}

    class MlflowException(Exception):
        pass

    class MLFlowLogger:
        def __init__(self, *words, run_id=None, **more):
            self.given = run_id

        @property
        def run_id(self):
            if self.given is None:
                self.given = f"id{len(known)}"
                known[self.given] = None
            if self.given not in known:
                raise MlflowException(f"Run {self.given}\nnot found")
            return self.given

        def log_hyperparams(self, values):
            assert known[self.run_id] is None, "MLflow refuses to change parameters"
            known[self.run_id] = values

    for name in ("lightning", "lightning.pytorch", "lightning.pytorch.loggers", "mlflow", "mlflow.exceptions"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["lightning.pytorch.loggers"].MLFlowLogger = MLFlowLogger
    sys.modules["mlflow.exceptions"].MlflowException = MlflowException
    return known


def test_mlflow_keeps_one_run_per_folder(tmp_path, monkeypatch, mlflow_runs):
    from lrcnet_paper.training import RunSpec, loggers

    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://nowhere")
    spec = RunSpec("person", "coarse", "gru", epochs=1)
    loggers.Loggers(("mlflow",), tmp_path, spec)
    loggers.Loggers(("mlflow",), tmp_path, spec.with_(epochs=2))
    assert {name: values["epochs"] for name, values in mlflow_runs.items()} == {"id0": 1}
    mlflow_runs.clear()
    with pytest.raises(ValueError, match=r"mlflow_run.txt names must be .* but is not \(Run id0 not found\); delete"):
        loggers.Loggers(("mlflow",), tmp_path, spec)


def test_loggers_get_the_rows_and_the_outcome_of_the_run(tmp_path, monkeypatch):
    from lrcnet_paper.training import RunSpec, loggers

    calls = []

    class Recorder:
        def log_hyperparams(self, values):
            calls.append(values["model"])

        def log_metrics(self, values, step):
            calls.append((step, values))

        def finalize(self, status):
            calls.append(status)

    monkeypatch.setattr(loggers, "_make_logger", lambda name, folder, spec: Recorder())
    spec = RunSpec("person", "coarse", "gru")
    with loggers.Loggers(("wandb",), tmp_path, spec) as chosen:
        chosen.log({"epoch": 3, "train_loss": 0.5}, "epoch")
    with pytest.raises(KeyError), loggers.Loggers(("wandb",), tmp_path, spec):
        raise KeyError
    assert calls == ["gru", (3, {"train_loss": 0.5}), "success", "gru", "failed"]
    with pytest.raises(ValueError, match="logger must be one of tensorboard, wandb, mlflow"):
        loggers.Loggers(("clearml",), tmp_path, spec)
