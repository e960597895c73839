"""Contacts of subscribers that were verified by somebody who can know: a messenger, or a code sent there."""

from msgsvc_core.subscribers.contacts.models import ContactKind, Contacts
from msgsvc_core.subscribers.contacts.service import VerifiedContacts

__all__ = ["ContactKind", "Contacts", "VerifiedContacts"]
