"""The areas that the modules beside this one declare their pages in."""

from msgsvc_core.dashboard import Pages

PACKAGE = "msgsvc_dashboard.team"

TEAM = Pages("team", package=PACKAGE)
ACCOUNT = Pages("account", package=PACKAGE)
OPERATOR = Pages("operator", package=PACKAGE)
