"""Error codes of one-time codes."""

from msgsvc_core.kernel.errors import ApiError


class OtpInvalid(ApiError):
    """The code is wrong, has been used, or was replaced by a newer one."""

    code, status, keeps_writes = "otp_invalid", 400, True


class OtpExpired(ApiError):
    """The code has expired; send another."""

    code, status = "otp_expired", 400


class OtpMaxAttempts(ApiError):
    """The maximum number of wrong attempts is reached; send another code."""

    code, status = "otp_max_attempts", 400


class OtpRateLimited(ApiError):
    """The subscriber got too many codes, or too many were guessed; wait for `Retry-After` seconds."""

    code, status = "otp_rate_limited", 429


OTP_ERRORS: tuple[type[ApiError], ...] = (OtpInvalid, OtpExpired, OtpMaxAttempts, OtpRateLimited)
