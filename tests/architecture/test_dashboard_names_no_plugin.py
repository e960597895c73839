"""The dashboard names no other plugin: what it shows of one, its owner declares."""

from tests.architecture.test_core_names_no_plugin import names_a_plugin
from tests.architecture.tree import ROOT, assert_none, files_in, strings_of

DASHBOARD = ROOT / "plugins/areas/dashboard/msgsvc_dashboard"

#: What means something else: by file and text, with the reason.
EXCEPTIONS = {
    (
        "frame/branding.py",
        "default-src 'none'; sandbox; frame-ancestors 'none'",
    ): "a directive of Content-Security-Policy",
    ("gallery/pages.py", "telegram"): "a mark that the component gallery shows",
}


def naming() -> list[tuple[str, str]]:
    """The modules of the dashboard that name another plugin, each with the text that does."""
    return [
        (str(path.relative_to(DASHBOARD)), text)
        for path in files_in(DASHBOARD, ".py")
        for text in strings_of(path)
        if names_a_plugin(text.replace("dashboard", ""))
    ]


def test_no_text_of_the_dashboard_means_another_plugin() -> None:
    assert_none([each for each in naming() if each not in EXCEPTIONS])


def test_every_exception_is_needed() -> None:
    assert_none([each for each in EXCEPTIONS if each not in naming()])
