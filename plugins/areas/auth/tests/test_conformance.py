"""The plugin keeps the contract of plugins."""

from msgsvc_auth import plugin
from msgsvc_core.testing import PluginContract


class TestAuth(PluginContract):
    plugin = plugin
    name = "auth"
