"""Error codes of `POST /v1/auth/verify`, and of sign-in in a mini app."""

from msgsvc_core.kernel.errors import ApiError


class AuthCodeInvalid(ApiError):
    """The code was not issued to this project, or its sign-in proved less than `must_prove`."""

    code, status = "auth_code_invalid", 400


class AuthCodeExpired(ApiError):
    """The code was not exchanged in time; the person has to sign in again."""

    code, status = "auth_code_expired", 400


class AuthCodeUsed(ApiError):
    """The code has been exchanged before; a code works once."""

    code, status = "auth_code_used", 409


class AuthMiniAppUsed(ApiError):
    """The mini app's data has signed in before; the person has to open the mini app again."""

    code, status = "auth_mini_app_used", 409


AUTH_ERRORS: tuple[type[ApiError], ...] = (
    AuthCodeInvalid,
    AuthCodeExpired,
    AuthCodeUsed,
    AuthMiniAppUsed,
)
