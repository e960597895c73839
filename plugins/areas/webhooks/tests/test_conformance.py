"""The plugin keeps the contract of plugins."""

from msgsvc_devkit import PluginContract
from msgsvc_webhooks import plugin


class TestWebhooks(PluginContract):
    plugin = plugin
    name = "webhooks"
