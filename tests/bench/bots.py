"""Many bots that one process polls: memory for each, what they cost while nobody writes, and how soon after
the start of the process all of them are polled."""

import time
import urllib.request

from tests.bench import bot_platform
from tests.bench.polls import allow_open_files
from tests.bench.report import Bound, Finding
from tests.bench.run import BenchError, Run
from tests.bench.servers import Setup, cpu_percent, memory_mib, started, started_service
from tests.process import Server

MOST_KIB, MOST_PERCENT, MOST_START_S = Bound(most=40), Bound(most=2), Bound(most=3)

#: Bots of the process that memory is compared with: what is needed once is there.
FEW = 10

#: Seconds of a poll that nothing ends.
POLL_S = 25

#: Seconds over which CPU time is watched: each poll ends and begins again once in it, at least.
WATCH_S = 30

#: Seconds for bots to be polled, at most.
PATIENCE_S = 60.0


def bots(run: Run) -> list[Finding]:
    """On SQLite, with the plugin for Telegram, by bots of the configuration."""
    number = run.options.bots
    allow_open_files(2 * number + 200)
    run.tell("bots", total=3)
    with started(run, bot_platform) as platform:
        with started_service(run, _setup(platform, FEW)) as service:
            _until_polled(platform, FEW)
            few_mib = _settled(service.server)
        run.advance(1)
        _until_polled(platform, 0)
        with started_service(run, _setup(platform, number)) as service:
            _until_polled(platform, number)
            start_s = time.time() - service.began_s
            run.advance(1)
            many_mib = _settled(service.server)
            # The first poll of each does what is done once.
            time.sleep(POLL_S)
            percent = cpu_percent(service.server, WATCH_S)
            _until_polled(platform, number)
        run.advance(1)
    kib = (many_mib - few_mib) * 1024 / (number - FEW)
    name = f"{number:,} polled bots"
    return [
        Finding(f"{name}: KiB each", kib, bound=MOST_KIB, alone=True),
        Finding(f"{name}, idle: % of a core", percent, bound=MOST_PERCENT, alone=True),
        Finding(f"{name}: seconds to the last one's poll", start_s, bound=MOST_START_S, alone=True),
    ]


def _setup(platform: Server, number: int) -> Setup:
    channels = [
        f'[channels.bot_{bot}]\nplugin = "telegram"\ntoken = "{1000 + bot}:{"a" * 35}"\n'
        f'base_url = "{platform.url}"'
        for bot in range(number)
    ]
    return Setup("sqlite", plugins=("sink", "telegram"), sections=channels)


def _polling(platform: Server) -> int:
    with urllib.request.urlopen(platform.url + "/polling") as answer:
        return int(answer.read())


def _until_polled(platform: Server, number: int) -> None:
    ends_s = time.monotonic() + PATIENCE_S
    while _polling(platform) != number:
        if time.monotonic() > ends_s:
            raise BenchError(f"{_polling(platform)} of {number} bots are polled")
        time.sleep(0.02)


def _settled(server: Server) -> float:
    time.sleep(5)
    return memory_mib(server)
