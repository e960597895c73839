"""/login/{slug}/app: the page of a bot's mini app, and its POST requests."""

from urllib.parse import urlsplit

from msgsvc_auth.errors import AuthMiniAppUsed
from msgsvc_auth.messengers import messenger_name
from msgsvc_auth.mini_app.models import MiniAppQuery, MiniAppSignInAnswer, MiniAppSignInBody
from msgsvc_auth.mini_app.origin import check_same_origin
from msgsvc_auth.mini_app.page import page_for
from msgsvc_auth.mini_app.service import MiniAppSignIn
from msgsvc_auth.mini_app.texts import page_texts
from msgsvc_auth.models import NamedLink, StaticLink
from msgsvc_auth.payloads import link_payload
from msgsvc_auth.settings import AuthSettings
from msgsvc_auth.sites import readable_site
from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Response, Router
from msgsvc_core.channels.registry import Channels
from msgsvc_core.config.settings import Settings
from msgsvc_core.kernel.errors import Conflict, Forbidden, NotFound, Unavailable
from msgsvc_core.kernel.i18n import Texts
from msgsvc_core.pages import preferred

PATH = "/login/{slug}/app"
HTML = "text/html; charset=utf-8"

router = Router(area="auth")


@router.get(PATH, public=True, media_type="text/html", error_pages=(404,))
async def mini_app_page(
    ctx: Context,
    slug: NamedLink,
    query: MiniAppQuery,
    texts: Texts,
    settings: AuthSettings,
    config: Settings,
    channels: Channels,
    mini_apps: MiniAppSignIn,
) -> Response:
    """Serves the page of a bot's mini app, which asks whether to sign in.

    For users inside a messenger. Set its URL as the mini app of the bot.
    """
    page = page_for(settings.mini_app_frames)
    lang = texts.choose(query.lang or preferred(ctx.headers.get("accept-language", "")))
    try:
        link, project = await mini_apps.get(ctx.tx, slug)
    except NotFound:
        html = page.render(lang, page_texts(texts.into(lang, __name__), "", ""), None)
        return Response(html, 404, page.headers, HTML)
    said = page_texts(
        texts.into(lang, __name__), project.public_name, readable_site(link.callback_url)
    )
    brand = project.brand(urlsplit(config.base_url).path.rstrip("/"))
    html = page.render(lang, said, _bot_links(channels, settings, link), brand)
    return Response(html, 200, page.headers, HTML)


@router.post(
    PATH,
    public=True,
    errors=(NotFound, Forbidden, Conflict, AuthMiniAppUsed),
    holds_connection=False,
)
async def sign_in_by_mini_app(
    ctx: Context,
    slug: NamedLink,
    body: MiniAppSignInBody,
    config: Settings,
    mini_apps: MiniAppSignIn,
) -> MiniAppSignInAnswer:
    """Signs in the person who opened the mini app, by its signed data; for the page above only.

    The same data works once, and for `auth.mini_app_minutes`.
    """
    check_same_origin(ctx.headers, config.base_url)
    return MiniAppSignInAnswer(redirect=await mini_apps.sign_in(slug, body))


def _bot_links(
    channels: Channels, settings: AuthSettings, link: StaticLink
) -> list[tuple[str, str]]:
    """The way for who opened the page outside the messenger: each messenger's name, and its link."""
    try:
        links = channels.deep_links(link.project_id, link_payload(link.slug), asks=True)
    except Unavailable:
        return []
    return [
        (messenger_name(settings, channels, channel, link.project_id), url)
        for channel, url in links.items()
    ]
