"""Wake-ups between processes: dramatiq messages that say "this lane has work", and nothing else.

Losing one delays work by a second, until the sweeper finds it; so nothing here may fail a request or block
an event loop. See docs/decisions/0009-dramatiq-wakes-lanes.md.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import structlog

from msgsvc_core.config.settings import Settings
from msgsvc_core.kernel.errors import SettingsError

#: Milliseconds between polls of an idle queue by dramatiq's threads; once a second by default, for which a
#: sign-in would wait.
POLL_MS = 100

#: Seconds within which further wake-ups become one message for each lane.
PAUSE_S = 0.02

#: Seconds before an unavailable broker is tried again.
RETRY_S = 1.0

#: Maximum number of unread messages; above it none are sent, because no worker consumes them, and workers
#: sweep when they start. The queue length is polled at this interval.
MOST_WAITING, COUNT_EVERY_S = 1000, 1.0

#: Milliseconds without a heartbeat after which a dead process's messages are given to others, and the
#: millionths of commands that look for such. By default it took minutes.
HEARTBEAT_TIMEOUT_MS, MAINTENANCE_CHANCE = 10_000, 100_000

#: Timeout of the broker's responses in seconds; only our own threads wait for them.
BROKER_TIMEOUT_S = 5.0

#: Threads that receive messages. None blocks: each passes on a lane's name.
THREADS = 2

ACTOR = "wake_lane"

if TYPE_CHECKING:
    from dramatiq import Broker

log = structlog.get_logger(__name__)


def open_broker(settings: Settings) -> tuple["Broker", str]:
    """dramatiq's broker and the queue's name. Connects to nothing yet.

    Raises `SettingsError` when RabbitMQ is asked for and its client is not installed.
    """
    url = settings.jobs.broker_url or settings.redis_url
    assert url is not None, "the settings were checked"
    text = url.get_secret_value()
    namespace = settings.jobs.broker_namespace
    queue = f"{namespace}.lanes"
    # No middleware: retries, time limits and ages are the database's.
    if text.startswith("amqp"):
        return _rabbitmq(text), queue
    return _redis(text, namespace), queue


def _redis(url: str, namespace: str) -> "Broker":
    import redis  # noqa: PLC0415 - only with dramatiq
    from dramatiq.brokers.redis import RedisBroker  # noqa: PLC0415 - only with dramatiq
    from redis.backoff import NoBackoff  # noqa: PLC0415 - only with dramatiq
    from redis.retry import Retry  # noqa: PLC0415 - only with dramatiq

    # One immediate retry, for a connection that was idle too long. By default redis-py retries for several
    # seconds, during which a process cannot stop.
    client = redis.Redis.from_url(
        url,
        socket_timeout=BROKER_TIMEOUT_S,
        socket_connect_timeout=BROKER_TIMEOUT_S,
        retry=Retry(NoBackoff(), 1),
    )
    untyped: Any = RedisBroker
    broker: Broker = untyped(
        client=client,
        middleware=[],
        namespace=namespace,
        heartbeat_timeout=HEARTBEAT_TIMEOUT_MS,
        maintenance_chance=MAINTENANCE_CHANCE,
    )
    return broker


def _rabbitmq(url: str) -> "Broker":
    try:
        from dramatiq.brokers.rabbitmq import RabbitmqBroker  # noqa: PLC0415 - only with dramatiq
    except ImportError:
        raise SettingsError(
            "jobs.broker_url: RabbitMQ needs pika; install it with"
            " `pip install 'msgsvc-core[rabbitmq]'`"
        ) from None
    # With confirmation: otherwise the first message on a connection that the broker has closed would be lost.
    broker = RabbitmqBroker(url=url, middleware=[], confirm_delivery=True)
    parameters: Any = broker.parameters
    parameters.socket_timeout = BROKER_TIMEOUT_S
    parameters.blocked_connection_timeout = BROKER_TIMEOUT_S
    return broker


def close_broker(broker: "Broker") -> None:
    """Closes its connections, which dramatiq does not do for Redis."""
    client = getattr(broker, "client", None)
    if client is not None:
        client.close()
    broker.close()


def count_waiting(broker: "Broker", queue: str) -> int:
    """Number of unread messages. Raises the errors of the broker's client if it is unavailable."""
    untyped: Any = broker
    if hasattr(broker, "get_queue_message_counts"):
        return int(untyped.get_queue_message_counts(queue)[0])
    return int(untyped.do_qsize(queue))


