"""The modules of the core that plugins may import. All others change without notice.

Modules with SQL are never public: plugins use the objects of `PluginContext`.
"""

#: Packages whose modules are all public.
PUBLIC_PACKAGES = (
    "msgsvc_core.api",
    "msgsvc_core.content",
    "msgsvc_core.dashboard",
    "msgsvc_core.kernel",
    "msgsvc_core.limits",
    "msgsvc_core.pages",
    "msgsvc_core.plugins",
)

#: Public modules of the other packages.
PUBLIC_MODULES = (
    "msgsvc_core.billing",
    "msgsvc_core.channels",
    "msgsvc_core.channels.commands",
    "msgsvc_core.channels.failures",
    "msgsvc_core.channels.fields",
    "msgsvc_core.channels.http",
    "msgsvc_core.channels.inbound",
    "msgsvc_core.channels.outbox",
    "msgsvc_core.channels.project_channels.models",
    "msgsvc_core.channels.project_channels.service",
    "msgsvc_core.channels.reception_health",
    "msgsvc_core.channels.registry",
    "msgsvc_core.channels.updates",
    "msgsvc_core.channels.words",
    "msgsvc_core.cli.configuration",
    "msgsvc_core.cli.projects",
    "msgsvc_core.cli.tables",
    "msgsvc_core.config.sections",
    "msgsvc_core.config.settings",
    "msgsvc_core.db",
    "msgsvc_core.db.retention",
    "msgsvc_core.db.sql",
    "msgsvc_core.events",
    "msgsvc_core.events.contract",
    "msgsvc_core.files",
    "msgsvc_core.files.kinds",
    "msgsvc_core.files.media",
    "msgsvc_core.files.names",
    "msgsvc_core.files.service",
    "msgsvc_core.files.streaming",
    "msgsvc_core.http.proxies",
    "msgsvc_core.http_client",
    "msgsvc_core.jobs",
    "msgsvc_core.jobs.admin",
    "msgsvc_core.jobs.inspection",
    "msgsvc_core.jobs.queue",
    "msgsvc_core.jobs.retention",
    "msgsvc_core.mailings",
    "msgsvc_core.mailings.content",
    "msgsvc_core.mailings.models",
    "msgsvc_core.mailings.service",
    "msgsvc_core.members",
    "msgsvc_core.members.links",
    "msgsvc_core.members.models",
    "msgsvc_core.members.service",
    "msgsvc_core.messages",
    "msgsvc_core.messages.models",
    "msgsvc_core.messages.previews",
    "msgsvc_core.messages.service",
    "msgsvc_core.messages.templates.models",
    "msgsvc_core.messages.templates.rendering",
    "msgsvc_core.messages.templates.service",
    "msgsvc_core.projects",
    "msgsvc_core.projects.models",
    "msgsvc_core.projects.service",
    "msgsvc_core.security",
    "msgsvc_core.security.guard",
    "msgsvc_core.security.http_urls",
    "msgsvc_core.security.networks",
    "msgsvc_core.security.sealed",
    "msgsvc_core.security.secret_box",
    "msgsvc_core.security.signing",
    "msgsvc_core.subscribers",
    "msgsvc_core.subscribers.export",
    "msgsvc_core.subscribers.links",
    "msgsvc_core.subscribers.mini_app",
    "msgsvc_core.subscribers.models",
    "msgsvc_core.subscribers.permissions.models",
    "msgsvc_core.subscribers.permissions.service",
    "msgsvc_core.subscribers.service",
    "msgsvc_core.subscribers.tags.models",
    "msgsvc_core.subscribers.tags.service",
    "msgsvc_core.telemetry",
)


def is_public(module: str) -> bool:
    """Whether a plugin may import a module of the core."""
    return module in PUBLIC_MODULES or any(
        f"{module}.".startswith(f"{package}.") for package in PUBLIC_PACKAGES
    )
