"""Every error that a user can meet; the docstring of each class is its page of the book.

A class takes facts (the tracer, the primitive's name, what was expected) and builds the sentence.
Stands on the standard library alone.  Its chapter is "The errors, one by one".
In JAX: ``jax/_src/errors.py`` and the messages spread over many files.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import Any

ERROR_PAGE = "https://jax.readthedocs.io/en/latest/errors.html"
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_GLUE = (contextlib.__file__, functools.__file__)  # between a decorator of ours and its user


class _WithPage:
    """Closes the message with the address of the page that explains the class."""

    def __init__(self, message: str) -> None:
        name = type(self).__name__
        super().__init__(f"{message}\nSee {ERROR_PAGE}#jax.errors.{name}")  # type: ignore[call-arg]


def _described(tracer: Any) -> str:
    """Return what a message calls a tracer: its shape, never its address."""
    return f"traced array with shape {tracer.aval.str_short()}."


def _origin(tracer: Any) -> str:
    """Return what was being traced and which arguments the value depends on; may be empty."""
    origin: str = tracer._origin_msg()
    return origin


class JAXTypeError(_WithPage, TypeError):
    """The base of the TypeErrors on this page."""


class JAXIndexError(_WithPage, IndexError):
    """The base of the IndexErrors on this page."""


class ConcretizationTypeError(JAXTypeError):
    """Python needed a number, and only a tracer was there.

    **What happened.** While ``jit`` (or another transformation) traces a function, its arguments
    are *tracers*: they have a shape and a dtype, and no value.  Something in the function asked
    for the value: a shape, an axis, ``int(x)``, ``range(x)``, or an array whose size depends on
    what is inside another array.

    **The smallest example.**  The axis of a reduction decides the shape of the result, so it must
    be known while tracing::

        @jit
        def lowest(x, axis):
            return x.min(axis)

        lowest(jnp.arange(4), 0)      # ConcretizationTypeError: ... axis argument

    **The fix.**

    - Declare the argument static.  The function is then traced once per value of it::

          @partial(jit, static_argnums=1)
          def lowest(x, axis):
              return x.min(axis)

    - Where the value decides *which* numbers come out, and not how many, compute both and choose:
      ``jnp.where(condition, x, y)``, or ``lax.cond`` to run one of two functions.
    - Where the size of an array would depend on values (``jnp.where(x > 1)``, ``jnp.nonzero``),
      keep the full size and mask: ``jnp.where(x > 1, x, 0).sum()`` in place of
      ``x[jnp.where(x > 1)].sum()``; or give the function a ``size=``.
    """

    def __init__(self, tracer: Any, context: str = "") -> None:
        super().__init__("Abstract tracer value encountered where concrete value is expected: "
                         f"{_described(tracer)}\n{context}{_origin(tracer)}\n")


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index.

    **What happened.** ``x[mask]`` has as many elements as the mask has True, and while tracing
    the mask has no values.  Arrays under ``jit`` need sizes that are known beforehand.

    **The smallest example.** ::

        @jit
        def positive(x):
            return x[x > 0]           # NonConcreteBooleanIndexError

    **The fix.**  Keep the full size and replace what is masked out::

        @jit
        def sum_of_positive(x):
            return jnp.where(x > 0, x, 0).sum()       # was: x[x > 0].sum()

        @jit
        def absolute(x):
            return jnp.where(x < 0, -x, x)            # was: x.at[x < 0].multiply(-1)

    Setting a constant, ``x.at[mask].set(0)``, works as it stands: its size does not depend on
    the mask.  Where the smaller array itself is wanted, compute the mask outside of ``jit``.
    """

    def __init__(self, tracer: Any) -> None:
        super().__init__("Array boolean indices must be concrete; got "
                         f"{_aval_repr(tracer)}{_origin(tracer)}\n")


def _aval_repr(tracer: Any) -> str:
    return f"ShapedArray({tracer.aval.str_short()})"


class TracerArrayConversionError(JAXTypeError):
    """NumPy was handed a tracer.

    **What happened.** A NumPy function called ``__array__()`` to get at the numbers of its
    argument.  A tracer has none.

    **The smallest example.** ::

        @jit
        def wave(x):
            return np.sin(x)          # TracerArrayConversionError

        table = np.arange(10)

        @jit
        def pick(i):
            return table[i]           # the same: NumPy indexes with a tracer

    **The fix.**  Use the function of the same name in ``jax.numpy``: ``jnp.sin(x)``.  For a NumPy
    table, either make it an array of ours, ``jnp.asarray(table)[i]``, or declare the index
    static: ``jit(pick, static_argnums=0)``.
    """

    def __init__(self, tracer: Any) -> None:
        super().__init__("The numpy.ndarray conversion method __array__() was called on "
                         f"{_described(tracer)}{_origin(tracer)}")


