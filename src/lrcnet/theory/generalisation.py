"""Theorem 2 as a number: a bound on the validation loss, with its terms measured on data."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lrcnet.errors import one_of
from lrcnet.theory.bounds import lipschitz_bound
from lrcnet.theory.domain import Domain
from lrcnet.theory.empirical import trajectories
from lrcnet.theory.network import Model, Network, bounded_circuit, check_dt, read_model

PAIRINGS = ("nearest", "index")
LabelledSequences = tuple[Tensor, Tensor]

STATEMENT = (
    "On these sequences the validation loss is at most the bound: this is a theorem about the given data, with every "
    "term measured. It says nothing about sequences that were not measured. It does not say that one model has a "
    "smaller validation loss than another: it orders bounds, and only if eps_T, eps_y and eps_o are the same for both "
    "models; but eps_y contains the states and so differs from model to model."
)


@dataclass(frozen=True)
class GeneralisationBound:
    """The bound of Theorem 2, eps_o + eps_T + lambda eps_y, its terms, and the loss that it bounds.

    Attributes:
        value: the bound on `validation_loss`.
        eps_training: the largest ||o - o_hat||_2 over all steps of the training sequences that have a partner.
        eps_y: the largest ||y^T - y^V||_2 over all pairs and steps, y = [h, x] of this model.
        eps_output: the largest ||o^T - o^V||_2 between the labels of all pairs and steps.
        lipschitz: lambda, the bound on the Lipschitz constant.
        training_loss, validation_loss: the mean of ||o - o_hat||_2 over all sequences and steps.
        pairs: (B_V,), the index of each validation sequence's partner among the training sequences.
        pairing: the rule that chose the pairs.
        domain: the box for which lambda holds.
        statement: a sentence on what the number does and does not promise.
    """

    value: float
    eps_training: float
    eps_y: float
    eps_output: float
    lipschitz: float
    training_loss: float
    validation_loss: float
    pairs: Tensor
    pairing: str
    domain: Domain
    statement: str = STATEMENT

    def __float__(self) -> float:
        return self.value


def generalisation_bound(
    model: Model,
    training: LabelledSequences,
    validation: LabelledSequences,
    *,
    dt: float = 1.0,
    h0: Tensor | None = None,
    domain: Domain | None = None,
    kind: str = "tighter",
    pairing: str = "nearest",
) -> GeneralisationBound:
    """Bound the validation loss by Theorem 2, L <= eps_o + eps_T + lambda eps_y, with every term measured.

    Args:
        model: STC, LRC or LRCU with its read-out, as in `lipschitz_bound`.
        training, validation: (inputs, labels); inputs in the layer's layout, (B, T, n) if batch_first and (T, B, n)
            otherwise; labels in the same layout with K numbers; all sequences of the same length T.
        dt: the time between two readings, the same for all, because the theorem is about one map y -> o.
        h0: initial state (m,) of every sequence; zeros if None.
        domain: the box for lambda; by default the smallest box around every y of the run. A box that excludes some y
            is an error, because lambda would not hold there.
        kind: the bound to use as lambda, "paper" or "tighter".
        pairing: "nearest" compares each validation sequence with the training sequence whose inputs are nearest, by the
            largest ||x^T_t - x^V_t||_2 over time; the pairs are the same for every model. "index" pairs them in order.

    Returns:
        The bound and all its terms.

    Raises:
        ValueError: for shapes that do not match, or a domain that is too small.

    >>> layer, readout = lrcnet.LRCU(3, 5, batch_first=True), torch.nn.Linear(5, 1)
    >>> inputs, labels = torch.randn(8, 10, 3), torch.randn(8, 10, 1)
    >>> bound = lrcnet.theory.generalisation_bound((layer, readout), (inputs[:6], labels[:6]), (inputs[6:], labels[6:]))
    >>> bound.validation_loss <= bound.value
    True
    """
    one_of("pairing", pairing, PAIRINGS)
    network, dt = read_model(model), check_dt(dt)
    bounded_circuit(network)  # raises for a model without a known bound
    y_t, label_t, error_t = _run_sequences(network, "training", training, h0, dt)
    y_v, label_v, error_v = _run_sequences(network, "validation", validation, h0, dt)
    if y_t.shape[1] != y_v.shape[1]:
        raise ValueError(
            f"training and validation sequences must be equally long, but have {y_t.shape[1]} and {y_v.shape[1]} steps"
        )
    pairs = _choose_pairs(pairing, y_t[..., network.hidden_size :], y_v[..., network.hidden_size :])
    points = torch.cat([y_t[pairs].flatten(0, 1), y_v.flatten(0, 1)])
    domain = _choose_domain(network, domain, points)
    eps_training = float(error_t[pairs].max())
    eps_y = float((y_t[pairs] - y_v).norm(dim=-1).max())
    eps_output = float((label_t[pairs] - label_v).norm(dim=-1).max())
    lipschitz = lipschitz_bound(model, domain, dt, kind=kind).value
    return GeneralisationBound(
        value=eps_output + eps_training + lipschitz * eps_y,
        eps_training=eps_training,
        eps_y=eps_y,
        eps_output=eps_output,
        lipschitz=lipschitz,
        training_loss=float(error_t.mean()),
        validation_loss=float(error_v.mean()),
        pairs=pairs,
        pairing=pairing,
        domain=domain,
    )


def _run_sequences(
    network: Network, name: str, sequences: LabelledSequences, h0: Tensor | None, dt: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return y (B, T, J), labels (B, T, K) and ||label - output||_2 (B, T) of labelled sequences."""
    if not isinstance(sequences, tuple | list) or len(sequences) != 2:
        raise TypeError(f"{name} must be a pair (inputs, labels), but is a {type(sequences).__name__}")
    before, after, x = trajectories(network, sequences[0], h0, dt)
    labels = sequences[1].detach().to(network.readout)
    if sequences[0].dim() == 2:
        labels = labels.unsqueeze(0)
    elif not network.batch_first and labels.dim() == 3:
        labels = labels.transpose(0, 1)
    output = after @ network.readout.t() + network.offset
    if labels.shape != output.shape:
        raise ValueError(
            f"{name} labels must have {output.shape[-1]} numbers for each of {output.shape[0]} sequences of "
            f"{output.shape[1]} steps, but have shape {tuple(sequences[1].shape)}; lay them out as the inputs"
        )
    return torch.cat([before, x], -1), labels, (labels - output).norm(dim=-1)


