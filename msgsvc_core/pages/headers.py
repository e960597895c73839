"""Security headers of pages."""

from collections.abc import Sequence

from msgsvc_core.security.http_urls import origin_of


def page_headers(*, referrer: str = "no-referrer", forms_to: Sequence[str] = ()) -> dict[str, str]:
    """Everything comes from this host, nothing is written into the page, and nobody may frame it.

    `forms_to` are origins, beside ours, to which a form of the page may lead in the end: browsers follow
    no redirect to another.
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
        "Cache-Control": "no-store",
        "Vary": "Accept-Language, Cookie",
    }
