"""A table as plain text, Markdown, CSV or HTML."""

from __future__ import annotations

import csv
import io
import math
from html import escape

from lrcnet_paper.artefacts.artefact import Cell, Table
from lrcnet_paper.results.estimate import Estimate
from lrcnet_paper.results.verdict import Verdict

DASH = "–"
# A verdict is never told by colour alone.
SYMBOLS = {"better": "▲", "reproduced": "✓", "not reached": "▽", "refuted": "✗", "open": "·"}


def shown(cell: Cell) -> str:
    """A cell as people read it."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return DASH
    if isinstance(cell, Estimate):
        return f"{cell} ({cell.diverged} NaN)" if cell.diverged else str(cell)
    if isinstance(cell, bool | str | Verdict):
        return str(cell)
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}"


def to_text(table: Table) -> str:
    """Aligned columns for a terminal."""
    rows = [list(table.columns), *([shown(cell) for cell in row] for row in table.rows)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(table.columns))]
    numeric = [_numeric(table, i) for i in range(len(table.columns))]
    lines = [
        "  ".join(
            cell.rjust(w) if right else cell.ljust(w) for cell, w, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in rows
    ]
    return "\n".join([table.title, lines[0], "  ".join("-" * w for w in widths), *lines[1:]])


def to_markdown(table: Table) -> str:
    """A pipe table, its title above and its note below."""
    rule = ["---:" if _numeric(table, i) else "---" for i in range(len(table.columns))]
    rows = [list(table.columns), rule, *([shown(cell) for cell in row] for row in table.rows)]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    note = ["", table.note] if table.note else []
    return "\n".join([f"**{table.title}**", "", *lines, *note])


def to_csv(table: Table) -> str:
    """One line per row; an estimate takes four columns, so that programs can read it."""
    split = [any(isinstance(row[i], Estimate) for row in table.rows) for i in range(len(table.columns))]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    header: list[str] = []
    for name, wide in zip(table.columns, split, strict=True):
        header += [name, f"{name}: std", f"{name}: seeds", f"{name}: diverged"] if wide else [name]
    writer.writerow(header)
    for row in table.rows:
        line: list[object] = []
        for cell, wide in zip(row, split, strict=True):
            if not wide:
                line.append("" if cell is None else str(cell))
            elif isinstance(cell, Estimate):
                line += [cell.mean, "" if cell.std is None else cell.std, cell.seeds, cell.diverged]
            else:
                line += ["" if cell is None else str(cell), "", "", ""]
        writer.writerow(line)
    return out.getvalue()


def to_html(table: Table, *, lead: int = 1) -> str:
    """An accessible table; `lead` columns name the row. On a narrow screen the style makes a card of each row."""
    head = "".join(f'<th scope="col"{_kind(table, i)}>{escape(name)}</th>' for i, name in enumerate(table.columns))
    body = []
    for row in table.rows:
        cells = []
        for i, cell in enumerate(row):
            label = escape(table.columns[i], quote=True)
            if i < lead:
                cells.append(f'<th scope="row" data-label="{label}">{escape(shown(cell))}</th>')
            else:
                cells.append(f'<td data-label="{label}"{_kind(table, i, empty=cell is None)}>{_html(cell)}</td>')
        body.append(f"<tr>{''.join(cells)}</tr>")
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    title = escape(table.title, quote=True)
    inner = f"<caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody>"
    region = f'<div class="table" role="region" aria-label="{title}" tabindex="0">'
    return f"{region}<table>{inner}</table></div>{note}"


def _html(cell: Cell) -> str:
    if isinstance(cell, Verdict):
        name = cell.word.replace(" ", "-")
        rest = f'<span class="conditions">{escape(", ".join(cell.conditions))}</span>' if cell.conditions else ""
        symbol = f'<span aria-hidden="true">{SYMBOLS[cell.word]}</span>'
        return f'<span class="verdict {name}">{symbol} {cell.word}</span>{rest}'
    return escape(shown(cell))


def _kind(table: Table, index: int, empty: bool = False) -> str:
    kinds = {"number": _numeric(table, index), "verdicts": _verdicts(table, index), "empty": empty}
    names = [name for name, holds in kinds.items() if holds]
    return f' class="{" ".join(names)}"' if names else ""


def _verdicts(table: Table, index: int) -> bool:
    return any(isinstance(row[index], Verdict) for row in table.rows)


def _numeric(table: Table, index: int) -> bool:
    """Whether a column holds numbers, to be set flush right."""
    cells = [row[index] for row in table.rows if row[index] is not None]
    return bool(cells) and all(isinstance(cell, int | float | Estimate) or cell == "NaN" for cell in cells)
