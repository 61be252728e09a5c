"""Folders of `lrcnet fit` as subjects of `lrcnet explain`."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from lrcnet import folders
from lrcnet.interpret.inside import Example
from lrcnet.interpret.page import View, asset, body, collect
from lrcnet.interpret.subject import Subject
from lrcnet.own_data.encoding import encode
from lrcnet.own_data.examples import Examples, read_examples, single_inputs
from lrcnet.own_data.files import read_file
from lrcnet.own_data.folder import KEY, FittedFolder, read_folder
from lrcnet.own_data.inside import channel_shares, one_series, time_constants
from lrcnet.pages.html import contents, section_html, write_page
from lrcnet.saving import CONFIG, WEIGHTS


class FittedSubject(Subject):
    """A network that `lrcnet fit` trained."""

    def __init__(self, fitted: FittedFolder) -> None:
        self.fitted, self.network, self.weights = fitted, fitted.estimator.module_, WEIGHTS

    def layer_inputs(self, data: str, samples: int) -> Tensor:
        """Return scaled inputs (sample, time, feature) for the first series of a table, cut to the shortest."""
        examples = self._from_table(data, samples)
        shortest = min(one["x"].shape[1] for one in examples)
        scaled = self.fitted.estimator.module_.scale_inputs(torch.cat([one["x"][:, :shortest] for one in examples]))
        return cast(Tensor, scaled)

    def write_page(self, path: str, data: str | None, samples: int | None, beside: Subject | None = None) -> None:
        if beside is not None and not isinstance(beside, FittedSubject):
            raise ValueError("a fit can be shown beside another fit only; pass two folders of lrcnet fit")
        examples = read_examples(self.fitted.path) if data is None else self._from_table(data, samples or 16)
        schema, model = self.fitted.schema, self.fitted.estimator.module_
        sections = [
            channel_shares(model, examples, schema),
            time_constants(model, examples, schema.dates),
            one_series(model, examples),
        ]
        title = f"Inside the {type(model.layer).__name__} of {self.fitted.path.name}: {schema.goal}"
        views = [fit.view(examples) for fit in (self, beside) if fit is not None]
        more = contents([(section.name, section.title) for section in sections])
        more += "".join(section_html(section) for section in sections)
        shown = collect(views, channels=schema.input_names(self.fitted.estimator.preparation_.mask))
        write_page(path, title, body(title, shown, more=more), css=asset("inside.css"))

    def view(self, examples: Examples) -> View:
        """Return the network with sequences to show it on."""
        schema, estimator = self.fitted.schema, self.fitted.estimator
        given = []
        for one in examples:
            truth = one.get("truth")
            if schema.task == "classification":
                given.append(Example(one["x"], one.get("dt"), truth))
            else:  # The page draws true numbers beside answers to every reading only.
                given.append(Example(one["x"], one.get("dt"), None, truth if schema.per_reading else None))
        names = [str(name) for name in estimator.classes_]
        outputs = (str(schema.target),) if schema.task == "regression" else tuple(schema.channels)
        return View(self.network, given, names, self.fitted.path.name, outputs, f"true {schema.target}")

    def _from_table(self, data: str, samples: int) -> Examples:
        readings = encode(read_file(data), self.fitted.schema, with_targets=False)
        chosen = readings.series.take(range(min(samples, len(readings.ids))))
        return single_inputs(self.fitted.estimator.preparation_.prepare(chosen))


def read(path: Path) -> FittedSubject | None:
    """Read a folder of `lrcnet fit`; return None if the path is none."""
    # A run folder of the suite has a file of the same name, but other weights.
    if not (path / WEIGHTS).is_file() or not (path / CONFIG).is_file() or KEY not in folders.read_extra(path):
        return None
    return FittedSubject(read_folder(path))
