"""Inbound updates: each is processed once, in one transaction."""

from msgsvc_core.channels.inbound.processing import (
    OWN_BUTTON,
    Chat,
    Inbound,
    InboundContext,
    InboundHandler,
    InboundRule,
)

__all__ = ["OWN_BUTTON", "Chat", "Inbound", "InboundContext", "InboundHandler", "InboundRule"]
