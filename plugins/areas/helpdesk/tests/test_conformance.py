"""The plugin keeps the contract of plugins."""

from msgsvc_devkit import PluginContract
from msgsvc_helpdesk import plugin


class TestHelpdesk(PluginContract):
    plugin = plugin
    name = "helpdesk"
