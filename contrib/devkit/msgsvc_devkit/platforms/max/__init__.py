"""A fake of the MAX platform for tests, and for manual trials of the plugin.

It follows the platform's schema (https://github.com/max-messenger-bot/max-bot-api-schemas,
`schema_2026_07_01.yaml`) and documentation (https://dev.max.ru/docs-api), and may be stricter than the
platform: everything that the schema does not contain is rejected.
"""

from msgsvc_devkit.platforms.max.calls import Call
from msgsvc_devkit.platforms.max.faults import Faults
from msgsvc_devkit.platforms.max.people import Person, Shown
from msgsvc_devkit.platforms.max.platform import FakeMax
from msgsvc_devkit.platforms.max.refusals import Refused

__all__ = ["Call", "FakeMax", "Faults", "Person", "Refused", "Shown"]
