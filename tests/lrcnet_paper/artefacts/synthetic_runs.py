"""Synthetic finished runs with numbers near the paper's, so that tables and pictures need no training."""

import math
import random
from dataclasses import replace

import pytest

from lrcnet_paper import artefacts, tasks
from lrcnet_paper.artefacts import drive_dynamics, training_time
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts.classification import table as classification
from lrcnet_paper.artefacts.neural_ode import table as neural_ode
from lrcnet_paper.reproduction import measure
from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.results.reading import read_runs
from lrcnet_paper.tasks.driving import recording
from lrcnet_paper.tasks.neural_ode import SYSTEMS, trajectory
from lrcnet_paper.training import run
from lrcnet_paper.training.result import Result
from lrcnet_paper.training.shared_head import shared_features
from lrcnet_paper.training.spec import RunSpec

VERSIONS = {"python": "3.0", "lrcnet": "synthetic"}
MACHINE = {"system": "synthetic", "processor": "none: a test made these runs up", "cores": 2, "threads": 2}


def result(
    task, variant, model, *, epochs=1, status="finished", metrics=None, parameters=23_573, seconds=2.5, **choices
):
    """Build a result with defaults for everything that a test does not care about; `choices` are fields of the run."""
    own = {"schedule": tasks.find(task, variant).recipe.schedule, "budget": "paper"}
    spec = RunSpec(task, variant, model, **{**own, **choices})
    return Result(
        spec=spec,
        rate=spec.rate,
        unit=spec.unit,
        parameters=parameters,
        epochs=epochs,
        updates=None,
        best_epoch=epochs,
        seconds_per_epoch=seconds,
        metrics=metrics or {},
        status=status,
        versions=VERSIONS,
        machine=MACHINE,
    )


def classification_run(task, variant, model, seed, epochs, budget="paper", centre=None, **choices):
    """Build a run whose accuracy lies near `centre` (None: the paper's), with a curve that approaches it."""
    rate = choices.get("learning_rate")
    change = choices.get("solver") or (f"lr{rate:g}" if rate else "")
    noise = random.Random(f"{task}{variant}{model}{seed}{change}")
    if centre is None:
        centre = classification.CLAIMED["accuracy"][task][model].mean / 100
    end = centre + noise.gauss(0, 0.004)
    split = "validation" if "validation" in tasks.find(task, variant).splits else "test"
    steps = range(1, epochs + 1)
    history = {
        "epoch": list(steps),
        "train_loss": [1.4 * math.exp(-8 * e / epochs) + 0.3 + noise.gauss(0, 0.01) for e in steps],
        f"{split}_accuracy": [end - 0.3 * math.exp(-8 * e / epochs) + noise.gauss(0, 0.003) for e in steps],
    }
    metrics = {"accuracy": end}
    if split == "validation":
        metrics["validation_loss"] = 1.5 * (1 - end)
    return FinishedRun(
        result(task, variant, model, seed=seed, epochs=epochs, budget=budget, metrics=metrics, **choices), history
    )


def rate_runs(variant, model, accuracies, seeds=3):
    """Build runs on the faithful and the clean split from rate -> accuracy; the rate None is the recipe's."""
    return [
        classification_run("person", f"{variant}{split}", model, seed, 100, learning_rate=rate, centre=centre)
        for seed in range(seeds)
        for split in ("", "-clean")
        for rate, centre in accuracies.items()
    ]


