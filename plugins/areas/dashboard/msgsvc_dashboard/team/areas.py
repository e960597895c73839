"""The areas of this folder; the modules of their pages are imported here, so that each registers its own."""

from msgsvc_core.dashboard import Pages
from msgsvc_dashboard.team import (
    account,
    accounts,
    log,
    members,
    messengers,
    projects,
    second_factor,
)
from msgsvc_dashboard.team.declared import ACCOUNT, OPERATOR, TEAM

#: Modules that declare pages of the areas.
DECLARING = (account, accounts, log, members, messengers, projects, second_factor)

areas: list[Pages] = [TEAM, ACCOUNT, OPERATOR]