def find_fault(settings: Settings) -> str | None:
    """Why the broker can't be used, in one line; None if it can. Blocks."""
    broker, queue = open_broker(settings)
    try:
        count_waiting(broker, queue)
    except Exception as error:  # noqa: BLE001 - the edge: what the client says is the finding
        return str(error) or type(error).__name__
    finally:
        close_broker(broker)
    return None


class Announcer:
    """Announces lanes with work to the workers, from a dedicated thread."""

    def __init__(self, broker: "Broker", queue: str) -> None:
        self.broker = broker
        self._queue = queue
        self._waiting: set[str] = set()
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._stopping = threading.Event()
        self._away = False
        self._crowded, self._counted_at = False, 0.0
        self._thread = threading.Thread(target=self._run, name="lane announcer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def announce(self, lane: str) -> None:
        """Announces `lane`; concurrent calls for one lane share one message."""
        with self._lock:
            self._waiting.add(lane)
        self._changed.set()

    def stop(self) -> None:
        """Sends pending announcements, and ends. Blocks while the broker responds, within its timeout."""
        self._stopping.set()
        self._changed.set()
        self._thread.join(BROKER_TIMEOUT_S)

    def _run(self) -> None:
        while True:
            self._changed.wait()
            self._changed.clear()
            with self._lock:
                lanes, self._waiting = self._waiting, set()
            sent = self._send(lanes)
            if self._stopping.is_set():
                return
            self._stopping.wait(PAUSE_S if sent else RETRY_S)

    def _send(self, lanes: set[str]) -> bool:
        """False if the broker is unavailable. The lanes are dropped then: the sweeper finds them."""
        try:
            try:
                self._send_once(lanes)
            except Exception:  # noqa: BLE001 - the edge: each broker's client fails in its own ways
                # RabbitMQ closes idle connections; a new one may work.
                self._forget_connection()
                self._send_once(lanes)
        except Exception as error:  # noqa: BLE001 - the edge: the broker is away, sweeps go on
            if not self._away:
                log.warning("broker_away", error=f"{type(error).__name__}: {error}")
            self._away = True
            self._forget_connection()
            return False
        if self._away:
            log.info("broker_back")
        self._away = False
        return True

    def _send_once(self, lanes: set[str]) -> None:
        from dramatiq import Message  # noqa: PLC0415 - only with dramatiq

        if not lanes or self._is_crowded():
            return
        for lane in lanes:
            self.broker.enqueue(
                Message(
                    queue_name=self._queue,
                    actor_name=ACTOR,
                    args=(lane,),
                    kwargs={},
                    options={},
                )
            )

    def _forget_connection(self) -> None:
        """Drops this thread's RabbitMQ connection: a broken one would be reused for ever."""
        broker: Any = self.broker
        if hasattr(type(broker), "connection"):
            del broker.connection

    def _is_crowded(self) -> bool:
        now = time.monotonic()
        if now - self._counted_at >= COUNT_EVERY_S:
            self._crowded = count_waiting(self.broker, self._queue) >= MOST_WAITING
            self._counted_at = now
        return self._crowded


class Listener:
    """dramatiq's worker in this process: receives messages, and calls `on_lane` on the event loop."""

    def __init__(self, broker: "Broker", queue: str, on_lane: Callable[[str], None]) -> None:
        import dramatiq  # noqa: PLC0415 - only with dramatiq

        self._loop = asyncio.get_running_loop()
        self._on_lane = on_lane
        dramatiq.actor(actor_name=ACTOR, queue_name=queue, broker=broker)(self._hand_over)
        self._worker = dramatiq.Worker(broker, worker_threads=THREADS, worker_timeout=POLL_MS)

    def start(self) -> None:
        """Starts dramatiq's threads, which reconnect to an unavailable broker indefinitely."""
        self._worker.start()

    def stop(self) -> None:
        """Ends dramatiq's threads; their unprocessed messages return to the broker. Blocks."""
        self._worker.stop(timeout=round(BROKER_TIMEOUT_S * 1000))

    def _hand_over(self, lane: str) -> None:
        self._loop.call_soon_threadsafe(self._on_lane, lane)
