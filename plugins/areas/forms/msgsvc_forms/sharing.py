"""Links to a form: its page, messenger links, and HTML for other sites."""

from html import escape

from msgsvc_core.channels.registry import Channels
from msgsvc_core.kernel.errors import Unavailable
from msgsvc_core.kernel.i18n import Texts, in_language
from msgsvc_forms.addresses import honeypot_of, page_url
from msgsvc_forms.fields import FormField
from msgsvc_forms.models import Form, FormAnswer

#: Types of fields for which HTML has an input of its own.
_INPUTS = {"email": "email", "phone": "tel", "date": "date"}


class Sharing:
    """The URLs of a form, and HTML that links to it."""

    def __init__(
        self, *, channels: Channels, texts: Texts, base_url: str, default_lang: str
    ) -> None:
        self._channels = channels
        self._texts = texts
        self._base_url = base_url
        self._default_lang = default_lang

    def shown(self, form: Form) -> FormAnswer:
        """A form with its addresses, as the API and the dashboard show it."""
        channels = self._channels
        try:
            links = channels.deep_links(form.project_id, form.payload)
        except Unavailable:
            # The form can be filled in on the web all the same.
            links = {}
        return FormAnswer.of(
            form,
            url=page_url(self._base_url, form),
            honeypot=honeypot_of(form.definition),
            links=links,
            start_messages=channels.start_messages(
                form.project_id, form.payload, links, lasting=True
            )
            or None,
            qr=channels.qr_links(links, form.project_id, form.payload),
        )

    def snippet(self, form: Form, lang: str) -> str:
        """HTML for embedding in another site: plain fields, no style.

        The script fetches the token that detects submissions made too fast for a person.
        """
        send = self._texts.into(lang, __name__)("Send")
        return _snippet(form, page_url(self._base_url, form), lang, self._default_lang, send)


def _snippet(form: Form, url: str, lang: str, default_lang: str, send: str) -> str:
    definition, honeypot = form.definition, honeypot_of(form.definition)
    has_files = any(field.type == "file" for field in definition.fields)
    kind = ' enctype="multipart/form-data"' if has_files else ""
    lines = [
        f'<form action="{escape(url)}" method="post" accept-charset="utf-8"{kind}>',
        '  <input type="hidden" name="_token">',
        f'  <input type="hidden" name="_lang" value="{lang}">',
        f'  <p hidden><input name="{honeypot}" tabindex="-1" autocomplete="off"></p>',
        *(f"  <p>{_asked(field, lang, default_lang)}</p>" for field in definition.fields),
        f"  <p><button>{escape(send)}</button></p>",
        "</form>",
        "<script>",
        f'fetch("{url}/token").then((answer) => answer.json()).then((made) => {{',
        f'  document.querySelector(\'form[action="{url}"] [name="_token"]\').value = made.token;',
        "});",
        "</script>",
    ]
    return "\n".join(lines)


def _asked(field: FormField, lang: str, default_lang: str) -> str:
    label = escape(in_language(field.label, lang, default_lang))
    name, needed = f'name="{field.key}"', " required" if field.required else ""
    if field.type == "consent":
        return f'<label><input type="checkbox" {name} value="true"{needed}> {label}</label>'
    options = [
        (escape(one.value), escape(in_language(one.label, lang, default_lang)))
        for one in field.choices
    ]
    if field.type == "multichoice":
        boxes = [
            f'<label><input type="checkbox" {name} value="{value}"> {text}</label>'
            for value, text in options
        ]
        return f"{label} {' '.join(boxes)}"
    return f"<label>{label} {_box(field, f'{name}{needed}', options)}</label>"


def _box(field: FormField, attributes: str, options: list[tuple[str, str]]) -> str:
    if field.type == "choice":
        # Nothing is chosen for anybody.
        shown = '<option value=""></option>'
        shown += "".join(f'<option value="{value}">{text}</option>' for value, text in options)
        return f"<select {attributes}>{shown}</select>"
    if field.multiline:
        return f"<textarea {attributes}></textarea>"
    if field.type == "rating":
        return f'<input type="number" min="1" max="{field.best}" {attributes}>'
    several = " multiple" if field.type == "file" and field.max_files > 1 else ""
    kind = "file" if field.type == "file" else _INPUTS.get(field.type, "text")
    return f'<input type="{kind}" {attributes}{several}>'
