"""CSV for spreadsheets: UTF-8, RFC 4180, and no cell that would run as a formula."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

#: Marks the text as UTF-8 for spreadsheets, which otherwise garble everything but English.
BOM = "\ufeff"

#: Characters that start a formula in a spreadsheet (OWASP, "CSV Injection"): at the start of a cell, or after
#: a separator, which may be a semicolon.
_FORMULA = re.compile(r"(^|[;\t\r\n])(?=[=+\-@\t\r\n＝＋－＠])")


def escape_formula(text: str) -> str:
    """The text with an apostrophe before a formula; spreadsheets don't show it."""
    return _FORMULA.sub(r"\1'", text)


def lines(rows: Iterable[Sequence[str]]) -> str:
    """RFC 4180, so each line ends with CR LF."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue()
