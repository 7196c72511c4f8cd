"""Discharge of array references: in a program their values become arguments and results.

Builds on `array_refs`.  Chapter 13, *In-place updates*.  In JAX: `jax/_src/state/discharge.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from minijax import core, tree_util
from minijax.core import jaxpr
from minijax.transforms.arguments import NotCarriedError
from minijax.transforms.array_refs import Indexed, MappedRef, Ref
from minijax.util import source_info, tracebacks

if TYPE_CHECKING:
    from minijax.transforms.jit import JitFunction

T = TypeVar("T")


class NotStagedError(NotCarriedError, NotImplementedError):
    """A derivative needs what no program has, such as an array reference for a custom rule.

    Whoever called the program differentiates the Python function instead.
    """

    def __init__(self, message: str, ref: Any = None):
        self.ref = ref
        NotImplementedError.__init__(self, message)


# ── References among arguments ───────────────────────────────────────────────────────────────

def check_distinct(leaves: Sequence[Any], info: source_info.DebugInfo) -> None:
    """Refuse a reference that is passed more than once."""
    names: dict[int, list[str]] = {}
    for x, name in zip(leaves, info.arg_names, strict=True):
        if core.is_ref(x):
            names.setdefault(id(x), []).append(str(name))
            if len(names[id(x)]) > 1:
                raise ValueError(
                    "only one reference to a mutable array may be passed as an argument to a "
                    f"function, but when tracing {info.func_src_info} for {info.traced_for} the "
                    f"mutable array reference of type {x.aval} appeared at both "
                    f"{' and '.join(names[id(x)])}.")


@contextlib.contextmanager
def passed(leaves: Sequence[Any], info: source_info.DebugInfo) -> Iterator[None]:
    """For the duration of a call, mark the references among its arguments as passed."""
    check_distinct(leaves, info)
    refs = [(x, name) for x, name in zip(leaves, info.arg_names, strict=True) if core.is_ref(x)]
    before = [ref.passed_as for ref, _ in refs]
    for ref, name in refs:
        ref.passed_as = (
            f"when tracing {info.func_src_info} for {info.traced_for}, a mutable array reference "
            f"of type {ref.aval} was both closed over and passed as the argument {name}")
    try:
        yield
    finally:
        for (ref, _), old in zip(refs, before, strict=True):
            ref.passed_as = old


def closed_over(function: Callable, operands: Sequence[Any]) -> tuple[Callable, list]:
    """A function with its references closed over, and its other operands."""
    leaves, tree = tree_util.tree_flatten(tuple(operands))
    is_ref = [*map(core.is_ref, leaves)]
    values, refs = jaxpr.partition_list(leaves, is_ref)

    def of_the_others(*others: Any) -> Any:
        return function(*tree_util.tree_unflatten(tree, jaxpr.merge_lists((others, refs), is_ref)))
    return of_the_others, values


def has_refs(tree: Any) -> bool:
    return any(core.is_ref(x) for x in tree_util.tree_leaves(tree))


# ── Programs that use references from outside ────────────────────────────────────────────────

@contextlib.contextmanager
def _holding(refs: Sequence[Ref], values: Sequence[core.Array]) -> Iterator[None]:
    """Set the references to values of the current trace, and restore their own afterwards."""
    before = [(ref._value, ref._home) for ref in refs]
    for ref, value in zip(refs, values, strict=True):
        ref._value, ref._home = value, core.current_trace.get()
    try:
        yield
    finally:
        for ref, (old, home) in zip(refs, before, strict=True):
            ref._value, ref._home = old, home


def discharged(fun: Callable, refs: Sequence[Ref]) -> Callable[..., tuple[Any, list]]:
    """A function from the references' values and its arguments to its result and the new values."""
    def pure(values: Sequence[core.Array], *args: Any, **kwargs: Any) -> tuple[Any, list]:
        with _holding(refs, values):
            return fun(*args, **kwargs), [ref.read() for ref in refs]
    pure.gives_more = True  # type: ignore[attr-defined]  # than the user's function: errors ask
    return pure


def reading(fun: Callable, refs: Sequence[Ref]) -> Callable[..., Any]:
    """The same function, with the references' values as a keyword; it must not write to them."""
    def pure(*args: Any, values_of_references: Sequence[core.Array], **kwargs: Any) -> Any:
        with _holding(refs, values_of_references):
            result = fun(*args, **kwargs)
            for ref, x in zip(refs, values_of_references, strict=True):
                if ref.read() is not x:
                    raise NotStagedError(
                        "a function under jax.checkpoint, which recomputes it, writes to an array "
                        "reference that was made outside of it. Make it with new_ref(..., "
                        "kind='no_grad_no_remat'), which is written once, by the forward pass; or "
                        "return the new value, and write it outside.", ref)
            return result
    return pure


def carry(error: NotCarriedError, refs: list[Ref]) -> list[Ref]:
    """Add the reference to those that an operation carries, or raise the error again."""
    if (isinstance(error, NotStagedError) or any(error.ref is ref for ref in refs)
            or not error.ref.is_open()):
        raise error  # an enclosing operation must carry it first, or the failed function made it
    refs.append(error.ref)
    return refs


