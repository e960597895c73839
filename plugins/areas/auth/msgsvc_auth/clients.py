"""The client of a sign-in: browser and address, as the site saw them."""

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field

from msgsvc_core.api.endpoint import RequestModel
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.security.networks import customer_network

#: Characters of a user agent (longer ones say nothing more).
MAX_AGENT_LENGTH = 512

#: One of the examples in the API description.
USER_AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"


def normal_address(text: str) -> str:
    """An address in its one usual form. Raises ValueError for what is no address.

    >>> normal_address("::ffff:203.0.113.7"), normal_address("2001:DB8::0:1")
    ('203.0.113.7', '2001:db8::1')
    """
    return str(_address(text))


def printable(text: str) -> str:
    """The text in one line, without characters that control a terminal or change the text direction."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


class Client(RequestModel):
    """The browser of a sign-in; shown in the bot's question, so that the user notices a stranger's."""

    model_config = ConfigDict(title="SignInClientBody")

    ip: Annotated[str, Field(max_length=64), AfterValidator(normal_address)] | None = Field(
        None,
        description="Its IPv4 or IPv6 address, as your server sees it.",
        examples=["203.0.113.7"],
    )
    user_agent: (
        Annotated[str, Field(max_length=MAX_AGENT_LENGTH), AfterValidator(printable)] | None
    ) = Field(
        None,
        description="Its header `User-Agent`.",
        examples=[USER_AGENT],
    )

    @classmethod
    def from_request(cls, ip: str, user_agent: str) -> "Client":
        """Of a request to this service; what is empty, or no address, is left out."""
        try:
            known = normal_address(ip)
        except ValueError:
            known = None
        return cls(ip=known, user_agent=user_agent[:MAX_AGENT_LENGTH] or None)

    @property
    def network(self) -> str | None:
        """What belongs to one customer of a provider: an IPv4 address, of IPv6 the first 64 bits."""
        return None if self.ip is None else customer_network(self.ip)


def _address(text: str) -> IPv4Address | IPv6Address:
    try:
        address = ip_address(text)
    except ValueError:
        raise InvalidValue("must be an IPv4 or IPv6 address") from None
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            raise InvalidValue("must be an address without a zone")
        # What a server that listens on both makes of an IPv4 address.
        return address.ipv4_mapped or address
    return address
