"""The part of members."""

from pluggy import HookRelay

from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.hooks import in_order
from msgsvc_core.members.links import RETENTION, MemberLinks
from msgsvc_core.members.owners import OwnerProtection
from msgsvc_core.members.personal_data import PERSONAL_DATA
from msgsvc_core.members.quota import MemberQuota
from msgsvc_core.members.routes import router
from msgsvc_core.members.service import Members
from msgsvc_core.parts import Built, Part
from msgsvc_core.projects import Projects
from msgsvc_core.subscribers import Subscribers


def _members(
    *,
    clock: Clock,
    hook: HookRelay,
    projects: Projects,
    subscribers: Subscribers,
    quota: MemberQuota,
) -> Built:
    members = Members(
        clock=clock,
        subscribers=subscribers,
        quota=quota,
        on_changed=in_order(hook.on_member_changed),
    )
    protection = OwnerProtection(
        check_role=in_order(hook.check_role_change),
        check_identity=in_order(hook.check_identity_change),
    )
    links = MemberLinks(clock=clock, projects=projects, subscribers=subscribers, members=members)
    return Built(provides=[members, protection, links], inbound=links.rules)


PART = Part(
    build=[_members],
    endpoints=router.endpoints,
    personal_data=PERSONAL_DATA,
    retention=lambda _limits: [RETENTION],
)
