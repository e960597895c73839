"""The plugin keeps the contract of plugins."""

from msgsvc_dashboard import plugin
from msgsvc_devkit import PluginContract


class TestDashboard(PluginContract):
    plugin = plugin
    name = "dashboard"
    tables_without_project = frozenset(
        {
            "dashboard_account_codes",
            "dashboard_account_links",
            "dashboard_account_messengers",
            "dashboard_account_requests",
            "dashboard_account_sessions",
            "dashboard_accounts",
            "dashboard_audit",
        }
    )
