"""CSV for spreadsheets: UTF-8, RFC 4180, and nothing that would be run as a formula."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

#: By this, spreadsheets know that the text is UTF-8; without it they garble all but English.
BOM = "\ufeff"

#: Characters with which a spreadsheet starts a formula (OWASP, "CSV Injection"): at the start of a cell,
#: or of what it takes for a cell where the separator is a semicolon.
_FORMULA = re.compile(r"(^|[;\t\r\n])(?=[=+\-@\t\r\n＝＋－＠])")


def escape_formula(text: str) -> str:
    """The text, with an apostrophe before what would be a formula; spreadsheets don't show it."""
    return _FORMULA.sub(r"\1'", text)


def lines(rows: Iterable[Sequence[str]]) -> str:
    """RFC 4180, so each line ends with CR LF."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue()
