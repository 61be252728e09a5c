"""One offline page about one trained network, or two side by side: what they look at, and what their neurons do."""

from __future__ import annotations

import os
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lrcnet.interpret.page import asset, body, collect
from lrcnet.pages.content import Section
from lrcnet.pages.html import contents, section_html, write_page
from lrcnet.progress import status
from lrcnet_paper.results.provenance import format_provenance, provenance_of

if TYPE_CHECKING:
    from lrcnet_paper.training.trained_network import TrainedNetwork


class Explanation(NamedTuple):
    """The contents of a page.

    Attributes:
        sections: what was measured about the first network.
        inside: states, gates and answers of all networks, as the page's program reads them.
    """

    sections: list[Section]
    inside: dict[str, Any]


def explain(
    trained: TrainedNetwork,
    data: str | None = None,
    samples: int | None = None,
    beside: TrainedNetwork | None = None,
) -> Explanation:
    """Measure and draw everything that the page shows about a network.

    Args:
        trained: the network with its weights.
        data: for a policy, the folder of a recording to look at (None: our own world); for other networks, the folder
            of the task's files.
        samples: number of frames per season, or of sequences, to measure on; None for a few hundred.
        beside: a second network of the same task, shown beside the first on the same sequences.

    Raises:
        ValueError: for untrained weights outside the smoke budget, or a network that is neither a policy nor recurrent.
    """
    from lrcnet.models import Classifier, Tagger
    from lrcnet_paper.models.policy import Policy
    from lrcnet_paper.report import explain_policy, explain_sequence, policy_view

    provenance = provenance_of(trained)
    networks = [trained, *([] if beside is None else [beside])]
    if isinstance(trained.network, Policy):
        status("driving with the expert")
        shown = policy_view.drives(data, smoke=trained.spec.budget == "smoke")
        inside = collect(
            [policy_view.policy_view(one, shown) for one in networks],
            channels=policy_view.CHANNELS,
            names=shown.names,
            pictures=policy_view.strips(shown),
            unit="frame",
        )
        return Explanation(explain_policy.sections(trained, provenance, data, samples, shown), inside)
    if isinstance(trained.network, Classifier | Tagger):
        sections = explain_sequence.sections(trained, provenance, data, samples)
        views = [explain_sequence.view(one, data, samples) for one in networks]
        return Explanation(sections, collect(views, channels=explain_sequence.SENSORS.get(trained.task.name, ())))
    raise ValueError(
        f"a page can be made of a policy or of a recurrent network, but {trained.spec.model} on {trained.spec.task} is "
        "neither: it has no input over time"
    )


def write_explanation(
    trained: TrainedNetwork,
    explanation: Explanation,
    path: str | os.PathLike[str],
    beside: TrainedNetwork | None = None,
) -> Path:
    """Write the page, which has nothing to load.

    Args:
        trained: the network.
        explanation: what was measured.
        path: the HTML file.
        beside: the second network, if there is one.
    """
    spec, networks = trained.spec, [trained, *([] if beside is None else [beside])]
    title = f"Inside {' and '.join(one.spec.model for one in networks)} on {spec.task} ({spec.label()})"
    files = "; ".join(format_provenance(provenance_of(one)) for one in networks)
    weights = f'<p class="soft">Weights: {escape(files)}.</p>'
    links = contents([(section.name, section.title) for section in explanation.sections])
    text = "".join(section_html(section) for section in explanation.sections)
    if beside is not None:
        name = escape(explanation.inside["models"][0]["name"])
        text = f'<p class="note">The sections below are about {name} alone.</p>{text}'
    footer = (
        "<footer><p class='soft'>Written by <code>lrcnet explain</code>; the network was trained by "
        f"<code>{escape(spec.command())}</code>.</p></footer>"
    )
    page = body(title, explanation.inside, header=weights + links, more=text, footer=footer)
    stacking = resources.files(__package__).joinpath("stacking.js").read_text(encoding="utf-8")
    return write_page(path, title, f"{page}<script>{stacking}</script>", css=asset("inside.css"))
