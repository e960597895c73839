"""A fake of the WhatsApp Business Cloud API for tests, and for manual trials of the plugin.

It follows Meta's OpenAPI document (https://github.com/facebook/openapi,
`business-messaging-api_v23.0.yaml`) and documentation of 2026
(https://developers.facebook.com/documentation/business-messaging/whatsapp), and may be stricter than the
platform: everything that the document does not contain is rejected."""

from msgsvc_devkit.platforms.whatsapp.calls import Call
from msgsvc_devkit.platforms.whatsapp.faults import Faults
from msgsvc_devkit.platforms.whatsapp.people import Person, Shown
from msgsvc_devkit.platforms.whatsapp.platform import FakeWhatsApp
from msgsvc_devkit.platforms.whatsapp.refusals import Refused

__all__ = ["Call", "FakeWhatsApp", "Faults", "Person", "Refused", "Shown"]
