"""The plugin keeps the contract of plugins."""

from msgsvc_devkit import PluginContract
from msgsvc_forms import plugin


class TestForms(PluginContract):
    plugin = plugin
    name = "forms"
