"""Functions with transformations applied to them: `wrap_init`, `transformation`.

Builds on `config`.  JAX passes functions in this form; minijax passes them unchanged, and also
accepts this form, since it is callable.  In JAX: `jax/_src/linear_util.py`.
"""

import contextlib
import functools
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from minijax import config, errors
from minijax.util import source_info

_NO_DEBUG_INFO = (
    "linear_util.wrap_init is missing a DebugInfo object. This behavior is deprecated, use "
    "api_util.debug_info() to construct a proper DebugInfo object and propagate it to this "
    "function. See https://github.com/jax-ml/jax/issues/26480 for more details.")


class StoreException(Exception):
    """An auxiliary output was read before it was stored, or stored twice."""


class Store:
    """The place of one auxiliary output, which is stored once."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def __bool__(self) -> bool:
        return bool(self._values)

    @property
    def val(self) -> Any:
        if not self:
            raise StoreException("Store empty")
        return self._values[0]

    def store(self, val: Any) -> None:
        if self:
            raise StoreException("Store occupied")
        self._values.append(val)

    def reset(self) -> None:
        self._values.clear()


class EqualStore(Store):
    """The same, but an equal value may be stored again."""

    def store(self, val: Any) -> None:
        if self and not self.val == val:
            raise StoreException("Store occupied with not-equal value")
        self._values[:] = [val]


@dataclass(frozen=True, repr=False)
class WrappedFun:
    """A function `f`, and the transformations applied to it."""

    f: Callable
    f_transformed: Callable = field(compare=False)
    transforms: tuple = ()
    stores: tuple = field(default=(), compare=False)
    params: tuple = ()
    in_type: Any = None
    debug_info: source_info.DebugInfo | None = None

    @property
    def __name__(self) -> str:
        return source_info.function_name(self.f)

    def wrap(self, gen: Callable, gen_static_args: tuple, out_store: Store | None) -> "WrappedFun":
        """Apply one more transformation: ``gen(f, [store,] *static_args, *args)``."""
        leading = gen_static_args if out_store is None else (out_store, *gen_static_args)
        return WrappedFun(self.f, functools.partial(gen, self.f_transformed, *leading),
                          ((gen, gen_static_args), *self.transforms), (out_store, *self.stores),
                          self.params, None, self.debug_info)

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Call the transformed function."""
        return self.f_transformed(*args, **kwargs)

    __call__ = call_wrapped

    def populate_stores(self, stores: Sequence[Store | None]) -> None:
        """Copy the auxiliary outputs of an equal function that ran."""
        for store, other in zip(self.stores, stores, strict=False):
            if store is not None and other is not None:
                store.store(other.val)

    def __repr__(self) -> str:
        lines = "\n".join(f"{i}   : {gen.__name__}   {args}"
                          for i, (gen, args) in enumerate(self.transforms))
        return f"Wrapped function:\n{lines}\nCore: {self.__name__}\n"


def wrap_init(f: Callable, params: dict[str, Any] | None = None, *,
              debug_info: source_info.DebugInfo | None = None) -> WrappedFun:
    """A function without transformations.

    Args:
      f: a function.
      params: keyword arguments that it always gets.
      debug_info: whom to name in errors; without it there is a warning.

    >>> wrap_init(pow, {"mod": 5}, debug_info=source_info.DebugInfo("f", "f")).call_wrapped(2, 3)
    3
    """
    if debug_info is None:
        errors.warn(_NO_DEBUG_INFO, DeprecationWarning)
    params = params or {}
    return WrappedFun(f, functools.partial(f, **params), params=tuple(sorted(params.items())),
                      debug_info=debug_info)


WithAux = tuple[WrappedFun, Callable[[], Any]]  # and what reads the auxiliary output


def _curried(f: Callable) -> Callable:
    """Curried as in JAX: a call with the first arguments returns a function of the rest."""
    return functools.wraps(f)(functools.partial(functools.partial, f))


@_curried
def transformation2(gen: Callable, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """Transform a function to ``gen(f, *static_args, *args)``.

    >>> twice = transformation2(lambda f, x: f(f(x)))
    >>> twice(wrap_init(abs, debug_info=source_info.DebugInfo("f", "f"))).call_wrapped(-1)
    1
    """
    return fun.wrap(gen, gen_static_args, None)


@_curried
def transformation_with_aux2(gen: Callable, fun: WrappedFun, *gen_static_args: Any,
                             use_eq_store: bool = False, unk_names: bool = False) -> WithAux:
    """The same for ``gen(f, store, *static_args, *args)``, with a function that reads the store."""
    store = EqualStore() if use_eq_store else Store()
    return fun.wrap(gen, gen_static_args, store), lambda: store.val


@_curried
def transformation(gen: Callable, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """Transform a function by a generator.

    The generator yields the arguments for the function, is sent its result, and yields the result.

    >>> @transformation
    ... def negated(x):
    ...     result = yield (-x,), {}
    ...     yield -result
    >>> negated(wrap_init(abs, debug_info=source_info.DebugInfo("f", "f"))).call_wrapped(3)
    -3
    """
    def run(f: Callable, *args: Any, **kwargs: Any) -> Any:
        return _run_generator(gen, f, args, kwargs)
    return fun.wrap(run, gen_static_args, None)


@_curried
def transformation_with_aux(gen: Callable, fun: WrappedFun, *gen_static_args: Any) -> WithAux:
    """The same for a generator that yields a pair of the result and an auxiliary output."""
    def run(f: Callable, store: Store, *args: Any, **kwargs: Any) -> Any:
        result, aux = _run_generator(gen, f, args, kwargs)
        store.store(aux)
        return result
    return transformation_with_aux2(run, fun, *gen_static_args)()


def _run_generator(gen: Callable, f: Callable, args: tuple, kwargs: dict) -> Any:
    generator = gen(*args, **kwargs)
    args, kwargs = next(generator)
    return generator.send(f(*args, **kwargs))


def cache(call: Callable) -> Callable:
    """A cached function of a `WrappedFun`; a hit fills the stores, too."""
    results: weakref.WeakKeyDictionary[Callable, dict] = weakref.WeakKeyDictionary()

    def memoized_fun(fun: WrappedFun, *args: Any) -> Any:
        cached = results.setdefault(fun.f, {})
        key = (fun.transforms, fun.params, fun.in_type, args, config.trace_key())
        if key in cached:
            fun.populate_stores(cached[key][1])
        else:
            cached[key] = call(fun, *args), fun.stores
        return cached[key][0]
    memoized_fun.cache_clear = results.clear  # type: ignore[attr-defined]
    return memoized_fun


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """Which of two functions that read a store succeeds, and its value.

    Raises:
      StoreException: where none has, or both have.

    >>> merge_linear_aux(lambda: 3, lambda: Store().val)
    (True, 3)
    """
    results = []
    for is_first, aux in ((True, aux1), (False, aux2)):
        with contextlib.suppress(StoreException):
            results.append((is_first, aux()))
    if len(results) != 1:
        raise StoreException("both stores occupied" if results else "neither store occupied")
    return results[0]
