"""The plugin keeps the contract of plugins."""

from msgsvc_devkit import PluginContract
from msgsvc_oidc import plugin


class TestOidc(PluginContract):
    plugin = plugin
    name = "oidc"
    tables_without_project = frozenset({"oidc_keys"})
