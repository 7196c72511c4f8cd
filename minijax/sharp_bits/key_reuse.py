"""Random keys that are consumed twice: each key has a number, propagated through the program.

A *shadow* is the buffer of a key array, with a key's number in place of its words. Primitives that
move keys run on shadows, too, and move them; so no list of primitives is needed. Builds on
`core`, `jaxpr`. Chapter 16. In JAX: `jax/experimental/key_reuse/_core.py`.
"""

import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from minijax import config, core, dtypes, errors
from minijax.util import lazily, source_info
from minijax.core import ArrayImpl, Avals, Params, Primitive, ShapedArray
from minijax.core.jaxpr import ClosedJaxpr, Literal, cached_on_jaxpr, subjaxprs, types_in
from minijax.sharp_bits.findings import finding, quoted, report

T = TypeVar("T")
Shadow = np.ndarray  # uint32, of the buffer's shape; key n's two words are 2n and 2n + 1
Use = tuple[source_info.SourceInfo, ...]  # the user's lines that led to it, the innermost last

_ONE_OPERATION = "_compiled"  # the name of `random.keys`' programs of one operation

LONG = 32  # iterations of a loop over keys that are followed one by one

FIX = "Split the key before each use: `key, part = random.split(key)`, then draw from `part`."


# ── Names ────────────────────────────────────────────────────────────────────────────────────

