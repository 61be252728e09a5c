"""The examples of docs/theory.md run, top to bottom in one namespace."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "theory.md"


def test_examples_of_the_page_run() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.S | re.M)
    assert len(blocks) == 7
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
