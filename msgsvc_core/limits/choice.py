"""Which limiter a service has."""

from pydantic import SecretStr

from msgsvc_core.db import Database
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.limits.contract import Limiter
from msgsvc_core.limits.stored import DatabaseLimiter


def new_limiter(
    redis_url: SecretStr | None, *, db: Database, clock: Clock, server_time: bool
) -> Limiter:
    """A limiter in Redis if there is one, else in the database. `server_time` uses Redis' clock, which all
    processes share, instead of `clock`."""
    if redis_url is None:
        return DatabaseLimiter(db, clock)
    # Megabytes of memory that a process without Redis does not need.
    from msgsvc_core.limits.redis import RedisLimiter, redis_client  # noqa: PLC0415 - see above

    return RedisLimiter(redis_client(redis_url.get_secret_value()), clock, server_time=server_time)
