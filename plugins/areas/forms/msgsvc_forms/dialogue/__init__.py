"""A form filled in by a conversation: what was asked and said leads to what is asked next. No I/O."""

from msgsvc_forms.dialogue.engine import step
from msgsvc_forms.dialogue.events import (
    Edited,
    Event,
    FileLost,
    GivenFile,
    Opened,
    Ordered,
    Pressed,
    Said,
)
from msgsvc_forms.dialogue.outcomes import (
    Anew,
    Ask,
    Ended,
    Notice,
    Outcome,
    Redraw,
    Remark,
    Submit,
    Tell,
)
from msgsvc_forms.dialogue.script import Script
from msgsvc_forms.dialogue.state import Given, State, begin

__all__ = [
    "Anew",
    "Ask",
    "Edited",
    "Ended",
    "Event",
    "FileLost",
    "Given",
    "GivenFile",
    "Notice",
    "Opened",
    "Ordered",
    "Outcome",
    "Pressed",
    "Redraw",
    "Remark",
    "Said",
    "Script",
    "State",
    "Submit",
    "Tell",
    "begin",
    "step",
]
