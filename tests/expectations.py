"""What a block of a test is expected to end with."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest


@asynccontextmanager
async def failing(error: type[BaseException], **options: Any) -> AsyncIterator[None]:
    """`pytest.raises` for `async with`, beside the transaction that is to fail."""
    with pytest.raises(error, **options):
        yield
