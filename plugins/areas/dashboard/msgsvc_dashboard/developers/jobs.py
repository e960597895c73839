"""Jobs and dead letters, for the operator."""

import json
from typing import get_args

from msgsvc_core.dashboard import Nav, PageContext, Redirect, Render
from msgsvc_core.jobs import inspection
from msgsvc_core.jobs.admin import JobAdmin
from msgsvc_core.jobs.inspection import Filter
from msgsvc_core.kernel.errors import NotFound
from msgsvc_dashboard.developers.area import pages

#: Jobs of one page.
MOST = 100

#: How the states are coloured, beside their word.
TONES = {"ready": "info", "running": "good", "dead": "bad"}


@pages.get(
    "/jobs",
    access="installation:operate",
    nav=Nav("Jobs", icon="activity", group="project", order=200),
)
async def jobs(page: PageContext) -> Render:
    asked = page.query.get("state", "dead")
    states: dict[str, inspection.State] = {each: each for each in get_args(inspection.State)}
    state = states.get(asked)
    wanted = Filter(state, page.query.get("lane") or None, page.query.get("name") or None)
    found = await inspection.list_jobs(page.tx, wanted, MOST)
    values = {
        "jobs": found,
        "wanted": wanted,
        "asked": asked if state else "",
        "words": _words(page),
        "tones": TONES,
        "most": MOST,
    }
    return Render("jobs.html", values)


@pages.get("/jobs/{job_id}", access="installation:operate")
async def job(page: PageContext) -> Render:
    found = await inspection.find(page.tx, page.params["job_id"])
    if found is None:
        raise NotFound(page._("Job not found: completed jobs are not kept."))
    payload = json.dumps(found.payload, ensure_ascii=False, indent=2)
    values = {"job": found, "payload": payload, "words": _words(page), "tones": TONES}
    return Render("job.html", values)


@pages.post(
    "/jobs/{job_id}/retry",
    access="installation:operate",
    form_page=job,
    title=lambda _: _("Job retried"),
)
async def retry_job(page: PageContext, job_admin: JobAdmin) -> Redirect:
    await job_admin.retry(page.tx, page.params["job_id"])
    return Redirect(page.url("/operator/jobs"), page._("It will run in a second or two."))


@pages.post(
    "/jobs/{job_id}/discard",
    access="installation:operate",
    form_page=job,
    title=lambda _: _("Job discarded"),
)
async def discard_job(page: PageContext, job_admin: JobAdmin) -> Redirect:
    await job_admin.discard(page.tx, page.params["job_id"])
    return Redirect(page.url("/operator/jobs"), page._("Removed."))


def _words(page: PageContext) -> dict[str, str]:
    return {"ready": page._("Waiting"), "running": page._("Running"), "dead": page._("Dead letter")}
