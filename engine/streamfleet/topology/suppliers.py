"""Checks of what a user gives as a supplier: it must make a new object at every call, and say clearly which stores it brings. So
must what a ProcessorWrapper makes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

from streamfleet.errors import OptionError
from streamfleet.processor.api import FixedKeyProcessor, Processor, ProcessorSupplier
from streamfleet.processor.wrapper import ProcessorWrapper
from streamfleet.state.api import StateStore, StoreBuilder


def check_supplier(operator: str, supplier: Callable[[], Any], kind: type | None = None) -> None:
    """Call it twice: sharing one processor between tasks would mix their records, and shows only under load. `kind` is that of the
    processors it must make, where it takes the place of another supplier.
    """
    if not callable(supplier):
        raise OptionError(
            f"operator {operator} was given {supplier!r}, which is not a supplier",
            hint="pass a class, or a function without arguments that returns a new processor",
        )
    try:
        first, second = supplier(), supplier()
    except TypeError as error:
        raise OptionError(
            f"the supplier of operator {operator} cannot be called without arguments ({error})",
            hint="pass a class, or a function without arguments that returns a new processor",
        ) from error
    if kind is not None and not isinstance(first, kind):
        raise OptionError(
            f"the supplier of operator {operator} returned {first!r}, which is not a {kind.__name__}",
            hint="a wrapper returns a supplier of the kind of processor that it was given",
        )
    if first is second:
        raise OptionError(
            f"the supplier of operator {operator} returned one instance twice",
            hint="return a new object at every call: each task needs its own",
        )


def stores_of(operator: str, supplier: Callable[[], Any]) -> Iterable[StoreBuilder[StateStore]]:
    """The stores that a supplier brings with it, by its method `stores()`."""
    provide = getattr(supplier, "stores", None)
    if provide is None:
        return ()
    if isinstance(supplier, type) and isinstance(provide, FunctionType):
        static = isinstance(vars(supplier).get("stores"), staticmethod)
        if not static:
            raise OptionError(
                f"operator {operator}: stores() of class {supplier.__name__} needs an instance",
                hint="make it a classmethod or staticmethod: the class itself is the supplier",
            )
    return tuple(provide() or ())


def wrapped_supplier(operator: str, supplier: ProcessorSupplier, wrapper: ProcessorWrapper) -> ProcessorSupplier:
    """What the app's wrapper makes of a supplier, checked like one that a user gives."""
    wrapped = wrapper.wrap(operator, supplier)
    if wrapped is not supplier:
        kind = FixedKeyProcessor if isinstance(supplier(), FixedKeyProcessor) else Processor
        check_supplier(f"{operator}, wrapped by {type(wrapper).__qualname__},", wrapped, kind)
    return wrapped


def stores_brought_by_wrapper(
    operator: str, supplier: ProcessorSupplier, wrapped: ProcessorSupplier
) -> Iterable[StoreBuilder[StateStore]]:
    """The stores that come with the wrapped supplier only: a wrapper may pass on those of what it wraps as well."""
    if wrapped is supplier:
        return ()
    own = {builder.name for builder in stores_of(operator, supplier)}
    return tuple(builder for builder in stores_of(operator, wrapped) if builder.name not in own)
