"""Assertions on a channel's calls; each failure says how to fix it."""

from collections.abc import Awaitable
from typing import TypeVar

import pytest

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_devkit.conformance.inbox import within

T = TypeVar("T")

#: Advice for a call that failed without an injected fault.
SHOULD_SUCCEED = (
    "It has to succeed here: send what the platform takes, or leave out of `capabilities` what it does"
    " not"
)


async def done(call: Awaitable[T], doing: str, advice: str = "") -> T:
    """Result of a call that has to succeed; `doing` describes it, `advice` says how to fix a failure."""
    __tracebackhide__ = True
    try:
        return await within(call, f"{doing} did not end")
    except Exception as error:  # noqa: BLE001 - whatever a channel raises is a finding
        failed = error
    pytest.fail(f"{doing} raised {failed!r}. {advice or SHOULD_SUCCEED}")


async def refusal(call: Awaitable[object], doing: str) -> DeliveryError:
    """The `DeliveryError` of a call that has to fail."""
    __tracebackhide__ = True
    other: Exception | None = None
    try:
        await within(call, f"{doing} did not end")
    except DeliveryError as error:
        return error
    except Exception as error:  # noqa: BLE001 - whatever a channel raises is a finding
        other = error
    if other is not None:
        pytest.fail(
            f"{doing} raised {other!r}. Turn every failure of a call into a DeliveryError with one of"
            " the seven reasons: the core knows no other"
        )
    pytest.fail(
        f"{doing} returned as if it had succeeded, though the platform did not do it. Look at the"
        " answer's status and body, and raise DeliveryError"
    )


async def refused_or_done(call: Awaitable[object], doing: str) -> DeliveryError | None:
    """The `DeliveryError` of a call that may fail or succeed; None if it succeeded."""
    __tracebackhide__ = True
    try:
        await within(call, f"{doing} did not end")
    except DeliveryError as error:
        expect_reason(error, Reason.PLATFORM_UNAVAILABLE, doing)
        return error
    except Exception as error:  # noqa: BLE001 - whatever a channel raises is a finding
        pytest.fail(f"{doing} raised {error!r}. Turn every failure of a call into a DeliveryError")
    return None


def expect_reason(error: DeliveryError, reason: Reason, what: str) -> None:
    """Fails unless the error has that reason; `what` describes the situation."""
    __tracebackhide__ = True
    assert error.reason is reason, (
        f"{what} gave {error.reason.value!r} ({error.text!r}). Map what the platform answers then to"
        f" Reason.{reason.name}: the reason decides whether the core tries again, and whether the"
        " person is unsubscribed"
    )
