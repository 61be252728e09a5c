"""`lrcnet.find_rate`: a range test that finds a rate, says what is wrong, and leaves no trace."""

import copy
import functools
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import lrcnet
from lrcnet.models import Classifier, Tagger
from lrcnet.training import RateSweep, smooth, suggest


class LastOutput(nn.Module):
    """A small classifier with everything that a sweep must restore: a buffer that grows, and dropout."""

    def __init__(self, kind: Any, outputs: int = 2) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.rnn = kind(3, 8, batch_first=True)
        self.dropout = nn.Dropout(0.1)
        self.out = nn.Linear(8, outputs)

    def forward(self, x: torch.Tensor, dt: Any = None) -> torch.Tensor:
        x = self.norm(x.transpose(1, 2)).transpose(1, 2)
        output, _ = self.rnn(x) if dt is None else self.rnn(x, dt=dt)
        return self.out(self.dropout(output[:, -1]))


def make_data(count: int = 64) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(count, 6, 3)
    return x, (x.sum((1, 2)) > 0).long()


def sweep(model: nn.Module, loader: Any, **options: Any) -> RateSweep:
    return lrcnet.find_rate(model, loader, **{"steps": 40, **options})


@pytest.mark.parametrize("kind", [lrcnet.LRCU, lrcnet.LTC, nn.GRU, lrcnet.GRU], ids=lambda kind: kind.__module__)
def test_the_suggested_rate_trains(kind: Any) -> None:
    x, y = make_data()
    model = LastOutput(kind)
    found = lrcnet.find_rate(model, [(x, y)])
    assert found.suggestion is not None
    assert 1e-4 < found.suggestion < 0.5
    assert list(found.rates) == sorted(found.rates)
    assert len(found.rates) == len(found.losses) == len(found.smoothed)
    optimiser = torch.optim.Adam(model.parameters(), found.suggestion)
    for _ in range(60):
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.7 * found.losses[0]


def state_of(model: nn.Module, optimiser: torch.optim.Optimizer, generator: torch.Generator) -> Any:
    return copy.deepcopy(
        {
            "model": model.state_dict(),
            "buffers": dict(model.named_buffers()),
            "modes": [module.training for module in model.modules()],
            "flags": {key: value for key, value in vars(model.rnn).items() if isinstance(value, bool)},
            "gradients": [parameter.grad for parameter in model.parameters()],
            "optimiser": optimiser.state_dict(),
            "torch": torch.get_rng_state(),
            "numpy": np.random.get_state()[1].tolist(),  # noqa: NPY002
            "python": random.getstate(),
            "loader": generator.get_state(),
        }
    )


@pytest.mark.parametrize("trained", [False, True], ids=["new", "trained"])
@pytest.mark.parametrize("fails", [False, True], ids=["ends", "fails"])
def test_nothing_has_changed_afterwards(trained: bool, fails: bool) -> None:
    x, y = make_data()
    model, generator = LastOutput(lrcnet.LRCU), torch.Generator().manual_seed(3)
    loader = DataLoader(TensorDataset(x, y), 16, shuffle=True, generator=generator)
    optimiser = torch.optim.AdamW(
        [
            {"params": model.rnn.parameters(), "lr": 1e-2},
            {"params": [*model.norm.parameters(), *model.out.parameters()]},
        ],
        lr=1e-3,
    )
    if trained:
        nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()
    model.norm.eval()
    before = state_of(model, optimiser, generator)
    calls = 0

    def loss(network: nn.Module, batch: Any) -> torch.Tensor:
        nonlocal calls
        calls += 1
        random.random()
        np.random.rand()  # noqa: NPY002
        if fails and calls == 5:
            raise KeyboardInterrupt
        return nn.functional.cross_entropy(network(batch[0]), batch[1])

    if fails:
        with pytest.raises(KeyboardInterrupt):
            sweep(model, loader, loss=loss, optimizer=optimiser)
    else:
        sweep(model, loader, loss=loss, optimizer=optimiser)
    torch.testing.assert_close(state_of(model, optimiser, generator), before, rtol=0, atol=0)


