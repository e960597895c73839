"""/login/{slug}/app: the page that a bot's mini app opens, and what it posts."""

from msgsvc_auth.errors import AuthMiniAppUsed
from msgsvc_auth.messengers import messenger_name
from msgsvc_auth.mini_app.models import MiniAppQuery, MiniAppSignInAnswer, MiniAppSignInBody
from msgsvc_auth.mini_app.origin import check_same_origin
from msgsvc_auth.mini_app.page import page_for
from msgsvc_auth.mini_app.service import MiniAppSignIn
from msgsvc_auth.mini_app.texts import page_texts
from msgsvc_auth.payloads import link_payload
from msgsvc_auth.settings import AuthSettings
from msgsvc_auth.sites import readable_site
from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Response, Router
from msgsvc_core.config.settings import Settings
from msgsvc_core.kernel.errors import Conflict, Forbidden, NotFound, Unavailable
from msgsvc_core.kernel.i18n import Texts
from msgsvc_core.pages import preferred

PATH = "/login/{slug}/app"
HTML = "text/html; charset=utf-8"

router = Router(area="auth")


@router.get(PATH, public=True, media_type="text/html")
async def mini_app_page(ctx: Context, slug: str, query: MiniAppQuery, all_texts: Texts) -> Response:
    """The page of a bot's mini app, which asks whether to sign in.

    Made for people, inside a messenger. Set its address as the mini app of the bot.
    """
    texts = all_texts
    page = page_for(ctx.service.section(AuthSettings).mini_app_frames)
    lang = texts.choose(query.lang or preferred(ctx.headers.get("accept-language", "")))
    try:
        link, project = await MiniAppSignIn(ctx.service).find(ctx.tx, slug)
    except NotFound:
        html = page.render(lang, page_texts(texts.into(lang, __name__), "", ""), None)
        return Response(html, 404, page.headers, HTML)
    said = page_texts(texts.into(lang, __name__), project.name, readable_site(link.callback_url))
    html = page.render(lang, said, _bot_links(ctx, link.project_id, link.slug))
    return Response(html, 200, page.headers, HTML)


@router.post(
    PATH,
    public=True,
    errors=(NotFound, Forbidden, Conflict, AuthMiniAppUsed),
    holds_connection=False,
)
async def sign_in_by_mini_app(
    ctx: Context, slug: str, body: MiniAppSignInBody, settings: Settings
) -> MiniAppSignInAnswer:
    """Signs in who opened the mini app, by what its platform signed; only for the page above.

    The same data works once, and for `auth.mini_app_minutes`.
    """
    check_same_origin(ctx.headers, settings.base_url)
    return MiniAppSignInAnswer(redirect=await MiniAppSignIn(ctx.service).sign_in(slug, body))


def _bot_links(ctx: Context, project_id: str, slug: str) -> list[tuple[str, str]]:
    """The way for who opened the page outside the messenger: each messenger's name, and its link."""
    try:
        links = ctx.service.channels.deep_links(project_id, link_payload(slug), asks=True)
    except Unavailable:
        return []
    settings = ctx.service.section(AuthSettings)
    channels = ctx.service.channels
    return [
        (messenger_name(settings, channels, channel, project_id), link)
        for channel, link in links.items()
    ]
