"""The error codes of forms on the web."""

from msgsvc_core.kernel.errors import ApiError


class FormRateLimited(ApiError):
    """A form, or an address, has sent in too much within a minute; wait for `Retry-After` seconds."""

    code, status = "form_rate_limited", 429


class FormFilesLimited(FormRateLimited):
    """The project's forms have taken too many bytes of files within 24 hours; what has none is taken."""

    code = "form_files_limited"


FORM_ERRORS: tuple[type[ApiError], ...] = (FormRateLimited, FormFilesLimited)