class TracerIntegerConversionError(JAXTypeError):
    """A Python integer was needed, and a tracer was there.

    **What happened.** Something called ``__index__()`` on a tracer: a list index, a slice of a
    list, an argument that a NumPy function wants as an integer.

    **The smallest example.** ::

        names = [1, 2, 3]

        @jit
        def pick(i):
            return names[i]           # TracerIntegerConversionError

    **The fix.**  Turn the list into an array, ``jnp.array(names)[i]``; or declare the argument
    static, ``jit(pick, static_argnums=0)``; or let a function close over the integer,
    ``jit(lambda x: np.split(x, 2, axis=0))``.  (A new closure at every call is traced at every
    call: a static argument is better in a loop.)
    """

    def __init__(self, tracer: Any) -> None:
        super().__init__(f"The __index__() method was called on {_described(tracer)}"
                         f"{_origin(tracer)}")


class TracerBoolConversionError(ConcretizationTypeError):
    """Python asked a tracer whether it is true.

    **What happened.** ``if``, ``while``, ``and``, ``or``, ``not``, ``assert``, ``max(x, y)`` and
    chained comparisons all call ``bool()`` on what they test.  Under ``jit`` the answer is not
    known: the function is traced once for all values.

    **The smallest example.** ::

        @jit
        def f(x):
            if x < 3:                 # TracerBoolConversionError
                return 3. * x ** 2
            return -4 * x

    **The fix.**

    - Elementwise choice: ``jnp.where(x < 3, 3. * x ** 2, -4 * x)``.
    - One of two functions: ``lax.cond(x < 3, three, four, x)``; loops: ``lax.while_loop``,
      ``lax.fori_loop``, ``lax.scan``.
    - ``jnp.logical_and`` in place of ``and`` and of ``a < x < b``, ``jnp.maximum`` of ``max``.
    - A condition that is part of the configuration: declare the argument static.
    """

    def __init__(self, tracer: Any) -> None:
        JAXTypeError.__init__(self, f"Attempted boolean conversion of {_described(tracer)}."
                                    f"{_origin(tracer)}")


class UnexpectedTracerError(JAXTypeError):
    """A tracer was used after its transformation had ended.

    **What happened.** A function under ``jit``, ``grad`` or ``vmap`` stored an intermediate value
    somewhere outside: in a list, a global, an attribute.  That value is a tracer.  When the
    transformation ended, the tracer lost its meaning; using it later raises this error.  The
    message says which function and transformation it came from, and where it was made.

    **The smallest example.** ::

        kept = []

        @jit
        def f(x):
            y = x + 1
            kept.append(y)            # the leak

        f(1)
        kept[0] + 1                   # UnexpectedTracerError

    **The fix.**  Return the value::

        @jit
        def f(x):
            y = x + 1
            return y

        kept.append(f(1))

    **To find the leak.**  The error comes up where the tracer is used.  To have it where the
    tracer escapes, run under ``with jax.checking_leaks():`` or set
    ``JAX_CHECK_TRACER_LEAKS=True``.  Tracing then happens anew, so it is slower.
    """

    def __init__(self, msg: str) -> None:
        super().__init__(msg)


