"""The plugin keeps the contract of plugins."""

from msgsvc_core.testing import PluginContract
from msgsvc_dashboard import plugin


class TestDashboard(PluginContract):
    plugin = plugin
    name = "dashboard"
