"""The common part of the estimators: reading series, building and training the network, running it on new series.

Axes: B series, T time, n channels.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Self, TypedDict

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from lrcnet.cfc_layers import CfC, WiredCfC
from lrcnet.continuous_layer import ContinuousLayer
from lrcnet.errors import StabilityWarning, check_number, describe_kind, one_of, positive_size
from lrcnet.estimators.loop import LARGEST_BATCH, Examples, Settings, answer, split_off, train
from lrcnet.estimators.preparation import Inputs, Preparation
from lrcnet.estimators.series import Series, from_arrays, from_table
from lrcnet.estimators.wirings import make_wiring
from lrcnet.layers import LAYERS
from lrcnet.models import SequenceModel
from lrcnet.recurrent_layer import RecurrentLayer

# With fewer series than this, all of them are needed for training, and none is held out.
FEWEST_TO_HOLD_OUT = 20
Callback = Callable[["SeriesEstimator", dict[str, float]], None]


class SharedOptions(TypedDict, total=False):
    """The options of every estimator, for type checkers; `SeriesEstimator` describes them and has their defaults."""

    units: int
    layers: int
    dropout: float
    layer_options: Mapping[str, Any] | None
    time_feature: bool
    epochs: int
    batch_size: int
    learning_rate: float
    validation_share: float
    patience: int | None
    window: int | None
    id_column: str | None
    time_column: str | None
    channels: list[str] | None
    random_state: Any
    progress: bool | None
    callback: Callback | None


class SeriesEstimator(BaseEstimator):  # type: ignore[misc]
    """A recurrent network as an estimator.

    Args:
        cell: the layer by its name in `lrcnet.LAYERS`.
        units: number of hidden units of each layer; a wiring knows its own.
        layers: number of stacked layers.
        dropout: probability of zeroing an output between layers.
        layer_options: further keyword arguments of the layer, such as {"solver": "exponential"} or {"wiring": ...}: one
            of `lrcnet.wirings`, or by name "auto-ncp", "fully-connected" or "random", of `units` units.
        time_feature: whether gaps are one more input of the network, the default of docs/time.md for gaps like those of
            training; False makes them the step of the differential equation (not for LSTM, GRU and MGU). Without times
            it means nothing.
        epochs: largest number of passes over the training series.
        batch_size: number of series per step.
        learning_rate: of Adam.
        validation_share: share of the series held out to choose the best epoch; none with fewer than 20 series.
        patience: number of epochs without progress after which training stops; None never stops early.
        window: number of readings of the pieces into which series are cut for training, where every reading has a
            target; None cuts nothing.
        id_column: if X is a long table, its column of series.
        time_column: if X is a long table, its column of times; None for evenly spaced readings.
        channels: if X is a long table, its columns of values; None means all others.
        random_state: a seed, for the same result to the bit on the same machine with the same number of threads.
        progress: whether to show a bar with the time left; None shows it on a terminal.
        callback: called with the estimator and a record after each epoch; the estimator can predict then.

    Attributes:
        module_: the network; inputs and targets are scaled inside.
        history_: one record per epoch: losses, learning rate, seconds. It grows while the network is trained.
        preparation_: how series become tensors: means, scales, mask of missing values, time scale.
        n_features_in_: number of readings of 2-D input, else number of channels.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Put the shared options into the signature of each estimator: scikit-learn reads its parameters there."""
        super().__init_subclass__(**kwargs)
        if "__init__" in cls.__dict__:
            own = inspect.signature(cls.__init__).parameters.values()
            named = [p for p in own if p.kind is not inspect.Parameter.VAR_KEYWORD]
            names = {p.name for p in named}
            base: Any = SeriesEstimator.__init__
            shared = [p for p in inspect.signature(base).parameters.values() if p.name not in names]
            cls.__init__.__signature__ = inspect.Signature([*named, *shared])  # type: ignore[attr-defined]

    def __init__(
        self,
        cell: str = "lrcu",
        *,
        units: int = 32,
        layers: int = 1,
        dropout: float = 0.0,
        layer_options: Mapping[str, Any] | None = None,
        time_feature: bool = True,
        epochs: int = 100,
        batch_size: int = 32,
        learning_rate: float = 0.01,
        validation_share: float = 0.15,
        patience: int | None = 25,
        window: int | None = 200,
        id_column: str | None = None,
        time_column: str | None = None,
        channels: list[str] | None = None,
        random_state: Any = None,
        progress: bool | None = None,
        callback: Callback | None = None,
    ) -> None:
        self.cell = cell
        self.units = units
        self.layers = layers
        self.dropout = dropout
        self.layer_options = layer_options
        self.time_feature = time_feature
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.validation_share = validation_share
        self.patience = patience
        self.window = window
        self.id_column = id_column
        self.time_column = time_column
        self.channels = channels
        self.random_state = random_state
        self.progress = progress
        self.callback = callback

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        tags.non_deterministic = False
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "module_")

    @abstractmethod
    def _build(self, layer: torch.nn.Module, width: int) -> SequenceModel:
        """Return the network around a layer, with the scaling of its targets."""

    @abstractmethod
    def _loss(self, answers: Any, targets: Tensor) -> Tensor:
        """Return the loss of a batch; targets at the padding are NaN, or -100 for classes."""

    # scikit-learn's name for the input is X, in every method that its checks and pipelines call.
    def _read(self, X: Any, times: Any, y: Any = None, *, leave_out: tuple[str, ...] = ()) -> tuple[Series, Any]:
        """Read series, and check y if X is 2-D; remember the number of features on the first call."""
        first = not hasattr(self, "module_")
        if self.id_column is not None:
            if times is not None:
                raise ValueError("times of a long table are its time_column, but times were given too; leave them out")
            series = from_table(X, self.id_column, self.time_column, self.channels, leave_out)
            self._remember_features(series.channels, first)
            return series, y
        if is_flat(X):
            checks: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}
            checks |= {"ensure_min_features": self._fewest_readings, "reset": first or self._any_length}
            if y is None:
                X = validate_data(self, X, **checks)
            else:
                X, y = validate_data(self, X, y, multi_output=True, y_numeric=self._numeric_targets, **checks)
            return from_arrays(X[:, :, None], times), y
        series = from_arrays(X, times)
        self._remember_features(series.channels, first)
        return series, y

    # Whether new 2-D series may be longer or shorter than those of training.
    _any_length = False
    _fewest_readings = 1
    _numeric_targets = False

    def _remember_features(self, channels: int, first: bool) -> None:
        if first:
            self.n_features_in_ = channels

    def _start_again(self) -> None:
        """Forget an earlier fit, so that its number of features is not demanded of the new data."""
        for name in ("module_", "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                delattr(self, name)

    def _fit_network(self, examples: Examples, groups: Tensor) -> Self:
        """Build the network and train it; `groups` are split between training and validation in equal shares."""
        for name in ("units", "layers", "epochs", "batch_size"):
            value = getattr(self, name)
            positive_size(name, int(value) if isinstance(value, np.integer) else value)
        check_number("validation_share", self.validation_share, 0, 1)
        if not check_number("learning_rate", self.learning_rate, 0) > 0:
            raise ValueError(f"learning_rate must be above 0, but is {self.learning_rate}; 0.01 is usual")
        try:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        except (TypeError, ValueError, NotImplementedError) as error:
            raise ValueError(
                "random_state must be None, a whole number from 0 to 2**32 - 1 or a RandomState, but is "
                f"{describe_kind(self.random_state)}; pass a seed"
            ) from error
        generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            torch.manual_seed(seed)
            # docs/time.md says which solver suits long gaps; the estimator's user did not choose a step.
            warnings.simplefilter("ignore", StabilityWarning)
            self.history_: list[dict[str, float]] = []
            self.module_ = self._make_network()
            training, validation = examples, None
            if len(examples.targets) >= FEWEST_TO_HOLD_OUT and self.validation_share:
                chosen, held_out = split_off(groups, self.validation_share, generator)
                if len(held_out):
                    training, validation = examples.take(chosen), examples.take(held_out)
            settings = Settings(
                int(self.epochs), int(self.batch_size), self.learning_rate, self.patience, self.progress
            )
            train(self.module_, training, validation, self._loss, settings, generator, self._after_epoch)
        return self

    def _make_network(self) -> SequenceModel:
        """Build the network for the preparation, with the scaling of its inputs and its unit of time."""
        prepared = self.preparation_
        kind: Any = LAYERS[one_of("cell", self.cell, LAYERS)]
        options = dict(self.layer_options or {})
        if isinstance(options.get("wiring"), str):
            options["wiring"] = make_wiring(options["wiring"], int(self.units))
        # A wiring knows its number of units.
        wired = options.get("wiring") is not None
        units = None if wired else int(self.units)
        if wired and kind is CfC:
            kind = WiredCfC
        is_ode = issubclass(kind, ContinuousLayer)
        if prepared.time_scale is not None:
            options.setdefault("time_feature", bool(self.time_feature))
            if is_ode:
                options = {"time_scale": prepared.time_scale, "fill_first_gap": True, **options}
        layer: Any = kind(prepared.inputs, units, int(self.layers), batch_first=True, dropout=self.dropout, **options)
        directions = 2 if layer.bidirectional else 1
        # A wired layer shows its motor neurons only.
        shown: Any = layer.cells[0].output_size if isinstance(layer, RecurrentLayer) else layer.hidden_size
        model = self._build(layer, shown * directions)
        model.set_input_scaling(*prepared.input_scaling())
        if prepared.time_scale is not None and not is_ode:
            model.set_time_unit(prepared.time_scale)
        return model

    def _after_epoch(self, record: dict[str, float]) -> None:
        self.history_.append(record)
        if self.callback is not None:
            self.module_.eval()
            self.callback(self, record)

    @torch.no_grad()
    def _answers(self, inputs: Inputs) -> list[Any]:
        """Return the network's answer to each series, without padding, in float64."""
        model = self._in_float64()
        answers: list[Any] = []
        for chosen in torch.split(torch.arange(len(inputs.lengths)), LARGEST_BATCH):
            batch = inputs.take(chosen)
            doubles = Inputs(batch.x.double(), None if batch.dt is None else batch.dt.double(), batch.lengths)
            whole = answer(model, doubles)
            for one, length in zip(whole, batch.lengths.tolist(), strict=True):
                answers.append((one[:length] if whole.dim() == 3 else one).numpy())
        return answers

    def _in_float64(self) -> SequenceModel:
        """Return a copy of the network whose answer to a series does not depend on the others of its batch."""
        return copy.deepcopy(self.module_).double().eval()

    def network_inputs(self, X: Any, times: Any = None) -> Inputs:
        """Return series as `module_` takes them: x (series, time, channels), dt or None, and their lengths."""
        return self._prepare_new(X, times)

    def _prepare_new(self, X: Any, times: Any) -> Inputs:
        check_is_fitted(self)
        series, _ = self._read(X, times, leave_out=self._left_out)
        return self.preparation_.prepare(series)

    # Columns of a long table that hold no values: the target, if it was given by name.
    _left_out: tuple[str, ...] = ()

    def _learn_preparation(self, series: Series, *, after: bool = False) -> None:
        self.preparation_ = Preparation.learn(series, after=after)


def is_flat(X: Any) -> bool:
    """Return whether X is (series, time): no third axis, and no list of arrays of unequal length."""
    if not isinstance(X, list | tuple):
        # Anything else, sparse matrices included, is for scikit-learn's own check to judge.
        return not (hasattr(X, "shape") and len(X.shape) == 3)
    shapes = {np.shape(one) for one in X}
    return len(shapes) == 1 and len(next(iter(shapes))) < 2


def stack_if_even(parts: list[Any]) -> Any:
    """Return one array if all parts have the same shape, else the list."""
    return np.stack(parts) if len({np.shape(part) for part in parts}) == 1 else parts
