"""The plugin keeps the contract of plugins."""

from msgsvc_billing import plugin
from msgsvc_devkit import PluginContract


class TestBilling(PluginContract):
    plugin = plugin
    name = "billing"
    # They belong to accounts, which pay for several projects.
    tables_without_project = frozenset({"billing_accounts", "billing_ledger", "billing_usage"})
