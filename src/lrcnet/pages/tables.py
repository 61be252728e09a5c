"""Tables as plain text, Markdown, CSV or HTML."""

from __future__ import annotations

import csv
import io
import math
import textwrap
from collections.abc import Iterator, Sequence
from html import escape

from lrcnet.pages.content import Cell, RichCell, Table, minus_signs
from lrcnet.terminal import paint

DASH = "–"
LARGE = 999.5
"""From here on a number has no decimals and separated thousands: three digits would write 999.8 as 1e+03."""


def format_cell(cell: Cell) -> str:
    """Return a cell as people read it.

    Example:
        >>> format_cell(12345), format_cell(999.8), format_cell(0.12345), format_cell(None)
        ('12,345', '1,000', '0.123', '–')
    """
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return DASH
    if isinstance(cell, RichCell):
        return cell.to_text()
    if isinstance(cell, bool | str):
        return str(cell)
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:,.0f}" if abs(cell) >= LARGE else f"{cell:.3g}"


def to_text(table: Table, width: int | None = None) -> str:
    """Return the table in aligned columns for a terminal.

    Args:
        table: the table.
        width: number of characters that a line may have: long texts are wrapped first, then columns are left out from
            the right, those of `IMPORTANT` last and the verdict never. None shows everything in one line per row.
    """
    rows = [list(table.columns), *([format_cell(cell) for cell in row] for row in table.rows)]
    shown, widths = _fit_columns(table, rows, width)
    lines = [table.title if width is None else textwrap.fill(table.title, width)]
    lines += _wrap_row(table, rows[0], table.columns, shown, widths)
    lines.append("  ".join("-" * widths[i] for i in shown))
    for row, cells in zip(rows[1:], table.rows, strict=True):
        lines += _wrap_row(table, row, cells, shown, widths)
    hidden = [name for i, name in enumerate(table.columns) if i not in shown]
    if hidden:
        note = f"(without {', '.join(hidden)}; --wide shows everything)"
        lines.append(paint(textwrap.fill(note, max(width or 0, _SHORTEST_TEXT)), "grey"))
    return "\n".join(lines)


IMPORTANT = frozenset({"paper", "ours", "ratio"})
"""Columns with one of these words in their heading are the last ones to be left out in a narrow terminal."""
_SHORTEST_TEXT = 18


