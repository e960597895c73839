"""Dependency injection: one object per type, passed to functions by the types of their parameters."""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar, get_type_hints
from weakref import WeakKeyDictionary

T = TypeVar("T")


class NotProvided(LookupError):
    """A handler has a parameter of a type that nothing provides. The text names both."""


class Providers:
    """What handlers may ask for by type.

    providers = Providers()
    providers.add(clock, kind=Clock)          # under a protocol or base class
    providers.add(OneTimeCodes(...))          # under its own class

    async def send_code(ctx: Context, body: SendBody, codes: OneTimeCodes) -> SendAnswer: ...

    call = providers.bind(send_code, given={"ctx", "body"})
    await call(ctx, body=body)
    """

    def __init__(self) -> None:
        self._objects: dict[Any, Any] = {}

    def add(self, provided: Any, *, kind: Any = None) -> None:
        """Provides an object. Raises `ValueError` if the type is provided already."""
        kind = type(provided) if kind is None else kind
        if kind in self._objects and self._objects[kind] is not provided:
            raise ValueError(f"two objects are provided as {_name(kind)}")
        self._objects[kind] = provided

    def get(self, kind: type[T]) -> T:
        """The object of that type. Raises `NotProvided`."""
        try:
            found: T = self._objects[kind]
        except KeyError:
            raise NotProvided(f"nothing provides {_name(kind)}") from None
        return found

    def __iter__(self) -> Iterator[Any]:
        return iter(self._objects)

    def bind(self, function: Callable[..., Any], given: Collection[str]) -> Callable[..., Any]:
        """The function with every parameter filled in that its caller does not pass.

        Raises `NotProvided` for a parameter whose type nothing provides, unless it has a default.
        """
        filled = {}
        for name, kind in provided_arguments(function, given).items():
            if kind not in self._objects:
                raise NotProvided(
                    f"{getattr(function, '__qualname__', function)} asks for"
                    f" `{name}: {_name(kind)}`, which nothing provides"
                )
            filled[name] = self._objects[kind]
        return partial(function, **filled) if filled else function


def provided_arguments(function: Callable[..., Any], given: Collection[str]) -> dict[str, Any]:
    """The parameters of a handler that must be provided, by name, with their types."""
    return {name: kind for name, kind in _without_default(function).items() if name not in given}


def _without_default(function: Callable[..., Any]) -> Mapping[str, Any]:
    """The parameters without a default, by name, with their types."""
    inner = function
    while isinstance(inner, partial):
        inner = inner.func
    inner = getattr(inner, "__func__", inner)
    if inner is not function:
        return _inspected(function, inner)
    found = _parameters.get(function)
    if found is None:
        found = _parameters[function] = _inspected(function, inner)
    return found


#: Cached parameters of plain functions: each service of a process binds the same ones.
_parameters: WeakKeyDictionary[Callable[..., Any], Mapping[str, Any]] = WeakKeyDictionary()


def _inspected(function: Callable[..., Any], inner: Callable[..., Any]) -> dict[str, Any]:
    names = [
        name
        for name, each in inspect.signature(function).parameters.items()
        if each.default is inspect.Parameter.empty
    ]
    hints = get_type_hints(inner) if names else {}
    return {name: hints.get(name, Any) for name in names}


def _name(kind: Any) -> str:
    return str(getattr(kind, "__qualname__", kind))
