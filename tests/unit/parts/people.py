"""A person, who greets them, and what erases them, as several tests need them."""

from msgsvc_core.channels.updates import ChannelUser
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.subscribers.erasure.job import Eraser, SubscriberErasure
from msgsvc_core.subscribers.greetings import Greetings

ANN = ChannelUser("7", "Ann", lang="en-GB")


def greetings_of(core: PluginContext) -> Greetings:
    return Greetings(texts=core.texts, outbox=core.outbox, projects=core.projects)


def erasure_of(core: PluginContext, *erasers: Eraser) -> SubscriberErasure:
    return SubscriberErasure(clock=core.clock, jobs=core.jobs, events=core.events, erasers=erasers)
