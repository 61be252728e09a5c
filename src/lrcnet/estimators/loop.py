"""The training loop of the estimators: Adam, clipped gradients, and the weights of the best epoch at the end."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lrcnet.errors import DivergenceError
from lrcnet.estimators.preparation import Inputs
from lrcnet.progress import Bar, shown_to_caller

# Above this norm, a gradient comes from a single odd batch more often than from the data.
LARGEST_GRADIENT = 1.0
# Sequences of a batch without gradients: more would only need more memory.
LARGEST_BATCH = 256
Loss = Callable[[Any, Tensor], Tensor]


class Examples(NamedTuple):
    """Inputs with their targets: (B,) or (B, k) per series, (B, T) or (B, T, k) per reading."""

    inputs: Inputs
    targets: Tensor
    per_reading: bool

    def take(self, chosen: Tensor) -> Examples:
        """Return some of the examples."""
        inputs, targets = self.inputs.take(chosen), self.targets[chosen]
        return Examples(inputs, targets[:, : inputs.x.shape[1]] if self.per_reading else targets, self.per_reading)


@dataclass(frozen=True)
class Settings:
    """How long and how to train.

    Attributes:
        epochs: largest number of passes over the training examples.
        batch_size: number of series per step.
        learning_rate: of Adam; a third of it after every `patience` / 3 epochs without progress.
        patience: number of epochs without progress after which training stops; None never stops early.
        progress: whether to show a bar; None shows it on a terminal.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    patience: int | None
    progress: bool | None


def answer(model: nn.Module, inputs: Inputs) -> Any:
    """Return the answers of a network to a batch."""
    return model(inputs.x, inputs.dt, inputs.uneven_lengths())


def train(
    model: nn.Module,
    training: Examples,
    validation: Examples | None,
    loss: Loss,
    settings: Settings,
    generator: torch.Generator,
    on_epoch: Callable[[dict[str, float]], None],
) -> None:
    """Train a network in place; it ends with the weights of its best epoch, also if it is interrupted.

    The best epoch has the smallest loss on the validation examples, or on the training examples if there are none.

    Args:
        on_epoch: called with a record of each epoch: its number, losses, learning rate and seconds so far.

    Raises:
        DivergenceError: if the loss stops being finite in the first epoch.
    """
    learnable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(learnable, settings.learning_rate)
    pause = 5 if settings.patience is None else max(1, settings.patience // 3)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=1 / 3, patience=pause, threshold=1e-3)
    best, best_weights, waited, started = math.inf, copy.deepcopy(model.state_dict()), 0, time.perf_counter()
    wanted = settings.progress is not False
    try:
        with shown_to_caller(wanted), Bar("training", settings.epochs, unit="epoch", wanted=wanted) as bar:
            for epoch in range(settings.epochs):
                training_loss = _epoch(model, training, loss, settings.batch_size, optimizer, generator)
                checked = training_loss if validation is None else evaluate(model, validation, loss)
                if not math.isfinite(checked):
                    if not math.isfinite(best):
                        raise DivergenceError(
                            f"the loss must stay finite, but is {checked} after epoch {epoch + 1}; use a smaller "
                            "learning_rate"
                        )
                    break
                record = {"epoch": epoch + 1, "loss": training_loss, "learning_rate": optimizer.param_groups[0]["lr"]}
                record |= {} if validation is None else {"validation_loss": checked}
                plateau.step(training_loss)
                if checked < best - 1e-4 * abs(best) or not math.isfinite(best):
                    best, best_weights, waited = checked, copy.deepcopy(model.state_dict()), 0
                else:
                    waited += 1
                on_epoch({**record, "seconds": time.perf_counter() - started})
                bar.advance()
                bar.show(f"loss {checked:.3g}", {name: record[name] for name in record if "loss" in name})
                if settings.patience is not None and waited >= settings.patience:
                    break
    finally:
        model.load_state_dict(best_weights)
        model.eval()


@torch.no_grad()
def evaluate(model: nn.Module, examples: Examples, loss: Loss) -> float:
    """Return the mean loss over examples."""
    model.eval()
    total, count = 0.0, 0
    for chosen in torch.split(torch.arange(len(examples.targets)), LARGEST_BATCH):
        batch = examples.take(chosen)
        total += float(loss(answer(model, batch.inputs), batch.targets)) * len(chosen)
        count += len(chosen)
    return total / count


def _epoch(
    model: nn.Module,
    examples: Examples,
    loss: Loss,
    batch_size: int,
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
) -> float:
    model.train()
    total, count = 0.0, len(examples.targets)
    for chosen in torch.split(torch.randperm(count, generator=generator), batch_size):
        batch = examples.take(chosen)
        value = loss(answer(model, batch.inputs), batch.targets)
        optimizer.zero_grad()
        value.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), LARGEST_GRADIENT)
        optimizer.step()
        total += float(value.detach()) * len(chosen)
    return total / count


def split_off(groups: Any, share: float, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield the training and the validation indices; every group gives its share to validation, rounded.

    Args:
        groups: (B,), the class of each example, or one value for all.
        share: of the examples that are held out.
    """
    values = torch.as_tensor(groups)
    held_out = []
    for value in torch.unique(values):
        members = (values == value).nonzero().flatten()
        order = torch.randperm(len(members), generator=generator)
        held_out.append(members[order[: round(share * len(members))]])
    chosen = torch.cat(held_out).sort().values
    rest = torch.ones(len(values), dtype=torch.bool)
    rest[chosen] = False
    yield rest.nonzero().flatten()
    yield chosen
