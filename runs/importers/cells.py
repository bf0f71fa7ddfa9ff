"""Cells of CSV files that people open in spreadsheets, where some texts would run as formulas."""

from __future__ import annotations

#: What a cell must not begin with, by the advice of OWASP on CSV injection.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_MARK = "'"


def neutral(text: str) -> str:
    """Return text with an apostrophe before it where a spreadsheet would run it."""
    # A text that already begins so gets one more, so that ``plain`` gives it back as it was.
    return _MARK + text if text.lstrip(_MARK).startswith(_FORMULA_STARTS) else text


def plain(cell: str) -> str:
    """Return the text of a cell that ``neutral`` may have marked."""
    if cell.startswith(_MARK) and cell.lstrip(_MARK).startswith(_FORMULA_STARTS):
        return cell[1:]
    return cell
