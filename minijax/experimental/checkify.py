"""Checks at run time whose failures are values: `checkify`, `check`, and their `Error`.

Builds on `checked`.  Chapter 14.  In JAX: `jax/_src/checkify.py`.
"""

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from minijax import config, core, numpy as jnp, tree_util
from minijax.custom.remat import eval_jaxpr_with
from minijax.util import source_info, tracebacks
from minijax.experimental.checked import (INT, Checking, DivisionByZeroError, ErrorCategory, Failed,
                                          FailedCheckError, Failure, JaxException, JaxRuntimeError,
                                          Kind, NaNError, OOBError, Site, values_at_failure)
from minijax.transforms.arguments import flattened
from minijax.primitives.convert import converted

__all__ = ["Error", "ErrorCategory", "JaxRuntimeError", "all_checks", "automatic_checks", "check",
           "check_error", "checkify", "debug_check", "div_checks", "float_checks", "index_checks",
           "init_error", "nan_checks", "user_checks"]

Out = TypeVar("Out")

user_checks: frozenset[ErrorCategory] = frozenset({FailedCheckError})
nan_checks: frozenset[ErrorCategory] = frozenset({NaNError})
index_checks: frozenset[ErrorCategory] = frozenset({OOBError})
div_checks: frozenset[ErrorCategory] = frozenset({DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


class BatchedError(JaxException):
    """The failures of the examples of a batch, by index."""

    def __init__(self, error_mapping: dict[tuple[int, ...], JaxException]):
        self.error_mapping = error_mapping

    def __str__(self) -> str:
        return "\n".join(f"at mapped index {', '.join(map(str, index))}: {error}"
                         for index, error in self.error_mapping.items())


@tree_util.register_pytree_node_class
class Error:
    """The failures of a call of a checked function: a tree of arrays.

    >>> import minijax as jax
    >>> err, _ = checkify(lambda x: check(x > 0, "{} is not positive", x))(jax.numpy.float32(-3))
    >>> err.get()
    '-3.0 is not positive (`check` failed)'
    """

    def __init__(self, failures: dict[Kind, Failure], sites: Sequence[Site]):
        self._failures, self._sites = failures, tuple(sites)

    def tree_flatten(self) -> tuple[tuple, tuple]:
        return tuple(self._failures.values()), (tuple(self._failures), self._sites)

    @classmethod
    def tree_unflatten(cls, aux_data: tuple, children: Sequence[Failure]) -> "Error":
        return cls(dict(zip(aux_data[0], children, strict=True)), aux_data[1])

    def get(self) -> str | None:
        """The message of the first failure, or None; of a batch those of all examples."""
        error = self.get_exception()
        return None if error is None else str(error)

    def get_exception(self) -> JaxException | None:
        """The first failure as an exception, or None."""
        shape = next((np.shape(code) for code, *_ in self._failures.values()), ())
        if not shape:
            return self._at(())
        errors = {index: error for index in np.ndindex(*shape) if (error := self._at(index))}
        return BatchedError(errors) if errors else None

    def _at(self, index: tuple[int, ...]) -> JaxException | None:
        failures = [(int(np.asarray(code)[index]), args) for code, *args in self._failures.values()]
        code, args = min((x for x in failures if x[0]), key=lambda x: x[0], default=(0, []))
        return self._sites[code - 1].exception([x[index] for x in args]) if code else None

    def throw(self) -> None:
        """Raise the first failure, of a batch that of the last example; see `check_error`.

        Raises:
          JaxRuntimeError: if a check failed.
        """
        check_error(self)

    def __str__(self) -> str:
        return f"Error({self.get()})"

    __repr__ = __str__


init_error = Error({}, ())


# ── As users call it ─────────────────────────────────────────────────────────────────────────

def checkify(f: Callable[..., Out], errors: frozenset[ErrorCategory] = user_checks
             ) -> Callable[..., tuple[Error, Out]]:
    """A function that also returns which of its checks failed, and does not raise.

    It may be compiled, batched and differentiated, and may call other checked functions.

    Args:
      f: a function of arrays and trees of arrays.
      errors: the failures to return: `user_checks` (calls of `check`), `nan_checks`, `div_checks`,
        `index_checks`, or several, joined by ``|``.

    Returns:
      A function of the same arguments, which returns an `Error` and what `f` returns.

    >>> import minijax as jax
    >>> divided = jax.jit(checkify(lambda x, y: x / y, errors=div_checks))
    >>> err, out = divided(1.0, 0.0)
    >>> err.get(), out
    ('division by zero', Array(inf, dtype=float32, weak_type=True))
    """
    @tracebacks.standing_for(f)
    def checkified(*args: Any, **kwargs: Any) -> tuple[Error, Out]:
        # concrete values stay concrete: the arguments are constants of the program
        flat, _ = flattened(functools.partial(f, *args, **kwargs), (), "checkify")
        with config.debug_out_of_bounds(True) if OOBError in errors else contextlib.nullcontext():
            closed = flat.staged([])
        run = Checking(frozenset(errors))
        out = flat.result(eval_jaxpr_with(run.evaluate, closed, ()))
        return Error(run.failures, run.sites), out
    return checkified


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Check a condition: inside of `checkify` for the error that it returns, else at once.

    Compiled code cannot raise: transform a function with checks by `checkify` before `jit`.

    Args:
      pred: a boolean scalar, which should be true.
      msg: the message if it is false, with fields for `str.format`.
      fmt_args, fmt_kwargs: trees of arrays, the values of the fields.
      debug: do nothing outside of `checkify`.

    Raises:
      JaxRuntimeError: if it is false, outside of `checkify`.
      TypeError: for other conditions, and for what is no array in a message.
      ValueError: where it is compiled, outside of `checkify`.

    >>> check(True, "is {x}", x=np.float32([1, 2]))
    """
    is_array = isinstance(pred, core.Array) and pred.shape == () and pred.dtype == bool
    if not isinstance(pred, bool) and not is_array:
        name = "debug_check" if debug else "check"
        raise TypeError(f"{name} takes a scalar pred as argument, got {pred}")
    leaves, tree = tree_util.tree_flatten((fmt_args, fmt_kwargs))
    for x in leaves:
        if not isinstance(x, core.Array | np.ndarray):
            raise TypeError("Formatting arguments to checkify.check need to be PyTrees of arrays, "
                            f"but got {x!r} of type {type(x)}.")
    site = Site(FailedCheckError, (msg,), tree, source_info.user_frame())
    failed = converted(jnp.logical_not(pred), INT)
    Failed((site,), FailedCheckError, debug).bind(failed, leaves)


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """`check` that does nothing outside of `checkify`.

    >>> debug_check(False, "is {}", np.float32([1, 2]))
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raise an error if a check failed; inside of `checkify` it becomes a check again.

    Args:
      error: the error that a checked function returned.

    Raises:
      JaxRuntimeError: if something failed, outside of `checkify`.
      TypeError: for what is no `Error`.
      ValueError: where it is compiled, outside of `checkify`.

    >>> check_error(init_error)
    """
    if not isinstance(error, Error):
        raise TypeError(f"check_error takes an Error as argument, got type {type(error)} instead.")
    arrays = [(kind, list(map(core.as_value, leaves))) for kind, leaves in error._failures.items()]
    failures = [(kind, values_at_failure(leaves[0] != 0, leaves, -1)) for kind, leaves in arrays]
    if all(core.is_concrete(code) for _, (code, *_) in failures):  # the first raises
        failures.sort(key=lambda each: int(each[1][0]))
    for kind, (code, *args) in failures:
        Failed(error._sites, kind.error).bind(code, args)
