"""Environments of one process share what they have compiled."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from msgsvc_core.pages.compiled_templates import CompiledTemplates


def test_a_template_is_compiled_once_until_it_changes(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("Hello")
    compiled = CompiledTemplates()

    def environment() -> Environment:
        return Environment(
            loader=FileSystemLoader(tmp_path), autoescape=True, bytecode_cache=compiled
        )

    first = environment().get_template("page.html").root_render_func.__code__
    assert environment().get_template("page.html").root_render_func.__code__ is first

    page.write_text("Goodbye")
    assert environment().get_template("page.html").render() == "Goodbye"
