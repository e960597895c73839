"""The ASGI application of a service, put together from its parts."""

from collections.abc import Callable, Sequence
from typing import Any

from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.channels import Channels
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.channels.shelf import Shelf
from msgsvc_core.config.settings import Settings
from msgsvc_core.db import Database
from msgsvc_core.http.app import Lifespan, build_app, home_of
from msgsvc_core.http.authentication import Authentication
from msgsvc_core.http.dispatcher import EndpointDispatcher, WriteAudit
from msgsvc_core.http.documentation import NotFoundPage, documentation_routes
from msgsvc_core.http.idempotency import Idempotency
from msgsvc_core.http.metrics import metrics_routes, operators_of
from msgsvc_core.http.operations import Readiness, operation_routes
from msgsvc_core.jobs import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import ErrorCatalogue
from msgsvc_core.kernel.i18n import Texts
from msgsvc_core.kernel.tracing import Tracing
from msgsvc_core.limits import Limiter
from msgsvc_core.projects import Projects
from msgsvc_core.security import SecretBox
from msgsvc_core.telemetry import Metrics


def edge(
    *,
    clock: Clock,
    db: Database,
    secrets: SecretBox,
    settings: Settings,
    limiter: Limiter,
    metrics: Metrics,
    projects: Projects,
    write_audit: WriteAudit,
) -> EndpointDispatcher:
    """What all endpoints have in common: authentication, limits and idempotency."""
    limits = settings.limits
    return EndpointDispatcher(
        db=db,
        secrets=secrets,
        authentication=Authentication(
            projects=projects,
            limiter=limiter,
            requests_per_minute=limits.requests_per_minute,
            metrics=metrics.requests,
        ),
        idempotency=Idempotency(db, clock, secrets, keep_hours=limits.idempotency_hours),
        write_audit=write_audit,
        settings=settings,
    )


def readiness(
    *,
    clock: Clock,
    db: Database,
    settings: Settings,
    limiter: Limiter,
    jobs: JobQueue,
    channels: Channels,
    states: ChannelStates,
    shelf: Shelf,
    keys_are_lost: Callable[[], bool],
    is_draining: Callable[[], bool],
) -> Readiness:
    """What `/readyz` checks."""
    return Readiness(
        db=db,
        clock=clock,
        jobs=jobs,
        channels=channels,
        states=states,
        shelf=shelf,
        limiter=limiter,
        has_redis=settings.redis_url is not None,
        keys_are_lost=keys_are_lost,
        is_quarantined=settings.quarantine,
        is_draining=is_draining,
    )


def application(
    *,
    settings: Settings,
    texts: Texts,
    errors: ErrorCatalogue,
    metrics: Metrics,
    tracing: Tracing | None,
    endpoints: Sequence[Endpoint],
    edge: EndpointDispatcher,
    readiness: Readiness,
    openapi: Callable[[], dict[str, Any]],
    pages_of_core: Sequence[BaseRoute],
    pages_of_plugins: Sequence[BaseRoute],
    lifespan: Lifespan,
) -> ASGIApp:
    """The application with every endpoint and page."""
    return build_app(
        endpoints=endpoints,
        routes=[
            *operation_routes(readiness, operators_of(settings.metrics)),
            *metrics_routes(metrics, settings.metrics),
            *documentation_routes(
                endpoints, errors, openapi, home_of(pages_of_plugins), is_open=settings.api_docs
            ),
            *pages_of_core,
            *pages_of_plugins,
        ],
        edge=edge,
        not_found=NotFoundPage(texts, settings.default_lang),
        metrics=metrics.requests,
        settings=settings,
        lifespan=lifespan,
        tracing=tracing,
    )
