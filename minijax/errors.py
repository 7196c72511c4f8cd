"""The errors of the package; the docstring of each class is its page of the book.

A class takes facts (the tracer, the primitive's name, the expected type) and builds the message.
Builds on the standard library alone.  Chapter 21, *The errors, one by one*.
In JAX: ``jax/_src/errors.py`` and the messages spread over many files.
"""

import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import FrameType
from typing import Any, TypeVar

from minijax.util import caches

ERROR_PAGE = "https://jax.readthedocs.io/en/latest/errors.html"
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_GLUE = (contextlib.__file__, functools.__file__)  # between a decorator of ours and its user


class _WithPage:
    """Appends the address of the page that explains the class to the message."""

    def __init__(self, message: str) -> None:
        name = type(self).__name__
        super().__init__(f"{message}\nSee {ERROR_PAGE}#jax.errors.{name}")  # type: ignore[call-arg]


def _described(tracer: Any) -> str:
    """Return a tracer's description for messages: its shape, never its address."""
    return f"traced array with shape {tracer.aval.str_long()}."


def _may_be_static(tracer: Any) -> bool:
    """Whether the transformation that made a tracer has `static_argnums`."""
    info = tracer.level.debug_info
    return info is None or info.traced_for in ("jit", "pmap", "checkpoint / remat")


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
            return x.min(axis)          # ConcretizationTypeError: ... axis argument

        lowest(jnp.arange(4), 0)

    The number of elements below zero depends on the values, and with it the size of the result::

        @jit
        def where_negative(x):
            return jnp.where(x < 0)     # ConcretizationTypeError: ... jnp.nonzero

        where_negative(jnp.arange(4))

    **The fix.**  Declare the argument static; the function is traced once per value of it::

        @partial(jit, static_argnums=1)
        def lowest(x, axis):
            return x.min(axis)

        lowest(jnp.arange(4), 0)

    Where the size would depend on values, say how large the result is at most::

        @jit
        def where_negative(x):
            return jnp.where(x < 0, size=4, fill_value=-1)

        where_negative(jnp.arange(4))

    Or keep the full size, and put something harmless where nothing should be::

        @jit
        def sum_above_one(x):
            return jnp.where(x > 1, x, 0).sum()     # was: x[jnp.where(x > 1)].sum()

        sum_above_one(jnp.arange(4))

    Under ``vmap``, ``grad`` and in loops no argument is static; close over the number, or keep it
    an array.  A function that closes over it sees the number::

        def lowest_of_rows(x, axis):
            return vmap(lambda row: row.min(axis))(x)

        lowest_of_rows(jnp.ones((2, 3)), 0)
    """

    def __init__(self, tracer: Any, context: str = "") -> None:
        super().__init__("Abstract tracer value encountered where concrete value is expected: "
                         f"{_described(tracer)}\n{context}{tracer._origin_msg()}\n")
        # Of the cures on the page, the one that applies.
        self.which_fix = 1 if "size" in context else 0 if _may_be_static(tracer) else 3


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index.

    **What happened.** ``x[mask]`` has as many elements as the mask has True, and while tracing
    the mask has no values.  Arrays under ``jit`` need sizes that are known beforehand.

    **The smallest example.** ::

        @jit
        def sum_of_positive(x):
            return x[x > 0].sum()       # NonConcreteBooleanIndexError

        sum_of_positive(jnp.arange(-5, 5))

    An update of the elements under a mask fails in the same way, whatever the operation::

        @jit
        def absolute(x):
            return x.at[x < 0].multiply(-1)

        absolute(jnp.arange(-2, 2))

    **The fix.**  Keep the full size, and replace what is masked out::

        @jit
        def sum_of_positive(x):
            return jnp.where(x > 0, x, 0).sum()

        sum_of_positive(jnp.arange(-5, 5))

        @jit
        def absolute(x):
            return jnp.where(x < 0, -x, x)

        absolute(jnp.arange(-2, 2))

    Where the smaller array itself is wanted, compute the mask outside of ``jit``.
    """

    def __init__(self, tracer: Any) -> None:
        super().__init__("Array boolean indices must be concrete; got "
                         f"ShapedArray({tracer.aval.str_long()}){tracer._origin_msg()}\n")


