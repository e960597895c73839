"""The addresses of a form."""

from msgsvc_devkit.core import MemoryCore, memory_core
from msgsvc_forms.sharing import Sharing
from plugins.areas.forms.tests.unit.order import BASE_URL, FIELDS, FORM, FORM_ID, form_of


def test_a_form_is_shown_with_its_page_and_a_link_for_each_messenger(core: MemoryCore) -> None:
    shown = core.get(Sharing).shown(FORM)

    assert shown.url == f"{BASE_URL}/f/{FORM_ID}"
    assert set(shown.links) == {"messenger_a", "messenger_b"}
    assert all(link.endswith("?start=form_order") for link in shown.links.values())
    assert shown.qr["messenger_a"].endswith("/qr/messenger_a/form_order.svg")


async def test_without_a_bot_a_form_can_be_filled_in_on_the_web() -> None:
    async with memory_core(plugins=["forms"], channels={}) as core:
        shown = core.get(Sharing).shown(FORM)

    assert (shown.links, shown.qr) == ({}, {})
    assert shown.url


def test_the_field_for_machines_is_none_that_the_form_asks_for(core: MemoryCore) -> None:
    asked = [{"key": "website", "type": "text", "label": "Site?"}, *FIELDS]

    assert core.get(Sharing).shown(FORM).honeypot == "website"
    assert core.get(Sharing).shown(form_of(fields=asked)).honeypot == "homepage"


def test_html_for_other_sites_holds_labels_as_texts(core: MemoryCore) -> None:
    evil = [{"key": "name", "type": "text", "label": "<script>alert(1)</script>", "required": True}]
    html = core.get(Sharing).snippet(form_of(fields=evil), "en")

    assert "&lt;script&gt;alert(1)" in html
    assert 'name="name" required' in html
    assert f'action="{BASE_URL}/f/{FORM_ID}"' in html


def test_a_form_with_files_is_sent_in_parts_and_nothing_is_chosen_for_anybody(
    core: MemoryCore,
) -> None:
    fields = [
        {"key": "photo", "type": "file", "label": "Photo?", "max": 3},
        {"key": "size", "type": "choice", "label": "Size?", "options": ["S", "L"]},
    ]
    html = core.get(Sharing).snippet(form_of(fields=fields), "ru")

    assert 'enctype="multipart/form-data"' in html
    assert '<input type="file" name="photo" multiple>' in html
    assert '<select name="size"><option value=""></option>' in html
    assert ">Отправить<" in html
