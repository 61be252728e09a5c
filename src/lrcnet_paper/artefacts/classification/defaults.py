"""Table: the paper's initial values of liquid units beside the library's defaults, on person activity and psMNIST."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Table
from lrcnet_paper.artefacts.classification.claims import accuracy, protocol_epochs
from lrcnet_paper.artefacts.classification.runs import LIQUID, TITLES
from lrcnet_paper.artefacts.curves import mean_curve
from lrcnet_paper.artefacts.initial_values import EXPLANATION, has_our_defaults
from lrcnet_paper.results.groups import Group


def defaults_tables(groups_by_task: Mapping[str, Sequence[Group]]) -> list[Table]:
    """Compare both initial values wherever the library's were tried; return no table if they were not."""
    rows: list[tuple[Cell, ...]] = []
    for task, groups in groups_by_task.items():
        tried = {(g.variant, g.model) for g in groups if has_our_defaults(g)}
        for group in groups:
            if (group.variant, group.model) in tried and group.model in LIQUID:
                start = "library" if has_our_defaults(group) else "paper" if group.follows_recipe else ""
                if start:
                    rows.append(
                        (
                            TITLES[task],
                            group.variant,
                            palette.model_label(group.model),
                            start,
                            accuracy(group),
                            f"{group.epochs} of {protocol_epochs(group)}",
                            len(group.runs),
                        )
                    )
    if not rows:
        return []
    table = Table(
        "initial-values",
        "Liquid units from the paper's and from the library's initial values: test accuracy (%)",
        ("task", "variant", "model", "initial values", "accuracy", "epochs", "seeds"),
        sorted(rows, key=lambda row: tuple(map(str, row[:4]))),
        " ".join([EXPLANATION, *_at_equal_epochs(groups_by_task)]),
        row_headers=4,
    )
    return [table]


def _at_equal_epochs(groups_by_task: Mapping[str, Sequence[Group]]) -> list[str]:
    """Compare the validation accuracies of runs of different lengths after equally many epochs, a sentence each."""
    sentences = []
    for task, groups in groups_by_task.items():
        for library in filter(has_our_defaults, groups):
            alike = [g for g in groups if (g.variant, g.model) == (library.variant, library.model) and g.follows_recipe]
            for paper in alike[:1]:
                epochs = min(library.epochs, paper.epochs)
                best = [_best_validation(group, epochs) for group in (library, paper)]
                if library.epochs != paper.epochs and None not in best:
                    sentences.append(
                        f"{TITLES[task]}, {palette.model_label(library.model)}: after {epochs} epochs of each, the "
                        f"best validation accuracy is {best[0]:.1f} % from the library's initial values and "
                        f"{best[1]:.1f} % from the paper's."
                    )
    return sentences


def _best_validation(group: Group, epochs: int) -> float | None:
    where, mean, _, _ = mean_curve(group, "validation_accuracy", 100.0)
    return max((y for x, y in zip(where, mean, strict=True) if x <= epochs), default=None)
