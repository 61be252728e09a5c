"""Generated C: the float32 law against float64, strict compilers, sanitizers, 32 bits and Cortex-M; bad input."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lrcnet
from lrcnet.export import export_c, generate_c
from lrcnet.export.network import collect
from lrcnet.export.vectors import make_vectors, run_stream
from tests.export import networks
from tests.export.compilers import GCC, Library, run, self_test, self_test_on_arm
from tests.tolerances import FLOAT32_LAW, INT16

pytestmark = pytest.mark.skipif(GCC is None, reason="gcc is not installed")
STEPS = 300


def run_in_float32(model: Any, x: np.ndarray, dt: np.ndarray | None) -> np.ndarray:
    """Return the answers of the plain float32 loop, the measure of the law."""
    for module in model.modules():
        if hasattr(module, "backend"):
            module.backend = "reference"
    state, answers = None, []
    with torch.no_grad():
        for index, reading in enumerate(torch.from_numpy(x if x.ndim == 1 else x.astype(np.float32))):
            gap = None if dt is None else float(dt[index])
            answer, state = model.step(reading.unsqueeze(0), state, gap)
            answers.append(answer[0].numpy())
    return np.stack(answers)


def check_against_truth(name: str, folder: Path, flags: tuple[str, ...] = ("-O2",), **options: Any) -> None:
    """Hold generated C to the float32 law, or int16 to its stated error, over a long stream."""
    model = networks.build(name)
    export_c(model, folder / "net.c", **options)
    network = collect(model)
    x, dt, truth = make_vectors(model, network, STEPS)
    gaps = dt if network.timed else None
    answers = Library(folder / "net.c", network, flags)(x, gaps)
    error, largest = np.abs(answers - truth).max(), np.abs(truth).max()
    if options.get("arithmetic") == "int16":
        assert error <= INT16 * largest
        return
    law = np.abs(run_in_float32(model, x, gaps) - truth).max()
    assert error <= FLOAT32_LAW * law, f"error {error:g}, plain float32 loop {law:g}"


@pytest.mark.parametrize("name", networks.QUICK)
def test_float32_obeys_the_law(name: str, tmp_path: Path) -> None:
    check_against_truth(name, tmp_path)


@pytest.mark.parametrize("name", ["lrcu", "ltc", "gru", "lstm", "classifier", "forecaster"])
def test_int16_stays_within_its_stated_error(name: str, tmp_path: Path) -> None:
    check_against_truth(name, tmp_path, arithmetic="int16")


@pytest.mark.parametrize("name", ["lrc", "lstm"])
def test_an_exponential_of_its_own_obeys_the_law_and_needs_no_library(name: str, tmp_path: Path) -> None:
    check_against_truth(name, tmp_path, own_exp=True)
    assert "math.h" not in (tmp_path / "net.c").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", networks.ALL)
@pytest.mark.parametrize("options", [{"own_exp": True}, {"arithmetic": "int16"}], ids=["float32", "int16"])
def test_every_network_with_every_option(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    check_against_truth(name, tmp_path, ("-Os",), **options)


@pytest.mark.parametrize("arithmetic", ["float32", "int16"])
def test_the_self_test_passes_and_can_fail(arithmetic: str, tmp_path: Path) -> None:
    source = tmp_path / "net.c"
    export_c(networks.build("lrcu"), source, arithmetic=arithmetic)
    assert "ok" in self_test(source, "-O2")
    text = source.read_text()
    first = text.index("test_y[] = {\n  ") + len("test_y[] = {\n  ")
    source.write_text(text[:first] + "9.0f, " + text[first:])
    with pytest.raises(AssertionError, match="FAILED"):
        self_test(source, "-O2")


SANITIZERS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@pytest.mark.slow
@pytest.mark.parametrize("arithmetic", ["float32", "int16"])
@pytest.mark.parametrize("name", networks.ALL)
def test_no_sanitizer_complains(name: str, arithmetic: str, tmp_path: Path) -> None:
    export_c(networks.build(name), tmp_path / "net.c", arithmetic=arithmetic)
    assert "ok" in self_test(tmp_path / "net.c", *SANITIZERS)


@pytest.mark.slow
@pytest.mark.parametrize("arithmetic", ["float32", "int16"])
@pytest.mark.parametrize("name", networks.QUICK)
def test_32_bit_programs_agree(name: str, arithmetic: str, tmp_path: Path) -> None:
    export_c(networks.build(name), tmp_path / "net.c", arithmetic=arithmetic)
    assert "ok" in self_test(tmp_path / "net.c", "-m32", "-O2")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="gcc-arm-none-eabi is not installed")
@pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="qemu-system-arm is not installed")
@pytest.mark.parametrize(
    ("cpu", "arithmetic"),
    [("cortex-m0", "int16"), ("cortex-m3", "float32"), ("cortex-m4", "float32"), ("cortex-m4", "int16")],
)
@pytest.mark.parametrize("name", networks.QUICK)
def test_cortex_m_agrees(name: str, arithmetic: str, cpu: str, tmp_path: Path) -> None:
    export_c(networks.build(name), tmp_path / "net.c", arithmetic=arithmetic, own_exp=cpu == "cortex-m3")
    assert "ok" in self_test_on_arm(tmp_path / "net.c", cpu)


_HOSTILE = """
#include "net.h"
int main(void) {{
  static const float values[] = {{1e30f, -1e30f, 0.0f / 0.0f, 1.0f / 0.0f, -1.0f / 0.0f, 40000.0f, -3.0f, 0.0f}};
  net_state state;
  float x[{inputs}], y[{outputs}];
  int t, i;
  net_reset(&state);
  for (t = 0; t < 200; t++) {{
    for (i = 0; i < {inputs}; i++) x[i] = values[(t + t / 8 * i) % 8];
    net_step(&state, {reading}{gap}, y);
    for (i = 0; i < {outputs}; i++) if ({check}) return 1;
  }}
  return 0;
}}
"""


@pytest.mark.parametrize("name", ["ltc", "lstm", "cfc"])
def test_no_reading_and_no_gap_overflows(name: str, tmp_path: Path) -> None:
    check_hostile_readings(name, "int16", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("arithmetic", ["float32", "int16"])
@pytest.mark.parametrize("name", networks.ALL)
def test_no_reading_and_no_gap_overflows_in_any_network(name: str, arithmetic: str, tmp_path: Path) -> None:
    check_hostile_readings(name, arithmetic, tmp_path)


def check_hostile_readings(name: str, arithmetic: str, folder: Path) -> None:
    """Feed infinite, undefined and huge readings and gaps to a network; integers must stay finite answers."""
    model = networks.build(name)
    network = collect(model)
    # A forecast is the reading plus a change, so that of an infinite reading is infinite in any arithmetic.
    stays_finite = arithmetic == "int16" and not network.residual
    export_c(model, folder / "net.c", arithmetic=arithmetic, own_exp=True)
    program = _HOSTILE.format(
        inputs=network.inputs,
        outputs=network.outputs,
        reading="x" if network.embedding is None else "t % 3 ? t - 9 : 2147483647",
        gap=", values[t / 3 % 8]" if network.timed else "",
        check="!(y[i] > -1e30f && y[i] < 1e30f)" if stays_finite else "0",
    )
    (folder / "hostile.c").write_text(program)
    flags = (*SANITIZERS, "-fsanitize=float-cast-overflow", "-std=c99", "-w")
    run("gcc", *flags, str(folder / "hostile.c"), str(folder / "net.c"), "-o", str(folder / "hostile"))
    run(str(folder / "hostile"))


def test_the_source_is_a_function_of_the_network() -> None:
    assert generate_c(networks.build("lrc")).source == generate_c(networks.build("lrc")).source


def test_the_header_compiles_alone_and_as_cpp(tmp_path: Path) -> None:
    export_c(networks.build("classifier"), tmp_path / "my-net.c")
    program = '#include "my-net.h"\nint main(void) { my_net_state s; my_net_reset(&s); return sizeof s > 1024; }\n'
    (tmp_path / "use.cpp").write_text(program)
    for command in (
        ["gcc", "-std=c99", "-c", str(tmp_path / "my-net.c"), "-o", str(tmp_path / "net.o")],
        [
            "g++",
            "-Wall",
            "-Werror",
            str(tmp_path / "use.cpp"),
            str(tmp_path / "net.o"),
            "-lm",
            "-o",
            str(tmp_path / "use"),
        ],
        [str(tmp_path / "use")],
    ):
        subprocess.run(command, check=True)


def test_the_gaps_of_the_self_test_warn_nobody() -> None:
    """Any warning fails a test, and one Euler step of this network contracts up to 4/3 only: the gaps reach 1.9."""
    model = lrcnet.DiagonalLRC(3, 4, contraction=0.01)
    generate_c(model)
    with pytest.warns(lrcnet.StabilityWarning, match="contracts only up to"):
        model(torch.zeros(2, 1, 3), dt=1.9)


def test_absent_synapses_are_not_stored_and_not_computed() -> None:
    whole, wired = generate_c(networks.build("lrcu")), generate_c(networks.build("sparse"))
    assert "_source[]" in wired.source
    assert "_source[]" not in whole.source
    assert wired.cost.exponentials < 0.6 * whole.cost.exponentials
    assert wired.cost.weight_bytes < 0.6 * whole.cost.weight_bytes


def test_the_cost_counts_weights_and_operations() -> None:
    cost = generate_c(lrcnet.GRU(3, 8)).cost
    assert cost.weight_bytes == 4 * (24 * 3 + 24 * 8 + 24 + 8)
    assert cost.state_bytes == 4 * 8
    assert cost.exponentials == 3 * 8
    assert generate_c(lrcnet.GRU(3, 8), arithmetic="int16").cost.weight_bytes == cost.weight_bytes // 2
    # Each of 5 * (5 + 3) synapses has a sigmoid, and each unit four more: F, U, and two of the elastance.
    assert generate_c(lrcnet.LRCU(3, 5)).cost.exponentials == 5 * 8 + 4 * 5


def test_networks_without_a_step_of_fixed_cost_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="chooses them at run time; use one of hybrid"):
        generate_c(lrcnet.LRC(3, 4, solver="dopri5"))
    with pytest.raises(ValueError, match="bidirectional"):
        generate_c(lrcnet.LRC(3, 4, bidirectional=True))
    with pytest.raises(ValueError, match="calibrate_time"):
        generate_c(lrcnet.LRC(3, 4, time_scale="auto"))
    with pytest.raises(TypeError, match="given a Linear"):
        generate_c(torch.nn.Linear(3, 4))
    with pytest.raises(ValueError, match="C identifier"):
        generate_c(lrcnet.LRCU(3, 4), "my net")
    with pytest.raises(ValueError, match=r"must end in \.c"):
        export_c(lrcnet.LRCU(3, 4), tmp_path / "net.cpp")
    for name in ('a".c', "a\nb.c", "a\\.c"):
        with pytest.raises(ValueError, match="no quotes or backslashes"):
            export_c(lrcnet.LRCU(3, 4), tmp_path / name)
    with pytest.raises(ValueError, match="arithmetic must be one of"):
        generate_c(lrcnet.LRCU(3, 4), arithmetic="int8")
    huge = lrcnet.GRU(3, 4)
    with torch.no_grad():
        huge.weight_ih_l0[0, 0] = 1e5
    with pytest.raises(ValueError, match="below 16384"):
        generate_c(huge, arithmetic="int16")


def test_the_stream_of_the_vectors_is_the_network(tmp_path: Path) -> None:
    model = networks.build("forecaster")
    network = collect(model)
    x, dt, y = make_vectors(model, network, 5)
    assert np.array_equal(run_stream(model, x, dt), y)
    assert abs(x[:, 0].mean() - 1000) < 40
