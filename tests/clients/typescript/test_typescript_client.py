"""The TypeScript client: its own tests, its package in an empty folder, and in a browser."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from aiohttp import web
from playwright.async_api import Browser

from msgsvc_devkit.web_servers import stop
from tests.clients.typescript.building import PACKAGE, built_client, compiler, program, run
from tests.e2e.test_serve_ephemeral import serving
from tests.ports import free_ports
from tests.vectors.generate import VECTORS

GUIDE = PACKAGE.parents[2] / "docs" / "guides" / "clients.md"

#: The package's own.
TESTS = sorted((PACKAGE / "test").glob("*.test.mjs"))

PROGRAM = Path(__file__).with_name("program.ts")

#: Options of a strict user of the compiler, with nothing of the package's own.
STRICT = {
    "strict": True,
    "noEmit": True,
    "target": "ES2022",
    "module": "NodeNext",
    "exactOptionalPropertyTypes": True,
    "noUncheckedIndexedAccess": True,
    "skipLibCheck": False,
    # But the compiler's own declarations, which are not looked through each time.
    "skipDefaultLibCheck": True,
}


@pytest.fixture(scope="module")
def built() -> Path:
    return built_client()


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder in which the packed client was installed."""
    folder = tmp_path_factory.mktemp("user")
    npm = program("npm")
    packed = json.loads(
        run(npm, "pack", "--json", "--ignore-scripts", "--pack-destination", folder)
    )
    (folder / "package.json").write_text('{"private": true, "type": "module"}', "utf-8")
    run(npm, "install", "--cache", folder / "cache", folder / packed[0]["filename"], cwd=folder)
    return folder


#: A command in the place of `msgsvc`: prints what a running service said when it started, another each time.
STARTED = """\
#!/bin/sh
test "$*" = "serve --ephemeral --port 0 --json" || exit 2
for facts in "$(dirname "$0")"/*.json; do
  mv "$facts" "$facts.taken" && cat "$facts.taken" && exec sleep 300
done
exit 1
"""


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Path]:
    """The command, with a service for each file of tests that starts one. They are forked from a process
    that has loaded `msgsvc`, which takes seconds."""
    command = tmp_path / "msgsvc"
    command.write_text(STARTED, "utf-8")
    command.chmod(0o755)
    with ExitStack() as services:
        for path in TESTS:
            if "Msgsvc.start()" in path.read_text("utf-8"):
                folder = tmp_path / path.name
                folder.mkdir()
                facts = services.enter_context(serving(folder)).facts
                (tmp_path / f"{path.name}.json").write_text(json.dumps(facts) + "\n", "utf-8")
        yield command


def test_the_client_does_what_its_own_tests_say(built: Path, started: Path) -> None:
    output = run(program("node"), "--test", *TESTS, MSGSVC=str(started))

    assert re.search(r"^# pass [1-9]\d\d", output, re.MULTILINE), output


def test_the_package_holds_the_compiled_client_alone(installed: Path) -> None:
    package = installed / "node_modules" / "@msgsvc" / "client"
    files = {path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file()}

    assert {"package.json", "README.md", "dist/index.js", "dist/index.d.ts"} <= files
    assert {Path(name).parts[0] for name in files} == {"package.json", "README.md", "dist"}
    assert not (installed / "node_modules" / "typescript").exists()
    assert "dependencies" not in json.loads((package / "package.json").read_text("utf-8"))


@pytest.mark.parametrize("world", ["node", "browser"])
def test_a_users_program_and_the_documentation_pass_the_strict_compiler(
    installed: Path, world: str
) -> None:
    folder = installed / world
    folder.mkdir()
    (folder / "program.ts").write_text(PROGRAM.read_text("utf-8"), "utf-8")
    for number, (language, code) in enumerate(examples()):
        if language == "ts" or world == "node":
            (folder / f"example{number}.ts").write_text(code, "utf-8")
    where = (
        {"types": ["node"], "lib": ["ES2023"], "typeRoots": [str(PACKAGE / "node_modules/@types")]}
        if world == "node"
        else {"types": [], "lib": ["ES2023", "DOM", "DOM.Iterable", "DOM.AsyncIterable"]}
    )
    options = {"compilerOptions": {**STRICT, **where}, "include": ["*.ts"]}
    (folder / "tsconfig.json").write_text(json.dumps(options), "utf-8")

    output = run(program("node"), compiler(), "--project", folder, cwd=folder)

    assert output == ""


