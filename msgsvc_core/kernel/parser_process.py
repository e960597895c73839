"""Reads strangers' input in a process of its own, with a deadline.

What is read there keeps no event loop waiting and no interpreter lock held, ends when its time is over
whatever it does, and takes no more memory than it may. The process has none of the service's settings or
secrets.

A parser that is linear and has little to read needs none of it: a call here takes a millisecond, and the
process some 30 MB until it has been idle for a minute.
"""

import asyncio
import importlib
import os
import pickle
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")

#: Seconds without a call after which the process ends.
IDLE_S = 60.0

#: Seconds that its start may take.
START_S = 30.0

#: Bytes of memory that it may map.
MAX_MEMORY_BYTES = 2 * 1024**3

#: Environment variables that it gets: what Python and its libraries need to start.
_PASSED = (
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "SYSTEMROOT",
    "LD_LIBRARY_PATH",
    "PYTHONDONTWRITEBYTECODE",
)

_LENGTH = struct.Struct("!Q")


class ParserFailed(Exception):
    """The parser did not return in its time, or its process ended."""


class ParserTimedOut(ParserFailed):
    """The parser did not return in its time."""


class ParserProcess:
    """Runs functions of modules, one after another. The process is started by the first call."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None

    async def run(
        self, timeout_s: float, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What `function` returns for the arguments; all of them are pickled. Raises what it raises, and
        `ParserTimedOut` when `timeout_s` seconds are over."""
        async with self._lock:
            self._cancel_idle()
            try:
                process = self._process or await self._start()
                async with asyncio.timeout(timeout_s):
                    returned, value = await _call(
                        process, (function.__module__, function.__qualname__, args, kwargs)
                    )
            except (OSError, EOFError, TimeoutError) as error:
                await self._kill()
                if isinstance(error, TimeoutError):
                    raise ParserTimedOut(f"it could not be read within {timeout_s:g} s") from None
                raise ParserFailed("the process that read it has ended") from None
            except BaseException:
                # Cancelled: the answer of this call must not become that of the next.
                await self._kill()
                raise
            self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._end_idle)
        if not returned:
            raise cast("Exception", value)
        return cast("T", value)

    async def close(self) -> None:
        """Ends the process, and the call that it is in."""
        self._cancel_idle()
        await self._kill()

    async def _start(self) -> asyncio.subprocess.Process:
        env = {name: os.environ[name] for name in _PASSED if name in os.environ}
        async with asyncio.timeout(START_S):
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                __name__,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env={**env, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
            await _call(self._process, ("os", "getpid", (), {}))
        return self._process

    def _end_idle(self) -> None:
        # It reads the end of its input, and ends.
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()

    def _cancel_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    async def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _call(process: asyncio.subprocess.Process, call: object) -> tuple[bool, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    sent = pickle.dumps(call)
    process.stdin.write(_LENGTH.pack(len(sent)) + sent)
    await process.stdin.drain()
    [size] = _LENGTH.unpack(await process.stdout.readexactly(_LENGTH.size))
    found: tuple[bool, Any] = pickle.loads(await process.stdout.readexactly(size))  # noqa: S301 - of our own process
    return found


def serve(calls: IO[bytes], answers: IO[bytes]) -> None:
    """Runs the calls that are read, until there are no more."""
    while header := calls.read(_LENGTH.size):
        [size] = _LENGTH.unpack(header)
        module, name, args, kwargs = pickle.loads(calls.read(size))  # noqa: S301 - of the process that started it
        try:
            found: Any = importlib.import_module(module)
            for part in name.split("."):
                found = getattr(found, part)
            answer = pickle.dumps((True, found(*args, **kwargs)))
        except Exception as error:  # noqa: BLE001 - raised where the call was made
            answer = pickle.dumps((False, error))
        answers.write(_LENGTH.pack(len(answer)) + answer)
        answers.flush()


def main() -> None:
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - not on every system

        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    # What a library prints must not stand between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
