"""Many runs: only the missing ones, and on a cluster that loses workers and nodes."""

import functools
import os
import signal
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from lrcnet_paper.training import Result, RunSpec, run, run_all
from lrcnet_paper.training.fit import Fit
from lrcnet_paper.training.grid import RunsLeftError
from lrcnet_paper.training.run_folder import BusyFolderError, lock_folder

ODE = RunSpec("neural-ode", "spiral", "lrc-s", iterations=4)


def test_only_missing_runs_are_trained(tmp_path, monkeypatch):
    specs = [ODE.with_(seed=seed) for seed in (0, 1, 0)]
    first = run_all(specs[:1], tmp_path, progress=False)
    ran, original = [], Fit.run
    monkeypatch.setattr(Fit, "run", lambda self: ran.append(self.spec.seed) or original(self))
    reported = []
    results = run_all(specs, tmp_path, progress=False, on_result=lambda spec, result: reported.append(spec.seed))
    assert ran == [1]
    assert reported == [0, 1]
    assert [result.seed for result in results] == [0, 1]
    assert results[0] == first[0]


def test_a_run_that_diverges_does_not_stop_the_others(tmp_path, monkeypatch):
    from lrcnet_paper.training.problems import trajectories

    original = trajectories.TrajectoryProblem.loss

    def loss(self, network, batch):
        value = original(self, network, batch)
        return value * float("nan") if self.settings.seed == 0 else value

    monkeypatch.setattr(trajectories.TrajectoryProblem, "loss", loss)
    for _ in range(2):  # the second time both runs are only read
        results = run_all([ODE, ODE.with_(seed=1)], tmp_path, progress=False)
        assert [result.status for result in results] == ["diverged", "finished"]


