"""Jobs: work that outlives the request, kept in the database until it is done."""

from msgsvc_core.jobs.contract import (
    BULK,
    NORMAL,
    URGENT,
    Gate,
    Job,
    JobContext,
    JobSpec,
    LaneSpec,
    LeaseLost,
    NewJob,
    PutBack,
    Retry,
    Room,
    Stopping,
    exponential,
)
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.jobs.steps import in_parts, in_steps

__all__ = [
    "BULK",
    "NORMAL",
    "URGENT",
    "Gate",
    "Job",
    "JobContext",
    "JobQueue",
    "JobSpec",
    "LaneSpec",
    "LeaseLost",
    "NewJob",
    "PutBack",
    "Retry",
    "Room",
    "Stopping",
    "exponential",
    "in_parts",
    "in_steps",
]
