"""The page behind an unsubscribe link, and the one-click request of mail programs (RFC 8058)."""

from html import escape

from msgsvc_core.channels import WebhookAnswer, WebhookCall
from msgsvc_core.kernel.i18n import Texts, Translate

#: The path below `/hooks/<channel>`.
PATH = "unsubscribe"

_STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:28rem;margin:15vh auto;"
    "padding:0 1rem}h1{font-size:1.4rem}button{font:inherit;font-weight:600;padding:.6rem 1.2rem;border:0;"
    "border-radius:8px;background:#1d4ed8;color:#fff;cursor:pointer}"
    "button:focus-visible{outline:3px solid #60a5fa;outline-offset:2px}"
)


def language(call: WebhookCall, texts: Texts, fallback: str) -> str:
    """The first language of the reader's browser that the service has."""
    for tag in call.headers.get("accept-language", "").split(","):
        wanted = tag.partition(";")[0].strip()
        if wanted and texts.choose(wanted) == texts.choose(wanted.partition("-")[0]):
            chosen = texts.choose(wanted)
            if chosen.partition("-")[0] == wanted.partition("-")[0].lower():
                return chosen
    return texts.choose(fallback)


def question(_: Translate, lang: str, sender: str, address: str) -> WebhookAnswer:
    """Asks before it unsubscribes: programs that check links for danger open them too."""
    return _page(
        lang,
        _("Unsubscribe"),
        f"<p>{escape(_('No more emails from {sender} to {address}?', sender=sender, address=address))}</p>"
        f'<form method="post"><button>{escape(_("Unsubscribe"))}</button></form>',
    )


def confirmation(_: Translate, lang: str, sender: str, address: str) -> WebhookAnswer:
    text = _("{address} gets no more emails from {sender}.", sender=sender, address=address)
    return _page(lang, _("Unsubscribed"), f"<p>{escape(text)}</p>")


def unknown(_: Translate, lang: str) -> WebhookAnswer:
    text = _("The link is incomplete or no longer valid. Please use the one in a later email.")
    return _page(lang, _("Unknown link"), f"<p>{escape(text)}</p>", status=404)


def _page(lang: str, title: str, content: str, status: int = 200) -> WebhookAnswer:
    body = (
        f'<!DOCTYPE html>\n<html lang="{escape(lang)}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        '<meta name="robots" content="noindex"><meta name="referrer" content="no-referrer">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\';'
        " style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'\">"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><main><h1>{escape(title)}</h1>{content}</main></body></html>\n"
    )
    return WebhookAnswer(body.encode(), "text/html; charset=utf-8", status)
