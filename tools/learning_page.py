"""Write docs/learning-measurements.md and its picture from docs/benchmarks/learning.jsonl.

python tools/learning_page.py
"""

from pathlib import Path

from lrcnet_paper.benchmarks import learning_curves, learning_tables

DOCS = Path(__file__).parents[1] / "docs"


def main() -> None:
    results = learning_tables.read_record(DOCS / "benchmarks" / "learning.jsonl")
    (DOCS / "learning-measurements.md").write_text(learning_tables.make_page(results))
    learning_curves.draw(results, DOCS / "images" / "learning.png")


if __name__ == "__main__":
    main()
