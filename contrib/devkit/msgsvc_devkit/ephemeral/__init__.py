"""A service for tests: in memory, with the sandbox messenger and a clock to move."""

from msgsvc_devkit.ephemeral.folder import private_folder
from msgsvc_devkit.ephemeral.settings import ephemeral_settings
from msgsvc_devkit.ephemeral.tenancy import Tenancy, create_tenancy
from msgsvc_devkit.ephemeral.time_travel import TimeTravel

__all__ = ["Tenancy", "TimeTravel", "create_tenancy", "ephemeral_settings", "private_folder"]
