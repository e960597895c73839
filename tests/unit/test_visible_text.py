"""Whether anything of a text is seen."""

import pytest

from msgsvc_core.kernel.visible_text import has_visible


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \t\n",
        "\u00a0\u3000",
        "\u200b\u200c\u200d\u2060\ufeff",
        "\u00ad",
        "\u202e\u2066",
        "\u2800",
        "\u3164\uffa0",
        "\ufe0f\u034f",
        "\U000e0020\U000e007f",
        "\u0007",
    ],
)
def test_nothing_is_seen(text: str) -> None:
    assert not has_visible(text)


@pytest.mark.parametrize(
    "text", ["a", ".", " ё ", "你", "👍🏽", "👨‍👩‍👧", "❤️", "\u200bx", "ก็", "\ue000", "\U0001fadf"]
)
def test_something_is_seen(text: str) -> None:
    assert has_visible(text)
