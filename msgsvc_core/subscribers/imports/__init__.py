"""Imports of people from a CSV file."""

from msgsvc_core.subscribers.imports.service import PeopleImports

__all__ = ["PeopleImports"]
