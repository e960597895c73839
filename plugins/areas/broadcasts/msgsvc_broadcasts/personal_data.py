"""What of the tables of broadcasts is personal data."""

from msgsvc_core.db.personal_data import NotExported, PersonalTable

PERSONAL_DATA = (
    PersonalTable(
        section="broadcast_clicks",
        table="broadcasts_clicks",
        columns=("job_id", "data", "clicked_at_ms"),
        order=("job_id", "data"),
    ),
    PersonalTable(
        section="broadcast_link_clicks",
        table="broadcasts_link_clicks",
        columns=("job_id", "link_id", "clicked_at_ms"),
        order=("job_id", "link_id"),
    ),
    NotExported("broadcasts_testers", "who gets the tests of an operator"),
)
