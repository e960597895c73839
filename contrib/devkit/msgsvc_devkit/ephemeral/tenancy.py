"""The project that an ephemeral service begins with."""

from dataclasses import dataclass

from msgsvc_core.service import Service

#: Its name, as people read it in messages.
PROJECT_NAME = "Test project"


@dataclass(frozen=True, slots=True)
class Tenancy:
    """A project, and the secret of an API key for everything in it."""

    project_id: str
    api_key: str


async def create_tenancy(service: Service, name: str = PROJECT_NAME) -> Tenancy:
    """A new project with a key."""
    project = await service.projects.create(name)
    _, secret = await service.projects.create_key(project.project_id, "tests", ("*",))
    return Tenancy(project.project_id, secret)
