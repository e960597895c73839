"""The plugin keeps the contract of plugins."""

from msgsvc_devkit import PluginContract
from msgsvc_scheduling import plugin


class TestScheduling(PluginContract):
    plugin = plugin
    name = "scheduling"
