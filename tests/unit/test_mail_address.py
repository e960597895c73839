"""Addresses that mean the same are written the same."""

import pytest

from msgsvc_core.kernel.email import normalized


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("ann@shop.example", "ann@shop.example"),
        ("  Ann@SHOP.Example\n", "ann@shop.example"),
        ("Ann.Lee+desk@shop.example", "ann.lee+desk@shop.example"),
        ("o'hara@a-b.example", "o'hara@a-b.example"),
        ("Анна@Почта.example", "анна@xn--80a1acny.example"),
        ("jose\u0301@shop.example", "josé@shop.example"),
        (f"{'a' * 64}@shop.example", f"{'a' * 64}@shop.example"),
        ("Ann..lee.@docomo.ne.jp", "ann..lee.@docomo.ne.jp"),
        # By IDNA 2008: another owner's than ann@strasse.example.
        ("ann@straße.example", "ann@xn--strae-oqa.example"),
        ("ann@βόλος.example", "ann@xn--nxasmm1c.example"),
        ("ann@ПОЧТА.example", "ann@xn--80a1acny.example"),
    ],
)
def test_an_address_is_kept_in_one_form(written: str, kept: str) -> None:
    assert normalized(written) == kept
    assert normalized(kept) == kept


@pytest.mark.parametrize(
    "written",
    [
        "",
        "ann",
        "@shop.example",
        "ann@",
        "ann@shop",
        "ann@@shop.example",
        "ann@shop..example",
        "ann@-shop.example",
        "ann..lee@shop.example",
        "ann,lee@docomo.ne.jp",
        "ann@127.0.0.1",
        "ann@[127.0.0.1]",
        ".ann@shop.example",
        "an..n@shop.example",
        "ann lee@shop.example",
        "Ann <ann@shop.example>",
        "ann\x00@shop.example",
        "ann\u202e@shop.example",
        "ann@shop.example, bob@shop.example",
        f"{'a' * 65}@shop.example",
        f"ann@{'a' * 64}.example",
        f"ann@{'.'.join(['a' * 60] * 5)}.example",
        "ann@\ud800.example",
        "ann@a\u200db.example",
        "ann@\u2024.example",
        "ann@" + "\u0323\u0301" * 60_000 + ".example",
    ],
)
def test_what_can_be_no_address_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="must be an email address"):
        normalized(written)
