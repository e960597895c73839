"""The plugin keeps the contract of plugins."""

from msgsvc_core.testing import PluginContract
from msgsvc_forms import plugin


class TestForms(PluginContract):
    plugin = plugin
    name = "forms"
