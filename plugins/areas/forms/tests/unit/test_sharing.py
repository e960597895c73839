"""The addresses of a form, built from fakes."""

from msgsvc_devkit import plugin_context
from msgsvc_devkit.fakes import FakeChannels, fake_settings
from msgsvc_forms import plugin
from msgsvc_forms.sharing import Sharing

from .order import FIELDS, form_of


def sharing(channels: FakeChannels | None = None) -> Sharing:
    core = plugin_context(plugin=plugin)
    return Sharing(
        channels=channels or core.channels,
        texts=core.texts,
        base_url="https://msgsvc.test",
        default_lang="en",
    )


def test_a_form_is_shown_with_its_page_and_a_link_for_each_messenger() -> None:
    shown = sharing().shown(form_of())

    assert shown.url == "https://msgsvc.test/f/frm_1"
    assert set(shown.links) == {"messenger_a", "messenger_b"}
    assert all(link.endswith("?start=form_order") for link in shown.links.values())
    assert shown.qr["messenger_a"].endswith("/qr/messenger_a/form_order.svg")


def test_without_a_bot_a_form_can_be_filled_in_on_the_web() -> None:
    shown = sharing(FakeChannels(fake_settings(channels={}))).shown(form_of())

    assert (shown.links, shown.qr) == ({}, {})
    assert shown.url


def test_the_field_for_machines_is_none_that_the_form_asks_for() -> None:
    asked = [{"key": "website", "type": "text", "label": "Site?"}, *FIELDS]

    assert sharing().shown(form_of()).honeypot == "website"
    assert sharing().shown(form_of(fields=asked)).honeypot == "homepage"


def test_html_for_other_sites_holds_labels_as_texts() -> None:
    evil = [{"key": "name", "type": "text", "label": "<script>alert(1)</script>", "required": True}]
    html = sharing().snippet(form_of(fields=evil), "en")

    assert "&lt;script&gt;alert(1)" in html
    assert 'name="name" required' in html
    assert 'action="https://msgsvc.test/f/frm_1"' in html


def test_a_form_with_files_is_sent_in_parts_and_nothing_is_chosen_for_anybody() -> None:
    fields = [
        {"key": "photo", "type": "file", "label": "Photo?", "max": 3},
        {"key": "size", "type": "choice", "label": "Size?", "options": ["S", "L"]},
    ]
    html = sharing().snippet(form_of(fields=fields), "ru")

    assert 'enctype="multipart/form-data"' in html
    assert '<input type="file" name="photo" multiple>' in html
    assert '<select name="size"><option value=""></option>' in html
    assert ">Отправить<" in html
