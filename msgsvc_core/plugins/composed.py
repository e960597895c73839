"""Plugins with many objects, built in groups: a builder names by type what it uses of the other groups.

def _codes(*, context: PluginContext, settings: OtpSettings) -> Built:
    codes = OneTimeCodes(clock=context.clock, ...)
    return Built(provides=[codes], jobs=lambda: [codes.spec])

def _pages(*, context: PluginContext, codes: OneTimeCodes) -> Built: ...

@hookimpl
def create_plugin(context: PluginContext) -> ComposedPlugin:
    return OtpPlugin(context, [_codes, _pages])
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgsvc_core.channels import InboundRule
from msgsvc_core.jobs import JobSpec, LaneSpec
from msgsvc_core.kernel.providers import Providers
from msgsvc_core.parts import Built, Part, build_parts
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl

T = TypeVar("T")


class ComposedPlugin:
    """The objects that builders made, and the hooks that hand them to the core. A plugin adds its other hooks
    in a subclass.

    A builder may ask for the `PluginContext`, for a plugin's settings, and for what the other builders
    provide. Handlers may ask for all of the latter. Raises `NotProvided` if nothing builds a type.
    """

    def __init__(self, context: PluginContext, builders: Sequence[Callable[..., Built]]) -> None:
        self._providers = Providers()
        self._providers.add(context, kind=PluginContext)
        for section in context.sections.values():
            self._providers.add(section)
        self._built = build_parts([Part(build=builders)], self._providers)

    def get(self, kind: type[T]) -> T:
        """The object of that type that a builder provides. Raises `NotProvided`."""
        return self._providers.get(kind)

    @hookimpl
    def register_services(self) -> Mapping[type, Any]:
        services: dict[type, Any] = {}
        for built in self._built:
            services |= {type(provided): provided for provided in built.provides}
            services |= built.provides_as
        return services

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return [spec for built in self._built for spec in built.jobs()]

    @hookimpl
    def register_lanes(self) -> Sequence[LaneSpec]:
        return [spec for built in self._built for spec in built.lanes()]

    @hookimpl
    def register_inbound(self) -> Sequence[InboundRule]:
        return [rule for built in self._built for rule in built.inbound()]
