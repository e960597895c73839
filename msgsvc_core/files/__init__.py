"""Files received from users and uploaded by projects, stored in the database: `service.files`."""

from msgsvc_core.files.models import StoredFile
from msgsvc_core.files.service import Files

__all__ = ["Files", "StoredFile"]
