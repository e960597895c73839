"""A form filled in by a conversation: what was asked and said leads to what is asked next. No I/O."""

from msgsvc_forms.dialogue.engine import step
from msgsvc_forms.dialogue.events import (
    Edited,
    Event,
    FileLost,
    GivenFile,
    Opened,
    CommandSent,
    Pressed,
    Said,
)
from msgsvc_forms.dialogue.outcomes import (
    Restart,
    Prompt,
    Ended,
    Notice,
    Outcome,
    Redraw,
    Remark,
    Submit,
    Say,
)
from msgsvc_forms.dialogue.script import Script
from msgsvc_forms.dialogue.state import Given, State, initial_state

__all__ = [
    "Restart",
    "Prompt",
    "Edited",
    "Ended",
    "Event",
    "FileLost",
    "Given",
    "GivenFile",
    "Notice",
    "Opened",
    "CommandSent",
    "Outcome",
    "Pressed",
    "Redraw",
    "Remark",
    "Said",
    "Script",
    "State",
    "Submit",
    "Say",
    "initial_state",
    "step",
]
