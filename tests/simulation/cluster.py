"""The processes of the simulation: whole services over one SQLite file, each in a virtual event loop.

One accepts messages, as `msgsvc serve` does with `jobs.runner = "none"`; the others work, as `msgsvc worker`
does. A worker is woken by a broker that loses nothing and is a few milliseconds late, and looks at the lanes
it owns as it does on PostgreSQL.
"""

import asyncio
import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from msgsvc_core.channels.lanes import channel_of
from msgsvc_core.config.settings import Settings
from msgsvc_core.db import Phase
from msgsvc_core.jobs.runner import OWN_LOOK_S, LaneRunner, _forever
from msgsvc_core.kernel.json import from_json
from msgsvc_core.service import Service
from msgsvc_devkit.services import SECRET_KEY
from tests.simulation.platform import Platform, SimulatedPlugin
from tests.simulation.virtual_time import ProcessClock, VirtualLoop, VirtualTime

#: Seconds until a runner's work is taken over; shorter than the default, to see more of it.
LEASE_S = 4.0

#: Seconds within which a worker has started.
STARTING_S = 60.0

#: Seconds that a wake-up takes through the broker.
BROKER_S = (0.001, 0.004)


async def nothing_to_migrate(_phase: Phase | None = None) -> list[str]:
    return []


class Process:
    """A simulated process: a service, and its loop."""

    def __init__(
        self,
        name: str,
        virtual: VirtualTime,
        platform: Platform,
        path: Path,
        *,
        bots: Sequence[str],
        works: bool,
    ) -> None:
        self.name = name
        self.loop = VirtualLoop(virtual)
        self.runner: LaneRunner | None = None
        #: The start of a worker.
        self.starting: asyncio.Task[None]
        settings: dict[str, Any] = {
            "secret_keys": (SECRET_KEY,),
            "plugins": (),
            "database_url": f"sqlite:///{path}",
            "sqlite_synchronous": "NORMAL",
            "channels": {key: {"plugin": "simulated"} for key in bots},
            "jobs": {"runner": "embedded" if works else "none", "lease_s": LEASE_S},
        }
        self.service = Service(
            Settings.model_validate(settings),
            clock=ProcessClock(virtual),
            extra_plugins=[("simulated", SimulatedPlugin(platform, name))],
        )
        # The file is migrated before time is virtual.
        self.service.migrate = nothing_to_migrate
        self._new_runner = self.service._new_runner
        self.service._new_runner = self._keep_runner

    async def start(self) -> None:
        await self.service.start("work")
        if self.runner is not None:
            # As on PostgreSQL: other processes add to the lanes of this one.
            self._looking = self.loop.create_task(
                _forever(lambda: OWN_LOOK_S, self.runner._drain_own)
            )

    def _keep_runner(self, **options: Any) -> LaneRunner:
        self.runner = self._new_runner(**options)
        return self.runner

    def kill(self) -> None:
        """Ends it as SIGKILL does: nothing runs any more, and SQLite rolls back."""
        self.loop.kill()
        db = self.service.db
        backend = db._backend
        for connection in backend._connections:
            connection.kill()
        plain = [backend.in_place_reader, backend.in_place_writer]
        for held in (*plain, db._batches):
            connection = getattr(held, "_connection", None) or getattr(held, "connection", None)
            with suppress(Exception):
                connection.close()


class Cluster:
    """The accepting process, and the workers."""

    def __init__(
        self, virtual: VirtualTime, platform: Platform, path: Path, rng: random.Random
    ) -> None:
        self._virtual = virtual
        self._platform = platform
        self._path = path
        self._rng = rng
        self._started = 0
        self.killed: list[Process] = []
        self.workers: list[Process] = []
        #: Those of the configuration, which no process reads again.
        self._bots = tuple(platform.bots)
        self.site = Process("site", virtual, platform, path, bots=self._bots, works=False)

    def start(self, workers: int) -> None:
        self.site.loop.finish(self.site.start())
        self.site.service.jobs.woken_by(self._wake)
        for _ in range(workers):
            starting = self.add_worker().starting
            self._virtual.run(starting.done, most_s=self._virtual.now_s + STARTING_S)
            starting.result()

    def add_worker(self) -> Process:
        """A new worker, which starts now."""
        self._started += 1
        name = f"worker-{self._started}"
        worker = Process(
            name, self._virtual, self._platform, self._path, bots=self._bots, works=True
        )
        self.workers.append(worker)
        worker.starting = worker.loop.create_task(worker.start())
        return worker

    def kill(self, worker: Process) -> None:
        self.workers.remove(worker)
        self.killed.append(worker)
        worker.kill()

    def owners(self) -> list[Process]:
        """The workers that own lanes of bots."""
        return [one for one in self.workers if one.runner is not None and self.in_flight(one)[1]]

    def suspects(self, worker: Process) -> set[tuple[str, str]]:
        """The (project, subscriber) of a worker's jobs during which an earlier one died too."""
        assert worker.runner is not None
        with closing(sqlite3.connect(self._path)) as db:
            rows = db.execute(
                "SELECT project_id, payload FROM core_jobs WHERE state = 'running'"
                " AND leased_by = ? AND deliveries > attempts + 1",
                (worker.runner._lease.runner_id,),
            )
            return {
                (project_id, from_json(payload).get("subscriber_id", ""))
                for project_id, payload in rows
            }

    def in_flight(self, worker: Process) -> tuple[set[tuple[str, str]], set[str]]:
        """What a worker has marked as being sent: (project, subscriber), and the bots whose lanes it owns."""
        assert worker.runner is not None
        with closing(sqlite3.connect(self._path)) as db:
            bots = {
                channel_of(lane)
                for (lane,) in db.execute(
                    "SELECT lane FROM core_lanes WHERE owner = ? AND lane LIKE 'channel:%'",
                    (worker.runner._lease.runner_id,),
                )
            }
            marked = {
                (project_id, subscriber_id)
                for project_id, subscriber_id, bot in db.execute(
                    "SELECT project_id, subscriber_id, bot FROM core_messages WHERE status = 'sending'"
                )
                if bot in bots
            }
            for project_id, bot, found in db.execute(
                "SELECT project_id, bot, in_hand FROM core_mailing_ways"
            ):
                if bot in bots:
                    marked |= {(project_id, each) for each in from_json(found)}
        return marked, bots

    def close(self) -> None:
        for process in (*self.workers, self.site):
            process.kill()
        for process in (*self.killed, *self.workers, self.site):
            process.loop.bury()

    def _wake(self, lane: str, run_at_ms: int) -> None:
        delay_s = max(0.0, (run_at_ms - self._virtual.now_ms()) / 1000)
        self._virtual.at(
            self._virtual.now_s + delay_s + self._rng.uniform(*BROKER_S),
            lambda: self._deliver(lane, run_at_ms),
        )

    def _deliver(self, lane: str, run_at_ms: int) -> None:
        ready: Sequence[Process] = [one for one in self.workers if one.runner is not None]
        if ready:
            worker = self._rng.choice(ready)
            assert worker.runner is not None
            worker.loop.call_soon(worker.runner.wake, lane, run_at_ms)
