"""Modules of ncps, their twins in `lrcnet.compat.ncps`, and the layers that they convert to give the same numbers."""

import importlib
import random
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import lrcnet
from lrcnet.compat import ncps as ours
from lrcnet.errors import UnreachableNeuronWarning
from lrcnet.reversal import with_reversal_potentials
from tests.tolerances import NCPS

theirs = pytest.importorskip("ncps", reason="ncps is not installed: pip install 'lrcnet[dev]'")
theirs.torch, theirs.wirings = (importlib.import_module(f"ncps.{name}") for name in ("torch", "wirings"))

pytestmark = pytest.mark.filterwarnings(f"ignore::{UnreachableNeuronWarning.__module__}.UnreachableNeuronWarning")


def draw_module(seed: int, library: Any) -> Any:
    """Draw the arguments of an LTC or a CfC, and make it with either library."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    inputs, units = rng.randint(1, 6), rng.randint(8, 16)
    wirings = library.wirings
    wiring = [
        lambda: units,
        lambda: wirings.AutoNCP(units, rng.randint(1, units - 4), sparsity_level=rng.choice([0.2, 0.6]), seed=seed),
        lambda: wirings.NCP(units - 5, 3, 2, 2, 2, 3, 2, seed=seed),
        lambda: wirings.Random(units, rng.randint(1, units), 0.5, random_seed=seed),
        lambda: wirings.FullyConnected(units, self_connections=rng.random() < 0.5),
    ][seed % 5]()
    common = {"mixed_memory": rng.random() < 0.3, "batch_first": rng.random() < 0.5}
    maps = ("affine", "linear", None)
    if rng.random() < 0.5:
        module = library.torch.LTC(
            inputs,
            wiring,
            input_mapping=rng.choice(maps),
            output_mapping=rng.choice(maps),
            ode_unfolds=rng.randint(1, 6),
            epsilon=rng.choice([1e-8, 1e-3]),
            implicit_param_constraints=rng.random() < 0.5,
            **common,
        )
    else:
        backbone = {}
        if isinstance(wiring, int):
            backbone = {
                "proj_size": rng.choice([None, 3]),
                "backbone_layers": rng.randint(0, 3),
                "backbone_units": rng.randint(4, 20),
                "backbone_dropout": rng.choice([0.0, 0.2]),
                "activation": rng.choice(["lecun_tanh", "tanh", "relu", "silu", "gelu"]),
            }
        module = library.torch.CfC(
            inputs, wiring, mode=rng.choice(["default", "pure", "no_gate"]), **common, **backbone
        )
    return module.eval()


def shake(module: nn.Module) -> None:
    """Move every parameter a little, so that maps and biases differ from their initial values."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.requires_grad:
                parameter.add_(0.05 * torch.randn_like(parameter))
        if hasattr(module.rnn_cell, "apply_weight_constraints"):
            module.rnn_cell.apply_weight_constraints()
            # A capacitance of 0 is a division by 0 in both libraries.
            module.rnn_cell.cm.add_(0.1)


@pytest.mark.parametrize("seed", range(100))
def test_converted_modules_have_equal_outputs(seed: int) -> None:
    module = draw_module(seed, theirs)
    shake(module)
    layer, twin = ours.convert(module), draw_module(seed, ours)
    twin.load_state_dict(module.state_dict())
    x, gaps = torch.randn(3, 9, module.input_size), torch.rand(3, 9) + 0.05
    for sample in range(3):
        # Sample by sample, because ncps' batches of times are wrong.
        expected, state = module(x[sample], timespans=gaps[sample])
        output, last = layer(x[sample], dt=gaps[sample])
        torch.testing.assert_close(output, expected, rtol=0, atol=NCPS)
        torch.testing.assert_close(flatten(last), flatten(state), rtol=0, atol=NCPS)
        torch.testing.assert_close(twin(x[sample], timespans=gaps[sample])[0], expected, rtol=0, atol=NCPS)
    laid_out = x if module.batch_first else x.transpose(0, 1)
    torch.testing.assert_close(layer(laid_out)[0], module(laid_out)[0], rtol=0, atol=NCPS)


def flatten(state: Any) -> Tensor:
    """Return a state or a pair of them as one vector, whatever its axes."""
    return torch.cat([part.flatten() for part in state]) if isinstance(state, tuple) else state.flatten()


