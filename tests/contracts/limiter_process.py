"""One of several processes that hit the same key.

Arguments: Redis' URL, a key prefix, and the seconds for an answer. A line `<key> <calls> <now_ms>` on
standard input makes so many hits of 300 in 60 s at once, with `-` by Redis' own time, and prints how many
passed.
"""

import asyncio
import sys

from msgsvc_core.limits.redis import RedisLimiter, redis_client


class StillClock:
    ms = 0

    def time(self) -> float:
        return self.ms / 1000

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


def tell(answer: object) -> None:
    sys.stdout.write(f"{answer}\n")
    sys.stdout.flush()


async def main(url: str, prefix: str, patience: str) -> None:
    clock, timeout_s = StillClock(), float(patience)
    still = RedisLimiter(
        redis_client(url, timeout_s), clock, prefix=prefix, server_time=False, timeout_s=timeout_s
    )
    served = RedisLimiter(redis_client(url, timeout_s), clock, prefix=prefix, timeout_s=timeout_s)
    tell("ready")
    while line := await asyncio.to_thread(sys.stdin.readline):
        key, calls, now = line.split()
        limiter = served if now == "-" else still
        clock.ms = 0 if now == "-" else int(now)
        # "refuse" fails loudly should Redis not answer: counted locally, too many would pass.
        hits = [limiter.hit(key, 300, 60, when_away="refuse") for _ in range(int(calls))]
        tell(sum(answer.allowed for answer in await asyncio.gather(*hits)))
    await still.close()
    await served.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