def test_a_run_that_must_be_left_out_does_not_stop_the_others(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("lrcnet_paper.training.run_folder.lock_folder", functools.partial(lock_folder, patience=0.0))
    busy, longer, good = (ODE.with_(seed=seed, iterations=2) for seed in (0, 1, 2))
    run(longer.with_(iterations=3), tmp_path, progress=False)
    # Killed before its end: the checkpoint knows the length, and no result does.
    (tmp_path / longer.folder_name() / "result.json").unlink()
    reported = []
    with lock_folder(tmp_path / busy.folder_name()), pytest.raises(RunsLeftError) as caught:
        run_all([busy, longer, good], tmp_path, progress=False, on_result=lambda spec, result: reported.append(spec))
    assert reported == [good]
    text = str(caught.value)
    assert text.startswith(f"2 of 3 runs were left out, the others are done: {busy.folder_name()} (another process is")
    assert f"{longer.folder_name()} (the run in" in text
    assert "has 3 iterations already, more than the 2 asked for" in text
    assert "\n" not in text
    assert caplog.text.count("left out: ") == 2
    assert [result.seed for result in run_all([busy, good], tmp_path, progress=False)] == [0, 2]


class OtherRay:
    """Stands in for Ray: runs each task in this process when its result is asked for, or fails."""

    class exceptions:
        class RayError(Exception):
            pass

        class WorkerCrashedError(RayError):
            pass

        class RayTaskError(RayError):
            def __init__(self, cause):
                self.cause = cause

    def __init__(self, failure=None):
        self.failure = failure

    def is_initialized(self):
        return True

    def remote(self, num_cpus, max_retries):
        return lambda work: SimpleNamespace(remote=functools.partial(functools.partial, work))

    def wait(self, handles, num_returns):
        return handles[:1], handles[1:]

    def get(self, handle):
        if self.failure is not None:
            raise self.failure
        return handle()


def test_workers_get_the_data_folder_and_keep_the_first_thread_count(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", OtherRay())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LRCNET_DATA", "files")
    done = run(ODE.with_(iterations=2), tmp_path, progress=False, threads=2)
    seen = []

    def work(spec, out, data, progress, threads, loggers):
        seen.append((os.environ["LRCNET_DATA"], data, threads))
        return done

    monkeypatch.setattr("lrcnet_paper.training.ray_engine.run_or_diverge", work)
    run_all([ODE, ODE.with_(seed=1)], tmp_path, engine="ray", progress=False)
    run_all([ODE], tmp_path, data="given", engine="ray", progress=False, threads=3)
    named, given = str(tmp_path / "files"), str(tmp_path / "given")
    assert seen == [(named, None, 2), (named, None, 1), (named, given, 3)]


def test_a_failure_on_a_cluster_is_one_line_or_leaves_the_run_out(tmp_path, monkeypatch):
    errors = OtherRay.exceptions
    for failure, kind, message in (
        (errors.RayError("The node\n  is gone."), RuntimeError, rf"Ray could not run {ODE.folder_name()}: The node is"),
        (errors.RayTaskError(BusyFolderError("busy")), RunsLeftError, r"1 of 1 runs .*\(busy\)"),
        (errors.RayTaskError(OSError("disk full")), OSError, "disk full"),
        (errors.WorkerCrashedError(), RuntimeError, "died 21 times"),
    ):
        monkeypatch.setitem(sys.modules, "ray", OtherRay(failure))
        with pytest.raises(kind, match=message) as caught:
            run_all([ODE], tmp_path, engine="ray", progress=False)
        assert "\n" not in str(caught.value)


def test_an_unknown_engine_is_named(tmp_path):
    with pytest.raises(ValueError, match="engine must be one of local, ray, but is 'dask'"):
        run_all([ODE], tmp_path, engine="dask")


def numbers(result: Result) -> tuple[object, ...]:
    return result.metrics, result.status, result.epochs, result.best_epoch


@pytest.mark.slow
def test_a_killed_worker_and_a_lost_node_cost_only_time(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_TMPDIR", "/tmp")  # sockets need short paths
    specs = [
        RunSpec("neural-ode", "spiral", "lrc-s", iterations=800, seed=seed, options={"units": 8}) for seed in (0, 1)
    ]
    expected = [run(spec, tmp_path / "here", progress=False, threads=1) for spec in specs]
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    second = cluster.add_node(num_cpus=1)
    third = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    events: list[str] = []

    def disturb() -> None:
        files = [tmp_path / "there" / spec.folder_name() for spec in specs]
        wait_for(lambda: all((place / "last.ckpt").exists() for place in files))
        workers = holders(files[0])
        for process in workers:
            os.kill(process, signal.SIGKILL)
        events.append(f"killed {len(workers)}")
        stamp = (files[1] / "last.ckpt").stat().st_mtime_ns
        wait_for(lambda: (files[1] / "last.ckpt").stat().st_mtime_ns != stamp)
        unfinished = [folder for folder in files if not (folder / "result.json").exists()]
        cluster.remove_node(third, allow_graceful=False)
        events.append(f"removed a node with {len(unfinished)} runs to do")

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        results = run_all(specs, tmp_path / "there", engine="ray", progress=False)
    finally:
        thread.join(timeout=60)
        ray.shutdown()
        cluster.shutdown()
    assert second is not third
    assert events == ["killed 1", "removed a node with 2 runs to do"], events
    assert [numbers(result) for result in results] == [numbers(result) for result in expected]
    for spec in specs:
        here, there = (tmp_path / place / spec.folder_name() / "metrics.csv" for place in ("here", "there"))
        assert here.read_bytes() == there.read_bytes()


def wait_for(condition, seconds=240.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "the runs did not get this far"
        time.sleep(0.01)


def holders(folder) -> list[int]:
    """List the processes that have a run's lock open."""
    lock = str(folder / ".lock")
    numbers = []
    for process in filter(str.isdecimal, os.listdir("/proc")):
        try:
            links = [os.readlink(f"/proc/{process}/fd/{name}") for name in os.listdir(f"/proc/{process}/fd")]
        except OSError:
            continue
        if lock in links and int(process) != os.getpid():
            numbers.append(int(process))
    return numbers
