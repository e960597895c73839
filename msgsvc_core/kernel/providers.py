"""Dependency injection: one object per type, passed to functions by the types of their parameters."""

import inspect
from collections.abc import Callable, Collection, Iterator
from functools import partial
from types import MethodType
from typing import Any, Generic, NamedTuple, TypeVar, get_args, get_origin, get_type_hints
from weakref import WeakKeyDictionary

T = TypeVar("T")


class NotProvided(LookupError):
    """A handler has a parameter of a type that nothing provides. The text names both."""


class Later(Generic[T]):
    """Returns, when called, an object that may be provided only after the function that asks for it has run:
    `states: Later[ChannelStates]`. Raises `NotProvided` if it is called too early."""

    def __init__(self, providers: "Providers", kind: type[T]) -> None:
        self._providers = providers
        self._kind = kind

    def __call__(self) -> T:
        return self._providers.get(self._kind)


class Providers:
    """What handlers may ask for by type.

    providers = Providers()
    providers.add(clock, kind=Clock)          # under a protocol or base class
    providers.add(OneTimeCodes(...))          # under its own class

    async def send_code(ctx: Context, body: SendBody, codes: OneTimeCodes) -> QueuedMessageAnswer: ...

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
        for name, kind, is_later in _signature(function).needed:
            if name in given:
                continue
            if is_later:
                filled[name] = Later(self, kind)
            elif kind in self._objects:
                filled[name] = self._objects[kind]
            else:
                raise NotProvided(
                    f"{getattr(function, '__qualname__', function)} asks for"
                    f" `{name}: {_name(kind)}`, which nothing provides"
                )
        return partial(function, **filled) if filled else function

    def can_bind(self, function: Callable[..., Any]) -> bool:
        """Whether everything is provided that the function asks for."""
        objects = self._objects
        return all(each.is_later or each.kind in objects for each in _signature(function).needed)


def provided_kinds(function: Callable[..., Any], given: Collection[str]) -> list[Any]:
    """The types of the parameters of a handler that must be provided; of a `Later`, of what it returns."""
    return [each.kind for each in _signature(function).needed if each.name not in given]


def takes(function: Callable[..., Any], parameter: str) -> bool:
    """Whether the function has a parameter of that name."""
    return parameter in _signature(function).names


class _Needed(NamedTuple):
    """A parameter without a default: its type, or that of the object that a `Later` returns."""

    name: str
    kind: Any
    is_later: bool


class _Signature(NamedTuple):
    """The parameters of a function: all names, and those without a default."""

    names: tuple[str, ...]
    needed: tuple[_Needed, ...]


#: Every service of a process binds the same functions, and inspecting one takes longer than calling it.
_signatures: WeakKeyDictionary[Callable[..., Any], _Signature] = WeakKeyDictionary()


def _signature(function: Callable[..., Any]) -> _Signature:
    if isinstance(function, partial):
        inner = _signature(function.func)
        # `update_wrapper` and the like don't matter: what is given by position comes first.
        names = inner.names[len(function.args) :]
        left = set(names) - set(function.keywords)
        return _Signature(names, tuple(each for each in inner.needed if each.name in left))
    if isinstance(function, MethodType):
        inner = _signature(function.__func__)
        # The object itself is not asked for; with `*arguments`, nothing was needed for it.
        begin = int(bool(inner.needed) and inner.needed[0].name == inner.names[0])
        return _Signature(inner.names[1:], inner.needed[begin:])
    found = _signatures.get(function)
    if found is None:
        found = _signatures[function] = _inspected(function)
    return found


def _inspected(function: Callable[..., Any]) -> _Signature:
    parameters = inspect.signature(function).parameters.values()
    names = [each.name for each in parameters if each.default is inspect.Parameter.empty]
    hints = get_type_hints(function) if names else {}
    return _Signature(
        tuple(each.name for each in parameters),
        tuple(_needed(name, hints.get(name, Any)) for name in names),
    )


def _needed(name: str, kind: Any) -> _Needed:
    is_later = get_origin(kind) is Later
    return _Needed(name, get_args(kind)[0] if is_later else kind, is_later)


def _name(kind: Any) -> str:
    return str(getattr(kind, "__qualname__", kind))
