"""How a message is previewed: by each channel, with what it would refuse."""

from msgsvc_core.content.markup import Span
from msgsvc_core.content.outgoing import OutgoingMessage
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
