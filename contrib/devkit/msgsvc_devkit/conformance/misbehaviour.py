"""Checks that a platform that misbehaves costs no update."""

from collections import Counter

import pytest

from msgsvc_core.channels import MessageReceived, Started
from msgsvc_devkit.conformance.inbox import Inbox
from msgsvc_devkit.conformance.messenger import Messenger
from msgsvc_devkit.conformance.mischief import Mischief
from msgsvc_devkit.conformance.stage import Stage

#: Texts that the user writes in one script.
TEXTS = 30

END = "the end"


class Misbehaviour(Stage):
    """What malformed, late, doubled, reordered, oversized and unknown updates do to the others."""

    @pytest.mark.parametrize("seed", [1, 7, 9])
    async def test_a_platform_that_misbehaves_loses_and_doubles_nothing(
        self, messenger: Messenger, inbox: Inbox, seed: int
    ) -> None:
        mischief, written = Mischief(seed), [f"text {number}" for number in range(TEXTS)]
        await messenger.start()
        await inbox.expect(Started)
        waiting = list(written)
        texts: dict[str, str] = {}

        async def read_until(last: str) -> None:
            while last not in texts.values():
                received = await inbox.expect(MessageReceived)
                # As the core does: an id that was processed before is not processed again.
                texts.setdefault(received.update_id, received.text)

        while waiting:
            trick = mischief.trick(messenger.tricks)
            if trick == "reordered":
                await messenger.write_reordered(waiting[:3], mischief)
                last = waiting[:3][-1]
                del waiting[:3]
                await read_until(last)
                continue
            if trick == "unknown":
                await messenger.puzzle()
            elif trick is not None:
                await messenger.misbehave(trick, mischief)
            last = waiting.pop(0)
            await messenger.write(last)
            if mischief.pick((True, False)):
                await read_until(last)
        await messenger.write(END)
        await read_until(END)
        counts = Counter(texts.values())

        lost = [text for text in written if not counts[text]]
        assert not lost, (
            f"{lost} did not arrive. An update that can't be read costs itself, not its neighbours, and each"
            " update has an id of its own"
        )
        twice = [text for text in written if counts[text] > 1]
        assert not twice, (
            f"{twice} arrived under two update_ids; make them of what the platform sends, so that what it"
            " sends again has no second effect"
        )
