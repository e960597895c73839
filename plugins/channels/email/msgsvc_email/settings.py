"""Settings of a channel: `[channels.<name>]` with `plugin = "email"`."""

import re
from ipaddress import ip_address
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    FilePath,
    SecretStr,
    field_validator,
    model_validator,
)

from msgsvc_core.config.sections import Section
from msgsvc_core.kernel import email
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_email.dkim import read_key

#: How a connection is encrypted: after `STARTTLS`, from its first byte, or not at all.
Tls = Literal["starttls", "implicit", "none"]

#: Ports of mail submission (RFC 6409, RFC 8314), and of IMAP over TLS.
SUBMISSION_PORT = 587
IMAPS_PORT = 993

#: Say where connections go, or whose word on senders is trusted, so a project can't set them for a channel
#: of its own.
OPERATOR_SETTINGS = frozenset(
    {
        "host",
        "port",
        "tls",
        "fallbacks",
        "ca_file",
        "drops_duplicates",
        "imap",
    }
)

Host = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?$", max_length=253)]
Port = Annotated[int, Field(ge=1, le=65535)]
Address = Annotated[str, AfterValidator(email.normalized)]


def _one_line(text: str) -> str:
    # A header's value: a line break would begin a header of its own.
    if not text.isprintable():
        raise InvalidValue("must be one line without control characters")
    return text


Line = Annotated[str, Field(max_length=200), AfterValidator(_one_line)]


class SmtpServer(Section):
    """A server that takes messages."""

    model_config = ConfigDict(hide_input_in_errors=True)

    host: Host = Field(description="Host of the SMTP server.")
    port: Port = Field(SUBMISSION_PORT, description="Port of the SMTP server.")
    tls: Tls = Field(
        "starttls",
        description="`starttls` encrypts after the greeting, `implicit` from the first byte (port 465);"
        " `none` is for a server on the same host.",
    )
    username: str | None = Field(
        None, description="Account at the SMTP server, if it asks for one."
    )
    password: SecretStr | None = Field(None, description="Password of the account.")

    @model_validator(mode="after")
    def _keeps_the_password(self) -> "SmtpServer":
        if (self.username is None) != (self.password is None):
            raise InvalidValue("username and password belong together")
        if self.password is not None and self.tls == "none" and not is_local(self.host):
            raise InvalidValue("a password is not sent without tls")
        return self


class ImapServer(Section):
    """The mailbox that replies and reports come to."""

    model_config = ConfigDict(hide_input_in_errors=True)

    host: Host = Field(description="Host of the IMAP server.")
    port: Port = Field(IMAPS_PORT, description="Port of the IMAP server.")
    tls: Tls = Field(
        "implicit", description="As that of the SMTP server; port 143 takes `starttls`."
    )
    username: str = Field(min_length=1, description="Account at the IMAP server.")
    password: SecretStr = Field(description="Password of the account.")
    folder: Line = Field(
        "INBOX", min_length=1, description="Folder that is read. Nothing is changed in it."
    )
    subaddresses: bool = Field(
        True,
        description="Whether mail to `name+anything@domain` comes to the mailbox `name@domain`: bounces and"
        " replies are then recognised by their address.",
    )
    authserv_id: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9._-]+$",
        description="Name by which the own mail server signs `Authentication-Results`. It must remove such"
        " fields of others. Without it only replies are taken.",
    )

    @model_validator(mode="after")
    def _keeps_the_password(self) -> "ImapServer":
        if self.tls == "none" and not is_local(self.host):
            raise InvalidValue("a password is not sent without tls")
        return self


class EmailSettings(SmtpServer):
    """One sender of emails."""

    sender: Address = Field(description="Address that messages are from, e.g. `news@shop.example`.")
    sender_name: Line = Field(
        "", description="Name of the sender, e.g. `Shop`; without one readers see the address."
    )
    reply_to: Address | None = Field(
        None, description="Address for replies, if it is not the sender's, nor read by IMAP."
    )
    subject: Line = Field(
        "", description="Subject of every message; if empty, the first line of its text."
    )
    lang: str = Field(
        "en",
        pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$",
        description="Language of what the channel adds to messages: the line with the unsubscribe link.",
    )
    unsubscribe: bool = Field(
        True,
        description="Whether messages have an unsubscribe link and `List-Unsubscribe`. `false` is for a"
        " channel that sends nothing but codes and receipts.",
    )
    fallbacks: tuple[SmtpServer, ...] = Field(
        (),
        max_length=5,
        description="Further servers, in order, each with `host`, `port`, `tls`, `username` and `password`:"
        " used while those before them can't be reached.",
    )
    ca_file: FilePath | None = Field(
        None, description="Certificates (PEM) to trust in addition to the system's."
    )
    timeout_s: float = Field(
        60.0, gt=0, le=600, description="Timeout of each step of a delivery, in seconds."
    )
    connections: int = Field(
        5,
        ge=1,
        le=100,
        description="Maximum connections to a server at the same time, per process.",
    )
    per_connection: int = Field(
        100, ge=1, le=10_000, description="Messages after which a connection is closed."
    )
    max_attachment_bytes: int = Field(
        10_000_000,
        ge=1,
        le=50_000_000,
        description="Maximum size of a message's file. Mail servers take 20 to 25 MB, encoded, which is a"
        " third more.",
    )
    dkim_selector: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,61}[A-Za-z0-9])?$",
        description="Selector of the DKIM key: its public part is at `<selector>._domainkey.<domain>`.",
    )
    dkim_key: SecretStr | None = Field(
        None,
        description="Private key (PEM; RSA or Ed25519) by which messages are signed (DKIM), if neither the"
        " server nor the provider signs them.",
    )
    drops_duplicates: bool = Field(
        False,
        description="Whether the server shows a message once that arrives again with the same Message-ID."
        " Then a message whose outcome is unknown is sent again.",
    )
    per_second: float | None = Field(
        None, gt=0, description="Messages per second that the provider allows; no limit by default."
    )

    imap: ImapServer | None = Field(
        None,
        description="The mailbox that is read for replies, bounces and complaints: `host`, `port`, `tls`,"
        " `username`, `password`, `folder`, `subaddresses` and `authserv_id`. Without it nothing is"
        " received.",
    )
    inbox: Address | None = Field(
        None, description="Address of the mailbox that `imap` reads, if it is not `sender`."
    )

    @field_validator("dkim_key")
    @classmethod
    def _is_a_key(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None:
            read_key(key.get_secret_value())
        return key

    @model_validator(mode="after")
    def _has_key_and_selector(self) -> "EmailSettings":
        if (self.dkim_key is None) != (self.dkim_selector is None):
            raise InvalidValue("dkim_key and dkim_selector belong together")
        return self

    @property
    def mailbox(self) -> str:
        """The address whose mail is read."""
        return self.inbox or self.sender

    @property
    def domain(self) -> str:
        """The sender's domain."""
        return self.sender.rpartition("@")[2]

    @property
    def servers(self) -> tuple[SmtpServer, ...]:
        """The servers in the order in which they are tried."""
        return (self, *self.fallbacks)


def is_local(host: str) -> bool:
    """Whether connections to it stay on this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return bool(re.fullmatch(r"localhost\.?", host, re.IGNORECASE))