class Names:
    """The key numbers in use, and where each key was consumed. Number 0 is no particular key."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        lazily.hold_over_forks(self.lock)
        self.count = 1
        # by name: the number of a use, 0 for none
        self.consumed: np.ndarray = np.zeros(1024, np.int32)
        self.uses: dict[Use, int] = {}
        # a jitted function that runs, and the places of its keys that were consumed before it
        self.operation, self.places = "", dict[int, int]()

    def fresh(self, words_shape: Sequence[int]) -> Shadow:
        """A shadow with new key numbers."""
        size = int(np.prod(words_shape))
        first, self.count = self.count, self.count + size // 2
        while self.count > len(self.consumed):
            self.consumed = np.concatenate([self.consumed, np.zeros_like(self.consumed)])
        return np.arange(2 * first, 2 * first + size, dtype=np.uint32).reshape(words_shape)

    def start(self, primitive: Primitive, params: Params, operands: Sequence["Operand"]) -> None:
        """Record which of an operation's operands were consumed before it."""
        is_users = primitive.name == "jit" and params["name"] != _ONE_OPERATION
        self.operation = "jit-compiled function" if is_users else ""
        self.places = {}
        for place, x in enumerate(operands):
            for name in np.unique(x.shadow // 2) if x.shadow is not None else ():
                if self.consumed[name]:
                    self.places.setdefault(int(name), place)

    def consume(self, shadow: Shadow, use: Use, consumer: str) -> None:
        """Record that keys are consumed, once each; report those that were consumed before."""
        names = np.unique(shadow // 2)
        names = names[names > 0]
        before = self.consumed[names]
        reused = before[before > 0]
        if reused.size:
            self.report(names[before > 0], list(self.uses)[int(reused[0]) - 1], use, consumer)
        self.consumed[names[before == 0]] = self.uses.setdefault(use, len(self.uses) + 1)

    def consume_rows(self, shadow: Shadow, use: Use, consumer: str) -> None:
        """Record that keys are consumed one row after the other."""
        rows = np.repeat(np.arange(len(shadow)), shadow[0].size)
        _, first, inverse = np.unique(shadow // 2, return_index=True, return_inverse=True)
        reused = rows[first][inverse.ravel()] != rows
        self.consume(shadow, use, consumer)
        self.consume(shadow.ravel()[reused], use, consumer)

    def report(self, reused: np.ndarray, first: Use, second: Use, consumer: str) -> None:
        """Report two uses of keys, with their lines."""
        uses = "its numbers were drawn before."
        if first and second:
            uses = ("it is consumed again and again" if first == second else
                    f"it was consumed at\n  {_place(first)}\nand is consumed again")
            uses += f" at\n  {_place(second)}"
        place = min((self.places[n] for n in reused.tolist() if n in self.places), default=None)
        message = (f"In {consumer}, argument 0 is already consumed: {uses}" if place is None else
                   f"Previously-consumed key passed to {self.operation or consumer} at index "
                   f"{place}: {uses}")
        reuse = finding("debug_key_reuse", message, FIX, second[-1] if second else None)
        report(reuse, errors.KeyReuseError(f"{message}\n{FIX}"))


def _place(use: Use) -> str:
    *callers, last = use
    called = "".join(f",\n    called at {caller.summary}" for caller in reversed(callers))
    return f"{quoted(last)}{called}"


names = Names()
# The shadows of live arrays, by the identity of their buffers, which copies share; an entry dies
# with its buffer.
_shadows: dict[int, tuple[weakref.ref, Shadow]] = {}


def _attach(x: ArrayImpl, shadow: Shadow) -> None:
    holder = x._holder()
    place = id(holder)
    _shadows[place] = (weakref.ref(holder, lambda _: _shadows.pop(place, None)), shadow)


@dataclass(eq=False)
class Operand:
    """A value with the keys that it holds.

    Args:
      aval: its type.
      shadow: the numbers of the keys it holds, from their first use on.
      array: the value itself, where it is known.
    """

    aval: ShapedArray
    shadow: Shadow | None = None
    array: Any = None

    @staticmethod
    def of(x: ArrayImpl) -> "Operand":
        """The operand for an array, with its known key numbers."""
        holder = x._holder()
        entry = _shadows.get(id(holder))
        return Operand(x.aval, entry[1] if entry and entry[0]() is holder else None, x)

    @property
    def holds_keys(self) -> bool:
        return self.shadow is not None or core.has_key_dtype(self.aval)

    def named(self) -> Shadow:
        """The shadow of its keys; new numbers on first use."""
        if self.shadow is None:
            self.shadow = names.fresh(core.physical_aval(self.aval).shape)
            if self.array is not None:
                _attach(self.array, self.shadow)
        return self.shadow


# ── Evaluation ───────────────────────────────────────────────────────────────────────────────

def evaluated(evaluate: Callable, primitive: Primitive, args: Sequence[Any], params: Params
              ) -> list[ArrayImpl]:
    """The outputs of a primitive; keys that it consumes must not have been consumed before.

    Raises:
      KeyReuseError: naming both uses.
    """
    if primitive.calls_python(params) or not _concerns_keys(primitive, args, params):
        return evaluate(primitive, args, params)
    # operations inside of it are no uses of their own
    outs = as_before(evaluate, primitive, args, params)
    frame = source_info.user_frame()
    with names.lock:
        operands = list(map(Operand.of, args))
        consts = [x for program in subjaxprs(params) for x in program.consts]
        names.start(primitive, params, [*operands, *map(Operand.of, consts)])
        operands = _follow(primitive, params, operands, [x.aval for x in outs],
                           (frame,) if frame else ())
        for x, operand in zip(outs, operands, strict=True):
            if operand.holds_keys and (operand.shadow is not None or operand.array is not None):
                _attach(x, operand.named())
    return outs


def as_before(run: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """`run(*args, **kwargs)`, without recording that keys are consumed: they were before, or an
    operation around it consumes them.
    """
    with config.debug_key_reuse(False):
        return run(*args, **kwargs)


def _concerns_keys(primitive: Primitive, args: Sequence[Any], params: Params) -> bool:
    return (primitive.name in _SAME_WORDS
            or any(core.has_key_dtype(x.aval) or id(x._holder()) in _shadows for x in args)
            or any(map(_mentions_keys, subjaxprs(params))))


@cached_on_jaxpr
def _mentions_keys(closed: ClosedJaxpr) -> bool:
    """Whether a program holds keys anywhere."""
    return any(map(core.has_key_dtype, types_in(closed.jaxpr)))


# ── One equation ─────────────────────────────────────────────────────────────────────────────

# Typed keys from raw words, and raw words from typed keys: the words stay the same.
_SAME_WORDS = ("random_wrap", "random_unwrap")


def _follow(primitive: Primitive, params: Params, operands: Sequence[Operand],
            out_avals: Avals, callers: Use) -> list[Operand]:
    """The outputs of an equation with their keys; records the keys that it consumes."""
    outputs: list[Operand] = []  # further outputs hold no known key
    if any(subjaxprs(params)):
        outputs = _BRANCHING.get(primitive.name, _call)(params, operands, callers)
    elif primitive.consumes_key:
        names.consume(operands[0].named(), callers, primitive.name)
    elif primitive.name in _SAME_WORDS:
        outputs = [Operand(out_avals[0], _whole_keys(operands[0].named()))]
    elif not primitive.handles_keys and any(x.holds_keys for x in operands):
        outputs = _moved(primitive, params, operands)
    return [*outputs, *map(Operand, out_avals[len(outputs):])]


def _whole_keys(shadow: Shadow) -> Shadow:
    """The shadow where both words are of one key; 0 where words of several are mixed."""
    first, second = shadow[..., :1], shadow[..., 1:]
    return np.where((first % 2 == 0) & (second == first + 1), shadow, np.uint32(0))


def _moved(primitive: Primitive, params: Params, operands: Sequence[Operand]) -> list[Operand]:
    """The shadows after a primitive that moves keys, by running it on shadows; empty if that is
    unknown.
    """
    shadows = [x.named() if x.holds_keys else None for x in operands]
    inputs = [x.array if shadow is None else ArrayImpl(shadow, x.aval)
              for x, shadow in zip(operands, shadows, strict=True)]
    if any(x is None for x in inputs) or not _moves_only(primitive, params, operands):
        return []
    outs = as_before(primitive.evaluate, inputs, params)
    words = np.concatenate([shadow.ravel() for shadow in shadows if shadow is not None])
    # fill values are no keys of ours
    return [Operand(out.aval, np.where(np.isin(out._buffer, words), out._buffer, np.uint32(0))
                    if out._buffer.dtype == np.uint32 else None) for out in outs]


def _moves_only(primitive: Primitive, params: Params, operands: Sequence[Operand]) -> bool:
    """Whether the primitive only moves elements: then it accepts typed keys, too."""
    key = dtypes.key_dtype("threefry2x32")
    try:
        primitive.type_of([x.aval if x.shadow is None else x.aval.update(dtype=key)
                           for x in operands], params)
    except (TypeError, ValueError):
        return False
    return True


# ── Programs ─────────────────────────────────────────────────────────────────────────────────

def _run(closed: ClosedJaxpr, operands: Sequence[Operand], callers: Use) -> list[Operand]:
    """Propagate keys through a program; `callers` are the lines from which it was called."""
    if not _mentions_keys(closed) and not any(x.holds_keys for x in operands):
        return list(map(Operand, closed.out_avals))
    jaxpr = closed.jaxpr
    info = jaxpr.debug_info
    # a function of ours was traced for its first caller: its lines say nothing of this call
    ours = info is not None and errors.is_internal(info.func_filename or "")
    env = dict(zip((*jaxpr.constvars, *jaxpr.invars),
                   (*map(Operand.of, closed.consts), *operands), strict=True))
    outputs_of: dict[Any, list[Operand]] = {}

    def read(atom: Any) -> Operand:
        return Operand(atom.aval, None, atom.value) if isinstance(atom, Literal) else env[atom]

    for eqn in jaxpr.eqns:
        # equal row indices, even unknown ones, into the same keys give the same key
        row: Any = eqn if eqn.primitive.name not in _ROWS else (repr(eqn.params), *(
            repr(v) if isinstance(v, Literal) else v for v in eqn.invars))
        if row not in outputs_of:
            line = eqn.source_info
            lines = callers if ours or line is None or line in callers[-1:] else (*callers, line)
            outputs_of[row] = _follow(eqn.primitive, eqn.params, [read(v) for v in eqn.invars],
                                      [v.aval for v in eqn.outvars], lines)
        env.update(zip(eqn.outvars, outputs_of[row], strict=True))
    return [read(v) for v in jaxpr.outvars]


_ROWS = ("dynamic_slice", "gather")


def _call(params: Params, operands: Sequence[Operand], callers: Use) -> list[Operand]:
    if params.get("differentiated"):  # recomputation in a backward pass is no second use
        return []
    (closed,) = subjaxprs(params)
    return _run(closed, operands, callers)


def _cond(params: Params, operands: Sequence[Operand], callers: Use) -> list[Operand]:
    """One branch runs: each may consume a key, which is consumed afterwards."""
    before, after, results = names.consumed, [], []
    for branch in params["branches"]:
        names.consumed = before.copy()
        results.append(_run(branch, operands[1:], callers))
        after.append(names.consumed)
        before = np.pad(before, (0, len(names.consumed) - len(before)))  # a branch may name keys
    longest = max(map(len, after))
    names.consumed = np.max([np.pad(uses, (0, longest - len(uses))) for uses in after], axis=0)
    return [_either(outs) for outs in zip(*results, strict=True)]


def _either(outs: Sequence[Operand]) -> Operand:
    """The join of several programs' outputs: the keys that they agree on, otherwise new ones."""
    first, *rest = outs
    agree = all(x is first or (first.shadow is not None and x.shadow is not None
                               and np.array_equal(first.shadow, x.shadow)) for x in rest)
    return first if agree else Operand(first.aval)


def _num_iterations(carry: Sequence[Operand]) -> int:
    """The number of iterations to follow: keys that rotate in the state return after as many as
    there are.
    """
    return 1 + min(max(sum(x.named().size // 2 for x in carry if x.holds_keys), 1), 8)


def _scan(params: Params, operands: Sequence[Operand], callers: Use) -> list[Operand]:
    closed, length, first = params["jaxpr"], params["length"], params["num_consts"]
    last = first + params["num_carry"]
    consts, carry, xs = operands[:first], operands[first:last], operands[last:]
    keys = [x for x in xs if x.holds_keys]
    steps = range(length)[::-1 if params["reverse"] else 1]
    followed: Sequence[int] = steps if keys and length <= LONG else steps[:_num_iterations(carry)]
    skipped = range(0)  # steps that consume what the last one does
    if keys and length > LONG:
        followed, skipped = [*steps[:LONG - 1], steps[-1]], steps[LONG - 1:-1]
    for step in followed:
        row = [Operand(aval, x.named()[step] if x.holds_keys else None)
               for aval, x in zip(closed.in_avals[last:], xs, strict=True)]
        carry = _run(closed, [*consts, *carry, *row], callers)[:len(carry)]
    for x in keys if skipped else []:
        if names.consumed[x.named()[followed[-1]] // 2].any():
            names.consume_rows(x.named()[min(skipped):max(skipped) + 1], callers, "scan")
    return [*carry]


def _while(params: Params, operands: Sequence[Operand], callers: Use) -> list[Operand]:
    first, last = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    carry = [*operands[last:]]
    for _ in range(_num_iterations(carry)):
        _run(params["cond_jaxpr"], [*operands[:first], *carry], callers)
        carry = _run(params["body_jaxpr"], [*operands[first:last], *carry], callers)
    return carry


_BRANCHING = {"cond": _cond, "scan": _scan, "while": _while}
