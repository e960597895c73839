"""Security headers of pages."""

from collections.abc import Sequence

from msgsvc_core.security.http_urls import origin_of

#: What no page of ours uses, so that nothing on one can ask for it.
NO_DEVICES = "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"


def page_headers(*, referrer: str = "no-referrer", forms_to: Sequence[str] = ()) -> dict[str, str]:
    """A content security policy with resources from this host only, no inline scripts, and no framing.

    `forms_to` are other origins to which a form of the page may redirect: browsers follow no redirect to any
    other.
    """
    allowed = " ".join(("'self'", *map(origin_of, forms_to)))
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
        f" form-action {allowed}; base-uri 'none'; frame-ancestors 'none'"
    )
    return {
        "Content-Security-Policy": policy,
        "Referrer-Policy": referrer,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": NO_DEVICES,
        "Cache-Control": "no-store",
        "Vary": "Accept-Language, Cookie",
    }
