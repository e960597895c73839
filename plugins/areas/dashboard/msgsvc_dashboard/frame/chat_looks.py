"""Stylesheets of messengers' looks, which previews have by a class: the policy of pages allows no style but
that of stylesheets."""

from collections.abc import Iterable
from dataclasses import fields, replace
from hashlib import blake2b

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from msgsvc_core.channels import ChatColours, MessengerLook
from msgsvc_dashboard.frame.addresses import ROOT
from msgsvc_dashboard.frame.assets import KEPT_S

#: An address names what it answers by a digest, so that it never changes.
_HEADERS = {
    "Cache-Control": f"public, max-age={KEPT_S}, immutable",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def chat_class(look: MessengerLook | None) -> str:
    """`{{ preview.look | chat_class }}`: the CSS class of a look; empty for that of the page."""
    if look is None:
        return ""
    return f"look-{blake2b(repr(look).encode(), digest_size=5).hexdigest()}"


def look_routes(looks: Iterable[MessengerLook]) -> list[BaseRoute]:
    """`/dashboard/_looks/{look}.css`, by the class of a look: the same for everybody."""
    rules = {chat_class(look): _rule(look) for look in looks}

    async def colours(request: Request) -> Response:
        """The colours of a messenger's chats, for previews."""
        rule = rules.get(request.path_params["look"])
        if rule is None:
            raise HTTPException(404)
        return Response(rule, media_type="text/css", headers=_HEADERS)

    return [Route(f"{ROOT}/_looks/{{look}}.css", colours)]


def _rule(look: MessengerLook) -> str:
    """Sets the properties that `preview.css` reads."""
    light, dark = _whole(look.light), _whole(look.dark)
    lines = [
        f"  --chat-{each.name.replace('_', '-')}:"
        f" light-dark({getattr(light, each.name)}, {getattr(dark, each.name)});\n"
        for each in fields(ChatColours)
        if getattr(light, each.name) and getattr(dark, each.name)
    ]
    return f".{chat_class(look)} {{\n{''.join(lines)}}}\n"


def _whole(colours: ChatColours) -> ChatColours:
    return replace(
        colours,
        button=colours.button or colours.bubble,
        button_text=colours.button_text or colours.link,
    )
