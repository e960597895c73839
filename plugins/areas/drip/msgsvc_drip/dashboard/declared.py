"""All pages of the area."""

from msgsvc_core.dashboard import Pages
from msgsvc_drip.dashboard import building, chains, people, searching

pages = Pages("drip", package="msgsvc_drip.dashboard")
chains.declare(pages)
building.declare(pages)
people.declare(pages)
searching.declare(pages)
