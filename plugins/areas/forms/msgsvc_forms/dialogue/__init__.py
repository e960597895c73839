"""Filling in a form in a conversation, as a state machine without I/O."""

from msgsvc_forms.dialogue.engine import step
from msgsvc_forms.dialogue.events import (
    CommandSent,
    Edited,
    Event,
    FileLost,
    GivenFile,
    Opened,
    Pressed,
    Said,
)
from msgsvc_forms.dialogue.outcomes import (
    Ended,
    Notice,
    Outcome,
    Prompt,
    Redraw,
    Remark,
    Restart,
    Say,
    Submit,
)
from msgsvc_forms.dialogue.script import Script
from msgsvc_forms.dialogue.state import Given, State, initial_state

__all__ = [
    "CommandSent",
    "Edited",
    "Ended",
    "Event",
    "FileLost",
    "Given",
    "GivenFile",
    "Notice",
    "Opened",
    "Outcome",
    "Pressed",
    "Prompt",
    "Redraw",
    "Remark",
    "Restart",
    "Said",
    "Say",
    "Script",
    "State",
    "Submit",
    "initial_state",
    "step",
]
