"""What servers' words and codes say together, in replies and in reports."""

import pytest

from msgsvc_devkit.growth import growing
from msgsvc_email.failures import is_no_mailbox, refusal


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("5.1.1", ""),
        ("5.1.10", "anything"),
        ("5.2.1", "The account is disabled"),
        ("5.0.0", "550 user unknown"),
        ("5.5.0", "Requested action not taken: mailbox not found"),
        ("5.0.0", "Requested action not taken: mailbox unavailable"),
        ("5.7.1", "550 5.7.1 no such recipient here"),
        ("5.1.351", "Remote server returned unknown recipient or mailbox unavailable"),
        ("5.4.1", "550 5.4.1 Recipient address rejected: Access denied. AS(201806281)"),
        ("5.0.0", "550 unrouteable address"),
        ("5.1.0", "Address unknown"),
        ("", "Sorry, no mailbox here by that name."),
        ("", "550 <ann@people.example>... User unknown"),
        ("", "550 user <ann@people.example> does not exist"),
        ("", "The email account that you tried to reach does not exist"),
    ],
)
def test_no_mailbox(status: str, words: str) -> None:
    assert is_no_mailbox(status, words)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("4.1.1", "user unknown"),
        ("5.2.2", "mailbox full"),
        ("5.1.0", "550 5.1.0 sender rejected"),
        ("5.1.0", "Sender address rejected: user unknown"),
        ("5.1.8", "Sender address rejected: domain not found"),
        ("5.7.1", "blocked by policy"),
        ("5.7.1", "mailbox unavailable"),
        ("5.7.1", "your IP is on a blocklist: unknown user"),
        ("5.4.1", "no answer from host"),
        ("5.4.7", "delivery time expired"),
        ("5.0.0", "Administrative prohibition"),
        ("5.0.0", ""),
        ("", ""),
        ("", "message too large"),
    ],
)
def test_no_proof_that_there_is_no_mailbox(status: str, words: str) -> None:
    assert not is_no_mailbox(status, words)


def test_words_are_read_in_time_linear_in_their_length() -> None:
    units = ["user ", "user a", "a@", "a", "<", " ", "recipient address ", "unknown ", "5.1.1 "]

    assert growing(lambda words: refusal("recipient", 550, words), units) == []
    assert growing(lambda words: is_no_mailbox(words, words), units) == []
