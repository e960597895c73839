"""All pages of the area."""

from msgsvc_broadcasts.dashboard import composing, following, searching
from msgsvc_core.dashboard import Pages

pages = Pages("broadcasts", package="msgsvc_broadcasts.dashboard")
composing.declare(pages)
following.declare(pages)
searching.declare(pages)
