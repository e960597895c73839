"""The plugin keeps the contract of plugins."""

from msgsvc_devkit import PluginContract
from msgsvc_gateway import plugin


class TestGateway(PluginContract):
    plugin = plugin
    name = "gateway"
