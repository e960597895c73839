"""One object of each type, and functions whose parameters are filled with them."""

import inspect
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")


class NotProvided(LookupError):
    """A handler asks for a type that nothing provides. The text names both."""


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
        """Provides an object. Raises `ValueError` where another is provided under the same type."""
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
        """The function with every parameter filled that its caller does not give by name or position.

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
    """The parameters of a handler that are to be provided, by name, with their types."""
    parameters = inspect.signature(function).parameters.values()
    names = [
        each.name
        for each in parameters
        if each.name not in given and each.default is inspect.Parameter.empty
    ]
    if not names:
        return {}
    inner = function
    while isinstance(inner, partial):
        inner = inner.func
    hints = get_type_hints(getattr(inner, "__func__", inner))
    return {name: hints.get(name, Any) for name in names}


def _name(kind: Any) -> str:
    return str(getattr(kind, "__qualname__", kind))
