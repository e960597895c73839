"""The section `[auth]` of the configuration."""

from pydantic import Field

from msgsvc_core.settings import Section


class AuthSettings(Section):
    """Lifetimes and limits of signing in."""

    session_lifetime_s: int = Field(
        600, ge=30, le=3600, description="Seconds for which a session waits for its Yes."
    )
    code_lifetime_s: int = Field(
        300,
        ge=10,
        le=3600,
        description="Seconds for which a code can be exchanged (interface spec, section 8).",
    )
    sessions_per_hour: int = Field(
        5,
        ge=1,
        description="Sessions per project in any 3600 seconds (interface spec, section 8).",
    )
    allow_http_callbacks: bool = Field(
        False, description="Take http callbacks of any host; otherwise only those of localhost."
    )
