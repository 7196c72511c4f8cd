"""Context managers for tracing: evaluation at compile time, named scopes, values of the user's.

Builds on `core`.  Chapter 08, *jit and its cache*.
In JAX: `jax/_src/core.py` (`ensure_compile_time_eval`), `jax/_src/api.py` (`named_scope`).
"""

import contextlib
import itertools
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

from minijax import config, core
from minijax.core import Array, Params, Primitive, Tracer
from minijax.util.tracebacks import wraps


class UserContext(config.Flag):
    """A value of the user's, part of the key of traced functions."""

    def get_global(self) -> Any:
        """The value outside of all `with` statements."""
        return config._shared[self.name]

    set_global = config.Flag.set


_numbers = itertools.count()


def make_user_context(default_value: Hashable = None) -> UserContext:
    """A context manager for a value on which jitted functions depend: they are traced for each.

    >>> import minijax as jax
    >>> scale = make_user_context(2.0)
    >>> double = jax.jit(lambda x: x * scale.value)
    >>> with scale(3.0):
    ...     print(double(1.0))
    3.0
    >>> print(double(1.0))
    2.0
    """
    name = f"user_context_{next(_numbers)}"
    context = UserContext(name, config.hashable, default_value, "A value of the user's.")
    config.traced_names.append(name)
    context.set(default_value)
    return context


class _KnownAtOnce(core.EvalTrace):
    """Evaluates operations without tracers, and leaves the others to its parent."""

    def __init__(self, behind: core.Trace) -> None:
        super().__init__(behind.level, behind)
        self.ground = core.base_trace

    def concerns(self, primitive: Primitive, args: Sequence[Array], params: Params) -> bool:
        return not any(isinstance(x, Tracer) for x in args)

    def process_primitive(self, primitive: Primitive, args: Sequence, params: Params) -> list:
        return core.base_trace.process_primitive(primitive, args, params)


@contextlib.contextmanager
def set_current_trace(trace: core.Trace, check_leaks: bool = False) -> Iterator[None]:
    """A block whose operations a trace processes.

    >>> with set_current_trace(core.base_trace):
    ...     core.current_trace.get() is core.base_trace
    True
    """
    before = core.current_trace.get()
    core.current_trace.set(trace)
    try:
        yield
    finally:
        core.current_trace.set(before)


@contextlib.contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """A context in which operations on concrete arrays run at once, even while tracing.

    >>> import minijax as jax
    >>> def f(x):
    ...     with ensure_compile_time_eval():
    ...         place = int(jax.numpy.arange(3)[1] * 2)
    ...     return x[place]
    >>> jax.jit(f)(jax.numpy.arange(5.))
    Array(2., dtype=float32)
    """
    behind = core.current_trace.get()
    with set_current_trace(behind if type(behind) is core.EvalTrace else _KnownAtOnce(behind)):
        yield


class named_scope(contextlib.ContextDecorator, contextlib.nullcontext):
    """A context, or a decorator, with a name for readers of programs.

    JAX: shows it in profiles and in what its compiler writes down.

    Args:
      name: the name.

    Raises:
      TypeError: for what is no string.

    >>> with named_scope("layer"):
    ...     pass
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"named_scope name argument must be a string, got {name}")
        super().__init__(self)
        self.name = name


def named_call(fun: Callable, *, name: str | None = None) -> Callable:
    """The function under a `named_scope`.

    >>> named_call(lambda x: x + 1, name="next")(2)
    3
    """
    scope = named_scope(name or str(getattr(fun, "__name__", "function")))

    @wraps(fun)
    def named(*args: Any, **kwargs: Any) -> Any:
        with scope:
            return fun(*args, **kwargs)

    return named
