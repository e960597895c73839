"""Plugins: which are loaded, and what is refused of them before anything runs."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.config.settings import Settings
from msgsvc_core.core_parts import CORE_EVENTS
from msgsvc_core.events import EventSpec
from msgsvc_core.jobs import JobContext, JobSpec
from msgsvc_core.jobs.contract import Job
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.kernel.hooks import PluginError, in_order
from msgsvc_core.kernel.providers import NotProvided
from msgsvc_core.messages.routes import router as messages_router
from msgsvc_core.parts import Built
from msgsvc_core.plugins.composed import ComposedPlugin
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import HookSpecs, hookimpl
from msgsvc_core.plugins.loading import load_plugins
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_devkit.services import SECRET_KEY


def build(*plugins: Any) -> Service:
    settings = {"secret_keys": (SECRET_KEY,), "plugins": (), "channels": {}}
    named = [(type(plugin).__name__, plugin) for plugin in plugins]
    return Service(Settings.model_validate(settings), extra_plugins=named)


def test_a_plugin_that_is_not_installed_is_named_with_the_way_out() -> None:
    with pytest.raises(
        PluginError, match=r"'telescope' is not installed .*install the package that brings it"
    ):
        load_plugins(["telescope"])


def test_a_mistyped_plugin_leads_to_the_nearest_installed_one_and_to_no_package() -> None:
    with pytest.raises(PluginError, match=r"did you mean 'webhooks'\?") as refused:
        load_plugins(["webhook"])

    assert "pip install" not in str(refused.value)
    assert "msgsvc-webhook" not in str(refused.value)


def test_only_the_named_plugins_are_loaded() -> None:
    manager = load_plugins(["webhooks"])

    assert [name for name, _ in manager.list_name_plugin()] == ["webhooks"]


EVENT_PLUGIN = """
from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.events import EventSpec
from msgsvc_core.plugins.hookspecs import hookimpl


class Sung(ResponseModel):
    pass


@hookimpl
def register_events():
    return [EventSpec("lark.sung", "A lark sang.", Sung, of_subscriber=False)]