def _fit_columns(table: Table, rows: Sequence[Sequence[str]], width: int | None) -> tuple[list[int], list[int]]:
    """Return the columns that are shown, and the width of every column."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(table.columns))]
    shown = list(range(len(widths)))
    while width is not None and (excess := sum(widths[i] + 2 for i in shown) - 2 - width) > 0:
        longest = max(shown, key=lambda i: widths[i])
        candidates = [i for i in shown if i >= table.row_headers and table.columns[i] != "verdict"]
        if widths[longest] > _SHORTEST_TEXT:
            widths[longest] = max(widths[longest] - excess, _SHORTEST_TEXT)
        elif candidates:
            optional = [i for i in candidates if IMPORTANT.isdisjoint(table.columns[i].replace(",", " ").split())]
            shown.remove((optional or candidates)[-1])
        else:
            break
    return shown, widths


def _wrap_row(
    table: Table, row: Sequence[str], cells: Sequence[Cell], shown: Sequence[int], widths: Sequence[int]
) -> list[str]:
    """Return the lines of one row: one, or more if a text is wider than its column."""
    parts = {i: textwrap.wrap(row[i], widths[i]) or [""] for i in shown}
    lines = []
    for level in range(max(map(len, parts.values()))):
        texts = [parts[i][level] if level < len(parts[i]) else "" for i in shown]
        lines.append("  ".join(_pad(table, i, text, cells[i], widths[i]) for i, text in zip(shown, texts, strict=True)))
    return [line.rstrip() for line in lines]


def _pad(table: Table, column: int, text: str, cell: Cell, width: int) -> str:
    padded = text.rjust(width) if _is_numeric(table, column) else text.ljust(width)
    return paint(padded, cell.colour) if isinstance(cell, RichCell) and cell.colour and text else padded


def to_markdown(table: Table) -> str:
    """Return a pipe table with its title above and its note below."""
    rule = ["---:" if _is_numeric(table, i) else "---" for i in range(len(table.columns))]
    rows = [[escape_markdown(minus_signs(format_cell(cell))) for cell in row] for row in (table.columns, *table.rows)]
    lines = ["| " + " | ".join(row) + " |" for row in (rows[0], rule, *rows[1:])]
    note = ["", escape_markdown(minus_signs(table.note))] if table.note else []
    return "\n".join([f"**{escape_markdown(minus_signs(table.title))}**", "", *lines, *note])


_MARKDOWN = {ord(mark): f"\\{mark}" for mark in "\\|`"} | {ord("<"): "&lt;", ord("\n"): " ", ord("\r"): " "}


def escape_markdown(text: str) -> str:
    """Return text that Markdown shows as it is, without links, code, HTML or new table cells.

    Example:
        >>> escape_markdown("<b>[x](y)|")
        '&lt;b>[x]\\\\(y)\\\\|'
    """
    return text.translate(_MARKDOWN).replace("](", "]\\(")


def to_csv(table: Table) -> str:
    """Return one line per row; a rich cell may take several columns, so that programs can read its parts."""
    extra = [_csv_names(table, i) for i in range(len(table.columns))]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    header: list[str] = []
    for column, names in zip(table.columns, extra, strict=True):
        header += [column, *(f"{column}: {name}" for name in names)]
    writer.writerow(header)
    for row in table.rows:
        line: list[object] = []
        for cell, names in zip(row, extra, strict=True):
            values = cell.to_csv() if isinstance(cell, RichCell) else ("" if cell is None else str(cell),)
            line += [*values, *[""] * (1 + len(names) - len(values))]
        writer.writerow(line)
    return out.getvalue()


def to_json(table: Table) -> dict[str, object]:
    """Return the table as JSON values, with one record per row."""
    rows = [
        {
            name: cell if isinstance(cell, str | int | float | None) else format_cell(cell)
            for name, cell in zip(table.columns, row, strict=True)
        }
        for row in table.rows
    ]
    return {"name": table.name, "title": table.title, "rows": rows, "note": table.note}


def to_html(table: Table) -> str:
    """Return an accessible table; on a narrow screen the style sheet makes a card of each row."""
    head = "".join(
        f'<th scope="col"{_class(table, i)}>{escape(minus_signs(column))}</th>'
        for i, column in enumerate(table.columns)
    )
    body = []
    for row in table.rows:
        cells = []
        for i, cell in enumerate(row):
            label = escape(table.columns[i], quote=True)
            content = cell.to_html() if isinstance(cell, RichCell) else escape(minus_signs(format_cell(cell)))
            if i < table.row_headers:
                cells.append(f'<th scope="row" data-label="{label}">{content}</th>')
            else:
                cells.append(f'<td data-label="{label}"{_class(table, i, empty=cell is None)}>{content}</td>')
        body.append(f"<tr>{''.join(cells)}</tr>")
    note = f'<p class="note">{escape(minus_signs(table.note))}</p>' if table.note else ""
    title = escape(minus_signs(table.title), quote=True)
    inner = f"<caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody>"
    region = f'<div class="table" role="region" aria-label="{title}" tabindex="0">'
    return f"{region}<table>{inner}</table></div>{note}"


def _class(table: Table, index: int, empty: bool = False) -> str:
    """Return the class attribute of a cell: the kind of its column, and whether it is empty."""
    names = ["number"] if _is_numeric(table, index) else []
    names += dict.fromkeys(cell.column_class for cell in _rich_cells(table, index) if cell.column_class)
    names += ["empty"] if empty else []
    return f' class="{" ".join(names)}"' if names else ""


def _is_numeric(table: Table, index: int) -> bool:
    """Return whether a column holds numbers, which are aligned to the right."""
    cells = [row[index] for row in table.rows if row[index] is not None]
    return bool(cells) and all(
        cell.numeric if isinstance(cell, RichCell) else isinstance(cell, int | float) or cell == "NaN" for cell in cells
    )


def _csv_names(table: Table, index: int) -> tuple[str, ...]:
    """Return the names of the additional CSV columns that a column needs for its rich cells."""
    return max((cell.csv_names for cell in _rich_cells(table, index)), key=len, default=())


def _rich_cells(table: Table, index: int) -> Iterator[RichCell]:
    return (cell for row in table.rows if isinstance(cell := row[index], RichCell))
