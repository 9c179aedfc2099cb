"""Spreadsheets (.xlsx) as rows of texts, by openpyxl: values alone, without formulas, links or macros."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmil.errors import BackendUnavailableError, installing
from gmil.safety.guard import parsing, refuse_bomb

if TYPE_CHECKING:
    from pathlib import Path


def read_sheet(path: Path) -> list[list[str]]:
    """Return the rows of the first sheet, each with as many cells as the first at least."""
    try:
        import openpyxl
    except ImportError as error:
        msg = f"{path} is a spreadsheet, which needs openpyxl. {installing('slides')} Or save it as CSV."
        raise BackendUnavailableError(msg) from error
    with parsing(path, "a spreadsheet"):
        refuse_bomb(path)
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        try:
            sheet: Any = book.worksheets[0]
            sheet.reset_dimensions()  # the size that a file claims may be a million rows of nothing
            rows = [[_text(value) for value in row] for row in sheet.iter_rows(values_only=True)]
        finally:
            book.close()
    width = len(_stripped(rows[0])) if rows else 0
    return [_stripped(row) + [""] * (width - len(_stripped(row))) for row in rows if any(row)]


def _stripped(row: list[str]) -> list[str]:
    """Return a row without empty cells at its end."""
    n = max((number for number, text in enumerate(row, 1) if text), default=0)
    return row[:n]


def _text(value: Any) -> str:
    """Return what a cell shows; a whole number has no ".0", so that ids stay what they are.

    >>> [_text(value) for value in (None, 12.0, 0.5, " a ", True)]
    ['', '12', '0.5', 'a', 'True']
    """
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value).strip()
