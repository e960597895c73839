"""The plugin keeps the contract of plugins."""

from msgsvc_core.testing import PluginContract
from msgsvc_helpdesk import plugin


class TestHelpdesk(PluginContract):
    plugin = plugin
    name = "helpdesk"
