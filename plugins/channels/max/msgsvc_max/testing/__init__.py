"""A fake of the MAX platform for tests, and for trying the plugin by hand.

It behaves by the platform's schema (https://github.com/max-messenger-bot/max-bot-api-schemas,
`schema_2026_07_01.yaml`) and documentation (https://dev.max.ru/docs-api), and is stricter than the
platform may be: whatever the schema does not know is refused.
"""

from msgsvc_max.testing.calls import Call
from msgsvc_max.testing.faults import Faults
from msgsvc_max.testing.people import Person, Shown
from msgsvc_max.testing.platform import FakeMax
from msgsvc_max.testing.refusals import Refused

__all__ = ["Call", "FakeMax", "Faults", "Person", "Refused", "Shown"]
