"""A griffe extension that puts the doctests of docstrings into fences, so that the site shows them as code."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object


class DoctestFences(Extension):
    """Wraps each block of lines that starts with `>>>` into a fence."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = fence_doctests(obj.docstring.value)


def fence_doctests(text: str) -> str:
    """Return a docstring with every doctest, up to the next empty line, in a fence of its own indentation.

    >>> fence_doctests("Add.\\n\\n>>> 1 + 1\\n2").splitlines()
    ['Add.', '', '```pycon', '>>> 1 + 1', '2', '```']
    """
    return re.sub(r"^( *)>>> .*(?:\n *\S.*)*", r"\1```pycon\n\g<0>\n\1```", text, flags=re.MULTILINE)
