"""Random attacks: no wrong number, no crash, no hang, and a clear error for every bad input.

The quick tests draw the same examples on every machine. The slow ones run thousands in processes of their own, and
`make fuzz` draws new ones until it is stopped.
"""

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings

import lrcnet
from tests.fuzz import bad_calls, bad_files, bad_folders, campaign, command_lines, kernel_cases, kills, networks
from tests.fuzz.outcomes import BAD, RIGHT, watch

# name -> number of attacks in ten minutes on two cores.
MANY = {"kernels": 4000, "calls": 2000, "files": 1500, "folders": 500, "commands": 400}


def quick(examples: int) -> settings:
    return settings(max_examples=examples, suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Without the log lines about the plain loop."""
    logger = logging.getLogger("lrcnet")
    before = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(before)


@quick(150)
@given(kernel_cases.CASES)
def test_kernels_give_the_numbers_of_the_plain_loop(case: kernel_cases.KernelCase) -> None:
    outcome = watch(lambda: kernel_cases.attack(case))
    assert outcome.kind == RIGHT, outcome.detail


@pytest.mark.parametrize("module", [torch.nn.LSTM(3, 4), torch.nn.LayerNorm(3)], ids=["LSTM", "LayerNorm"])
def test_torchs_own_operators_need_dense_saved_tensors(module: torch.nn.Module) -> None:
    """The reason for `Network.dense_saved`; once this fails, torch is fixed and the field can go."""
    x = torch.randn(5, 2, 3, requires_grad=True)
    sparse = kernel_cases.unpack_hook("other strides")
    with torch.autograd.graph.saved_tensors_hooks(lambda value: value.detach(), sparse):
        output = module(x)
    (output[0] if isinstance(output, tuple) else output).square().sum().backward()
    assert not all(parameter.grad.isfinite().all() for parameter in module.parameters())


def test_every_layer_is_attacked() -> None:
    assert set(lrcnet.LAYERS) <= set(networks.NETWORKS)
    assert {f"run {name}" for name in lrcnet.LAYERS} <= set(bad_calls.TARGETS)


@pytest.mark.parametrize("name", bad_calls.TARGETS)
def test_targets_take_right_arguments(name: str) -> None:
    target = bad_calls.TARGETS[name]
    target.call(**target.arguments())


@quick(200)
@given(bad_calls.CASES)
def test_bad_arguments_get_a_clear_error(case: bad_calls.BadCall) -> None:
    outcome = watch(lambda: bad_calls.attack(case))
    assert outcome.kind not in BAD, outcome.detail


@pytest.mark.parametrize("name", bad_files.FORMATS)
def test_undamaged_files_are_read(name: str) -> None:
    outcome = watch(lambda: bad_files.attack(bad_files.BadFile(name, ())))
    assert outcome.kind == RIGHT, outcome.detail


@quick(200)
@given(bad_files.CASES)
def test_damaged_files_get_a_clear_error(case: bad_files.BadFile) -> None:
    outcome = watch(lambda: bad_files.attack(case))
    assert outcome.kind not in BAD, outcome.detail


@quick(60)
@given(bad_folders.CASES)
def test_damaged_run_folders_get_a_clear_error(case: bad_folders.BadFolder) -> None:
    outcome = watch(lambda: bad_folders.attack(case))
    assert outcome.kind not in BAD, outcome.detail


@quick(40)
@given(command_lines.CASES)
def test_wrong_command_lines_get_a_clear_error(case: command_lines.BadCommand) -> None:
    outcome = watch(lambda: command_lines.attack(case))
    assert outcome.kind not in BAD, outcome.detail


def test_the_table_counts_every_kind() -> None:
    counts = campaign.Counter({"right answer": 3, "clear error": 2, "unclear error": 1})
    table = campaign.format_table({"calls": counts})
    assert "unclear errors: 16.67 % of 6 bad inputs" in table
    assert not campaign.is_good({"calls": counts})
    assert campaign.is_good({"calls": campaign.Counter({"clear error": 3}), "kernels": campaign.Counter({RIGHT: 1})})
    assert not campaign.is_good({"kernels": campaign.Counter({"crash": 1, RIGHT: 99})})


def test_a_crash_is_counted_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # The worker cannot find this target, so its process fails.
    counts, details = campaign.run_chunk("kernels", -1, 0)
    assert counts == {"crash": 1}
    assert "crash (exit code 1)" in details[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY)
def test_many_attacks(name: str) -> None:
    counts, details = campaign.run_target(name, MANY[name], seed_number=1)
    assert campaign.is_good({name: counts}), "\n".join([campaign.format_table({name: counts}), *details])


@pytest.mark.slow
def test_killed_runs_resume_to_the_same_bytes() -> None:
    assert kills.compare(10, 2000, seed=1) == (10, [])


@pytest.mark.slow
@pytest.mark.parametrize("name", bad_files.FORMATS)
def test_coverage_guided_attacks_on_readers(name: str, tmp_path: Path) -> None:
    """Run a fixed number of inputs from a fixed seed; `python -m tests.fuzz.guided` without these goes on."""
    pytest.importorskip("atheris", reason="atheris has wheels for few systems only")
    command = [sys.executable, "-m", "tests.fuzz.guided", name, "-seed=1", "-runs=200", "-rss_limit_mb=4096"]
    command.append(f"-artifact_prefix={tmp_path}/")
    done = subprocess.run(command, cwd=campaign.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
