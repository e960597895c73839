"""Generates the Python client."""

from collections.abc import Mapping
from pathlib import Path

from contrib.clients.codegen.contract import Contract


def generate(contract: Contract) -> Mapping[Path, Mapping[str, str]]:
    return {}