def carrying_refs(with_refs: Callable[[Sequence[Ref], list], tuple[T, list]], refs: list[Ref]) -> T:
    """An operation on functions that use references from outside.

    Args:
      with_refs: from references and their values, its result and the references' new values.
      refs: the known references; others are discovered by trial, and added.
    """
    while True:
        try:
            result, values = with_refs(refs, [ref.read() for ref in refs])
        except NotCarriedError as error:
            carry(error, refs)
        else:
            for ref, value in zip(refs, values, strict=True):
                ref.write(value)
            return result


# ── `jit` of functions that use references ───────────────────────────────────────────────────

class DischargedJit:
    """A jitted function that uses references: `jit` of functions of their values.

    Args:
      jitted: the function.
      captured: the references that it closes over, discovered by calls.
    """

    def __init__(self, jitted: JitFunction):
        self.jitted = jitted
        self.captured: list[Ref] = []
        self._of_captured: dict[int, JitFunction] = {}  # by the number of references
        self._of_arguments: dict[tuple[int, ...], JitFunction] = {}  # by their places

    def __call__(self, args: tuple, kwargs: dict, error: NotCarriedError | None) -> Any:
        """A call of the function, which has raised the error before if there is one."""
        try:
            return self._staged(args, kwargs, error)
        except NotStagedError:
            if getattr(self.jitted._fun, "gives_more", False):
                raise  # the function of the references themselves is what runs in Python
            return self.jitted._fun(*args, **kwargs)

    def _staged(self, args: tuple, kwargs: dict, error: NotCarriedError | None) -> Any:
        leaves, tree = tree_util.tree_flatten((args, kwargs))
        if any(map(core.is_ref, leaves)):
            return self._call_with_values(leaves, tree)
        if error is not None:
            carry(error, self.captured)
        return carrying_refs(
            lambda refs, values: self._with_captured(len(refs))(values, *args, **kwargs),
            self.captured)

    def _call_with_values(self, leaves: Sequence[Any], tree: tree_util.PyTreeDef) -> Any:
        """A call with references among its arguments."""
        indices = tuple(i for i, x in enumerate(leaves) if core.is_ref(x))
        refs = [leaves[i] for i in indices]
        if indices not in self._of_arguments:
            self._of_arguments[indices] = self._jit(of_values(self.jitted._fun, indices))
        jitted = self._of_arguments[indices]
        args, kwargs = tree_util.tree_unflatten(tree, leaves)
        values = tree_util.tree_unflatten(tree, [x.read() if core.is_ref(x) else x for x in leaves])
        with passed(leaves, source_info.describe(self.jitted._fun, args, kwargs, "jit")):
            captured = jitted._discharged.captured if jitted._discharged else ()
            for ref in refs:
                if any(ref is other for other in captured):
                    raise ValueError(ref.passed_as)
            result, new_values = jitted(*values[0], **values[1])
        for ref, value in zip(refs, new_values, strict=True):
            ref.write(value)
        return result

    def _with_captured(self, count: int) -> JitFunction:
        """The function with the values of the references it closes over as its first argument."""
        if count not in self._of_captured:
            self._of_captured[count] = self._jit(
                discharged(self.jitted._fun, self.captured[:count]), 1)
        return self._of_captured[count]

    def _jit(self, fun: Callable, shift: int = 0) -> JitFunction:
        """`jit` of another function, with more arguments before its own."""
        tracebacks.update_wrapper(fun, self.jitted._fun)
        return self.jitted.with_function(fun, shift)


def of_examples(fun: Callable, refs: Mapping[int, tuple[Indexed, int]]) -> Callable:
    """A function of references at some leaves as one of an example's values under `vmap`.

    `refs` has the reference for each leaf, and the axis of the examples in it.
    """
    def of_values_of_examples(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_util.tree_flatten((args, kwargs))
        args, kwargs = tree_util.tree_unflatten(tree, [
            MappedRef(x, *refs[i]) if i in refs else x for i, x in enumerate(leaves)])
        return fun(*args, **kwargs)
    return of_values_of_examples


def of_values(fun: Callable, indices: Sequence[int]) -> Callable[..., tuple[Any, list]]:
    """A function of references at some leaves as a function of values that returns the new ones."""
    def pure(*args: Any, **kwargs: Any) -> tuple[Any, list]:
        leaves, tree = tree_util.tree_flatten((args, kwargs))
        refs = {i: Ref(leaves[i]) for i in indices}
        names = source_info.describe(fun, args, kwargs, "jit").arg_names
        for i, ref in refs.items():
            ref.origin = f"passed in as the argument {names[i]}"
        args, kwargs = tree_util.tree_unflatten(
            tree, [refs.get(i, x) for i, x in enumerate(leaves)])
        return fun(*args, **kwargs), [ref.read() for ref in refs.values()]
    pure.gives_more = True  # type: ignore[attr-defined]
    return pure