def test_training_after_a_sweep_equals_training_without_one() -> None:
    x, y = make_data()
    results = []
    for swept in (False, True):
        torch.manual_seed(1)
        model = LastOutput(lrcnet.LRCU)
        optimiser = torch.optim.Adam(model.parameters(), 1e-2)
        if swept:
            sweep(model, [(x, y)], optimizer=optimiser)
        for _ in range(3):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimiser.step()
        results.append(copy.deepcopy(model.state_dict()))
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=0)


def test_groups_keep_the_ratio_of_their_rates() -> None:
    x, y = make_data()
    model = LastOutput(nn.GRU)
    frozen = [*model.norm.parameters(), *model.out.parameters()]
    optimiser = torch.optim.SGD([{"params": model.rnn.parameters(), "lr": 0.2}, {"params": frozen, "lr": 0.1}])
    seen = []

    def loss(network: nn.Module, batch: Any) -> torch.Tensor:
        seen.append([group["lr"] for group in optimiser.param_groups])
        return nn.functional.cross_entropy(network(batch[0]), batch[1])

    sweep(model, [(x, y)], loss=loss, optimizer=optimiser, low=1e-3, high=1e-1)
    assert all(second == pytest.approx(first / 2) for first, second in seen)
    assert seen[0][0] == pytest.approx(1e-3)
    assert seen[-1][0] == pytest.approx(1e-1)


def test_batches_may_have_a_dt_or_be_anything() -> None:
    x, y = make_data()
    dt = torch.rand(64, 6)
    assert sweep(LastOutput(lrcnet.LRCU), [(x, dt, y)]).losses
    assert sweep(Tagger(lrcnet.LRCU(3, 4, batch_first=True), 4, 2), [[x, dt, (x.sum(-1) > 0).long()]]).losses
    batch = {"series": x, "label": y}
    loss = lambda model, given: nn.functional.cross_entropy(model(given["series"]), given["label"])  # noqa: E731
    assert sweep(LastOutput(nn.GRU), [batch], loss=loss).losses


def test_criteria_of_torch_get_output_and_target() -> None:
    x, y = make_data()
    model, target = LastOutput(lrcnet.LRCU, 1), y.float().unsqueeze(-1)
    for loss in (nn.BCEWithLogitsLoss(), nn.functional.binary_cross_entropy_with_logits):
        assert sweep(model, [(x, target)], loss=loss).losses[0] == pytest.approx(0.69, abs=0.2)
    # A bare layer returns (output, state), of which the output counts.
    assert sweep(nn.GRU(3, 8, batch_first=True), [(x, torch.randn(64, 6, 8))]).losses
    assert sweep(Classifier(lrcnet.LRCU(3, 4, batch_first=True), 4, 2), [(x, y)]).losses


def test_optimisers_may_be_classes_with_options() -> None:
    x, y = make_data()
    assert sweep(LastOutput(nn.GRU), [(x, y)], optimizer=functools.partial(torch.optim.SGD, momentum=0.9)).losses


def test_short_loaders_start_again() -> None:
    x, y = make_data()
    batches = [(x[:32], y[:32]), (x[32:], y[32:])]
    assert len(sweep(LastOutput(nn.GRU), batches, high=1e-2).losses) == 40
    assert len(sweep(LastOutput(nn.GRU), iter(batches), high=1e-2).losses) == 40


def test_a_sweep_ends_when_the_loss_explodes() -> None:
    x = torch.randn(64, 3)
    for high in (10.0, 1e6):
        model = nn.Linear(3, 1)
        found = sweep(model, [(x, x.sum(1, keepdim=True))], optimizer=torch.optim.SGD, low=1e-3, high=high)
        assert found.diverged
        assert found.rates[-1] < high
        assert found.suggestion is not None
        assert 1e-2 < found.suggestion < 1
        assert "explodes" in found.title


