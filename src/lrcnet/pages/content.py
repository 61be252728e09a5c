"""The parts of a page as data: tables with their cells, pictures, sections. Other files decide how they look."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# Before a number, between spaces, or after an opening bracket.
_MINUS = re.compile(r"(?<![\w.)\]-])-(?=\.?\d)|(?<=\s)-(?=\s)|(?<=\()-(?=\w)")
# As Python formats numbers of extreme size: a sign and at least two digits. A rate such as 1e-3 stays as it is typed.
_POWER = re.compile(r"(?<![\w.])(\d(?:\.\d+)?)e([+-]\d\d+)(?![\w.]*\w)")
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def minus_signs(text: str) -> str:
    r"""Return text in which hyphens that mean minus are minus signs; 2e-05 gets a power of ten, words keep hyphens.

    Example:
        >>> minus_signs("-0.5 to 2e-05 of A01-A04") == "\N{MINUS SIGN}0.5 to 2×10⁻⁵ of A01-A04"
        True
    """
    return _MINUS.sub("\N{MINUS SIGN}", _POWER.sub(_write_power, text))


def _write_power(number: re.Match[str]) -> str:
    digits, exponent = number.group(1), str(int(number.group(2))).translate(_SUPERSCRIPTS)
    return f"10{exponent}" if digits == "1" else f"{digits}×10{exponent}"


class RichCell:
    """A table cell that is more than a string or a number; subclass it and override the parts that differ.

    Attributes:
        numeric: whether a column of such cells is aligned to the right, as numbers are.
        column_class: CSS class of each cell in a column that holds such a cell; "" for none.
        csv_names: names of the additional CSV columns that such a cell needs after its own.

    Example:
        >>> class Share(RichCell):
        ...     numeric = True
        ...     def __str__(self):
        ...         return "12 %"
        >>> Share().to_html(), Share().to_csv()
        ('12 %', ('12 %',))
    """

    numeric: ClassVar[bool] = False
    column_class: ClassVar[str] = ""
    csv_names: ClassVar[tuple[str, ...]] = ()

    @property
    def colour(self) -> str:
        """Name of the cell's colour on a terminal, a key of `lrcnet.terminal.COLOURS`; "" for none."""
        return ""

    def to_text(self) -> str:
        """Return the cell for a terminal and for Markdown."""
        return str(self)

    def to_html(self) -> str:
        """Return the cell as HTML."""
        return escape(minus_signs(self.to_text()))

    def to_csv(self) -> tuple[object, ...]:
        """Return the cell's CSV value, followed by one value for each of `csv_names`."""
        return (str(self),)


Cell = str | int | float | RichCell | None


@dataclass(frozen=True)
class Table:
    """A table as data.

    Attributes:
        name: stem of its files, unique within its section.
        title: one line above it.
        columns: headings, with units.
        rows: cells; None is shown as a dash.
        note: explanation below it.
        row_headers: number of leading columns that name the row.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    note: str = ""
    row_headers: int = 1

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"each row of {self.name} must have {len(self.columns)} cells, but one is {row}")


@dataclass(frozen=True)
class Picture:
    """A figure with the text that replaces it for readers who cannot see it.

    Attributes:
        name: stem of its files, unique within its section.
        caption: the text below it.
        alt: description of the figure for screen readers.
        figure: the matplotlib figure.
        details: text for the few who want it, such as the weights behind the figure; pages fold it away.
    """

    name: str
    caption: str
    alt: str
    figure: Figure
    details: str = ""


@dataclass(frozen=True)
class Section:
    """A part of a page under its own heading.

    Attributes:
        name: its id on the page, for links.
        title: the heading.
        blocks: tables, pictures and notes (strings), in reading order.
    """

    name: str
    title: str
    blocks: Sequence[Table | Picture | str]
