"""The area of the helpdesk's pages."""

from msgsvc_core.dashboard import Pages

pages = Pages(
    "helpdesk",
    package="msgsvc_helpdesk.dashboard",
    styles=("inbox.css", "teamwork.css"),
    scripts=("inbox.js", "teamwork.js"),
)
