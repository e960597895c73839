"""The channels of a service: those of the configuration, and those added by projects."""

from msgsvc_core.channels.registry.channels import Channels, words_of

__all__ = ["Channels", "words_of"]
