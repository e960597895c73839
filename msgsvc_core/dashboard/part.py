"""The part of the dashboard's vocabulary: what pages of several plugins share."""

from msgsvc_core.channels import Channels
from msgsvc_core.config.settings import Settings
from msgsvc_core.dashboard.previewing import MessagePreviews
from msgsvc_core.dashboard.writing import MessageChoices
from msgsvc_core.mailings import Mailings
from msgsvc_core.messages import Messages
from msgsvc_core.messages.templates import Templates
from msgsvc_core.parts import Built, Part
from msgsvc_core.routing import Routes
from msgsvc_core.subscribers.permissions import Permissions
from msgsvc_core.subscribers.tags import Tags


def _writing(
    *,
    settings: Settings,
    routes: Routes,
    tags: Tags,
    templates: Templates,
    permissions: Permissions,
    channels: Channels,
    messages: Messages,
    mailings: Mailings,
) -> Built:
    choices = MessageChoices(
        routes=routes,
        tags=tags,
        templates=templates,
        permissions=permissions,
        channels=channels,
        max_templates=settings.limits.templates,
        default_lang=settings.default_lang,
    )
    return Built(provides=[choices, MessagePreviews(mailings=mailings, messages=messages)])


PART = Part(build=[_writing])
