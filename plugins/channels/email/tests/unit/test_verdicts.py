"""When a refusal of a recipient is believed."""

from msgsvc_core.channels import Reason
from msgsvc_email.failures import SmtpRefusal, refusal
from msgsvc_email.verdicts import BELIEVED, Verdicts


def gone() -> SmtpRefusal:
    return refusal("recipient", 550, "5.1.1 no such user")


def test_a_server_that_takes_our_own_address_refuses_one_alone() -> None:
    weighed = Verdicts().weighed("a@b.example", gone(), takes_own=True)

    assert weighed.reason is Reason.CHAT_NOT_FOUND


def test_a_server_that_took_our_own_address_before_refuses_everybody() -> None:
    verdicts = Verdicts()
    verdicts.refuses_all(takes_own=True)
    weighed = verdicts.weighed("a@b.example", gone(), takes_own=False)

    assert weighed.reason is Reason.PLATFORM_UNAVAILABLE
    assert weighed.is_servers


def test_an_address_that_is_refused_again_after_others_were_taken_is_gone() -> None:
    verdicts = Verdicts()
    verdicts.refuses_all(takes_own=True)
    verdicts.weighed("a@b.example", gone(), takes_own=False)
    verdicts.taken()
    weighed = verdicts.weighed("a@b.example", gone(), takes_own=False)

    assert weighed.reason is Reason.CHAT_NOT_FOUND


def test_where_our_own_address_has_no_mailbox_few_refusals_are_believed() -> None:
    verdicts = Verdicts()
    reasons = [
        verdicts.weighed(f"{number}@b.example", gone(), takes_own=False).reason
        for number in range(BELIEVED + 2)
    ]

    assert reasons == [Reason.CHAT_NOT_FOUND] * BELIEVED + [Reason.PLATFORM_UNAVAILABLE] * 2


def test_where_our_own_address_has_no_mailbox_each_taken_message_makes_refusals_believable() -> (
    None
):
    """Single messages, now and then one to a mailbox that no longer exists."""
    verdicts = Verdicts()
    reasons = []
    for number in range(BELIEVED * 3):
        verdicts.taken()
        reasons.append(verdicts.weighed(f"{number}@b.example", gone(), takes_own=False).reason)

    assert reasons == [Reason.CHAT_NOT_FOUND] * BELIEVED * 3
