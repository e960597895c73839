"""The plugin keeps the contract of plugins."""

from msgsvc_core.testing import PluginContract
from msgsvc_scheduling import plugin


class TestScheduling(PluginContract):
    plugin = plugin
    name = "scheduling"