class TracerArrayConversionError(JAXTypeError):
    """NumPy was handed a tracer.

    **What happened.** A NumPy function called ``__array__()`` to get at the numbers of its
    argument.  A tracer has none.

    **The smallest example.** ::

        @jit
        def wave(x):
            return np.sin(x)            # TracerArrayConversionError

        wave(jnp.arange(4))

    Indexing a NumPy array with a tracer raises it, too::

        table = np.arange(10)

        @jit
        def pick(i):
            return table[i]

        pick(0)

    **The fix.**  Use ``jax.numpy`` in place of NumPy, for functions and for tables::

        @jit
        def wave(x):
            return jnp.sin(x)

        wave(jnp.arange(4))

    Make an array of ours of the table, or declare the index static::

        table = np.arange(10)

        @jit
        def pick(i):
            return jnp.asarray(table)[i]

        @partial(jit, static_argnums=0)
        def pick_static(i):
            return table[i]

        pick(0), pick_static(0)
    """

    def __init__(self, tracer: Any) -> None:
        super().__init__("The numpy.ndarray conversion method __array__() was called on "
                         f"{_described(tracer)}{tracer._origin_msg()}")


class TracerIntegerConversionError(JAXTypeError):
    """A Python integer was needed, and a tracer was there.

    **What happened.** Something called ``__index__()`` on a tracer: a list index, a slice of a
    list, an argument that a NumPy function wants as an integer.

    **The smallest example.** ::

        names = [1, 2, 3]

        @jit
        def pick(i):
            return names[i]             # TracerIntegerConversionError

        pick(0)

    The number of an axis that NumPy is asked for is another such integer::

        @jit
        def halves(x, axis):
            return np.split(x, 2, axis)

        halves(np.arange(4), 0)

    **The fix.**  Declare the argument static; or, to index a list, make an array of it::

        names = [1, 2, 3]

        @jit
        def pick(i):
            return jnp.array(names)[i]

        pick(0)

    What is declared static is an integer again; so is what a function closes over.  A new closure
    at every call is traced at every call, so in a loop a static argument is better::

        @partial(jit, static_argnums=1)
        def halves(x, axis):
            return np.split(x, 2, axis)

        halves(np.arange(4), 0)
        jit(lambda x: np.split(x, 2, 0))(np.arange(4))

    Under ``vmap``, ``grad`` and in loops no argument is static; close over the number, or make an
    array of the list.  A function that closes over it sees the number::

        def halves_of_rows(x, axis):
            return vmap(lambda row: jnp.stack(np.split(row, 2, axis)))(x)

        halves_of_rows(jnp.ones((2, 4)), 0)

    A loop over ``range(n)`` is ``lax.fori_loop(0, n, body, start)``.
    """

    def __init__(self, tracer: Any) -> None:
        super().__init__(f"The __index__() method was called on {_described(tracer)}"
                         f"{tracer._origin_msg()}")
        self.which_fix = 0 if _may_be_static(tracer) else 2


