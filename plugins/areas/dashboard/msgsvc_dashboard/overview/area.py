"""The pages of the overview."""

from msgsvc_core.dashboard import Pages

pages = Pages("dashboard", package="msgsvc_dashboard.overview")
