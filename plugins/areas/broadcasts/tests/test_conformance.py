"""The plugin keeps the contract of plugins."""

from msgsvc_broadcasts import plugin
from msgsvc_devkit import PluginContract


class TestBroadcasts(PluginContract):
    plugin = plugin
    name = "broadcasts"
