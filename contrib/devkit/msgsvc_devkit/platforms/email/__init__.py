"""A mail server for tests, which refuses what is no correct email.

async with FakeMail() as platform:
    ann = platform.person("Ann")
    channels = {"email": platform.settings}  # [channels.email] of the service under test
    ...
    assert ann.messages[-1].text == "Hello"
"""

from msgsvc_devkit.platforms.email.messages import Mail
from msgsvc_devkit.platforms.email.server import DOMAIN, FakeMail, Person

__all__ = ["DOMAIN", "FakeMail", "Mail", "Person"]
