"""All pages of the area."""

from msgsvc_core.dashboard import Pages
from msgsvc_scheduling.dashboard import planning, searching, waiting

pages = Pages("scheduling", package="msgsvc_scheduling.dashboard")
waiting.declare(pages)
planning.declare(pages)
searching.declare(pages)
