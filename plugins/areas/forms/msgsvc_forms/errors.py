"""The error codes of forms on the web."""

from msgsvc_core.kernel.errors import ApiError


class FormRateLimited(ApiError):
    """Too many submissions of a form, or from one address, within a minute; wait for `Retry-After`
    seconds."""

    code, status = "form_rate_limited", 429


class FormFilesLimited(FormRateLimited):
    """The project's forms received too many bytes of files within 24 hours; submissions without files
    are still accepted."""

    code = "form_files_limited"


FORM_ERRORS: tuple[type[ApiError], ...] = (FormRateLimited, FormFilesLimited)
