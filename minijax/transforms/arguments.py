"""Arguments of transformed functions: static ones filled in, trees of the others flattened.

Also the checks of donated arrays.  Builds on `tracing`.
Chapter 15, *Non-array inputs*.  In JAX: `jax/_src/api_util.py`.
"""

import inspect
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from minijax import core, errors, tree_util
from minijax.core import dce, jaxpr, tracing
from minijax.util import source_info, tracebacks


class Sentinel:
    """A named value, compared by identity."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


UNSPECIFIED: Any = Sentinel("UnspecifiedValue")


class NotCarriedError(ValueError):
    """A function that is staged as a program uses an array reference from outside.

    `jit`, `scan`, `while_loop`, `cond` and functions built on them pass references; other
    transformations require that the value is passed and returned.
    """

    def __init__(self, ref: Any):
        self.ref = ref
        super().__init__(
            "a function that is traced uses an array reference that was made outside of it: "
            f"{ref.inner_aval.str_long()}. Pass the value of the reference to the function, and "
            "return the new one.")


# ── Values as parts of a key ─────────────────────────────────────────────────────────────────

def static_value(value: Any) -> tuple[type, Any]:
    """A static argument as part of a key: equal values of equal type share a trace."""
    try:
        hash(value)
    except TypeError as error:
        raise ValueError(
            "Non-hashable static arguments are not supported. An error occurred while trying to "
            f"hash an object of type {type(value)}, {value}. The error was:\nTypeError: {error}\n"
        ) from error
    return type(value), value


# ── Arguments that are filled in ─────────────────────────────────────────────────────────────

def looks_like(made: Any, fun: Callable) -> None:
    """Copy a function's name, docstring and attributes to its wrapper, which keeps its own."""
    tracebacks.update_wrapper(made, fun, updated=())
    for name, value in getattr(fun, "__dict__", {}).items():
        if name != "__wrapped__" and not hasattr(type(made), name):
            setattr(made, name, value)


class Filled:
    """A function of its arguments at some positions, with the others filled in."""

    def __init__(self, fun: Callable, args: tuple, places: Sequence[int],
                 kwargs: Mapping[str, Any], static: Collection[int] = ()):
        looks_like(self, fun)
        self.fun, self.places, self.kwargs = fun, places, kwargs
        self.args = [None if i in places else x for i, x in enumerate(args)]
        self.static = static  # the positions of arguments filled in since they are no arrays
        self.fixed = [args[i] for i in sorted(static)]

    @property
    def takes_part(self) -> list[bool]:
        """For each argument that is not static, whether its position is one of `places`."""
        return [i in self.places for i in range(len(self.args)) if i not in self.static]

    def with_carried(self, chosen: Sequence[Any]) -> tuple:
        """The arguments at these positions, merged with the others that are not static."""
        return tuple(x for i, x in enumerate(self.all_arguments(chosen)) if i not in self.static)

    def all_arguments(self, chosen: Sequence[Any]) -> list:
        args = list(self.args)
        for place, x in zip(self.places, chosen, strict=True):
            args[place] = x
        return args

    def __call__(self, *chosen: Any, **kwargs: Any) -> Any:
        return self.fun(*self.all_arguments(chosen), **self.kwargs, **kwargs)


def without_static(fun: Callable, args: tuple, static: Collection[int],
                   kwargs: Mapping[str, Any] = {},  # noqa: B006
                   carried: Collection[int] = ()) -> tuple[Filled, tuple]:
    """The function with its static and other arguments filled in, and the arguments left."""
    places = [i for i in range(len(args)) if i not in static and i not in carried]
    return Filled(fun, args, places, kwargs, static), tuple(args[i] for i in places)


def check_callable(fun: Any) -> None:
    if type(fun) is staticmethod:
        raise TypeError(f"staticmethod arguments are not supported, got {fun}")
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")


def check_function(fun: Any) -> None:
    """Refuse what is not callable, and generator functions."""
    check_callable(fun)
    if inspect.isgeneratorfunction(fun):
        raise TypeError(f"Expected a function, got a generator function: {fun}")


