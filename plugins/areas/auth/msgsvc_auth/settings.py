"""The section `[auth]` of the configuration."""

from typing import Annotated

from pydantic import Field

from msgsvc_core.config.sections import OWN_USERS, LimitTitle, Section

#: A site as browsers name it: nothing else may stand in a content security policy.
Site = Annotated[str, Field(pattern=r"^https?://[A-Za-z0-9.-]+(:[0-9]+)?$")]


class AuthSettings(Section):
    """Lifetimes and limits of signing in."""

    session_lifetime_s: int = Field(
        600, ge=30, le=3600, description="Seconds in which a session can be confirmed."
    )
    # Decision 0075.
    code_lifetime_s: int = Field(
        300,
        ge=10,
        le=3600,
        description="Seconds for which a code can be exchanged.",
    )
    # Decision 0075.
    sessions_per_hour: Annotated[int, LimitTitle(lambda _: _("Sign-ins per hour"))] = Field(
        5,
        ge=1,
        description="Sessions per project in any 3600 seconds.",
        json_schema_extra={OWN_USERS: 3600},
    )
    sessions_per_hour_per_address: int = Field(
        20,
        ge=1,
        description="Sessions of a project for one address of a browser in any 3600 seconds.",
    )
    sessions_per_hour_per_recipient: int = Field(
        5,
        ge=1,
        description="Sign-ins of a project whose question is sent to one email address or phone number, in "
        "any 3600 seconds.",
    )
    pages_per_hour_per_address: int = Field(
        60,
        ge=1,
        description="Sign-ins that one address may start on hosted pages in any 3600 seconds; an "
        "IPv6 address counts by its first 64 bits.",
    )
    request_lifetime_s: int = Field(
        600,
        ge=30,
        le=3600,
        description="Seconds in which a sign-in can be started on a page that another plugin asked for.",
    )
    questions_pending: int = Field(
        3,
        ge=1,
        description="Questions of other plugins, e.g. to approve a payment, that may wait for one "
        "subscriber's answer.",
    )
    questions_per_hour: int = Field(
        10,
        ge=1,
        description="Such questions to one subscriber in any 3600 seconds.",
    )
    messenger_names: dict[str, str] = Field(
        {},
        description="Display names of channels on hosted pages, by channel name in the API; by "
        "default the messenger's name, e.g. Telegram.",
    )
    allow_http_callbacks: bool = Field(
        False, description="Accept http callbacks for any host; by default only for localhost."
    )
    mini_app_minutes: int = Field(
        10,
        ge=1,
        le=1440,
        description="Minutes for which a mini app's signed data can be used to sign in, once.",
    )
    mini_app_frames: tuple[Site, ...] = Field(
        ("https://web.telegram.org", "https://web.max.ru"),
        description="Sites that show the mini app's page in a frame: messengers in the browser.",
    )