def examples() -> list[tuple[str, str]]:
    """The code of the README and the guide: `ts` is for anywhere, `ts node` for Node.js."""
    text = "".join(path.read_text("utf-8") for path in (PACKAGE / "README.md", GUIDE))
    return re.findall(r"^```(ts(?: node)?)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_sources_use_nothing_of_node(built: Path) -> None:
    """`tsc` refuses Node's globals, as the package's configuration has no types of Node."""
    imports = {
        name
        for path in built.rglob("*.js")
        for name in re.findall(
            r"""(?:from|import)\s*\(?["']([^"']+)["']""", path.read_text("utf-8")
        )
    }

    assert len(imports) > 5
    assert {name for name in imports if not name.startswith(".")} == set()


def test_versions_agree() -> None:
    package = json.loads((PACKAGE / "package.json").read_text("utf-8"))
    lock = json.loads((PACKAGE / "package-lock.json").read_text("utf-8"))
    declared = re.search(r'"(.+)"', (PACKAGE / "src" / "version.ts").read_text("utf-8"))

    assert declared
    assert {package["version"], lock["version"]} == {declared[1]}


def test_the_lock_names_no_registry_but_npms() -> None:
    lock = json.loads((PACKAGE / "package-lock.json").read_text("utf-8"))

    for name, entry in lock["packages"].items():
        assert entry.get("resolved", "https://registry.npmjs.org/").startswith(
            "https://registry.npmjs.org/"
        ), name


#: Run in a page: the client as a browser loads it, without a bundler.
IN_A_PAGE = """async (vectors) => {
  const { Client, NotFoundError, verifyWebhook, verifyStandardWebhook } = await import("/dist/index.js");
  const client = new Client({ baseUrl: location.origin, apiKey: "msk_test" });
  const project = await client.project.get();
  const refused = await client.messages.get("msg_1").catch((error) => error instanceof NotFoundError);
  const wrong = [];
  for (const [scheme, verify] of [["signature", verifyWebhook], ["standard", verifyStandardWebhook]]) {
    for (const { about, valid, headers, body, secrets } of vectors[scheme]) {
      const bytes = Uint8Array.from(atob(body), (char) => char.charCodeAt(0));
      const accepted = await verify(headers, bytes, secrets).then(() => true, () => false);
      if (accepted !== valid) wrong.push(about);
    }
  }
  return { name: project.name, refused, wrong };
}"""


@pytest.mark.browser
async def test_a_browser_loads_it_as_it_is(built: Path, browser: Browser) -> None:
    keys: list[str | None] = []

    async def project(request: web.Request) -> web.Response:
        keys.append(request.headers.get("Authorization"))
        return web.json_response({"name": "Shop"})

    async def message(request: web.Request) -> web.Response:
        envelope = {"error": "none", "code": "not_found", "retryable": False, "docs_url": "/docs"}
        return web.json_response(envelope, status=404)

    async def page(request: web.Request) -> web.Response:
        return web.Response(text="<!doctype html><title>A page</title>", content_type="text/html")

    app = web.Application()
    app.router.add_get("/", page)
    app.router.add_get("/v1/project", project)
    app.router.add_get("/v1/messages/msg_1", message)
    app.router.add_static("/dist", built)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_ports()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        context = await browser.new_context()
        window = await context.new_page()
        await window.goto(f"http://127.0.0.1:{port}/")
        found = await window.evaluate(IN_A_PAGE, json.loads(VECTORS.read_text("utf-8")))
        await context.close()
    finally:
        await stop(runner)

    assert found == {"name": "Shop", "refused": True, "wrong": []}
    assert keys == ["Bearer msk_test"]
