"""Jobs: work that outlives the request, kept in the database until it is done."""

from msgsvc_core.jobs.contract import (
    BULK,
    NORMAL,
    URGENT,
    Job,
    JobContext,
    JobSpec,
    LaneSpec,
    LeaseLost,
    NewJob,
    Retry,
    Stopping,
    exponential,
)
from msgsvc_core.jobs.queue import JobQueue

__all__ = [
    "BULK",
    "NORMAL",
    "URGENT",
    "Job",
    "JobContext",
    "JobQueue",
    "JobSpec",
    "LaneSpec",
    "LeaseLost",
    "NewJob",
    "Retry",
    "Stopping",
    "exponential",
]
