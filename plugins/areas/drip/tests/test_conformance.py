"""The plugin keeps the contract of plugins."""

from msgsvc_devkit import PluginContract
from msgsvc_drip import plugin


class TestDrip(PluginContract):
    plugin = plugin
    name = "drip"
