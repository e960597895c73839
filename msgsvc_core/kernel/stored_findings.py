"""Findings as a column keeps them, to be worded in the language of whoever reads them later."""

from typing import Any

from msgsvc_core.kernel.errors import Finding, Reasons
from msgsvc_core.kernel.json import from_json, to_json


def finding_to_column(finding: Finding | None) -> str | None:
    """The JSON of a finding, without its field."""
    return None if finding is None else to_json(_stored(finding))


def read_finding(column: str | None) -> Finding | None:
    """The finding of `finding_to_column`."""
    return None if column is None else _read(from_json(column))


def _stored(finding: Finding) -> dict[str, Any]:
    params = {
        name: [_stored(each) for each in value] if isinstance(value, Reasons) else value
        for name, value in finding.params.items()
    }
    return {"package": finding.package, "msgid": finding.msgid, "params": params}


def _read(stored: dict[str, Any]) -> Finding:
    params = {
        name: Reasons(map(_read, value)) if isinstance(value, list) else value
        for name, value in stored["params"].items()
    }
    return Finding(stored["msgid"], params, package=stored["package"])
