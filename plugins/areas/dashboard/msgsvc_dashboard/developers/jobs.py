"""Jobs and dead letters, for the operator."""

import json
from typing import get_args

from msgsvc_core.dashboard import Moved, Nav, PageContext, Shown
from msgsvc_core.errors import Conflict, NotFound
from msgsvc_core.jobs import letters
from msgsvc_core.jobs.letters import Filter
from msgsvc_dashboard.developers.area import pages

#: Jobs of one page.
MOST = 100

#: How the states are coloured, beside their word.
TONES = {"ready": "info", "running": "good", "dead": "bad"}


@pages.get("/jobs", access="operate", nav=Nav("Jobs", icon="log", group="project", order=200))
async def jobs(page: PageContext) -> Shown:
    asked = page.query.get("state", "dead")
    states: dict[str, letters.State] = {each: each for each in get_args(letters.State)}
    state = states.get(asked)
    wanted = Filter(state, page.query.get("lane") or None, page.query.get("name") or None)
    found = await letters.list_jobs(page.tx, wanted, MOST)
    values = {
        "jobs": found,
        "wanted": wanted,
        "asked": asked if state else "",
        "words": _words(page),
        "tones": TONES,
        "most": MOST,
    }
    return Shown("jobs.html", values)


@pages.get("/jobs/{job_id}", access="operate")
async def job(page: PageContext) -> Shown:
    found = await letters.find(page.tx, page.params["job_id"])
    if found is None:
        raise NotFound(page._("There is no such job: what is done is not kept."))
    payload = json.dumps(found.payload, ensure_ascii=False, indent=2)
    values = {"job": found, "payload": payload, "words": _words(page), "tones": TONES}
    return Shown("job.html", values)


@pages.post("/jobs/{job_id}/retry", access="operate")
async def retry_job(page: PageContext) -> Moved:
    job_id = page.params["job_id"]
    match await letters.retry(page.tx, job_id, page.service.clock.now_ms()):
        case "ready":
            return Moved(page.url("/operator/jobs"), page._("It runs within a second or two."))
        case "open":
            raise Conflict(page._("Another job of its name and key is open, and does its work."))
        case _:
            raise Conflict(page._("There is no such job, or it is running."))


@pages.post("/jobs/{job_id}/discard", access="operate")
async def discard_job(page: PageContext) -> Moved:
    if not await letters.discard(page.tx, page.params["job_id"]):
        raise Conflict(page._("There is no such job, or it is running."))
    return Moved(page.url("/operator/jobs"), page._("Removed."))


def _words(page: PageContext) -> dict[str, str]:
    return {"ready": page._("Waiting"), "running": page._("Running"), "dead": page._("Dead letter")}