@pytest.mark.parametrize("seed", range(0, 100, 7))
def test_the_same_seed_draws_the_same_weights_and_gradients(seed: int) -> None:
    module, twin = draw_module(seed, theirs), draw_module(seed, ours)
    expected, drawn = module.state_dict(), twin.state_dict()
    assert expected.keys() == drawn.keys()
    assert all(torch.equal(drawn[name], value) for name, value in expected.items())
    x = torch.randn(5, 4, module.input_size)
    for one in (module, twin):
        one(x)[0].square().mean().backward()
    gradients = {name: parameter.grad for name, parameter in module.named_parameters() if parameter.requires_grad}
    for name, parameter in twin.named_parameters():
        if parameter.requires_grad:
            torch.testing.assert_close(parameter.grad, gradients[name], rtol=1e-3, atol=NCPS)


def test_reversal_potentials_come_back() -> None:
    module = theirs.torch.LTC(3, theirs.wirings.AutoNCP(12, 2))
    shake(module)
    layer = ours.convert(module)
    cell = module.rnn_cell
    masks = torch.cat([cell.sparsity_mask, cell.sensory_sparsity_mask])
    e = layer.circuit(reversal_potentials=True)["e"]
    torch.testing.assert_close(e, torch.cat([cell.erev, cell.sensory_erev]) * masks, rtol=1e-5, atol=NCPS)
    other = lrcnet.LTC(3, wiring=layer.wiring, output_map=True)
    other.load_circuit(layer.circuit(reversal_potentials=True))
    x = torch.randn(5, 2, 3)
    layer.batch_first = False
    torch.testing.assert_close(other(x)[0], layer(x)[0])


def test_potentials_that_cannot_be_written_are_named() -> None:
    circuit = lrcnet.LTC(2, 3).circuit()
    circuit["g"][0, 1] = 0
    with pytest.raises(ValueError, match=r"g > 0 to have a reversal potential, but g\[0, 1\] = 0"):
        with_reversal_potentials(circuit)
    letters = lrcnet.LTC(2, 3).circuit(reversal_potentials=True)
    with pytest.raises(ValueError, match="e_l must not be 0"):
        lrcnet.LTC(2, 3).load_circuit({**letters, "e_l": torch.zeros(3)})
    with pytest.raises(ValueError, match="without k"):
        lrcnet.LTC(2, 3).load_circuit({**letters, "k": letters["g"]})


def test_a_leak_potential_of_zero_converts() -> None:
    module = theirs.torch.LTC(3, 6)
    module.rnn_cell.vleak.data.zero_()
    x = torch.randn(2, 9, 3)
    torch.testing.assert_close(ours.convert(module)(x)[0], module(x)[0], rtol=0, atol=NCPS)


@pytest.mark.parametrize("kind", ["LTC", "CfC"])
@pytest.mark.parametrize("library", [None, "mixed"])
def test_batches_of_times_equal_their_samples_here_and_not_there(kind: str, library: str | None) -> None:
    options = {"mixed_memory": library == "mixed"}
    torch.manual_seed(0)
    module, twin = (getattr(which.torch, kind)(2, 4, **options) for which in (theirs, ours))
    twin.load_state_dict(module.state_dict())
    # As many samples as units: the one batch size that ncps takes without an error.
    x, gaps = torch.randn(4, 5, 2), torch.rand(4, 5) * 2
    together, alone = twin(x, timespans=gaps)[0], [module(x[i], timespans=gaps[i])[0] for i in range(4)]
    torch.testing.assert_close(together, torch.stack(alone), rtol=0, atol=NCPS)
    assert (module(x, timespans=gaps)[0] - torch.stack(alone)).abs().max().item() > 0.01
    with pytest.raises(RuntimeError, match="size of tensor"):
        module(x[:3], timespans=gaps[:3])
    torch.testing.assert_close(twin(x, timespans=gaps.unsqueeze(-1))[0], together)


def test_convert_names_what_it_cannot_convert() -> None:
    with pytest.raises(TypeError, match=r"convert expects an LTC or a CfC of ncps\.torch, but was given a GRU"):
        ours.convert(nn.GRU(3, 4))
    with pytest.raises(ValueError, match="backbone_units must be left out with a wiring"):
        ours.torch.CfC(3, ours.wirings.AutoNCP(12, 2), backbone_units=5)
    with pytest.raises(ValueError, match="one value per reading"):
        ours.torch.CfC(3, 4)(torch.randn(2, 5, 3), timespans=torch.ones(2, 4))
    with pytest.raises(RuntimeError, match="pair"):
        ours.torch.LTC(3, 4, mixed_memory=True)(torch.randn(2, 5, 3), torch.zeros(2, 4))
    with pytest.raises(RuntimeError, match=r"2 dimension\(s\)"):
        ours.torch.LTC(3, 4)(torch.randn(2, 5, 3), torch.zeros(4))
    with pytest.raises(ValueError, match="the wiring must be built"):
        ours.torch.LTCCell(ours.wirings.AutoNCP(12, 2))
