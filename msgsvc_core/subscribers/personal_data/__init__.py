"""All that is stored about a person, across channels and plugins."""

from msgsvc_core.subscribers.personal_data.service import PersonalDataExport

__all__ = ["PersonalDataExport"]
