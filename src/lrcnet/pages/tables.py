"""Tables as plain text, Markdown, CSV or HTML."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from html import escape

from lrcnet.pages.content import Cell, RichCell, Table

DASH = "–"


def format_cell(cell: Cell) -> str:
    """Return a cell as people read it.

    Example:
        >>> format_cell(12345), format_cell(0.12345), format_cell(None)
        ('12,345', '0.123', '–')
    """
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return DASH
    if isinstance(cell, RichCell):
        return cell.to_text()
    if isinstance(cell, bool | str):
        return str(cell)
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}"


def to_text(table: Table) -> str:
    """Return the table in aligned columns for a terminal."""
    rows = [list(table.columns), *([format_cell(cell) for cell in row] for row in table.rows)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(table.columns))]
    numeric = [_is_numeric(table, i) for i in range(len(table.columns))]
    lines = [
        "  ".join(
            cell.rjust(w) if right else cell.ljust(w) for cell, w, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in rows
    ]
    return "\n".join([table.title, lines[0], "  ".join("-" * w for w in widths), *lines[1:]])


def to_markdown(table: Table) -> str:
    """Return a pipe table with its title above and its note below."""
    rule = ["---:" if _is_numeric(table, i) else "---" for i in range(len(table.columns))]
    rows = [[escape_markdown(format_cell(cell)) for cell in row] for row in (table.columns, *table.rows)]
    lines = ["| " + " | ".join(row) + " |" for row in (rows[0], rule, *rows[1:])]
    note = ["", escape_markdown(table.note)] if table.note else []
    return "\n".join([f"**{escape_markdown(table.title)}**", "", *lines, *note])


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


def to_html(table: Table) -> str:
    """Return an accessible table; on a narrow screen the style sheet makes a card of each row."""
    head = "".join(f'<th scope="col"{_class(table, i)}>{escape(column)}</th>' for i, column in enumerate(table.columns))
    body = []
    for row in table.rows:
        cells = []
        for i, cell in enumerate(row):
            label = escape(table.columns[i], quote=True)
            if i < table.row_headers:
                cells.append(f'<th scope="row" data-label="{label}">{escape(format_cell(cell))}</th>')
            else:
                content = cell.to_html() if isinstance(cell, RichCell) else escape(format_cell(cell))
                cells.append(f'<td data-label="{label}"{_class(table, i, empty=cell is None)}>{content}</td>')
        body.append(f"<tr>{''.join(cells)}</tr>")
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    title = escape(table.title, quote=True)
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