def check_compiler_options(options: Mapping[str, Any] | None) -> None:
    """Refuse options of other names than XLA's, which have no effect.

    Raises:
      JaxRuntimeError: naming the first.
    """
    for name in dict(options or {}):
        if not name.startswith(("xla_", "exec_time_optimization_effort", "memory_fitting_level",
                                "optimization_level")):
            raise errors.JaxRuntimeError(f"INVALID_ARGUMENT: No such compile option: '{name}'")


def flattened(fun: Callable, args: tuple, traced_for: str, has_aux: bool = False,
              kwargs: dict[str, Any] | None = None, static: Collection[int] = ()
              ) -> tuple[tracing.FlatFunction, list[Any]]:
    """A function of trees as a function of leaves, and the leaves; static arguments filled in."""
    check_callable(fun)
    info = source_info.describe(fun, args, kwargs or {}, traced_for, static)
    if static:
        fun, args = without_static(fun, args, {i % len(args) for i in static})
    leaves, in_tree = tree_util.tree_flatten((args, kwargs or {}))
    return tracing.FlatFunction(fun, in_tree, info, has_aux), leaves


# ── Which they are ───────────────────────────────────────────────────────────────────────────

class Named(NamedTuple):
    """Arguments that the user has named: by position, and by name."""

    numbers: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    def places(self, count: int) -> set[int]:
        """The positions, among that many arguments."""
        return {i % count for i in self.numbers if -count <= i < count}


def bound(signature: inspect.Signature, name: str, args: tuple, kwargs: dict
          ) -> inspect.BoundArguments:
    """The arguments of a call by the signature's names.

    Raises:
      TypeError: where they do not match the signature, with the message of Python's call.
    """
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as error:
        words = str(error).replace("missing a required argument:",
                                   "missing 1 required positional argument:")
        raise TypeError(f"{name}() {words}") from None


def as_tuple(x: Any, kind: type) -> tuple:
    return () if x is None else (x,) if isinstance(x, kind) else tuple(x)


def named_arguments(fun: Callable, argnums: Any, argnames: Any, what: str) -> Named:
    """Positions and names that are static (or donated).

    If only positions or only names are passed, the signature supplies the others.

    Raises:
      ValueError: for a position or name that the function does not have.
    """
    nums, names = as_tuple(argnums, int), as_tuple(argnames, str)
    nums = tuple(map(operator.index, nums))
    if not nums and not names:
        return Named()
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        if what == "static" or nums:
            return Named(nums, names)
        raise ValueError(f"Getting the signature of function {fun} failed. Pass {what}_argnums "
                         f"instead of {what}_argnames.") from None
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    kinds = {p.kind for p in parameters}
    if inspect.Parameter.VAR_POSITIONAL not in kinds and any(
            not -len(named) <= n < len(named) for n in nums):
        raise ValueError(f"Jitted function has {what}_argnums={nums}, but only accepts "
                         f"{len(named)} positional arguments.")
    by_name = {p.name: p.kind not in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL) for p in parameters}
    takes_any = inspect.Parameter.VAR_KEYWORD in kinds
    if wrong := {name for name in names if not by_name.get(name, takes_any)}:
        why = ("These are positional-only" if by_name.keys() >= wrong
               else "Function does not take these args.")
        raise ValueError(f"Jitted function has invalid argnames {wrong} in {what}_argnames. {why}")
    if argnums is None:
        nums = tuple(named.index(n) for n in names if n in named)
    elif argnames is None:
        names = tuple(named[n] for n in nums if -len(named) <= n < len(named))
    return Named(tuple(dict.fromkeys(nums)), tuple(dict.fromkeys(names)))


# ── Donated arguments ────────────────────────────────────────────────────────────────────────

