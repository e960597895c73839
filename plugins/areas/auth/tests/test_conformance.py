"""The plugin keeps the contract of plugins."""

from msgsvc_auth import plugin
from msgsvc_devkit import PluginContract


class TestAuth(PluginContract):
    plugin = plugin
    name = "auth"
    # The hosted page and what it posts.
    own_paths = ("/login/",)
    # Digests of what mini apps were given: a digest is looked up, and tells whose it is to nobody.
    tables_without_project = frozenset({"auth_mini_app_uses"})
