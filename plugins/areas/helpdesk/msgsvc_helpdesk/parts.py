"""What the plugin is made of, put together for its door."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_core.channels import InboundRule
from msgsvc_core.jobs import JobSpec
from msgsvc_core.service import Service
from msgsvc_helpdesk import jobs
from msgsvc_helpdesk.agents.answering import Answering
from msgsvc_helpdesk.agents.desk import AgentDesk
from msgsvc_helpdesk.agents.inbound import AgentBot
from msgsvc_helpdesk.agents.jobs import SENT_SPEC
from msgsvc_helpdesk.blocklist import Blocklist
from msgsvc_helpdesk.canned import CannedAnswers
from msgsvc_helpdesk.inbound import HelpdeskBot
from msgsvc_helpdesk.inbox import Inbox
from msgsvc_helpdesk.rating import END_SPEC, Ratings
from msgsvc_helpdesk.service import Tickets
from msgsvc_helpdesk.settings import HelpdeskSettings


def services_of(service: Service) -> Mapping[type, Any]:
    settings = service.section(HelpdeskSettings)
    tickets = Tickets(service, settings)
    desk = AgentDesk(service, tickets)
    return {
        Tickets: tickets,
        CannedAnswers: CannedAnswers(service, settings),
        Blocklist: Blocklist(service),
        AgentDesk: desk,
        Inbox: Inbox(service, settings),
        Answering: Answering(service, tickets, desk),
        Ratings: Ratings(service, tickets, settings),
    }


def jobs_of(service: Service) -> Sequence[JobSpec]:
    look = jobs.look_job(service, service.section(HelpdeskSettings))
    return [look, jobs.PURGE_JOB, jobs.GONE_SPEC, SENT_SPEC, END_SPEC]


def rules_of(service: Service) -> Sequence[InboundRule]:
    return [
        *HelpdeskBot(service, service.section(HelpdeskSettings)).rules(),
        *AgentBot(service).rules(),
        *service.get(Ratings).rules(),
    ]
