"""The built package, in an environment that has it, and what it depends on, alone; and its README."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from msgsvc_core.security import new_secret
from msgsvc_devkit.webhooks import signed_webhook
from tests.clients.python.conftest import Running
from tests.e2e.guide_blocks import KEPT_TYPES, blocks_of

GUIDE = Path(__file__).parents[3] / "docs/guides/clients.md"
CLIENT = Path(__file__).parents[3] / "contrib/clients/python"


def run(*command: str | Path, timeout_s: float = 120, **options: object) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout_s, check=False, **options
    )  # type: ignore[call-overload] # options of subprocess.run
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the built wheel, made without a package index: what the
    package depends on comes from ours, behind it."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, CLIENT)
    [wheel] = folder.glob("msgsvc_client-*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    made = folder / "venv/bin/python"
    run(*pip, "--python", made, "install", "--no-index", "--no-deps", wheel)
    [packages] = folder.glob("venv/lib/python*/site-packages")
    ours = sysconfig.get_paths()["purelib"]
    (packages / "ours.pth").write_text(f"import sys; sys.path.append({ours!r})\n")
    return made


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of the README and of the guide, as printed."""
    folder = tmp_path_factory.mktemp("programs")
    for block in [*blocks_of(CLIENT / "README.md"), *blocks_of(GUIDE)]:
        if block.language == "python":
            assert f"`{block.what}`" in block.before, block.line
            (folder / block.what).write_text(block.code, "utf-8")
    return folder


@pytest.fixture
def environment(running: Running) -> dict[str, str]:
    return {**os.environ, "MSGSVC_URL": running.url, "MSGSVC_API_KEY": running.key}


def test_the_wheel_is_what_is_imported(python: Path, tmp_path: Path) -> None:
    place = run(python, "-c", "import msgsvc_client; print(msgsvc_client.__file__)", cwd=tmp_path)

    assert Path(place.strip()).is_relative_to(python.parents[1])


def test_the_quick_start_runs_as_printed(
    python: Path, programs: Path, environment: dict[str, str]
) -> None:
    printed = run(python, programs / "quickstart.py", env=environment, cwd=programs)

    assert "open it to subscribe: messenger_a http" in printed


def test_the_sign_in_runs_as_printed(
    python: Path, programs: Path, environment: dict[str, str]
) -> None:
    with subprocess.Popen(
        [python, programs / "signin.py"], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.kill()

    assert first.startswith("open it to sign in: http")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tour.py", ["project: Shop", "preview: Ann, your parcel is on its way", "recipients: 0"]),
        ("lists.py", ["bronze 20", "silver 20", "gold 20", "2 more", "1 the end"]),
        ("refused.py", ["they have not subscribed"]),
        ("files.py", [""]),
        ("feed.py", [""]),
    ],
)
def test_a_program_of_the_guide_runs_as_printed(
    name: str, expected: list[str], python: Path, programs: Path, environment: dict[str, str]
) -> None:
    printed = run(python, programs / name, env=environment, cwd=programs)

    position = 0
    for text in expected:
        position = printed.index(text, position)


def test_the_receiver_of_the_guide_answers_as_it_should(python: Path, programs: Path) -> None:
    secret = new_secret()
    headers, body = signed_webhook("something.new", {"first_name": "Ann"}, secret)
    call = (
        f"import hook; print([hook.receive(h, {body!r}) for h in ({headers!r}, {headers!r}, {{}})])"
    )

    printed = run(
        python, "-c", call, cwd=programs, env={"WEBHOOK_SECRETS": f"{new_secret()} {secret}"}
    )

    assert printed.count("Ann") == 1
    assert "[204, 204, 400]" in printed


def test_a_users_program_is_typed_strictly(python: Path, programs: Path) -> None:
    (programs / "wrong.py").write_text(
        "from msgsvc_client import Client\n"
        'client = Client("msk_x", "https://msgsvc.example")\n'
        'client.messages.send(external_id="a", text="b", buttons=[[{"txt": "c"}]])\n'
        "number: int = client.subscribers.list()\n"
        'client.messages.get("msg_1").txt\n'
    )
    strict = [sys.executable, "-m", "mypy", "--strict", "--python-executable", python, *KEPT_TYPES]

    names = sorted(path.name for path in programs.glob("*.py"))
    # Once for all programs: each run reads the whole client.
    done = subprocess.run(
        [*strict, *names], cwd=programs, capture_output=True, text=True, check=False
    )
    wrong = [line for line in done.stdout.splitlines() if ": error:" in line]

    assert len(names) > 5, names
    assert all(line.startswith("wrong.py:") for line in wrong), done.stdout
    assert f"in 1 file (checked {len(names)} source files)" in done.stdout
    assert 'expression has type "Paginator[Subscriber]"' in done.stdout
    assert 'Extra key "txt" for TypedDict "ButtonBody"' in done.stdout
    assert '"Message" has no attribute "txt"' in done.stdout


def test_nothing_of_a_later_python_is_used() -> None:
    run(
        sys.executable,
        "-m",
        "mypy",
        "--python-version",
        "3.10",
        *KEPT_TYPES,
        CLIENT / "msgsvc_client",
    )


def test_it_needs_nothing_of_the_service() -> None:
    loaded = run(
        sys.executable,
        "-c",
        "import sys, msgsvc_client; print(*sorted({name.partition('.')[0] for name in sys.modules}))",
    ).split()

    assert not {"pydantic", "starlette", "msgsvc_core"} & set(loaded)
