"""One offline page about one trained network: what it looks at, and what its neurons do."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from lrcnet.pages.style import style_sheet
from lrcnet_paper.report import figures, tables
from lrcnet_paper.report.assemble import Section
from lrcnet_paper.results.source import source, told

if TYPE_CHECKING:
    from lrcnet_paper.training.trained import Trained


def explain(trained: Trained, data: str | None = None, samples: int | None = None) -> list[Section]:
    """Everything there is to show about a network.

    Args:
        trained: the network with its weights.
        data: of a policy the folder of a recording to look at (None: our own world); of others the folder of the
            task's files.
        samples: frames per season, or sequences, to measure on; None for a few hundred.

    Raises:
        ValueError: for untrained weights outside the smoke budget, or a network that is neither a policy nor recurrent.
    """
    from lrcnet.models import Classifier, Tagger
    from lrcnet_paper.models.policy import Policy
    from lrcnet_paper.report import explain_policy, explain_sequence

    came_from = source(trained)
    if isinstance(trained.network, Policy):
        return explain_policy.sections(trained, came_from, data, samples)
    if isinstance(trained.network, Classifier | Tagger):
        return explain_sequence.sections(trained, came_from, data, samples)
    raise ValueError(
        f"a page can be made of a policy or of a recurrent network, but {trained.spec.model} on {trained.spec.task} is "
        "neither: it has no input over time"
    )


def write_explanation(trained: Trained, sections: Sequence[Section], path: str | os.PathLike[str]) -> Path:
    """Writes the page: no script, nothing to load."""
    page = Path(path)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(_page(trained, sections), encoding="utf-8")
    return page


def _page(trained: Trained, sections: Sequence[Section]) -> str:
    spec = trained.spec
    title = f"Inside {spec.model} on {spec.task} ({spec.label()})"
    links = "".join(f'<li><a href="#{section.name}">{escape(section.title)}</a></li>' for section in sections)
    body = "".join(_section(section) for section in sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(title)}</title>'
        # An icon of nothing: a browser would ask the server for one.
        f'<link rel="icon" href="data:,"><style>{style_sheet()}</style></head><body>'
        f'<header><h1>{escape(title)}</h1><p class="soft">Weights: {escape(told(source(trained)))}.</p>'
        f'<nav aria-label="Contents"><ul>{links}</ul></nav></header><main>{body}</main>'
        "<footer><p class='soft'>Written by <code>lrcnet explain</code>; the network was trained by "
        f"<code>{escape(spec.command())}</code>.</p></footer></body></html>\n"
    )


def _section(section: Section) -> str:
    rendered = section.rendered
    parts = [f'<section id="{section.name}"><h2>{escape(section.title)}</h2>']
    for picture in rendered.pictures:
        svg = figures.inline(picture, f"{section.name}-{picture.name}")
        parts.append(f"<figure>{svg}<figcaption>{escape(picture.caption)}</figcaption></figure>")
    parts += [tables.to_html(table) for table in rendered.tables]
    parts += [f'<p class="note">Not shown: {escape(reason)}.</p>' for reason in rendered.skipped]
    return "".join([*parts, "</section>"])
