"""The section `[otp]` of the configuration."""

from pydantic import Field, model_validator

from msgsvc_core.config.sections import Section


class OtpSettings(Section):
    """Lifetimes and limits of one-time codes."""

    # Decision 0075.
    ttl_minutes: int = Field(5, ge=1, description="Default lifetime of a code, in minutes.")
    # Decision 0075.
    most_ttl_minutes: int = Field(
        30, ge=1, le=1440, description="Longest lifetime that may be requested."
    )
    max_attempts: int = Field(3, ge=1, description="Default number of attempts per code.")
    most_max_attempts: int = Field(
        10, ge=1, le=100, description="Most attempts that may be requested."
    )
    length: int = Field(6, ge=1, description="Default number of digits.")
    least_length: int = Field(4, ge=1, description="Fewest digits that may be requested.")
    most_length: int = Field(8, ge=1, le=32, description="Most digits that may be requested.")
    resend_after_s: int = Field(
        30, ge=0, le=3600, description="Seconds between two codes of one subscriber and purpose."
    )
    sends_per_hour: int = Field(
        5, ge=1, description="Codes per subscriber in any 3600 seconds, whatever their purpose."
    )
    guesses_per_hour: int = Field(
        10,
        ge=1,
        description="Wrong guesses per subscriber in any 3600 seconds, over all codes; the first "
        "guess at a code is always accepted.",
    )
    link_lifetime_s: int = Field(
        600, ge=30, le=86400, description="Seconds for which a link of a request can be opened."
    )

    page_lifetime_s: int = Field(
        1800,
        ge=60,
        le=86400,
        description="Seconds for which a hosted page for a code can be used, and its result be taken.",
    )
    page_requests_per_minute: int = Field(
        30, ge=1, description="Requests to hosted pages for codes per client address and minute."
    )
    allow_http_returns: bool = Field(
        False,
        description="Accept `return_url` with http for any host; by default only for localhost.",
    )

    @model_validator(mode="after")
    def _within_ranges(self) -> "OtpSettings":
        if self.ttl_minutes > self.most_ttl_minutes:
            raise ValueError("ttl_minutes: must be at most most_ttl_minutes")
        if self.max_attempts > self.most_max_attempts:
            raise ValueError("max_attempts: must be at most most_max_attempts")
        if not self.least_length <= self.length <= self.most_length:
            raise ValueError("length: must be from least_length to most_length")
        return self
