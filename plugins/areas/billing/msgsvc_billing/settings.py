"""The section `[billing]` of the configuration."""

from msgsvc_core.settings import Section


class BillingSettings(Section):
    """What is sold, and for how much."""
