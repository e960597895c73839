"""The templates of one client, and where its generated files are."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

ROOT = Path(__file__).parents[3]


def templates(language: str) -> Environment:
    """The templates in the folder of this name beside this file."""
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / language),
        autoescape=False,  # noqa: S701 # it is code, not HTML
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
