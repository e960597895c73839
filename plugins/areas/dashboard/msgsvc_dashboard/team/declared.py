"""The areas that the modules beside this one declare their pages in."""

from msgsvc_core.dashboard import Pages

PACKAGE = "msgsvc_dashboard.team"
STYLES = ("team.css",)

TEAM = Pages("team", package=PACKAGE, styles=STYLES)
ACCOUNT = Pages("account", package=PACKAGE, styles=STYLES)
OPERATOR = Pages("operator", package=PACKAGE, styles=STYLES)
