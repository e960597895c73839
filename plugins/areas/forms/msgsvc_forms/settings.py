"""The section `[forms]` of the configuration."""

from typing import Annotated

from pydantic import Field

from msgsvc_core.config.sections import OWN_USERS, LimitTitle, Section


class FormsSettings(Section):
    """Limits of forms, how long what was sent in is kept, and patience in conversations."""

    # Decision 0075.
    forms_per_project: Annotated[int, LimitTitle(lambda _: _("Forms"))] = Field(
        10,
        ge=1,
        description="Forms of one project.",
        json_schema_extra={OWN_USERS: 200},
    )
    # Decision 0075.
    rules_per_form: int = Field(40, ge=0, description="Rules of one form.")
    submissions_per_minute: int = Field(
        30, ge=1, description="Web submissions per form in any 60 seconds."
    )
    submissions_per_minute_per_address: int = Field(
        5,
        ge=1,
        description="Submissions per address to a project's forms in any 60 seconds; an IPv6 "
        "address counts by its first 64 bits.",
    )
    page_hours: int = Field(
        24, ge=1, le=720, description="Hours for which a loaded form can be submitted."
    )
    max_body_bytes: int = Field(
        60 * 1024 * 1024,
        ge=1024,
        description="Bytes of one form with its files; each file keeps to the limits of media too.",
    )
    file_bytes_per_day: int = Field(
        5 * 1024**3,
        ge=1,
        description="Bytes of files accepted from the web by all forms of a project in any 24 "
        "hours; spam is counted separately.",
    )
    submission_days: int | None = Field(
        None, ge=1, description="Days for which submissions are kept; until deleted, unless given."
    )
    spam_days: int = Field(30, ge=1, description="Days for which spam is kept.")
    conversation_hours: int = Field(
        72,
        ge=1,
        description="Hours of inactivity after which a form being filled in in the messenger is "
        "abandoned.",
    )
    ask_again_after_s: int = Field(
        15,
        ge=1,
        le=3600,
        description="Seconds after a person did something else in the chat, e.g. /settings, after"
        " which the bot asks its question again.",
    )