"""


def test_every_file_of_the_folder_is_a_plugin_unless_it_begins_with_an_underscore(
    tmp_path: Path,
) -> None:
    (tmp_path / "lark.py").write_text(EVENT_PLUGIN)
    (tmp_path / "a_second.py").write_text("")
    (tmp_path / "_draft.py").write_text("1 / 0")
    (tmp_path / "notes.txt").write_text("1 / 0")

    manager = load_plugins(["webhooks"], folder=tmp_path)

    names = [name for name, _ in manager.list_name_plugin()]
    assert sorted(names) == ["a_second", "lark", "webhooks"]


def test_services_of_one_process_load_the_plugins_of_their_folders(tmp_path: Path) -> None:
    (tmp_path / "lark.py").write_text(EVENT_PLUGIN)
    settings = {"secret_keys": (SECRET_KEY,), "plugins": (), "channels": {}}

    first = Service(Settings.model_validate({**settings, "plugins_dir": tmp_path}))
    second = Service(Settings.model_validate({**settings, "plugins_dir": tmp_path}))
    without = Service(Settings.model_validate(settings))

    assert "lark.sung" in first.events.catalogue
    assert "lark.sung" in second.events.catalogue
    assert "lark.sung" not in without.events.catalogue


def test_files_of_one_name_in_two_folders_are_two_plugins(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "lark.py").write_text(f"FOLDER = {folder!r}")

    managers = [load_plugins([], folder=tmp_path / folder) for folder in ("one", "two")]

    assert [manager.get_plugin("lark").FOLDER for manager in managers] == ["one", "two"]


@pytest.mark.parametrize(
    ("name", "source", "reason"),
    [
        ("lark.py", "import a_module_that_is_not_there", "can't be imported: ModuleNotFoundError"),
        ("lark.py", "def", "can't be imported: SyntaxError"),
        ("webhooks.py", "", "an installed plugin is also named 'webhooks'; rename the file"),
        ("my-lark.py", "", "a plugin's name has only a-z, 0-9 .* rename the file"),
    ],
)
def test_a_file_that_is_no_plugin_is_named_with_the_reason(
    tmp_path: Path, name: str, source: str, reason: str
) -> None:
    (tmp_path / name).write_text(source)

    with pytest.raises(PluginError, match=f"{name}.*{reason}"):
        load_plugins([], folder=tmp_path)


def test_a_file_that_was_corrected_is_imported_again(tmp_path: Path) -> None:
    (tmp_path / "lark.py").write_text("1 / 0")
    with pytest.raises(PluginError, match="ZeroDivisionError"):
        load_plugins([], folder=tmp_path)
    (tmp_path / "lark.py").write_text("RIGHT = True")

    assert load_plugins([], folder=tmp_path).get_plugin("lark").RIGHT


def test_hooks_run_in_the_order_of_the_setting() -> None:
    manager = load_plugins(["webhooks", "auth"])

    hooks = [
        implementation.plugin_name
        for implementation in manager.hook.register_migrations.get_hookimpls()
    ]
    assert hooks[::-1] == ["webhooks", "auth"]


def test_an_unknown_hook_is_refused() -> None:
    class Odd:
        @hookimpl
        def register_telescopes(self) -> list[str]:
            return []

    with pytest.raises(PluginError, match="register_telescopes"):
        build(Odd())


def test_an_unknown_argument_of_a_hook_is_refused() -> None:
    class Odd:
        @hookimpl
        def register_lanes(self, telescope: int) -> list[str]:
            return []

    with pytest.raises(PluginError, match="telescope"):
        build(Odd())


def test_a_plain_function_for_an_async_hook_is_refused() -> None:
    class Odd:
        @hookimpl
        def on_start(self) -> None: ...

    with pytest.raises(PluginError, match="'Odd': hook on_start must be async def"):
        build(Odd())


def test_an_async_function_for_a_plain_hook_is_refused() -> None:
    class Odd:
        @hookimpl
        async def register_lanes(self) -> list[str]:
            return []

    with pytest.raises(PluginError, match="'Odd': hook register_lanes must be a plain def"):
        build(Odd())


class Lens:
    async def look(self, ctx: JobContext, jobs: Sequence[Job]) -> None: ...


class Tube:
    def __init__(self, lens: Lens) -> None:
        self.lens = lens


def _tube(*, lens: Lens) -> Built:
    return Built(provides=[Tube(lens)])


def _lens(*, context: PluginContext) -> Built:
    lens = Lens()
    return Built(provides=[lens], jobs=lambda: [JobSpec("telescope.look", lens.look)])


def composed(*builders: Callable[..., Built]) -> Service:
    class Telescope:
        @hookimpl
        def create_plugin(self, context: PluginContext) -> ComposedPlugin:
            return ComposedPlugin(context, builders)

    return build(Telescope())


def test_builders_of_a_plugin_get_each_others_objects_and_handlers_may_ask_for_them() -> None:
    service = composed(_tube, _lens)

    assert service.get(Tube).lens is service.get(Lens)
    assert "telescope.look" in {spec.name for spec in service.job_specs}


def test_a_builder_of_a_plugin_that_asks_for_what_nothing_builds_is_named() -> None:
    with pytest.raises(NotProvided, match="_tube asks for `lens: Lens`"):
        composed(_tube)


def test_a_plugin_named_twice_is_refused() -> None:
    with pytest.raises(PluginError, match="named twice"):
        load_plugins(["auth", "auth"])


def test_two_owners_of_an_error_code_are_refused() -> None:
    class Copied(ApiError):
        """A copy."""

        code, status = "not_found", 404

    class Odd:
        @hookimpl
        def register_errors(self) -> list[type[ApiError]]:
            return [Copied]

    with pytest.raises(ValueError, match="'not_found' is declared by both"):
        build(Odd())


def test_two_owners_of_an_event_are_refused() -> None:
    class Odd:
        @hookimpl
        def register_events(self) -> Sequence[EventSpec]:
            return [spec for spec in CORE_EVENTS if spec.name == "subscription.created"]

    with pytest.raises(PluginError, match=r"event 'subscription\.created'"):
        build(Odd())


def test_two_owners_of_a_path_are_refused() -> None:
    class Odd:
        @hookimpl
        def register_endpoints(self) -> Any:
            return messages_router.endpoints[:1]

    with pytest.raises(ValueError, match=r"declared twice|two handlers"):
        build(Odd())


async def test_two_owners_of_a_job_are_refused_and_nothing_stays_open(
    make_service: ServiceFactory,
) -> None:
    async def nothing(*_: Any) -> None: ...

    class Odd:
        @hookimpl
        def register_jobs(self) -> list[JobSpec]:
            return [JobSpec("message.deliver", nothing)]

    with pytest.raises(PluginError, match=r"job 'message\.deliver'"):
        await make_service(extra_plugins=[("odd", Odd())])


class Notes:
    """A plugin that notes when it was started and stopped, and may fail at either."""

    def __init__(self, journal: list[str], name: str, fails: str = "") -> None:
        self._journal = journal
        self._name = name
        self._fails = fails

    @hookimpl
    async def on_start(self) -> None:
        self._note("start")

    @hookimpl
    async def on_stop(self) -> None:
        self._note("stop")

    def _note(self, what: str) -> None:
        self._journal.append(f"{self._name} {what}")
        if what == self._fails:
            raise ZeroDivisionError


async def test_plugins_are_started_in_their_order(make_service: ServiceFactory) -> None:
    journal: list[str] = []
    await make_service(extra_plugins=[(name, Notes(journal, name)) for name in ("a", "b")])

    assert journal == ["a start", "b start"]


async def test_a_plugin_that_does_not_start_stops_the_start_and_closes_all(
    make_service: ServiceFactory,
) -> None:
    journal: list[str] = []
    plugins = [("a", Notes(journal, "a", fails="start")), ("b", Notes(journal, "b"))]
    service = await make_service(extra_plugins=plugins, start=False)
    with pytest.raises(ZeroDivisionError):
        await service.start()

    assert "b start" not in journal
    assert not service.db._connected


async def test_a_plugin_that_does_not_stop_keeps_no_other_from_stopping(
    make_service: ServiceFactory,
) -> None:
    journal: list[str] = []
    plugins = [("a", Notes(journal, "a", fails="stop")), ("b", Notes(journal, "b"))]
    service = await make_service(extra_plugins=plugins)
    await service.stop()

    assert journal[-2:] == ["a stop", "b stop"]
    assert not service.db._connected


async def test_a_service_may_be_stopped_twice_and_started_again(
    make_service: ServiceFactory,
) -> None:
    service = await make_service()
    for _ in range(2):
        await service.stop()
    await service.start()

    assert await service.projects.list() == []


async def test_two_services_in_one_process_share_nothing(make_service: ServiceFactory) -> None:
    journal: list[str] = []
    first = await make_service(limits={"tags": 1})
    second = await make_service(extra_plugins=[("a", Notes(journal, "a"))])
    await first.projects.create("Shop")

    @first.on("delivery.success")
    async def listen(_event: object) -> None: ...

    assert await second.projects.list() == []
    assert (first.settings.limits.tags, second.settings.limits.tags) == (1, 20)
    assert first.plugins.get_plugin("a") is None
    assert not second.events._listeners["delivery.success"]
    assert first.limiter is not second.limiter
    assert first.app is not second.app


async def test_what_no_plugin_registered_is_named_when_it_is_asked_for() -> None:
    service = build()

    with pytest.raises(LookupError, match="nothing provides Notes"):
        service.get(Notes)
    with pytest.raises(LookupError, match="no loaded plugin has settings of type"):
        service.section(type(service.settings.limits))


def test_every_hook_says_when_it_is_called_and_how() -> None:
    hooks = [
        hook for name, hook in vars(HookSpecs).items() if name.startswith(("register_", "on_"))
    ]

    assert hooks
    for hook in hooks:
        assert ("Plain" in hook.__doc__) or ("Async" in hook.__doc__), hook.__name__


class Observer:
    """A plugin that notes what it is told, or fails."""

    def __init__(self, told: list[Any], failure: Exception | None = None) -> None:
        self._told, self._failure = told, failure

    @hookimpl
    async def on_mailing_ended(self, tx: Any, mailing: Any) -> None:
        self._told.append((tx, mailing))
        if self._failure is not None:
            raise self._failure


async def test_a_hook_is_called_by_position_in_the_order_of_its_arguments() -> None:
    told: list[Any] = []
    hook = load_plugins([], [("one", Observer(told)), ("two", Observer(told))]).hook

    await in_order(hook.on_mailing_ended)("tx", "mailing")

    assert told == [("tx", "mailing"), ("tx", "mailing")]


async def test_the_first_failure_of_a_hook_ends_it() -> None:
    told: list[Any] = []
    failing = Observer(told, ValueError("no"))
    hook = load_plugins([], [("one", failing), ("two", Observer(told))]).hook

    with pytest.raises(ValueError, match="no"):
        await in_order(hook.on_mailing_ended)("tx", "mailing")

    assert len(told) == 1


async def test_a_hook_is_not_called_with_arguments_missing() -> None:
    hook = load_plugins([], [("one", Observer([]))]).hook

    with pytest.raises(ValueError, match="shorter"):
        await in_order(hook.on_mailing_ended)("tx")
