"""Tables, pictures and sections become text, Markdown, CSV and HTML without knowing what their cells mean."""

import base64
import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from lrcnet.pages import figures, palette, tables
from lrcnet.pages.content import Picture, RichCell, Section, Table
from lrcnet.pages.html import contents, section_html, write_page


class Range(RichCell):
    """A cell with two numbers."""

    numeric = True
    column_class = "ranges"
    csv_names = ("high",)

    def __str__(self) -> str:
        return "1 to 2"

    def to_csv(self) -> tuple[object, ...]:
        return 1, 2


TABLE = Table("t", "<Title>", ("name", "range"), [("a", Range()), ("b", None), ("c", "NaN")], "A note.")


def picture() -> Picture:
    from matplotlib.figure import Figure

    with palette.figure_style():
        figure = Figure(figsize=(2, 1))
        figure.subplots().plot([1, 2], color=palette.BLUE)
    return Picture("line", "A caption.", "A line that rises.", figure)


def test_a_rich_cell_shows_itself() -> None:
    assert tables.to_text(TABLE).splitlines()[1:4] == ["name   range", "----  ------", "a     1 to 2"]
    assert "| ---: |" in tables.to_markdown(TABLE), "a column of ranges is numeric"
    assert tables.to_csv(TABLE).splitlines() == ["name,range,range: high", "a,1,2", "b,,", "c,NaN,"]
    html = tables.to_html(TABLE)
    assert '<td data-label="range" class="number ranges">1 to 2</td>' in html
    assert '<td data-label="range" class="number ranges empty">–</td>' in html
    assert "<Title>" not in html


def test_numbers_near_a_thousand_are_written_as_those_above_it() -> None:
    cells = (934.4, 999.4, 999.6, 1000.0, 1000.4, -999.7, 12345.6)
    assert [tables.format_cell(cell) for cell in cells] == [
        "934", "999", "1,000", "1,000", "1,000", "-1,000", "12,346",
    ]  # fmt: skip


def test_a_row_needs_a_cell_for_each_column() -> None:
    with pytest.raises(ValueError, match="each row of t must have 2 cells"):
        Table("t", "T", ("a", "b"), [("one",)])


def test_row_headers_name_the_row() -> None:
    table = Table("t", "T", ("a", "b", "c"), [("x", "y", 1)], row_headers=2)
    assert tables.to_html(table).count('scope="row"') == 2


def test_a_section_shows_its_blocks_in_order() -> None:
    html = section_html(Section("part", "A & B", [picture(), TABLE, "Not shown: <x>."]))
    assert html.startswith('<section id="part"><h2>A &amp; B</h2><figure id="part-line"><svg')
    assert html.index("A caption.") < html.index("A note.") < html.index("Not shown: &lt;x&gt;.")
    assert 'role="img" aria-label="A line that rises."' in html


def test_an_inline_picture_takes_the_colours_of_the_page() -> None:
    svg = figures.inline(picture(), "prefix")
    assert "currentColor" in svg
    assert palette.INK not in svg
    assert 'id="prefix-axes_1"' in svg
    assert "figure_1" not in svg, "an id that nothing refers to"
    assert "<metadata>" not in svg


def _pixels(pattern: str, svg: str) -> list[np.ndarray]:
    """Return the pictures inside an SVG text."""
    files = [io.BytesIO(base64.b64decode(data)) for data in re.findall(pattern, svg)]
    return [np.asarray(Image.open(file).convert("RGBA")) for file in files]


def test_an_inline_picture_is_shorter_and_keeps_its_text_and_references() -> None:
    from matplotlib.figure import Figure

    with palette.figure_style():
        figure = Figure(figsize=(4, 2))
        left, middle, right = figure.subplots(1, 3)
        left.plot(range(9), label="a line")
        left.legend()
        random = np.random.default_rng(0)
        grain = random.normal(0, 6, (64, 64, 3))
        middle.imshow((128 + grain + np.linspace(-90, 90, 64)[:, None]).astype(np.uint8), interpolation="none")
        right.imshow(random.random((4, 4)), cmap=palette.SEQUENTIAL, interpolation="none")
    drawn = Picture("two", "A caption.", "A line and a photograph.", figure)
    whole, short = figures._svg(drawn), figures.inline(drawn, "prefix")
    assert len(short) < 0.7 * len(whole)
    texts = r"<text[^>]*>([^<]*)</text>"
    assert re.findall(texts, short) == re.findall(texts, whole)
    ids = re.findall(r'\bid="([^"]+)"', short)
    assert {"prefix-axes_1", "prefix-axes_2"} <= set(ids)
    assert len(ids) == len(set(ids))
    references = re.findall(r'(?:href="#|url\(#)([^")]+)', short)
    assert references
    assert set(references) <= set(ids)
    assert set(re.findall(r'class="([^"]+)"', short)) == set(re.findall(r"\.([\w-]+)\{", short))
    ElementTree.fromstring(short)  # raises if a group is not closed
    kept = _pixels(r'data:image/webp;base64,([^"]+)', short)
    exact = _pixels(r'data:image/png;base64,\s*([^"]+)', whole)
    assert len(kept) == len(exact) == 2
    assert 0 < np.abs(kept[0].astype(int) - exact[0]).mean() < 8, "a photograph need not be exact"
    assert np.array_equal(kept[1], exact[1]), "a map of numbers is"


def test_a_page_is_written_with_its_own_rules_last(tmp_path) -> None:
    body = contents([("part", "Part")])
    page = write_page(tmp_path / "new" / "page.html", "T & U", body, css="p{margin:0}").read_text(encoding="utf-8")
    assert "<title>T &amp; U</title>" in page
    assert "p{margin:0}</style>" in page
    assert '<a href="#part">Part</a>' in page


def test_an_unknown_model_is_grey_under_its_own_name() -> None:
    assert palette.model_style("new-cell").colour == palette.GREY
    assert palette.model_label("new-cell") == "new-cell"
    assert palette.model_label("lrcu-s") == "LRCU-S"
