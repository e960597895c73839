"""Readable browser names from a `User-Agent`."""

from msgsvc_core.kernel.i18n import Translate

#: Characters shown of an unknown user agent.
SHOWN_LENGTH = 40

#: The first mark that occurs counts: browsers also name those whose engine they share, after themselves.
_BROWSERS = (
    ("YaBrowser/", "Yandex Browser"),
    ("EdgA/", "Edge"),
    ("EdgiOS/", "Edge"),
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Vivaldi/", "Vivaldi"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("FxiOS/", "Firefox"),
    ("Firefox/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)

#: Likewise: an iPhone is "like Mac OS X", and Android names Linux.
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Macintosh", "macOS"),
    ("Linux", "Linux"),
)


def readable_agent(_: Translate, user_agent: str) -> str:
    """E.g. "Firefox on Windows"; the start of an unknown user agent."""
    browser = _named(user_agent, _BROWSERS)
    system = _named(user_agent, _SYSTEMS)
    if browser is None:
        return _cut(user_agent)
    if system is None:
        return browser
    return _("{browser} on {system}", browser=browser, system=system)


def _named(user_agent: str, names: tuple[tuple[str, str], ...]) -> str | None:
    return next((name for mark, name in names if mark in user_agent), None)


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_LENGTH else f"{text[: SHOWN_LENGTH - 1]}…"