def ode_run(system, model, seed, iterations=4000, budget="paper", **choices):
    """Build a run whose trajectory is the truth with a slowly growing error."""
    noise = random.Random(f"{system}{model}{seed}{choices}")
    claimed = neural_ode.CLAIMED["test loss"][system]["neural-ode" if model == "neural-ode" else "lrc"].mean
    marks = list(range(100, iterations + 1, 100)) or [iterations]
    errors = [claimed * (1 + 8 * math.exp(-m / 600)) * math.exp(noise.gauss(0, 0.15)) for m in marks]
    metrics = {"mean_absolute_error": errors[-1], "mean_absolute_error_min": min(errors)}
    for mark in (1000, 2000, 4000):
        if iterations >= mark:
            metrics[f"mean_absolute_error@{mark}"] = errors[mark // 100 - 1]
            metrics[f"mean_absolute_error_min@{mark}"] = min(errors[: mark // 100])
    other = "euler" if model == "neural-ode" and "solver" not in choices else "dopri5"
    metrics |= {name.replace("error", f"error_{other}"): 0.9 * value for name, value in metrics.items()}
    times, truth = trajectory(system)
    states = [
        [x + claimed * t / 5, y - claimed * t / 5] for t, (x, y) in zip(times.tolist(), truth.tolist(), strict=True)
    ]
    return FinishedRun(
        result("neural-ode", system, model, seed=seed, epochs=iterations, budget=budget, metrics=metrics,
               parameters=1426, seconds=0.004 if model != "neural-ode" else 0.025, **choices),
        {"iteration": marks, "test_mean_absolute_error": errors},
        {"times": times.tolist(), "states": states},
    )  # fmt: skip


def driving_runs(folder):
    """Build policies with the real measurements of smoke runs and with synthetic names, seeds and losses."""
    smoke = smoke_measurements(folder)
    models = {*driving.POLICIES, *drive_dynamics.MODELS, *training_time.MODELS}
    runs = [driving_run(smoke["own"], model, seed) for model in sorted(models) for seed in range(3)]
    for model in sorted({*drive_dynamics.MODELS, *driving.POLICIES}):
        measured = smoke["stc" if model == driving.EFFICIENCY["STC E1"] else "features"]
        runs += [driving_run(_rename(measured, model), model, seed, variant="own-features") for seed in range(3)]
    runs += [driving_run(smoke["own"], model, 0, variant="carracing", world="carracing") for model in driving.POLICIES]
    return runs


def _rename(analyses, model):
    """Return the measurements of LRCU-S on a shared head as those of another model."""
    name = next((name for name, one in driving.EFFICIENCY.items() if one == model), None)
    theorems = analyses["theorems"]
    if model.name == "stc" or name is None:
        return analyses
    return {**analyses, "theorems": {**theorems, "networks": {name: next(iter(theorems["networks"].values()))}}}


def smoke_measurements(folder):
    """Train LRCU-S end to end and on a shared head, and an STC there, in smoke runs; return their measurements."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        recording.cache_clear()
        shared_features.cache_clear()
        lrcu, stc = driving.Model("lrcu-s"), driving.EFFICIENCY["STC E1"]
        specs = [*driving.plan_runs((lrcu,), "smoke", 1), *driving.plan_shared_head_runs((lrcu, stc), "smoke", 1)]
        for spec in specs:
            run(spec, folder / "runs", progress=False, threads=1)
        measure([name for name in artefacts.ARTEFACTS if name != "other-worlds"], folder / "runs")
        recording.cache_clear()
        shared_features.cache_clear()
    names = {("own-sample", "lrcu-s"): "own", ("own-sample-features", "lrcu-s"): "features"}
    return {
        names.get((one.result.variant, one.result.model), "stc"): one.analyses for one in read_runs(folder / "runs")
    }


def driving_run(analyses, model, seed, variant="own", world="vista"):
    """Build a run of ten epochs with given measurements."""
    noise = random.Random(f"{model}{seed}{variant}")
    losses = [1.4 * math.exp(-0.3 * e) + 0.2 + noise.gauss(0, 0.01) for e in range(1, 11)]
    history = {"epoch": list(range(1, 11)), "train_loss": losses, "validation_curvature_loss": losses}
    metrics = dict.fromkeys(
        ("curvature_loss", "train_loss", "validation_loss", "validation_curvature_loss"), losses[-1]
    )
    metrics["validation_weighted_loss"] = 2 * losses[-1]
    metrics["validation_sharp_bend_gain"] = 0.9
    drives = [
        {"noise": n, "metres": [90.2, 200.0, 80.4], "outcomes": ["left the road", "arrived", "left the road"]}
        for n in (0.0, 0.1)
    ]
    worlds = {"world": world, "length": 200.0, "drives": drives}
    finished = result(
        "driving",
        variant,
        model.name,
        solver=model.solver,
        seed=seed,
        epochs=10,
        budget="quick",
        metrics=metrics,
    )
    return FinishedRun(finished, history, {}, {**analyses, "other-worlds": worlds})


def whole_paper():
    """Build every run of the artefacts: three seeds; psMNIST has fewer epochs, and one of its MGU runs diverged."""
    runs = [ode_run(s, m, seed) for s in SYSTEMS for m in ("lrc-s", "lrc-a", "neural-ode") for seed in range(3)]
    runs += [ode_run(s, "neural-ode", seed, solver="euler-1") for s in SYSTEMS for seed in range(3)]
    for seed in range(3):
        for model in ("lrcu-s", "lrcu-a", "lstm", "gru", "mgu"):
            runs.append(classification_run("person", "coarse", model, seed, 100))
            runs.append(classification_run("person", "a01-a04", model, seed, 100, centre=0.75))
            runs.append(classification_run("imdb", "text", model, seed, 5))
        runs += [
            classification_run("person", "a01-a04", "lrc-s", seed, 100, solver=solver, centre=0.78)
            for solver in ("hybrid-1", "exponential-1", "rk4-1")
        ]
    for model in ("lrcu-s", "lrcu-a", "lstm", "gru", "mgu"):
        runs += rate_runs("a01-a04", model, {1e-4: 0.6, 1e-2: 0.87})
        runs += [classification_run("person", "a01-a04-clean", model, seed, 100, centre=0.7) for seed in range(3)]
    fewer_epochs = {"lrcu-s": 10, "lrcu-a": 10, "lstm": 10, "gru": 3, "mgu": 3}
    runs += [classification_run("psmnist", "permuted", m, 0, epochs, centre=0.69) for m, epochs in fewer_epochs.items()]
    runs.append(FinishedRun(result("psmnist", "permuted", "mgu", seed=1, epochs=2, status="diverged")))
    return runs + beyond_runs()


def beyond_runs(budget="quick"):
    """Build every run beyond the paper, three seeds; knowing the gaps gains more, the more readings are dropped."""
    planned = [spec for name in ("long", "irregular") for spec in artefacts.load(name).runs(budget, 3)]
    runs = []
    for spec in planned:
        noise = random.Random(spec.folder_name())
        dropped = int(spec.variant.removeprefix("drop-")) if spec.task == "thinned" else 0
        value = 0.8 + noise.gauss(0, 0.01) - (dropped / 200 if spec.options.get("gaps") == "none" else 0)
        metrics = {tasks.find(spec.task, spec.variant).metric: value}
        given = {name: getattr(spec, name) for name in ("solver", "seed", "learning_rate", "budget", "samples")}
        one = result(spec.task, spec.variant, spec.model, metrics=metrics, options=spec.options, **given)
        runs.append(FinishedRun(replace(one, spec=spec, epochs=spec.epochs or 7)))
    return runs


def rows_of(content, name):
    """Return the rows of a rendered table as dictionaries by heading."""
    table = next(part for part in (*content.tables, *content.sensitivities) if part.name == name)
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]
