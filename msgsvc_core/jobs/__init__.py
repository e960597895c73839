"""Jobs: background work, stored in the database until it is done."""

from msgsvc_core.jobs.contract import (
    BULK,
    NORMAL,
    URGENT,
    Capacity,
    Gate,
    Job,
    JobContext,
    JobSpec,
    LaneSpec,
    LeaseLost,
    NewJob,
    Reschedule,
    Retry,
    Stopping,
    exponential,
)
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.jobs.steps import in_parts, in_steps

__all__ = [
    "BULK",
    "NORMAL",
    "URGENT",
    "Capacity",
    "Gate",
    "Job",
    "JobContext",
    "JobQueue",
    "JobSpec",
    "LaneSpec",
    "LeaseLost",
    "NewJob",
    "Reschedule",
    "Retry",
    "Stopping",
    "exponential",
    "in_parts",
    "in_steps",
]
