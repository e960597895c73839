"""Makes each template use the texts of its own package, also if another one imports it."""

from collections.abc import Iterator

from jinja2 import BaseLoader, PrefixLoader
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream

from msgsvc_core.pages.compiled_templates import CompiledTemplates

#: Templates that `OwnTexts` has rewritten.
COMPILED = CompiledTemplates()


class AreaLoader(PrefixLoader):
    """Loads templates with their full name, `helpdesk/tickets.html`; jinja's own loader removes the area."""

    load = BaseLoader.load


class OwnTexts(Extension):
    """Rewrites `_("Show")` to `_["msgsvc_helpdesk.dashboard"]("Show")` in the templates of that area, and
    with the frame's own package in those of the frame, such as `ui.html`.

    `environment.text_modules` has the package of each area.
    """

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        area, slash, _rest = (stream.name or "").partition("/")
        module = self.environment.text_modules[area] if slash else __name__  # type: ignore[attr-defined] # given by `extend`
        before = ""
        for token in stream:
            yield token
            if token.type == "name" and token.value == "_" and before != "dot":
                yield Token(token.lineno, "lbracket", "[")
                yield Token(token.lineno, "string", module)
                yield Token(token.lineno, "rbracket", "]")
            before = token.type