def test_a_loss_that_cannot_fall_gives_no_suggestion(tmp_path: Path) -> None:
    x, y = torch.zeros(8, 3), torch.zeros(8, 1)
    found = sweep(nn.Linear(3, 1, bias=False), [(x, y)])
    assert found.suggestion is None
    assert "No rate" in found.title
    assert found.draw(tmp_path / "flat.png").stat().st_size > 1000


def test_noise_alone_gives_no_suggestion() -> None:
    losses = (1 + 0.1 * np.random.default_rng(0).standard_normal(100)).tolist()
    assert suggest(np.geomspace(1e-5, 1, 100), np.asarray(losses), smooth(losses)) is None


def test_the_suggestion_lies_below_the_minimum_on_the_fall() -> None:
    rates = np.geomspace(1e-5, 1, 101)
    position = np.log10(rates)
    losses = 1 / (1 + np.exp(4 * (position + 2.5))) + np.exp(6 * (position + 0.7))
    suggestion = suggest(rates, losses, smooth(losses.tolist()))
    assert suggestion is not None
    assert 10**-3 < suggestion < 10**-1.5


def test_a_recovery_after_an_explosion_is_no_place_to_train() -> None:
    rates = np.geomspace(1e-5, 1, 101)
    position = np.log10(rates)
    losses = 1 / (1 + np.exp(4 * (position + 2.5)))
    losses[68:75:2] = 5.0  # At rates around 3e-2 single steps throw the network off; it recovers until the end.
    suggestion = suggest(rates, losses, smooth(losses.tolist()))
    assert suggestion is not None
    assert 10**-3 < suggestion < 10**-1.8


def test_pictures_are_drawn(tmp_path: Path) -> None:
    x, y = make_data()
    found = sweep(LastOutput(lrcnet.LRCU), [(x, y)])
    for kind in ("png", "svg"):
        assert found.draw(tmp_path / f"rate.{kind}").stat().st_size > 1000
    assert "Train at" in found.title


def test_tqdm_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = make_data()
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert sweep(LastOutput(nn.GRU), [(x, y)]).losses


def test_find_rate_says_what_is_wrong() -> None:
    x, y = make_data()
    model = LastOutput(nn.GRU)
    for empty in ([], iter([])):
        with pytest.raises(ValueError, match="loader must yield at least one batch"):
            sweep(model, empty)
    for low, high in ((1e-2, 1e-3), (1e-2, 1e-2), (0.0, 1.0), (1e-3, float("inf"))):
        with pytest.raises(ValueError, match="low must be above 0 and below high"):
            sweep(model, [(x, y)], low=low, high=high)
    with pytest.raises(ValueError, match="steps must be at least 10, but is 3"):
        sweep(model, [(x, y)], steps=3)
    with pytest.raises(lrcnet.DivergenceError, match="before the first step, but is nan"):
        sweep(model, [(x * float("nan"), y)])
    with pytest.raises(ValueError, match=r"\(x, y\) or \(x, dt, y\), but is a dict; pass loss="):
        sweep(model, [{"x": x}])
    with pytest.raises(ValueError, match=r"output has shape \(64, 2\) and y is torch.float32.*BCEWithLogitsLoss"):
        sweep(model, [(x, y.float())])
    with pytest.raises(ValueError, match=r"tensor of one number, but is of shape \(64,\)"):
        sweep(model, [(x, y)], loss=nn.CrossEntropyLoss(reduction="none"))
    with pytest.raises(ValueError, match="must depend on the parameters"):
        sweep(model, [(x, y)], loss=lambda *_: torch.zeros((), requires_grad=True))
    with pytest.raises(ValueError, match="requires a gradient, but it has none"):
        sweep(nn.Tanh(), [(x, y)])
