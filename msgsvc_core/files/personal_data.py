"""What of the tables of files is personal data."""

from msgsvc_core.db.personal_data import PersonalTable

PERSONAL_DATA = (
    PersonalTable(
        section="files",
        table="core_files",
        columns=(
            *("file_id", "type", "filename", "mime_type", "size", "status", "reason"),
            "created_at_ms",
        ),
        order=("file_id",),
    ),
)