class TracerBoolConversionError(ConcretizationTypeError):
    """Python asked a tracer whether it is true.

    **What happened.** ``if``, ``while``, ``and``, ``or``, ``not``, ``assert``, ``max(x, y)`` and
    chained comparisons all call ``bool()`` on what they test.  Under ``jit`` the answer is not
    known: the function is traced once for all values.

    **The smallest example.** ::

        @jit
        def f(x):
            if x < 3:                   # TracerBoolConversionError
                return 3. * x ** 2
            return -4 * x

        f(2.)

    **The fix.**  Choose with ``jnp.where``; or, to run one of two functions only, ``lax.cond``::

        @jit
        def f(x):
            return jnp.where(x < 3, 3. * x ** 2, -4 * x)

        f(2.)

        @jit
        def g(x):
            return lax.cond(x < 3, lambda x: 3. * x ** 2, lambda x: -4 * x, x)

        g(2.)

    A condition that is part of the configuration is a static argument::

        @partial(jit, static_argnums=1)
        def scaled(x, double):
            return 2 * x if double else x

        scaled(2., True)

    Otherwise, write ``jnp.logical_and`` for ``and`` and for ``a < x < b``, ``jnp.maximum`` for
    ``max``, and ``lax.while_loop`` for ``while``.
    """

    def __init__(self, tracer: Any) -> None:
        JAXTypeError.__init__(self, f"Attempted boolean conversion of {_described(tracer)}."
                                    f"{tracer._origin_msg()}")


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
            kept.append(y)              # the leak
            return y

        f(1)
        kept[0] + 1                     # UnexpectedTracerError

    **The fix.**  Return the value, and store it outside::

        kept = []

        @jit
        def f(x):
            y = x + 1
            return y

        kept.append(f(1))
        kept[0] + 1

    **To find the leak.**  The error is raised where the tracer is used.  To have it raised where
    the tracer escapes, run under ``with jax.checking_leaks():`` or set
    ``JAX_CHECK_TRACER_LEAKS=True``.  Functions are then traced anew, which is slower.
    """


class KeyReuseError(JAXTypeError):
    """A random key was used twice.

    **What happened.** Two draws from the same key give the same numbers, or related ones, where
    two independent draws were meant.  This is checked under ``jax.debug_key_reuse(True)``, in
    compiled code, too.  Drawing from a key consumes it, and so does ``split``; ``fold_in`` does
    not.  A loop that closes over a key consumes it in every round.

    **The smallest example.** ::

        key = random.key(0)
        with jax.debug_key_reuse(True):
            a = random.normal(key)
            b = random.normal(key)      # KeyReuseError: a == b

    **The fix.**  Split the key, and draw from each part once.  A loop carries its key along, or
    runs over the keys of one ``split``.  Where the same numbers are meant, ``random.clone(key)``
    says so::

        key = random.key(0)
        with jax.debug_key_reuse(True):
            key, part = random.split(key)
            a = random.normal(part)
            key, part = random.split(key)
            b = random.normal(part)
    """


class OutOfBoundsError(IndexError):
    """An index lay outside its array, while a check for this was on.

    **What happened.** Without a word, JAX moves such a read inside, drops such an update, and moves
    such a window back, since compiled code cannot raise.  Under
    ``jax.debug_out_of_bounds(True)`` every index without a mode is checked, in compiled code, too.

    **The smallest example.** ::

        with jax.debug_out_of_bounds(True):
            jnp.arange(10)[11]        # index 11 is out of bounds for axis 0 with size 10

    **The fix.**  Keep the index inside; or, where leaving the array is meant, say what it means::

        with jax.debug_out_of_bounds(True):
            x = jnp.arange(10)
            x[9]
            x.at[11].get(mode="fill", fill_value=0)
            x.at[11].set(7, mode="drop")
    """


class UnsafeCastError(ValueError):
    """A cast met a value that the new dtype cannot hold, while a check for this was on.

    **What happened.** Without a word, ``astype(int)`` makes 0 of a nan and the largest integer of
    1e10, and the integer 300 becomes 44 as a ``uint8``.  Under ``jax.debug_unsafe_casts(True)``
    the values of every cast that a program asks for are checked, in compiled code, too.

    **The smallest example.** ::

        with jax.debug_unsafe_casts(True):
            jnp.float32(jnp.nan).astype("int32")   # int32 cannot hold the float32 nan

    **The fix.**  Bring the values into range first; or cast to a dtype that is wide enough::

        with jax.debug_unsafe_casts(True):
            jnp.nan_to_num(jnp.float32(jnp.nan)).astype("int32")
            jnp.clip(jnp.int32(300), 0, 255).astype("uint8")
    """


class JaxRuntimeError(RuntimeError):
    """A compiled function failed while it ran.

    **What happened.** A Python function that was called from compiled code raised an error.  That
    error is the cause of this one, with its own traceback.  If the message begins with
    INTERNAL, the compiler itself failed; the note says how to go on without it.

    **The smallest example.** ::

        def show(x):
            raise ValueError("no such file")

        @jit
        def f(x):
            jax.debug.callback(show, x)     # JaxRuntimeError, when the compiled code runs
            return x

        f(1.)

    **The fix.**  Mend the function that was called; compiled code cannot catch what it raises::

        seen = []

        @jit
        def f(x):
            jax.debug.callback(lambda x: seen.append(float(x)), x)
            return x

        f(1.)
    """


class JaxprTypeError(TypeError):
    """A program does not fit together: a variable before its definition, or of another type.

    **What happened.** ``check_jaxpr`` found an equation whose inputs or outputs are not what its
    primitive says.  Either a primitive's rule is wrong (its ``abstract_eval`` and the rule
    disagree), or a jaxpr was put together by hand.

    **The smallest example.** ::

        from minijax.core.jaxpr import check_jaxpr

        jaxpr = jax.make_jaxpr(jnp.sin)(1.).jaxpr
        check_jaxpr(jaxpr.replace(eqns=()))     # its output is used, and never defined

    **The fix.**  Print the jaxpr, and mend the equation that the message names::

        from minijax.core.jaxpr import check_jaxpr

        jaxpr = jax.make_jaxpr(jnp.sin)(1.).jaxpr
        check_jaxpr(jaxpr.replace(eqns=jaxpr.eqns))
    """


class ShardingTypeError(Exception):
    """The shardings of operands, along explicit axes of a mesh, do not fit together.

    **What happened.** Along axes of type `AxisType.Explicit` the type of an array says how it is
    sharded.  Two operands of an operation are sharded in ways that contradict each other, or
    leave open how the result is sharded.

    **The smallest example.** ::

        mesh = jax.make_mesh((1,), ("x",))
        with jax.set_mesh(mesh):
            x = jax.ShapeDtypeStruct((4, 4), jnp.float32, sharding=jax.NamedSharding(
                mesh, jax.P("x", None)))
            jax.eval_shape(lambda x: x + x.T, x)    # one would have to be sharded twice

    **The fix.**  Reshard an operand, or say how the result is sharded by ``out_sharding=``::

        mesh = jax.make_mesh((1,), ("x",))
        with jax.set_mesh(mesh):
            x = jax.ShapeDtypeStruct((4, 4), jnp.float32, sharding=jax.NamedSharding(
                mesh, jax.P("x", None)))
            jax.eval_shape(lambda x: x + jax.reshard(x.T, jax.P("x", None)), x)
    """


class TypePromotionError(ValueError):
    """Two dtypes have no dtype in common to compute in.

    **What happened.** Under ``jax.numpy_dtype_promotion("strict")`` no two different dtypes
    promote, Python numbers aside.  In the standard mode only floats of 8 bits or fewer and
    integers of 4 bits or fewer do not.

    **The smallest example.** ::

        with jax.numpy_dtype_promotion("strict"):
            jnp.int8(1) + jnp.int16(1)      # TypePromotionError

    **The fix.**  Say which dtype is meant::

        with jax.numpy_dtype_promotion("strict"):
            jnp.int8(1).astype("int16") + jnp.int16(1)
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

    **The smallest example.** ::

        with jax.debug_dtype_truncation(True):
            jnp.asarray(np.array([2**40]))      # 64 bits come in, 32 bits are kept

    A function that is traced again at every call is another::

        with jax.debug_recompiles(True):
            for n in range(20):
                jit(lambda x: x + 1)(1.)        # each time a new function

    **The fix.**  As the warning says; here, allow 64 bits, or say that 32 are enough::

        with jax.enable_x64(True), jax.debug_dtype_truncation(True):
            jnp.asarray(np.array([2**40]))

    Here, apply ``jit`` once, outside of the loop::

        add_one = jit(lambda x: x + 1)
        with jax.debug_recompiles(True):
            for n in range(20):
                add_one(1.)
    """


class TracerLeakError(Exception):
    """A transformation ended while something still held one of its tracers.

    **What happened.** Under ``jax.checking_leaks()`` every transformation looks, as it ends, for
    tracers of its own that are still referred to.  The message shows each with the chain of
    references that keeps it alive.

    **The smallest example.** ::

        kept = []

        @jit
        def f(x):
            y = x + 1
            kept.append(y)
            return y

        with jax.checking_leaks():
            f(1.)                       # Leaked trace

    **The fix.**  Return the value, and store it outside::

        kept = []

        @jit
        def f(x):
            return x + 1

        with jax.checking_leaks():
            kept.append(f(1.))
    """

    def __init__(self, where: str, tracers: Sequence[str]) -> None:
        listed = "\n".join(tracers)
        super().__init__(f"Leaked trace {where}. Leaked tracer(s):\n{listed}")


class ImpureFunctionError(Exception):
    """A traced function did more than compute its result, while a check for this was on.

    **What happened.** The Python of a function under ``jit``, or of a loop's body, runs once, to
    be traced; what runs at each call is the compiled program.  A print, a write to a global, to a
    list or to an attribute, a step of an iterator, a look at the clock: each happens only that
    once.  And what the function read from outside, such as a global or an attribute, keeps the
    value it had.  Under ``jax.config.debug_purity(True)`` all of this is looked for.

    **The smallest example.** ::

        rate = 0.1

        @jit
        def f(x):
            return x * rate

        with jax.config.debug_purity(True):
            f(1.)
            rate = 0.5
            f(1.)                       # `rate` was 0.1 when `f` was traced and is 0.5 now

    **The fix.**  What a function reads is an argument, and what it changes is a result::

        @jit
        def f(x, rate):
            return x * rate

        with jax.config.debug_purity(True):
            f(1., 0.1)
            f(1., 0.5)

    To print at each call, use ``jax.debug.print``.
    """


class UnfilteredStackTrace(Exception):
    """The whole traceback of an error, the package's frames included.

    **What happened.** Under ``traceback_filtering="remove_frames"`` an error shows the lines of
    your own program only.  It is raised from this one, which has the same message, and every
    frame.

    **The smallest example.** ::

        with jax.config.traceback_filtering("remove_frames"):
            try:
                jnp.ones(2) + jnp.ones(3)
            except TypeError as error:
                raise error.__cause__       # UnfilteredStackTrace

    **The fix.**  Mend what the error that follows it names; the frames are for work on the
    package.  In the default mode they are in ``error.full_traceback``::

        jnp.ones(2) + jnp.ones(2)
    """

    def __init__(self, message: str) -> None:
        super().__init__(f"{message}\nThe stack trace above has the frames of the package too. "
                         "The following is the same error without them.")


class NonFiniteError(FloatingPointError):
    """An operation gave a nan or an infinity, while a check for this was on.

    **What happened.** Under ``jax.debug_nans(True)`` or ``debug_infs`` the outputs of every
    operation and of every jitted function are checked.  A jitted function that gave a nan is
    run again without ``jit``, so that the error comes from the line that made it.

    **The smallest example.** ::

        def f(x):
            return jnp.where(x > 0, jnp.log(x), 0.)

        with jax.debug_nans(True):
            grad(f)(-1.)                # invalid value (nan) encountered in log

    An infinity, which is no nan, has a check of its own::

        with jax.debug_infs(True):
            jnp.exp(100.)

    **The fix.**  Keep bad inputs away from the operation, on *both* sides of a ``where``::

        def f(x):
            safe = jnp.where(x > 0, x, 1.)
            return jnp.where(x > 0, jnp.log(safe), 0.)

        with jax.debug_nans(True):
            grad(f)(-1.)

    The derivative of the side that is not chosen is computed, too, and 0 * nan is nan.
    """

    # While a function of the package runs: decides about the error by the function as a whole.
    settle: Callable[[Callable, tuple, dict], tuple | None] | None = None

    def __init__(self, message: str, place: str | None = None, fix: str = "") -> None:
        words, said, operation = message.rpartition(" encountered in ")
        name = operation.split(" ")[0].rstrip(",")
        super().__init__("\n".join(filter(None, (
            words + said + name,  # JAX's message ends here
            f"It was {operation}." if name != operation else "",
            f"The line is {place}." if place else "", fix))))

    def __reduce__(self) -> tuple:
        return FloatingPointError, self.args


# The name for tracebacks, and for programs that compare the class of an exception.
NonFiniteError.__name__ = NonFiniteError.__qualname__ = FloatingPointError.__name__
NonFiniteError.__module__ = FloatingPointError.__module__


_RULES = {"impl": "Evaluation rule", "abstract_eval": "Abstract evaluation",
          "jvp": "Differentiation rule", "batch": "Batching rule", "lowering": "Lowering rule",
          "transpose": "Transpose rule (for reverse-mode differentiation)",
          "split": "Partial evaluation rule"}


class RuleNotImplementedError(NotImplementedError):
    """A transformation met a primitive that has no rule for it.

    **What happened.** Each primitive says, for each transformation, how it is transformed.  Where
    there is no meaningful answer the primitive says why, and the message repeats it.  A primitive
    written outside of the package may leave slots empty.

    **The smallest example.** ::

        double_p = jax.extend.core.Primitive("double")
        double_p.def_impl(lambda x: 2 * x)
        double_p.def_abstract_eval(lambda x: x)

        grad(double_p.bind)(1.)     # Differentiation rule for 'double' not implemented

    **The fix.**  Fill the slot, or put a function with a rule of its own around the primitive::

        double_p = jax.extend.core.Primitive("double")
        double_p.def_impl(lambda x: 2 * x)
        double_p.def_abstract_eval(lambda x: x)

        @jax.custom_jvp
        def double(x):
            return double_p.bind(x)

        double.defjvp(lambda primals, tangents: (double(*primals), 2 * tangents[0]))
        grad(double)(1.)

    ``lax.stop_gradient`` keeps derivatives away from it altogether.
    """

    def __init__(self, primitive: str, rule: str, reason: str = "") -> None:
        message = f"{_RULES.get(rule, f'Rule {rule}')} for '{primitive}' not implemented"
        super().__init__(f"{message}: {reason}" if reason else message)
        self.which_fix = None if reason else 0  # a reason includes the cure


E = TypeVar("E", bound=Exception)


def with_cure(error: E, cure: str) -> E:
    """Return an error of JAX's words, with the cure as a note.

    >>> with_cure(TypeError("scan body output must be a pair"), "Return two.").__notes__
    ['Return two.']
    """
    error.add_note(cure)
    error.__dict__["cure"] = cure
    return error


def has_cure(error: Exception) -> bool:
    """Whether an error has a cure for its user, and so is no mistake of the package."""
    return "cure" in error.__dict__


# -- where in the user's program -----------------------------------------------------------------


_internal_folders = [_PACKAGE]
internal_files: dict[str, bool] = {}  # the cache of `is_internal`
caches.cleared_by(internal_files.clear)


def count_as_internal(folder: str) -> None:
    """Count a folder's files as internal: no error names a line of theirs as the user's.

    >>> count_as_internal("graders")
    >>> is_internal("graders/tour.py"), is_internal("answers/tour.py")
    (True, False)
    """
    _internal_folders.append(os.path.join(os.path.abspath(folder), ""))
    internal_files.clear()


def is_internal(filename: str) -> bool:
    """Return whether a frame with this file name belongs to the package, and not to its user.

    >>> is_internal(__file__), is_internal("model.py")
    (True, False)
    """
    if (known := internal_files.get(filename)) is None:
        # code made at run time by the package (the generated flatten and call) names such a file
        known = (filename.startswith((*_internal_folders, "<minijax")) or filename in _GLUE
                 or os.path.abspath(filename).startswith(tuple(_internal_folders)))
        internal_files[filename] = known
    return known


# The error to raise in place of a warning, where none may be issued.
instead_of_warning: ContextVar[Any] = ContextVar("minijax_instead_of_warning", default=None)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's program, not at a line of the package.

    >>> with warnings.catch_warnings(record=True) as warned:
    ...     warnings.simplefilter("always")
    ...     warn("mind the step")
    >>> str(warned[0].message)
    'mind the step'
    """
    if (instead := instead_of_warning.get()) is not None:
        raise instead
    frame: FrameType | None = sys._getframe(1)
    level = 2  # where `warn` was called; then further out, as far as the user's line
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
