"""The error code of forms on the web."""

from msgsvc_core.errors import ApiError


class FormRateLimited(ApiError):
    """A form, or an address, has sent in too much within a minute; wait for `Retry-After` seconds."""

    code, status = "form_rate_limited", 429


FORM_ERRORS: tuple[type[ApiError], ...] = (FormRateLimited,)
