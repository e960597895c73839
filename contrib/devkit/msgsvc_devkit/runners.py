"""Job runners of a service under test: embedded, or a worker woken by a broker."""

import os
from collections.abc import Iterable
from typing import Any, Literal

from msgsvc_core.config.settings import Settings
from msgsvc_core.db import Database
from msgsvc_core.jobs.engine import Role
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import new_token
from msgsvc_core.kernel.tracing import Tracing
from msgsvc_core.service import Service

REDIS_URL_VARIABLE = "MSGSVC_TEST_REDIS_URL"
DEFAULT_REDIS_URL = "redis://127.0.0.1:6379/0"
RABBITMQ_URL_VARIABLE = "MSGSVC_TEST_RABBITMQ_URL"
DEFAULT_RABBITMQ_URL = "amqp://guest:guest@127.0.0.1:5672/%2F"

RunnerName = Literal["embedded", "redis", "rabbitmq"]


def redis_url() -> str:
    """The URL of the Redis shared by tests; they use separate names in it."""
    return os.environ.get(REDIS_URL_VARIABLE) or DEFAULT_REDIS_URL


def rabbitmq_url() -> str:
    """The URL of the RabbitMQ shared by tests."""
    return os.environ.get(RABBITMQ_URL_VARIABLE) or DEFAULT_RABBITMQ_URL


class TestRunner:
    """Creates services whose jobs are run by the embedded runner, or by dramatiq with a broker."""

    #: Not a test class, despite its name.
    __test__ = False

    def __init__(self, name: RunnerName) -> None:
        self.name = name
        self._namespace = f"test_{new_token().lower()}"

    @property
    def job_settings(self) -> dict[str, Any]:
        """The settings in `[jobs]` for it."""
        if self.name == "embedded":
            return {}
        url = redis_url() if self.name == "redis" else rabbitmq_url()
        return {"runner": "dramatiq", "broker_url": url, "broker_namespace": self._namespace}

    def build(
        self,
        settings: Settings,
        clock: Clock,
        extra_plugins: Iterable[tuple[str, Any]],
        tracing: Tracing | None = None,
        database: Database | None = None,
    ) -> Service:
        """A service whose jobs are processed once it is started, by itself or a worker."""
        if settings.jobs.runner == "dramatiq":
            return ServiceWithWorker(
                settings, clock=clock, extra_plugins=extra_plugins, tracing=tracing
            )
        return Service(
            settings, clock=clock, extra_plugins=extra_plugins, tracing=tracing, database=database
        )

    def clean_up(self) -> None:
        """Deletes the messages of this runner's services from the broker."""
        if self.name == "redis":
            import redis  # noqa: PLC0415 - only needed with Redis

            with redis.Redis.from_url(redis_url()) as client:
                keys = list(client.scan_iter(f"{self._namespace}:*"))
                if keys:
                    client.delete(*keys)
        elif self.name == "rabbitmq":
            import pika  # noqa: PLC0415 - only installed with RabbitMQ

            with pika.BlockingConnection(pika.URLParameters(rabbitmq_url())) as connection:
                for suffix in ("", ".DQ", ".XQ"):
                    connection.channel().queue_delete(f"{self._namespace}.lanes{suffix}")


class ServiceWithWorker(Service):
    """A service for requests, with the equivalent of `msgsvc worker` in the same process."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock | None = None,
        extra_plugins: Iterable[tuple[str, Any]] = (),
        tracing: Tracing | None = None,
    ) -> None:
        plugins = list(extra_plugins)
        super().__init__(settings, clock=clock, extra_plugins=plugins, tracing=tracing)
        self.worker = Service(settings, clock=clock, extra_plugins=plugins, tracing=tracing)

    async def start(self, role: Role = "serve") -> None:
        await super().start(role)
        await self.worker.start("work")

    async def stop(self) -> None:
        await self.worker.stop()
        await super().stop()


def in_flight(service: Service) -> int:
    """Jobs that handlers in this process are running, including those of the worker beside `service`."""
    worker = service.worker if isinstance(service, ServiceWithWorker) else service
    return worker.jobs.in_flight
