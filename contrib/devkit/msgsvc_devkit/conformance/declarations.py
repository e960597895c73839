"""Checks of what a plugin declares: endpoints, errors, events, jobs, settings, texts."""

import inspect
import re
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from string import Formatter
from typing import Any, ClassVar

import pytest
from babel.messages.extract import extract_from_dir, extract_from_file
from babel.messages.pofile import read_po
from pydantic import BaseModel, ValidationError

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.events import EventSpec
from msgsvc_core.http.openapi import openapi
from msgsvc_core.kernel.errors import CORE_ERRORS, ApiError
from msgsvc_core.kernel.i18n import LANGUAGES
from msgsvc_core.service import Service

_CODE = re.compile(r"[a-z][a-z0-9_]{2,63}")
_EVENT = re.compile(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*")

#: Files searched for texts: code, and the templates of pages.
EXTRACTED = [("**.py", "python"), ("**.html", "jinja2")]

#: The language of texts in the code; the others have catalogues.
WRITTEN = "en"

#: Maximum characters of a command's description, which is shown in one line of a menu.
MAX_ABOUT = 64


class Declarations:
    """Checks that need no database. `loaded` is a service with the core and the plugin."""

    #: The plugin: its module `plugin`, or any object with its hooks.
    plugin: Any

    #: Its name: that of its entry point, settings and tables.
    name: str

    #: Prefixes of the plugin's paths outside `/v1/` and `/<name>/`, e.g. of public pages.
    own_paths: ClassVar[tuple[str, ...]] = ()

    def test_its_endpoints_are_documented(self, loaded: Service) -> None:
        document = openapi(loaded.endpoints, "http://msgsvc.test")["paths"]
        for endpoint in self._endpoints(loaded):
            where = f"{endpoint.method} {endpoint.path}"
            assert inspect.getdoc(endpoint.handler), (
                f"{where}: give its handler a docstring; its first line is the summary"
            )
            operation = document[endpoint.path][endpoint.method.lower()]
            assert operation.get("summary", "").strip(), f"{where} has no summary in OpenAPI"
            assert operation.get("responses"), f"{where} has no answers in OpenAPI"
            assert endpoint.path.startswith(("/v1/", f"/{self.name}/", *self.own_paths)), (
                f"{where}: begin its path with /v1/, or with /{self.name}/ for what is no JSON API;"
                " if another is published already, name its beginning in own_paths"
            )

    def test_its_bodies_take_their_examples(self, loaded: Service) -> None:
        for endpoint in self._endpoints(loaded):
            if endpoint.body is None:
                continue
            for example in endpoint.body.model_json_schema().get("examples", ()):
                refusal = _refusal(endpoint.body, example)
                assert not refusal, f"{endpoint.body.__name__}: its example {example}: {refusal}"

    def test_its_endpoints_answer_with_errors_that_are_registered(self, loaded: Service) -> None:
        known = set(loaded.errors)
        for endpoint in self._endpoints(loaded):
            lost = [error.code for error in endpoint.errors if error not in known]
            assert not lost, (
                f"{endpoint.method} {endpoint.path} answers with {lost}; name them in register_errors"
            )

    def test_its_errors_have_a_code_a_status_and_a_meaning(self, loaded: Service) -> None:
        for error in self._errors():
            name = error.__name__
            assert _CODE.fullmatch(error.code), f"{name}: {error.code!r} is not lower_case"
            assert 400 <= error.status < 600, f"{name}: the status {error.status} is no error"
            assert error.code not in {one.code for one in CORE_ERRORS}, (
                f"{name}: the core has the code {error.code!r}; use its class"
            )
            assert error.__doc__, (
                f"{name}: its docstring is its meaning in the documentation; write one"
            )

    def test_its_events_have_a_name_a_meaning_and_typed_fields(self, loaded: Service) -> None:
        for spec in self._events():
            assert _EVENT.fullmatch(spec.name), f"{spec.name!r}: name events noun.happened"
            assert spec.name in loaded.events.catalogue, f"{spec.name} is not in the catalogue"
            assert len(spec.meaning) > 10, f"{spec.name}: say in a sentence when it is emitted"
            assert spec.fields.model_json_schema(), f"{spec.name}: its fields have no schema"

    def test_its_jobs_are_named_after_it(self, loaded: Service) -> None:
        for specs in loaded.plugins.hook.register_jobs():
            for spec in specs:
                assert spec.name.startswith(f"{self.name}."), (
                    f"job {spec.name!r}: begin its name with {self.name + '.'!r}, so that no other"
                    " plugin has one of that name"
                )

    def test_its_settings_have_defaults_and_say_what_they_mean(self, loaded: Service) -> None:
        sections = loaded.plugins.hook.register_settings()
        if not sections:
            pytest.skip("the plugin has no settings")
        for section in sections:
            assert section.name == self.name, (
                f"its section is [{section.name}]; name it [{self.name}]"
            )
            section.model()  # a service starts without any settings of the plugin
            for field, details in section.model.model_fields.items():
                assert details.description, f"[{section.name}] {field}: add description=..."

    def test_its_texts_are_translated(self, loaded: Service) -> None:
        folders = loaded.plugins.hook.register_locale()
        used = self._texts() | self._declared_texts(loaded)
        if not folders:
            assert not used, (
                f"texts for people, and no register_locale: {sorted(used)[:5]}; people read"
                f" {' and '.join(LANGUAGES)}"
            )
            pytest.skip("the plugin says nothing to people")
        for lang in set(LANGUAGES) - {WRITTEN}:
            catalogue = _catalogue(folders[0] / lang / "LC_MESSAGES" / "messages.po")
            missing = sorted(text for text in used if not catalogue.get(text))
            assert not missing, f"{lang}: not translated: {missing}"
            for text, translated in catalogue.items():
                assert _places(text) == _places(translated), (
                    f"{lang}: {text!r} and {translated!r} have other values between braces"
                )

    def test_its_commands_say_in_a_line_what_they_are_for(self, loaded: Service) -> None:
        found = loaded.plugins.hook.register_inbound()
        for rule in (rule for rules in found for rule in rules if rule.about is not None):
            for lang in LANGUAGES:
                said = rule.about(loaded.texts.into(lang))
                fits = 0 < len(said) <= MAX_ABOUT and "\n" not in said
                assert fits, (
                    f"/{rule.name}: {said!r} is no line of 1-{MAX_ABOUT} characters ({lang})"
                )

    # ---- declarations ---------------------------------------------------------------------------

    def _endpoints(self, loaded: Service) -> list[Endpoint]:
        found = loaded.plugins.hook.register_endpoints()
        return [endpoint for endpoints in found for endpoint in endpoints]

    def _errors(self) -> Iterable[type[ApiError]]:
        register = getattr(type(self).plugin, "register_errors", None)
        return register() if register else ()

    def _events(self) -> Iterable[EventSpec]:
        register = getattr(type(self).plugin, "register_events", None)
        return register() if register else ()

    def _declared_texts(self, loaded: Service) -> set[str]:
        """Texts for users that are no calls of `_`: the dashboard translates them where it shows them."""
        areas = [area for areas in loaded.plugins.hook.register_dashboard() for area in areas]
        return {
            *(spec.meaning for spec in self._events()),
            *(each.area_description for each in self._endpoints(loaded) if each.area_description),
            *(page.nav.title for area in areas for page in area.pages if page.nav is not None),
        }

    def _texts(self) -> set[str]:
        """Texts for users in code and templates, by calls of `_`: the package's, or the object's own file."""
        plugin = type(self).plugin
        if inspect.ismodule(plugin):
            assert plugin.__file__
            found = [
                text
                for _, _, text, _, _ in extract_from_dir(
                    Path(plugin.__file__).parent,
                    method_map=EXTRACTED,
                    # A template that can't be parsed would seem to have no texts.
                    options_map={"**.html": {"silent": "false"}},
                )
            ]
        else:
            file = inspect.getsourcefile(type(plugin))
            assert file
            found = [text for _, text, _, _ in extract_from_file("python", file)]
        # Both forms of a plural, as in the catalogue.
        return {str(text) for text in found if text}


def _refusal(model: type[BaseModel], value: Any) -> str:
    """Why the model does not take the value; empty if it does."""
    try:
        model.model_validate(value)
    except ValidationError as error:
        return str(error)
    return ""


def _catalogue(path: Path) -> dict[str, str]:
    assert path.exists(), f"{path} is missing: the people's other language"
    return {
        str(message.id): str(message.string)
        for message in read_po(BytesIO(path.read_bytes()))
        if message.id and message.string
    }


def _places(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}