def donated_leaves(donated: Named, static: Collection[int], args: tuple, kwargs: dict
                   ) -> tuple[int, ...]:
    """The positions of donated leaves among the leaves of arguments that are not static."""
    whose = [(i in donated.numbers, x) for i, x in enumerate(args) if i not in static]
    whose += [(name in donated.names, kwargs[name]) for name in sorted(kwargs)]
    flags = [flag for flag, x in whose for _ in tree_util.tree_leaves(x)]
    return tuple(i for i, flag in enumerate(flags) if flag)


# JAX: a result takes over the buffer. Here it is freed, and the allocator reuses it.

def usable(closed: jaxpr.ClosedJaxpr, donated: Sequence[int]) -> tuple[int, ...]:
    """The donated leaves that have a result of their size; warns of others that are used."""
    invars = closed.jaxpr.invars
    used = {invars[i] for i in used_leaves(closed)}
    sizes = [_bytes(aval) for aval in closed.out_avals]
    usable_leaves, left = [], []
    for i in donated:
        if invars[i] in used and (size := _bytes(invars[i].aval)) in sizes:
            sizes.remove(size)
            usable_leaves.append(i)
        elif invars[i] in used:
            aval = invars[i].aval
            left.append("~" * aval.weak_type + aval.str_long())
    if left:
        errors.warn(f"Some donated buffers were not usable: {', '.join(left)}.\nSee an "
                    "explanation at https://docs.jax.dev/en/latest/faq.html#buffer-donation.",
                    UserWarning)
    return tuple(usable_leaves)


@jaxpr.cached_on_jaxpr
def used_leaves(closed: jaxpr.ClosedJaxpr) -> list[int]:
    """The positions of the leaves that results, or effects, of the program depend on."""
    live = dce.without_dead_equations(closed)
    return [i for i, is_used in enumerate(dce.used_inputs(live)) if is_used]


_TWICE = {
    (True, True): ("donate the same buffer twice in", "f(donate(a), donate(a))"),
    (True, False): ("use a buffer that was previously donated in the same call to",
                    "f(donate(a), a)"),
    (False, True): ("donate a buffer which is also used by the same call to", "f(a, donate(a))")}


def check_donated_once(leaves: Sequence[Any], closed: jaxpr.ClosedJaxpr, donated: Sequence[int],
                       has_run: bool) -> None:
    """Refuse an array that is donated and also passed as another argument.

    Raises:
      JaxRuntimeError: saying which, counted among the leaves that are used; as in JAX it is a
        ValueError where the program has run before.
    """
    first: dict[int, tuple[int, bool]] = {}
    for number, i in enumerate(used_leaves(closed)):
        x, is_donated = leaves[i], i in donated
        if not isinstance(x, core.ArrayImpl) or x.is_literal:
            continue
        before, was_donated = first.setdefault(id(x), (number, is_donated))
        if before != number and (was_donated or is_donated):
            what, example = _TWICE[was_donated, is_donated]
            kind = ValueError if has_run else errors.JaxRuntimeError
            raise errors.with_cure(
                kind(f"INVALID_ARGUMENT: Attempt to {what} Execute() (flattened argument {number}, "
                     f"replica 0, partition 0, first use: {before}). Toy example for this bug: "
                     f"`{example}`."),
                "Pass a copy, x.copy(), to one of the two.")


def check_not_deleted(leaves: Sequence[Any], closed: jaxpr.ClosedJaxpr) -> None:
    """Refuse deleted arrays as arguments of a program that has run before.

    Raises:
      ValueError: saying which, counted among the leaves that are used.
    """
    gone = [i for i, x in enumerate(leaves) if isinstance(x, core.ArrayImpl) and core.is_donated(x)]
    for number, i in enumerate(used_leaves(closed) if gone else ()):
        if i in gone:
            raise errors.with_cure(
                ValueError(f"INVALID_ARGUMENT: Invalid buffer passed to Execute() as argument "
                           f"{number} to replica 0: INVALID_ARGUMENT: Buffer has been deleted or "
                           "donated."),
                str(core.deleted(leaves[i].aval)))


def _bytes(aval: core.ShapedArray) -> int:
    physical = core.physical_aval(aval)
    return physical.size * physical.dtype.itemsize
