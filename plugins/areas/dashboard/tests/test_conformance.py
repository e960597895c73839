"""The plugin keeps the contract of plugins."""

from msgsvc_dashboard import plugin
from msgsvc_devkit import PluginContract


class TestDashboard(PluginContract):
    plugin = plugin
    name = "dashboard"
