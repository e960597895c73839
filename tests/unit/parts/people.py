"""A person, as several tests need them."""

from msgsvc_core.channels.updates import ChannelUser

ANN = ChannelUser("7", "Ann", lang="en-GB")
