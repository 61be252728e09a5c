"""Each service gets every row, offline, below the run's folder."""

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


def test_loggers_are_told_rows_and_how_the_run_ended(tmp_path, monkeypatch):
    from lrcnet.training import RunSpec, loggers

    calls = []

    class Recorder:
        def log_hyperparams(self, values):
            calls.append(values["model"])

        def log_metrics(self, values, step):
            calls.append((step, values))

        def finalize(self, status):
            calls.append(status)

    monkeypatch.setattr(loggers, "_make", lambda name, place, spec: Recorder())
    spec = RunSpec("person", "coarse", "gru")
    with loggers.Loggers(("wandb",), tmp_path, spec) as told:
        told.log({"epoch": 3, "train_loss": 0.5}, "epoch")
    with pytest.raises(KeyError), loggers.Loggers(("wandb",), tmp_path, spec):
        raise KeyError
    assert calls == ["gru", (3, {"train_loss": 0.5}), "success", "gru", "failed"]
    with pytest.raises(ValueError, match="logger must be one of tensorboard, wandb, mlflow"):
        loggers.Loggers(("clearml",), tmp_path, spec)
