"""What the pages of this folder are declared in."""

from msgsvc_core.dashboard import Pages

pages = Pages("developers", package="msgsvc_dashboard.developers")
