"""The areas of the pages in this folder."""

from msgsvc_core.dashboard import Pages

PACKAGE = "msgsvc_dashboard.team"
STYLES = ("team.css",)

TEAM = Pages("team", package=PACKAGE, styles=STYLES)
ACCOUNT = Pages("account", package=PACKAGE, styles=STYLES)
OPERATOR = Pages("operator", package=PACKAGE, styles=STYLES)
