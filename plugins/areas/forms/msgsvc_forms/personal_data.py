"""What of the tables of forms is personal data."""

from msgsvc_core.db.personal_data import NotExported, PersonalTable

PERSONAL_DATA = (
    PersonalTable(
        section="form_submissions",
        table="forms_submissions",
        columns=("submission_id", "form_id", "source", "lang", "answers", "created_at_ms"),
        json=("answers",),
        order=("submission_id",),
    ),
    PersonalTable(
        section="form_dialogues",
        table="forms_dialogues",
        columns=("dialogue_id", "form_id", "channel", "status", "state", "created_at_ms"),
        json=("state",),
        order=("dialogue_id",),
    ),
    NotExported("forms_copies", "which chats got a copy of an answer of somebody else"),
)
