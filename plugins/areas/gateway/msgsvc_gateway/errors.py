"""Error codes of gateways."""

from msgsvc_core.kernel.errors import ApiError


class GatewayRecipientUnreachable(ApiError):
    """Nobody with this phone number or email address can be reached on the gateway's channels."""

    code, status = "gateway_recipient_unreachable", 422


class GatewaySignatureInvalid(ApiError):
    """The sender's signature is missing, wrong, or more than five minutes old."""

    code, status = "gateway_signature_invalid", 401


class GatewayRateLimited(ApiError):
    """Too many messages by this gateway, or to this recipient; wait for `Retry-After` seconds."""

    code, status = "gateway_rate_limited", 429


GATEWAY_ERRORS: tuple[type[ApiError], ...] = (
    GatewayRecipientUnreachable,
    GatewaySignatureInvalid,
    GatewayRateLimited,
)
