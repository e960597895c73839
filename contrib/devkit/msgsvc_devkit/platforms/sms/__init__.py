"""A message centre and a provider's HTTP API for tests, which refuse what their protocols don't contain.

async with FakeSmsCentre() as platform:
    ann = platform.person("Ann")
    channels = {"sms": platform.settings}  # [channels.sms] of the service under test
    ...
    assert ann.messages[-1].text == "Hello"
"""

from msgsvc_devkit.platforms.sms.centre import FakeSmsCentre
from msgsvc_devkit.platforms.sms.people import Person, Text
from msgsvc_devkit.platforms.sms.provider import FakeSmsProvider

__all__ = ["FakeSmsCentre", "FakeSmsProvider", "Person", "Text"]
