"""The plugin keeps the contract of plugins."""

from msgsvc_billing import plugin
from msgsvc_core.testing import PluginContract


class TestBilling(PluginContract):
    plugin = plugin
    name = "billing"
