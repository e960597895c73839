"""Mailings: one message to an audience. Plugins build broadcasts and recurring messages on them."""

from msgsvc_core.mailings.audience import Audience
from msgsvc_core.mailings.models import (
    Mailing,
    MailingMessage,
    MailingProgress,
    NewExperiment,
    NewMailing,
    NewVariant,
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
    "NewExperiment",
    "NewMailing",
    "NewVariant",
    "Recipient",
    "Sample",
]
