"""The door of the plugin: what it declares, each handed on to the file that has it."""

from msgsvc_billing.settings import BillingSettings
from msgsvc_core.hookspecs import hookimpl
from msgsvc_core.settings import SettingsSection


@hookimpl
def register_settings() -> SettingsSection:
    return SettingsSection("billing", BillingSettings)
