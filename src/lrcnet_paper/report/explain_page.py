"""One offline page about one trained network: what it looks at, and what its neurons do."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from lrcnet.interpret.page import View, asset, body, collect
from lrcnet.pages.content import Section
from lrcnet.pages.html import contents, section_html, write_page
from lrcnet_paper.results.provenance import format_provenance, provenance_of

if TYPE_CHECKING:
    from lrcnet_paper.training.trained_network import TrainedNetwork


def explain(trained: TrainedNetwork, data: str | None = None, samples: int | None = None) -> list[Section]:
    """Measure and draw everything that the page shows about a network.

    Args:
        trained: the network with its weights.
        data: for a policy, the folder of a recording to look at (None: our own world); for other networks, the folder
            of the task's files.
        samples: number of frames per season, or of sequences, to measure on; None for a few hundred.

    Raises:
        ValueError: for untrained weights outside the smoke budget, or a network that is neither a policy nor recurrent.
    """
    from lrcnet.models import Classifier, Tagger
    from lrcnet_paper.models.policy import Policy
    from lrcnet_paper.report import explain_policy, explain_sequence

    provenance = provenance_of(trained)
    if isinstance(trained.network, Policy):
        return explain_policy.sections(trained, provenance, data, samples)
    if isinstance(trained.network, Classifier | Tagger):
        return explain_sequence.sections(trained, provenance, data, samples)
    raise ValueError(
        f"a page can be made of a policy or of a recurrent network, but {trained.spec.model} on {trained.spec.task} is "
        "neither: it has no input over time"
    )


def write_explanation(
    trained: TrainedNetwork,
    sections: Sequence[Section],
    path: str | os.PathLike[str],
    views: Sequence[View] = (),
    channels: Sequence[str] = (),
) -> Path:
    """Write the page, which has nothing to load.

    Args:
        trained: the network.
        sections: what was measured.
        path: the HTML file.
        views: one or two networks with sequences for the interactive part; empty for none.
        channels: names of their input channels.
    """
    spec = trained.spec
    title = f"Inside {spec.model} on {spec.task} ({spec.label()})"
    weights = f'<p class="soft">Weights: {escape(format_provenance(provenance_of(trained)))}.</p>'
    links = contents([(section.name, section.title) for section in sections])
    text = "".join(section_html(section) for section in sections)
    footer = (
        "<footer><p class='soft'>Written by <code>lrcnet explain</code>; the network was trained by "
        f"<code>{escape(spec.command())}</code>.</p></footer>"
    )
    if views:
        page = body(title, collect(views, channels=channels), header=weights + links, more=text, footer=footer)
        return write_page(path, title, page, css=asset("inside.css"))
    return write_page(
        path, title, f"<header><h1>{escape(title)}</h1>{weights}{links}</header><main>{text}</main>{footer}"
    )
