"""The library's own initial values of liquid units, which stand beside the paper's as sensitivity rows."""

from __future__ import annotations

from collections.abc import Mapping

from lrcnet_paper.results.groups import Group
from lrcnet_paper.training.spec import Option

OUR_DEFAULTS: Mapping[str, Option] = {"init": "balanced", "parametrisation": "scaled"}
EXPLANATION = (
    'The paper\'s: init="paper", parametrisation="sigma-mu". The library\'s: init="balanced", '
    'parametrisation="scaled". The optimiser and its rate are the paper\'s in both.'
)


def has_our_defaults(group: Group) -> bool:
    """Tell whether a group starts from the library's initial values and otherwise follows its recipe."""
    return not group.change and dict(group.spec.options) == dict(OUR_DEFAULTS)
