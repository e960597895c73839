"""The plugin keeps the contract of plugins."""

from msgsvc_core.testing import PluginContract
from msgsvc_webhooks import plugin


class TestWebhooks(PluginContract):
    plugin = plugin
    name = "webhooks"
