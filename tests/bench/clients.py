"""Clients that a broadcast is compared with: the bare one, and peers in an environment of their own.

Peers are never a dependency of the project. `--peers` makes their environment, in `build/peers`.
"""

import json
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgsvc_core.mailings.sending import MAX_RECIPIENTS_IN_FLIGHT
from tests.bench.databases import KINDS
from tests.bench.report import NONE, Bound
from tests.bench.servers import TEXT

_ROOT = Path(__file__).parents[2]
_ASKED = Path(__file__).with_name("peers.txt")
_ENVIRONMENT = _ROOT / "build" / "peers"

#: By database.
Bounds = Mapping[str, tuple[Bound, Bound]]


@dataclass(frozen=True, slots=True)
class Client:
    """A script of `peers`, and how it is set up.

    `part` of the round's messages are sent: less by who takes longer, for a rate is soon known.
    """

    name: str
    module: str
    at_once: int
    loop: str = "uvloop"
    part: float = 1.0
    #: What the service must reach beside it on each database: of the rate, and of the CPU time.
    bounds: Bounds = field(default_factory=dict)
    bounds_over_tls: Bounds = field(default_factory=dict)

    def figures(
        self, python: Path, url: str, count: int, trusted: Path | None = None
    ) -> dict[str, float]:
        """`per_s` and `cpu_us`, from a process of its own, which trusts that certificate."""
        asked = [url, round(count * self.part), self.at_once, TEXT, trusted or "", self.loop]
        printed = subprocess.run(
            [python, "-m", f"tests.bench.peers.{self.module}", *map(str, asked)],
            cwd=_ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        found: dict[str, float] = json.loads(printed)
        return found


#: Without a bound: it is not the client that the service uses.
BARE = Client("bare client", "with_aiohttp", MAX_RECIPIENTS_IN_FLIGHT)

AIOGRAM = Client(
    "aiogram",
    "with_aiogram",
    50,
    "asyncio",
    0.5,
    {
        "sqlite": (Bound(least=2.2), Bound(most=0.42)),
        "postgresql": (Bound(least=2), Bound(most=0.42)),
    },
    {kind: (Bound(least=1.8), NONE) for kind in KINDS},
)

#: As many calls at once as each was quickest with in trials (of 5, 10, 25, 50, 100, 200), on the loop
#: that each runs on as it is installed; and beside it what can be said for and against that.
PEERS: Sequence[Client] = (
    AIOGRAM,
    Client("aiogram on uvloop", "with_aiogram", 50, "uvloop", 0.5),
    Client(
        "python-telegram-bot",
        "with_ptb",
        10,
        "asyncio",
        0.2,
        {kind: (Bound(least=8), NONE) for kind in KINDS},
    ),
    # As many as the pool of its `ApplicationBuilder` has connections.
    Client("python-telegram-bot, 256 at once", "with_ptb", 256, "asyncio", 0.1),
)


def own_python() -> Path:
    return Path(sys.executable)


def python_of_peers() -> Path:
    """The interpreter that has the peers; its environment is made where it is not as `peers.txt` says."""
    made_of = _ENVIRONMENT / _ASKED.name
    python = _ENVIRONMENT / "bin" / "python"
    asked = _ASKED.read_text()
    if not made_of.exists() or made_of.read_text() != asked:
        venv.create(_ENVIRONMENT, clear=True, with_pip=True)
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([python, *install, "--requirement", _ASKED], check=True)
        made_of.write_text(asked)
    return python
