"""The plugin keeps the contract of plugins."""

from msgsvc_devkit import PluginContract
from msgsvc_otp import plugin


class TestOtp(PluginContract):
    plugin = plugin
    name = "otp"
