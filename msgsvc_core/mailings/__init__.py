"""Mailings: one message to an audience. What plugins build broadcasts and recurring sends on."""

from msgsvc_core.mailings.models import (
    Audience,
    Mailing,
    MailingMessage,
    MailingProgress,
    NewMailing,
    Recipient,
)
from msgsvc_core.mailings.previews import Sample
from msgsvc_core.mailings.service import Mailings

__all__ = [
    "Audience",
    "Mailing",
    "MailingMessage",
    "MailingProgress",
    "Mailings",
    "NewMailing",
    "Recipient",
    "Sample",
]
