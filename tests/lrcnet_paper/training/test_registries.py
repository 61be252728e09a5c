"""Schedules, optimisers and kinds of task by name: every row works, and unknown names list the valid ones."""

from dataclasses import replace

import pytest
import torch

from lrcnet_paper.models import BUILDERS
from lrcnet_paper.tasks import TASKS, find
from lrcnet_paper.training.optimisers import OPTIMISERS, make_optimiser
from lrcnet_paper.training.problems import PROBLEMS, problem_class
from lrcnet_paper.training.schedules import SCHEDULES, make_schedule

EVERY_TASK = [find(name, variant) for name in TASKS for variant in TASKS[name].variants]


def test_the_cosine_goes_from_the_rate_to_zero():
    rate = make_schedule("cosine", 0.1, 10)
    assert (rate(0), rate(10)) == (0.1, 0.0)
    assert rate(5) == pytest.approx(0.05)


def test_optimisers_follow_the_recipe():
    layer = torch.nn.Linear(1, 1)
    rmsprop = make_optimiser(layer, find("person").recipe, 0.5)
    assert isinstance(rmsprop, torch.optim.RMSprop)
    assert {k: rmsprop.defaults[k] for k in ("lr", "alpha", "eps")} == {"lr": 0.5, "alpha": 0.9, "eps": 1e-7}
    adam = make_optimiser(layer, find("imdb").recipe, 0.5)
    assert type(adam) is torch.optim.Adam
    assert adam.defaults["eps"] == 1e-7


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_begins_at_the_rate_and_knows_whether_the_length_matters(name):
    assert make_schedule(name, 0.3, 7)(0) == 0.3
    short, long = make_schedule(name, 0.3, 7), make_schedule(name, 0.3, 14)
    differs = any(short(step) != long(step) for step in range(7))
    assert differs == SCHEDULES[name].depends_on_length


@pytest.mark.parametrize("name", OPTIMISERS)
def test_an_optimiser_takes_the_rate_and_the_epsilon_of_the_recipe(name):
    recipe = replace(find("person").recipe, optimizer=name, eps=1e-5)
    optimiser = make_optimiser(torch.nn.Linear(1, 1), recipe, 0.25)
    assert (optimiser.defaults["lr"], optimiser.defaults["eps"]) == (0.25, 1e-5)


def test_unknown_schedules_and_optimisers_list_the_valid_ones():
    with pytest.raises(ValueError, match="schedule must be one of constant, cosine, but is 'linear'"):
        make_schedule("linear", 0.1, 10)
    recipe = replace(find("person").recipe, optimizer="lion")
    with pytest.raises(ValueError, match="optimizer must be one of adam, adamw, rmsprop, but is 'lion'"):
        make_optimiser(torch.nn.Linear(1, 1), recipe, 0.1)


@pytest.mark.parametrize("task", EVERY_TASK, ids=lambda task: f"{task.name}/{task.variant}")
def test_tasks_name_known_schedules_optimisers_and_kinds(task):
    assert task.recipe.schedule in SCHEDULES
    assert task.recipe.optimizer in OPTIMISERS
    assert task.kind in BUILDERS
    assert problem_class(task).unit == ("iteration" if task.recipe.epochs is None else "epoch")


def test_every_kind_of_task_has_a_network_and_a_problem():
    assert PROBLEMS.keys() == BUILDERS.keys() == {task.kind for task in EVERY_TASK}
    with pytest.raises(ValueError, match=r"kind of the task person must be one of .*trajectory, but is 'ranking'"):
        problem_class(replace(find("person"), kind="ranking"))
