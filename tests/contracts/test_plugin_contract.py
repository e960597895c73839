"""The kit for plugins: each of its checks fails for a plugin that breaks what it is about."""

import importlib
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from msgsvc_core.api.endpoint import RequestModel, Router
from msgsvc_core.channels import InboundRule
from msgsvc_core.config.sections import Section
from msgsvc_core.config.settings import SettingsSection
from msgsvc_core.dashboard import Nav, Pages
from msgsvc_core.db import MigrationSource
from msgsvc_core.events import EventSpec
from msgsvc_core.jobs import JobSpec
from msgsvc_core.kernel.errors import ApiError, NotFound
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit import PluginContract
from msgsvc_devkit.databases import SQLiteDatabases
from msgsvc_devkit.fixtures import ServiceFactory

SCRIPT = """
import sqlalchemy as sa
from alembic import op

revision = "shop_0001"
down_revision = None
phase = "expand"


def upgrade():
    op.create_table("{table}", sa.Column("{key}", sa.Text, primary_key=True))
"""


class Answer(BaseModel):
    """Of endpoints and events."""

    done: bool


class Body(RequestModel):
    """A body that its own example does not fit."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"done": "maybe"}]})

    done: bool


class Lost(ApiError):
    """Nobody registers it."""

    code, status = "shop_lost", 404


async def shop_things(ctx: Any) -> Answer:
    """Lists things."""
    return Answer(done=True)


async def shop_silent(ctx: Any) -> Answer:
    return Answer(done=True)


async def shop_with_body(ctx: Any, body: Body) -> Answer:
    """Does things."""
    return Answer(done=body.done)


async def obey(ctx: Any) -> None:
    """A command's."""


async def work(ctx: Any, jobs: Any) -> None:
    """A job's."""


def endpoints(
    path: str = "/v1/shop", handler: Any = shop_things, errors: Any = (), description: str = ""
) -> Any:
    router = Router(area="shop", description=description)
    router.get(path, errors=errors)(handler)
    return router.endpoints


def posting(handler: Any) -> Any:
    router = Router(area="shop")
    router.post("/v1/shop")(handler)
    return router.endpoints


def error(code: str, status: int, meaning: str | None) -> type[ApiError]:
    return type("Odd", (ApiError,), {"code": code, "status": status, "__doc__": meaning})


def settings(name: str = "shop", default: Any = 1, description: str | None = "One.") -> Any:
    namespace = {
        "__annotations__": {"one": int},
        "__module__": __name__,
        "one": Field(default, description=description),
    }
    return SettingsSection(name, type("ShopSettings", (Section,), namespace))


def shop_page() -> Pages:
    pages = Pages("shop", package=__name__)
    pages.get("/shop", access="project:read", nav=Nav("Shop", icon="list", group="intake"))(obey)
    return pages


def command(about: str) -> InboundRule:
    return InboundRule("command", obey, name="shop", about=lambda _: about)


class Hooks:
    """A plugin with these hooks, by name."""

    def __init__(self, **hooks: Any) -> None:
        self.__dict__.update(hooks)


def plugin(**hooks: Any) -> Hooks:
    """A plugin whose hooks answer so."""
    return Hooks(**{name: hookimpl(_answering(name, it)) for name, it in hooks.items()})


def _answering(name: str, answer: Any) -> Any:
    def hook() -> Any:
        return answer

    async def failing() -> None:
        raise answer

    found = failing if isinstance(answer, Exception) else hook
    found.__name__ = name
    return found


#: The check that has to notice, and the hooks of who breaks it.
BROKEN: Sequence[tuple[str, dict[str, Any]]] = [
    ("its_endpoints_are_documented", {"register_endpoints": endpoints(handler=shop_silent)}),
    ("its_endpoints_are_documented", {"register_endpoints": endpoints("/shop-things")}),
    ("its_bodies_take_their_examples", {"register_endpoints": posting(shop_with_body)}),
    (
        "its_endpoints_answer_with_errors_that_are_registered",
        {"register_endpoints": endpoints(errors=(Lost,))},
    ),
    (
        "its_errors_have_a_code_a_status_and_a_meaning",
        {"register_errors": [error("Shop-Closed", 400, "Closed.")]},
    ),
    (
        "its_errors_have_a_code_a_status_and_a_meaning",
        {"register_errors": [error("shop_closed", 200, "Closed.")]},
    ),
    (
        "its_errors_have_a_code_a_status_and_a_meaning",
        {"register_errors": [error("shop_closed", 400, None)]},
    ),
    (
        "its_events_have_a_name_a_meaning_and_typed_fields",
        {"register_events": [EventSpec("ShopClosed", "It has closed.", Answer)]},
    ),
    (
        "its_events_have_a_name_a_meaning_and_typed_fields",
        {"register_events": [EventSpec("shop.closed", "", Answer)]},
    ),
    ("its_jobs_are_named_after_it", {"register_jobs": [JobSpec("close", work)]}),
    ("its_settings_have_defaults_and_say_what_they_mean", {"register_settings": settings("shops")}),
    (
        "its_settings_have_defaults_and_say_what_they_mean",
        {"register_settings": settings(description=None)},
    ),
    ("its_commands_say_in_a_line_what_they_are_for", {"register_inbound": [command("")]}),
    ("its_commands_say_in_a_line_what_they_are_for", {"register_inbound": [command("x" * 65)]}),
    ("its_commands_say_in_a_line_what_they_are_for", {"register_inbound": [command("x\ny")]}),
    ("its_texts_are_translated", {"register_locale": Path("/nowhere")}),
    (
        "its_texts_are_translated",
        {"register_events": [EventSpec("shop.closed", "The shop has closed.", Answer)]},
    ),
    (
        "its_texts_are_translated",
        {"register_endpoints": endpoints(description="What the shop sells.")},
    ),
    ("its_texts_are_translated", {"register_dashboard": [shop_page()]}),
    ("it_loads_alone_and_the_service_is_ready", {"on_start": RuntimeError("not alone")}),
]


