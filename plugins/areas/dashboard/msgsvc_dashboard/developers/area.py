"""The area of the pages in this folder."""

from msgsvc_core.dashboard import Pages

pages = Pages(
    "developers",
    package="msgsvc_dashboard.developers",
    styles=("branding.css", "channels.css", "keys.css"),
)