def _choose_pairs(pairing: str, x_t: Tensor, x_v: Tensor) -> Tensor:
    """Choose the training sequence (B_V,) for each validation sequence, from inputs (B, T, n)."""
    if pairing == "index":
        if x_t.shape[0] < x_v.shape[0]:
            raise ValueError(
                f"pairing='index' needs a training sequence for each validation sequence, but there are {x_t.shape[0]} "
                f"for {x_v.shape[0]}; use pairing='nearest'"
            )
        return torch.arange(x_v.shape[0], device=x_v.device)
    # One validation sequence at a time, because all pairs at once would need B_T * B_V * T numbers.
    return torch.stack([(x_t - x).norm(dim=-1).amax(-1).argmin() for x in x_v])


def _choose_domain(network: Network, domain: Domain | None, points: Tensor) -> Domain:
    """Return the given box if it contains all points (N, J), or without one the smallest box around them."""
    m = network.hidden_size
    if domain is None:
        return Domain.around(points[:, :m], points[:, m:])
    low, high = domain.ends(network)
    outside = ((points < low) | (points > high)).any(0)
    if bool(outside.any()):
        j = int(outside.nonzero()[0])
        what = f"state {j}" if j < m else f"input {j - m}"
        raise ValueError(
            f"the domain must contain every y that the model meets, but {what} goes from "
            f"{points[:, j].min().item():.4g} to {points[:, j].max().item():.4g}; widen it, or leave the domain out"
        )
    return domain
