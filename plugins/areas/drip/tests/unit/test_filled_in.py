"""The form of a step."""

from msgsvc_core.dashboard import PostedForm
from msgsvc_drip.dashboard.filled_in import step_of


def test_a_change_by_the_form_keeps_what_the_form_does_not_have() -> None:
    form = PostedForm({"text": ["Bye"], "delay": ["2"], "unit": ["days"]})
    before = {
        "message": {"text": "Hi", "silent": True, "metadata": {"order": 1}, "of_later": "kept"}
    }

    assert step_of(form, before)["message"] == {
        "text": "Bye",
        "format": "plain",
        "buttons": [],
        "metadata": {"order": 1},
        "of_later": "kept",
    }