def contract(made: Any) -> PluginContract:
    """The checks of `made`."""
    return type("ShopContract", (PluginContract,), {"plugin": made, "name": "shop"})()


async def check(made: Any, name: str, **fixtures: Any) -> None:
    """Runs one check of the kit."""
    found = contract(made)
    wanted = inspect.signature(getattr(found, f"test_{name}")).parameters
    if "loaded" in wanted:
        fixtures["loaded"] = found.build()
    outcome = getattr(found, f"test_{name}")(**{one: fixtures[one] for one in wanted})
    if inspect.isawaitable(outcome):
        await outcome


@pytest.fixture
async def backend(databases: Any) -> SQLiteDatabases:
    """One is enough: what breaks is the plugin."""
    return databases["sqlite"]


@pytest.mark.parametrize(("name", "hooks"), BROKEN, ids=[name for name, _ in BROKEN])
async def test_a_broken_plugin_fails_its_check(
    name: str, hooks: dict[str, Any], make_service: ServiceFactory
) -> None:
    with pytest.raises((AssertionError, RuntimeError)) as failed:
        await check(plugin(**hooks), name, make_service=make_service)

    assert len(str(failed.value)) > 8


@pytest.mark.parametrize(
    ("name", "table", "key"),
    [
        (
            "its_migrations_go_up_and_up_again_after_its_tables_are_gone",
            "things",
            "project_id",
        ),
        ("what_belongs_to_a_project_is_kept_by_project", "shop_things", "thing_id"),
    ],
)
async def test_a_plugin_with_odd_tables_fails_its_check(
    name: str,
    table: str,
    key: str,
    make_service: ServiceFactory,
    backend: SQLiteDatabases,
    tmp_path: Path,
) -> None:
    (tmp_path / "0001_shop.py").write_text(SCRIPT.format(table=table, key=key))
    made = plugin(register_migrations=MigrationSource("shop", tmp_path))

    with pytest.raises(AssertionError):
        await check(made, name, make_service=make_service, backend=backend)


async def test_a_migration_that_disturbs_the_earlier_release_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "0001_shop.py").write_text(SCRIPT.format(table="shop_things", key="project_id"))
    (tmp_path / "0002_shop.py").write_text(
        SCRIPT.format(table="shop_items", key="project_id")
        .replace("down_revision = None", 'down_revision = "shop_0001"')
        .replace('revision = "shop_0001"', 'revision = "shop_0002"', 1)
        + '    op.drop_table("shop_things")\n'
    )
    made = plugin(register_migrations=MigrationSource("shop", tmp_path))

    with pytest.raises(AssertionError, match=r"shop:shop_0002: removes .* DROP TABLE shop_things"):
        await check(made, "its_migrations_can_be_applied_while_the_earlier_release_serves")


async def test_state_at_the_modules_level_is_noticed() -> None:
    router = Router(area="shop")

    @hookimpl
    def register_endpoints() -> Any:
        router.get("/v1/shop", errors=(NotFound,))(shop_things)
        return router.endpoints[-1:] if len(router.endpoints) == 1 else []

    with pytest.raises(AssertionError, match="module's level"):
        await check(
            Hooks(register_endpoints=register_endpoints),
            "two_services_with_it_live_in_one_process",
        )


async def test_a_plugin_that_declares_nothing_passes_what_needs_no_database() -> None:
    for name in (
        "its_endpoints_are_documented",
        "its_errors_have_a_code_a_status_and_a_meaning",
        "its_jobs_are_named_after_it",
        "two_services_with_it_live_in_one_process",
    ):
        await check(plugin(), name)


def test_a_text_that_only_a_template_says_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "shop_with_pages"
    (package / "templates").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "plugin.py").write_text('def said(_):\n    return _("By the code")\n')
    (package / "templates" / "page.html").write_text('<p>{{ _("By the page") }}</p>')
    monkeypatch.syspath_prepend(tmp_path)

    class Kit(PluginContract):
        plugin, name = importlib.import_module("shop_with_pages.plugin"), "shop_with_pages"

    assert Kit()._texts() == {"By the code", "By the page"}
