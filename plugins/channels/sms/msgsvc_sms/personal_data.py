"""What of the tables of SMS is personal data."""

from msgsvc_core.db.personal_data import NotExported

PERSONAL_DATA = (
    NotExported("sms_inbox", "texts on their way in, which become messages within seconds"),
    NotExported("sms_parts", "parts of such texts"),
    NotExported("sms_numbers", "hashes of numbers, for limits"),
)