class KeyReuseError(JAXTypeError):
    """A random key was used twice.

    **What happened.** Two draws from the same key give the same numbers (or related ones), where
    two independent draws were meant.  This is checked under ``jax.debug_key_reuse(True)``.

    **The smallest example.** ::

        key = random.key(0)
        with jax.debug_key_reuse(True):
            a = random.normal(key)
            b = random.normal(key)    # KeyReuseError: a == b

    **The fix.**  Split before each use: ``key, part = random.split(key)``, and draw from ``part``.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)


class JaxRuntimeError(RuntimeError):
    """A compiled function could not do what it was told, for a reason found while it ran.

    **What happened.** A callback raised, memory ran out, or a check inside compiled code failed.
    The message carries what is known; an exception raised by a callback is chained to it.

    **The fix.**  Run the same call under ``with jax.disable_jit():``; the error then comes from
    the Python line that causes it.
    """


class JaxprTypeError(TypeError):
    """A program does not fit together: a variable before its definition, or of another type.

    **What happened.** ``check_jaxpr`` found an equation whose inputs or outputs are not what its
    primitive says.  Either a primitive's rule is wrong (its ``abstract_eval`` and the rule
    disagree), or a jaxpr was put together by hand.

    **The fix.**  Print the jaxpr; the message names the equation.
    """


class TypePromotionError(ValueError):
    """Two dtypes have no common one to compute in.

    **What happened.** Under ``jax.numpy_dtype_promotion("strict")`` no two different dtypes
    promote, Python numbers aside.  In the standard mode only the 8-bit floats, the 4-bit integers
    and their smaller kin refuse.

    **The smallest example.** ::

        with jax.numpy_dtype_promotion("strict"):
            jnp.int8(1) + jnp.int16(1)

    **The fix.**  Say which dtype is meant: ``x.astype("int16")``.
    """


class InconclusiveDimensionOperation(Exception):
    """A question about a symbolic dimension has no answer.

    minijax has no symbolic shapes, so nothing raises this; the name is here for programs that
    catch it.
    """


class SharpBitWarning(UserWarning):
    """Something that is silent in JAX and rarely meant: see ``jax.checking_sharp_bits``.

    **What happened.** A check of a silent trap was on, and found what need not be a mistake: a
    function that is traced again and again, 64-bit data that lost bits.  The warning says which,
    where, and what to do about it.

    **The fix.**  As the warning says; or turn off that one check, whose flag it names.
    """


class TracerLeakError(Exception):
    """A transformation ended, and somebody still held one of its tracers.

    **What happened.** Under ``jax.checking_leaks()`` every transformation looks, as it ends, for
    tracers of its own that are still referred to.  The message shows each with the chain of
    references that keeps it alive.

    **The smallest example.** ::

        kept = []
        with jax.checking_leaks():
            jit(lambda x: kept.append(x + 1))(1.)     # Leaked trace

    **The fix.**  As for :class:`UnexpectedTracerError`: return the value.
    """

    def __init__(self, where: str, tracers: Sequence[str]) -> None:
        listed = "\n".join(tracers)
        super().__init__(f"Leaked trace {where}. Leaked tracer(s):\n{listed}")


class NonFiniteError(FloatingPointError):
    """An operation gave a nan or an infinity, and that is being watched for.

    **What happened.** Under ``jax.debug_nans(True)`` (or ``debug_infs``) the outputs of every
    operation and of every jitted function are looked at.  A jitted function that gave a nan is
    run again without ``jit``, so that the error comes from the line that made it.

    **The smallest example.** ::

        with jax.debug_nans(True):
            jnp.divide(0., 0.)        # FloatingPointError: invalid value (nan) encountered in div

    **The fix.**  Keep the operation away from the bad input, on *both* sides of a ``where``: the
    derivative of the side that is not chosen is computed too, and 0 * nan is nan::

        safe = jnp.where(x > 0, x, 1.)
        jnp.where(x > 0, jnp.log(safe), 0.)
    """

    def __init__(self, kind: str, where: str, hint: str = "") -> None:
        message = f"invalid value ({kind}) encountered in {where}"
        super().__init__(f"{message}. {hint}" if hint else message)


_RULES = {
    "impl": "Evaluation rule for '{0}' not implemented",
    "abstract_eval": "Abstract evaluation for '{0}' not implemented",
    "jvp": "Differentiation rule for '{0}' not implemented",
    "transpose": "Transpose rule (for reverse-mode differentiation) for '{0}' not implemented",
    "batch": "Batching rule for '{0}' not implemented",
    "split": "Partial evaluation rule for '{0}' not implemented",
    "lowering": "Lowering rule for '{0}' not implemented",
}


class RuleNotImplementedError(NotImplementedError):
    """A primitive was met by a transformation that it has no rule for.

    **What happened.** Each primitive says, for each transformation, how it is transformed.  Where
    there is no meaningful answer the primitive says why, and the message repeats it.  A primitive
    written outside of the package may leave slots empty.

    **The smallest example.** ::

        double_p = Primitive("double", impl=lambda x: [2 * x])
        grad(lambda x: double_p.bind(x))(1.)
        # Differentiation rule for 'double' not implemented

    **The fix.**  Fill the slot; or keep the primitive away from that transformation, with
    ``lax.stop_gradient`` or a ``custom_jvp`` around it.
    """

    def __init__(self, primitive: str, rule: str, reason: str = "") -> None:
        message = _RULES.get(rule, f"Rule {rule} for '{{0}}' not implemented").format(primitive)
        super().__init__(f"{message}: {reason}" if reason else message)


# -- where in the user's program -----------------------------------------------------------------


def is_internal(filename: str) -> bool:
    """Return whether a frame with this file name belongs to the package, and not to its user.

    >>> is_internal(__file__), is_internal("model.py")
    (True, False)
    """
    return filename.startswith((_PACKAGE, "<minijax")) or filename in _GLUE


def user_stacklevel() -> int:
    """Return the `stacklevel` with which the caller's warning points to the user's line.

    >>> user_stacklevel()  # this line is itself a user's
    1
    """
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    return level


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Give a warning that points to the line of the user's program, not to ours.

    >>> with warnings.catch_warnings(record=True) as given:
    ...     warnings.simplefilter("always")
    ...     warn("mind the step")
    >>> str(given[0].message)
    'mind the step'
    """
    warnings.warn(message, category, stacklevel=user_stacklevel())
