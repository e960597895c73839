"""How a message is previewed: by each channel, with what it would refuse."""

from dataclasses import replace

from msgsvc_core.channels import Capabilities, ChatColours, MessengerLook
from msgsvc_core.content.markup import Span
from msgsvc_core.content.outgoing import Button, Media, OutgoingMessage
from msgsvc_core.messages.previews import Messenger
from msgsvc_core.service import Service


async def test_each_channel_previews_a_message_and_says_what_it_would_refuse(
    service: Service,
) -> None:
    project = await service.projects.create("Shop")
    made = service.messages.previews
    short = OutgoingMessage("**Hi** <b>", format="markdown")
    long = OutgoingMessage("x" * (service.settings.limits.text_length + 1))

    shown = made(project.project_id, short)
    [refused] = made(project.project_id, long, ["messenger_b"])

    assert [preview.channels for preview in shown] == [("messenger_a", "messenger_b")]
    assert shown[0].spans == (Span("Hi", ("bold",)), Span(" <b>"))
    assert shown[0].problem is None
    assert shown[0].length == len("Hi <b>")
    assert refused.channels == ("messenger_b",)
    assert refused.problem == "text: must be at most 4000 characters"


async def test_messengers_that_look_alike_share_a_preview_and_others_do_not(
    service: Service,
) -> None:
    project = await service.projects.create("Shop")
    a, b = service.channels["messenger_a"], service.channels["messenger_b"]
    colours = ChatColours(ground="#dfe7ee", bubble="#ffffff", text="#16202a", link="#1d5f99")
    look = MessengerLook(colours, colours, buttons="inside")
    message = OutgoingMessage("Hi", buttons=((Button("Yes", data="y"),),))

    found = []
    for looks in ((None, None), (look, None), (look, look)):
        a.identity, b.identity = (
            replace(channel.identity, look=each)
            for channel, each in zip((a, b), looks, strict=True)
        )
        shown = service.messages.previews(project.project_id, message)
        found.append([(preview.channels, preview.look) for preview in shown])

    assert found == [
        [(("messenger_a", "messenger_b"), None)],
        [(("messenger_a",), look), (("messenger_b",), None)],
        [(("messenger_a", "messenger_b"), look)],
    ]


async def test_buttons_that_open_pages_are_shown_as_buttons(service: Service) -> None:
    project = await service.projects.create("Shop")
    service.channels["messenger_b"].capabilities = Capabilities(buttons="pages")
    rows = ((Button("Yes", data="y"), Button("Shop", url="https://shop.example")),)

    [shown] = service.messages.previews(
        project.project_id, OutgoingMessage("Hi", buttons=rows), ["messenger_b"]
    )

    assert (shown.buttons, shown.links, shown.replies) == (rows, (), ())


async def test_what_a_kind_of_messenger_declares_shapes_its_preview(service: Service) -> None:
    project = await service.projects.create("Shop")
    plain, other = service.channels["messenger_a"], service.channels["messenger_b"]
    other.identity = replace(other.identity, title="Pigeon", mark="M0 0h24v24z")
    other.capabilities = Capabilities(buttons="words", max_text_length=20, max_caption_length=10)
    rows = (
        (Button("Yes", data="y"), Button("No", data="n")),
        (Button("Shop", url="https://shop.example"),),
    )
    message = OutgoingMessage(
        "x" * 9, buttons=rows, media=Media("image", "https://shop.example/a.png")
    )
    text_alone = OutgoingMessage("x" * 17)

    by_a, by_b = service.messages.previews(project.project_id, message)
    near = service.messages.previews(project.project_id, text_alone, ["messenger_b"])
    nearer = replace(text_alone, text="x" * 18)
    [warned] = service.messages.previews(project.project_id, nearer, ["messenger_b"])

    assert plain.capabilities.buttons == "native"
    assert (by_a.buttons, by_a.links, by_a.replies) == (rows, (), ())
    assert (by_b.buttons, by_b.replies) == ((), ("1 - Yes", "2 - No"))
    assert by_b.links == ("Shop: https://shop.example",)
    assert by_b.messengers == (Messenger("Pigeon", "M0 0h24v24z"),)
    assert (by_b.most, by_b.is_caption, by_a.is_caption) == (10, True, False)
    assert [each.is_nearly_too_long for each in (by_a, *near, warned)] == [False, False, True]
