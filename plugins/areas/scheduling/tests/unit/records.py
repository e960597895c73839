"""Records as the database keeps them: a message to Anna, and one to everybody."""

from dataclasses import replace

from msgsvc_devkit.fakes import PROJECT
from msgsvc_scheduling.models import Record

TO_ANNA = Record(
    project_id=PROJECT,
    record_id="sch_1",
    kind="scheduled",
    status="scheduled",
    message={"text": "Hello"},
    subscriber_id="sub_1",
    audience=None,
    timezone=None,
    send_at_ms=0,
    due_at_ms=0,
    message_id=None,
    job_id=None,
    reason=None,
    error=None,
    created_at_ms=0,
    finished_at_ms=None,
)
TO_ALL = replace(TO_ANNA, subscriber_id=None, audience={"all": True})
