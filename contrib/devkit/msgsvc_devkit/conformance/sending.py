"""Checks that messages are shown completely and exactly, and that `problem` rejects what the platform can't
show."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from msgsvc_core.channels import Channel, DeliveryError, OutgoingMessage, Reason
from msgsvc_core.channels.buttons.fallbacks import without_blocks
from msgsvc_core.content.markup import to_spans, with_addresses
from msgsvc_core.content.outgoing import Format
from msgsvc_devkit.conformance.door import Door
from msgsvc_devkit.conformance.messenger import Messenger
from msgsvc_devkit.conformance.stage import (
    Stage,
    keyed,
    needs,
    picture,
    plainest,
    sent,
    shown_as,
)
from msgsvc_devkit.conformance.texts import NASTY_TEXTS
from msgsvc_devkit.conformance.verdicts import expect_reason

FORMATS: tuple[Format, ...] = ("plain", "markdown", "html")
MEDIA_TYPES = ("image", "video", "document")

#: Every block, and the words of them.
RICH_TEXT = (
    "<h1>Order</h1>Hi <b>Ann</b> &amp; Bob<h3>Parcel</h3>"
    "<ul><li>Tea<ul><li>green</li></ul></li><li>Mugs</li></ul>"
    "<ol><li>pay</li><li>wait</li></ol><table><tr><th>Item</th><th>Price</th></tr>"
    "<tr><td><i>Cup</i></td><td>4 &lt; 5</td></tr></table><hr><blockquote>Good<br>really</blockquote>"
    '<pre>x = 1</pre><p>See <a href="https://shop.example/1207">this</a></p>'
)
RICH_WORDS = (
    *("Order", "Hi", "Ann", "& Bob", "Parcel", "Tea", "green", "Mugs", "pay", "wait"),
    *("Item", "Price", "Cup", "4 < 5", "Good", "really", "x = 1", "See", "this"),
)

#: Characters of one and of two UTF-16 code units.
UNITS = ("x", "😀")


def visible(text: str, text_format: Format, messenger: Messenger) -> str:
    """The text that the user should read. Platforms strip surrounding whitespace."""
    spans = to_spans(text, text_format)
    shown = spans if messenger.labels_links else with_addresses(spans)
    return "".join(span.text for span in shown).strip()


class Sending(Stage):
    """`send` and `problem`."""

    async def test_a_sent_message_is_shown_and_its_ref_unique_in_the_chat(
        self, channel: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        takes = channel.capabilities
        refs = [await sent(channel, chat_id, plainest("the same", takes)) for _ in range(3)]

        assert all(isinstance(ref, str) and ref for ref in refs), f"`send` returned {refs}"
        assert len(set(refs)) == 3, (
            f"`send` returned {refs} for three messages; return the platform's id of each"
        )
        for ref in refs:
            seen = (await shown_as(messenger, ref)).text.strip()
            assert seen == "the same", f"'the same' was sent, {seen!r} is shown"

    @pytest.mark.parametrize("text_format", FORMATS)
    async def test_a_text_shows_the_same_in_every_format_whatever_it_holds(
        self, channel: Channel, messenger: Messenger, chat_id: str, text_format: Format
    ) -> None:
        needs(text_format in channel.capabilities.formats, f"format {text_format!r}")
        wrong = []
        for text in NASTY_TEXTS:
            message, wanted = (
                OutgoingMessage(text, format=text_format),
                visible(text, text_format, messenger),
            )
            if not wanted or channel.problem(message) is not None:
                continue
            ref = await sent(channel, chat_id, message)
            seen = (await shown_as(messenger, ref)).text.strip()
            if seen != wanted:
                wrong.append(f"  {text[:60]!r} is read as {seen[:60]!r}, not {wanted[:60]!r}")

        assert not wrong, (
            f"texts with format={text_format!r} are shown differently. Make the platform's markup out"
            " of channels.markup.to_spans, and escape each span's text:\n" + "\n".join(wrong)
        )

    async def test_a_rich_text_shows_the_same_words_on_every_channel(
        self, channel: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        needs(channel.capabilities.takes_format("rich"), "formats with markup")
        rich = OutgoingMessage(RICH_TEXT, format="rich")
        message = without_blocks(channel, rich)
        assert channel.problem(rich) is None, f"refused: {channel.problem(rich)}"
        ref = await sent(channel, chat_id, message)
        texts = [(await shown_as(messenger, ref)).text]
        if channel.capabilities.edit:
            await channel.edit(chat_id, ref, replace(message, text=f"{message.text}<p>edited</p>"))
            texts.append((await shown_as(messenger, ref)).text)
        previewed = "".join(span.text for span in channel.appearance(rich))

        for text in (*texts, previewed):
            missing = _missing(RICH_WORDS, text)
            assert not missing, (
                f"a text of the format 'rich' lacks {missing} in their order, in {text!r}. Without"
                " capabilities.rich `send` gets it as html; with it, show each block of content.blocks"
            )
        if channel.capabilities.edit:
            assert "edited" in texts[-1], "`edit` did not replace a text of the format 'rich'"

    @pytest.mark.parametrize("text_format", FORMATS)
    def test_a_preview_has_the_text_that_is_shown_whatever_it_holds(
        self, channel: Channel, messenger: Messenger, text_format: Format
    ) -> None:
        wrong = []
        for text in NASTY_TEXTS:
            spans = channel.appearance(OutgoingMessage(text, format=text_format))
            seen = "".join(span.text for span in spans).strip()
            wanted = visible(text, text_format, messenger)
            if seen != wanted:
                wrong.append(f"  {text[:60]!r} is previewed as {seen[:60]!r}, not {wanted[:60]!r}")

        assert not wrong, (
            f"appearance() of texts with format={text_format!r} may change looks alone, not the text of"
            " channels.markup.to_spans:\n" + "\n".join(wrong)
        )

    @pytest.mark.parametrize("text_format", FORMATS)
    def test_no_short_text_is_refused_for_its_markup(
        self, channel: Channel, messenger: Messenger, text_format: Format
    ) -> None:
        needs(text_format in channel.capabilities.formats, f"format {text_format!r}")
        problems = {
            text[:60]: problem
            for text in NASTY_TEXTS
            if len(text) <= 1000 and visible(text, text_format, messenger)
            if (problem := channel.problem(OutgoingMessage(text, format=text_format)))
        }

        assert not problems, f"`problem` refused what any platform can show as text: {problems}"

    @pytest.mark.parametrize("text_format", ["markdown", "html"])
    def test_markup_that_shows_nothing_is_refused(
        self, channel: Channel, text_format: Format
    ) -> None:
        needs(text_format in channel.capabilities.formats, f"format {text_format!r}")
        text = "<b></b>" if text_format == "html" else "` `"
        problem = channel.problem(OutgoingMessage(text, format=text_format))

        assert (problem or "").startswith("text"), (
            f"`problem` of {text!r} is {problem!r}; a message that shows nothing is a problem of `text`"
        )

    @pytest.mark.parametrize("unit", UNITS, ids=["one", "two"])
    async def test_a_text_of_the_greatest_length_is_taken_and_shown_whole(
        self, channel: Channel, messenger: Messenger, chat_id: str, unit: str
    ) -> None:
        text = longest_text(channel, unit)
        message = plainest(text, channel.capabilities)

        assert channel.problem(message) is None, f"refused at the limit: {channel.problem(message)}"
        seen = (await shown_as(messenger, await sent(channel, chat_id, message))).text
        assert seen == text, f"{len(text)} characters were sent, {len(seen)} are shown; cut nothing"

    @pytest.mark.parametrize("text_format", ["markdown", "html"])
    async def test_markup_does_not_count_to_the_length(
        self, channel: Channel, messenger: Messenger, chat_id: str, text_format: Format
    ) -> None:
        needs(text_format in channel.capabilities.formats, f"format {text_format!r}")
        text = longest_text(channel, "x")
        marked = f"<b>{text}</b>" if text_format == "html" else f"**{text}**"
        message = OutgoingMessage(marked, format=text_format)

        assert channel.problem(message) is None, (
            f"refused: {channel.problem(message)}; count with channels.markup.visible_length"
        )
        seen = (await shown_as(messenger, await sent(channel, chat_id, message))).text
        assert seen == text, f"{len(text)} characters were sent, {len(seen)} are shown"

    @pytest.mark.parametrize("unit", UNITS, ids=["one", "two"])
    async def test_a_text_that_is_too_long_is_refused_and_never_cut(
        self, channel: Channel, messenger: Messenger, chat_id: str, unit: str
    ) -> None:
        text = longest_text(channel, unit) + unit
        message = plainest(text, channel.capabilities)

        problem = channel.problem(message)
        assert problem is not None, "`problem` is None for a text one beyond max_text_length"
        assert problem.startswith("text"), (
            f"`problem` says {problem!r}; begin with the field, as in 'text: must be at most ...'"
        )
        try:
            ref = await channel.send(chat_id, keyed(message))
        except DeliveryError as error:
            expect_reason(error, Reason.INVALID_MESSAGE, "`send` of a text that is too long")
        else:
            whole = (await shown_as(messenger, ref)).text == text
            assert whole, "a text that is too long was cut; raise DeliveryError instead"

    async def test_a_caption_is_as_long_as_declared(
        self, channel: Channel, messenger: Messenger, chat_id: str, door: Door
    ) -> None:
        takes = channel.capabilities
        needs(bool(takes.media_types), "media")
        needs(takes.max_caption_length is not None, "limit of its own for texts beside files")
        media = picture(door, min(takes.media_types))
        text = "x" * (takes.max_caption_length or 0)
        fits, too_long = (plainest(one, takes, media=media) for one in (text, text + "x"))

        assert channel.problem(fits) is None, f"refused at the limit: {channel.problem(fits)}"
        ref = await sent(channel, chat_id, fits)
        assert (await shown_as(messenger, ref)).text == text, (
            "the text beside the file was cut or lost; it is to be shown whole"
        )
        problem = channel.problem(too_long) or ""
        assert problem.startswith("text"), (
            f"`problem` says {problem!r} of a caption that is too long"
        )

    @pytest.mark.parametrize("media_type", MEDIA_TYPES)
    async def test_a_file_goes_with_its_text(
        self, channel: Channel, messenger: Messenger, chat_id: str, door: Door, media_type: str
    ) -> None:
        needs(media_type in channel.capabilities.media_types, f"media of type {media_type!r}")
        message = plainest("beside it", channel.capabilities, media=picture(door, media_type))
        ref = await sent(channel, chat_id, message)
        seen = await shown_as(messenger, ref)

        assert (seen.media_type, seen.text) == (media_type, "beside it"), (
            f"a file of type {media_type!r} with a text is shown as {seen}"
        )

    async def test_a_silent_message_is_silent_and_another_is_not(
        self, channel: Channel, messenger: Messenger, chat_id: str
    ) -> None:
        seen = []
        for silent in (True, False):
            message = plainest("hush", channel.capabilities, silent=silent)
            seen.append((await shown_as(messenger, await sent(channel, chat_id, message))).silent)

        if seen == [None, None]:
            pytest.skip("this platform does not show what is silent (Shown.silent is None)")
        assert seen == [True, False], f"silent=True and silent=False were shown as silent={seen}"

    def test_what_the_channel_does_not_take_is_a_problem_of_the_field(
        self, channel: Channel, door: Door
    ) -> None:
        takes = channel.capabilities
        refused = {
            f"format: {name}": channel.problem(OutgoingMessage("text", format=name))
            for name in FORMATS
            if name not in takes.formats
        } | {
            f"media.type: {name}": channel.problem(
                plainest("text", takes, media=picture(door, name))
            )
            for name in MEDIA_TYPES
            if name not in takes.media_types
        }
        if not refused:
            pytest.skip("this channel takes every format and every type of media")
        for what, problem in refused.items():
            field = what.partition(":")[0]
            assert (problem or "").startswith(field), (
                f"`problem` of {what} says {problem!r}; begin with the field, as Channel.problem does"
            )


def _missing(words: Sequence[str], text: str) -> list[str]:
    """The words that don't follow the ones before them."""
    place, missing = 0, []
    for word in words:
        found = text.find(word, place)
        if found < 0:
            missing.append(word)
        else:
            place = found + len(word)
    return missing


def longest_text(channel: Channel, unit: str) -> str:
    """As many of `unit` as fit, filled up with characters of length one."""
    takes = channel.capabilities
    each = len(unit.encode("utf-16-le")) // 2 if takes.text_unit == "utf16" else len(unit)
    count, left = divmod(channel.text_limit(OutgoingMessage(unit)), each)
    return unit * count + "x" * left
