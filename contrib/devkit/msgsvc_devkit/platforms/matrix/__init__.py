"""A fake Matrix homeserver for tests, and for manual trials of the plugin.

It has one bot, and behaves by the client-server API (https://spec.matrix.org/v1.16/client-server-api/): what
the specification does not contain is refused, also where a homeserver would let it pass.
"""

from msgsvc_devkit.platforms.matrix.calls import Call
from msgsvc_devkit.platforms.matrix.faults import Break, Faults
from msgsvc_devkit.platforms.matrix.homeserver import FakeMatrix
from msgsvc_devkit.platforms.matrix.people import Person, Shown
from msgsvc_devkit.platforms.matrix.refusals import Refused

__all__ = ["Break", "Call", "FakeMatrix", "Faults", "Person", "Refused", "Shown"]
