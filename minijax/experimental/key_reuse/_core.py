"""Signatures: which random keys a function consumes, makes and passes on, from its program alone.

A key that is consumed twice raises; nothing runs.  What a primitive of keys does is in its block;
the others that accept keys move them.  Builds on `lax`, `sharp_bits.key_reuse`.
In JAX: `jax/experimental/key_reuse/_core.py`.
"""

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from minijax import core, lax
from minijax.core.jaxpr import Jaxpr, JaxprEqn, Literal, subjaxprs
from minijax.custom.checkpoint import checkpoint_p
from minijax.custom.debug_callback import debug_callback_p
from minijax.errors import KeyReuseError
from minijax.placement.meshes import ByValue
from minijax.primitives import keys
from minijax.random.rejection import random_gamma_p
from minijax.sharp_bits.key_reuse import FIX
from minijax.transforms.api import make_jaxpr

Mask = Any  # a bool, or an array of them in the shape of the keys
T = TypeVar("T")


# ── Signatures ───────────────────────────────────────────────────────────────────────────────

class _Marked(ByValue):
    """An argument or a result, and which of its keys are meant: all, none, or those of a mask."""

    idx: int
    mask: Mask

    def __init__(self, idx: int, mask: Mask = True):
        mask = np.array(mask, bool)
        mask.flags.writeable = False
        if mask.any() == mask.all() or not mask.any():
            mask = bool(mask.any())
        vars(self).update(idx=idx, mask=mask)

    def __setattr__(self, name: str, value: Any) -> None:
        raise ValueError(f"{type(self).__name__} is immutable")

    def _parts(self) -> tuple:
        return self.idx, np.shape(self.mask), np.asarray(self.mask).tobytes()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.idx}{'' if self.mask is True else f', {self.mask}'})"


class Sink(_Marked):
    """An argument whose keys are consumed."""


class Source(_Marked):
    """A result whose keys are new."""


class Forward(NamedTuple):
    """A result that holds the keys of an argument."""

    in_idx: int
    out_idx: int

    def __repr__(self) -> str:
        return f"Forward({self.in_idx}, {self.out_idx})"


@dataclass(frozen=True, init=False, repr=False)
class KeyReuseSignature:
    """What a function does with keys; results that are neither new nor passed on are consumed.

    >>> KeyReuseSignature(Source(0), Sink(1), Sink(0))
    KeyReuseSignature(Sink(0), Sink(1), Source(0))
    """

    parts: frozenset[Sink | Source | Forward]

    def __init__(self, *parts: Sink | Source | Forward):
        object.__setattr__(self, "parts", frozenset(parts))

    def _of_kind(self, kind: type[T]) -> list[T]:
        return sorted((x for x in self.parts if isinstance(x, kind)), key=repr)

    sinks = property(lambda self: self._of_kind(Sink))
    sources = property(lambda self: self._of_kind(Source))
    forwards = property(lambda self: self._of_kind(Forward))

    def __repr__(self) -> str:
        return f"KeyReuseSignature{(*self.sinks, *self.sources, *self.forwards)}"


# ── Keys in tests: consumed, and compared with what is expected ──────────────────────────────

class _KeyEffect(core.Effect):
    """Keeps the equation in its program."""


def _marker(name: str, **rules: Any) -> core.Primitive:
    """A primitive that returns its keys."""
    effects = frozenset([_KeyEffect()])
    return keys.key_operation(name, program=lambda words, **_: words, examples=list,
                              type_of=lambda keys, **_: keys, effects=lambda **_: effects, **rules)


consume_p = _marker("consume", consumes_key=True)
assert_consumed_value_p = _marker("assert_consumed_value")


def consume(key: Any) -> Any:
    """The key, consumed."""
    return consume_p.bind(key)


def assert_consumed(key: Any, value: Mask = True) -> None:
    """Fail in `check_key_reuse` unless the keys are consumed, or those of a mask and no others."""
    assert_consumed_value_p.bind(key, value=tuple(np.ravel(value).tolist()))


def assert_unconsumed(key: Any) -> None:
    """Fail in `check_key_reuse` if any of the keys is consumed."""
    assert_consumed(key, False)


def _check_consumed(eqn: JaxprEqn, consumed: Mask) -> None:
    expected = np.array(eqn.params["value"])
    if not np.all(np.ravel(consumed) == expected):
        raise AssertionError(
            f"Expected {expected}, got {consumed} in {eqn}" if any(expected) != all(expected) else
            f"Expected key to {'' if all(expected) else 'not '}be consumed in {eqn}")


# ── Programs ─────────────────────────────────────────────────────────────────────────────────

def _holds_keys(atom: Any) -> bool:
    return not isinstance(atom, Literal) and core.has_key_dtype(atom.aval)


class _Keys:
    """The keys of a program so far: whose each variable's are, and which are consumed."""

    def __init__(self) -> None:
        self.first: dict[Any, Any] = {}  # the variable that held the keys first
        self.masks: dict[Any, Mask] = {}

    def origin(self, atom: Any) -> Any:
        return self.first.get(atom, atom) if _holds_keys(atom) else None

    def consumed(self, atom: Any) -> Mask:
        return self.masks.get(self.origin(atom), False)

    def consume(self, atom: Any, mask: Mask) -> bool:
        """Whether some of the keys were consumed before."""
        if (origin := self.origin(atom)) is None:
            return False
        if np.shape(mask) != origin.aval.shape:  # they have another shape by now
            mask = bool(np.any(mask))
        before = self.consumed(atom)
        self.masks[origin] = np.logical_or(before, mask)
        return bool(np.any(np.logical_and(before, mask)))


def jaxpr_type_signature(jaxpr: Jaxpr) -> KeyReuseSignature:
    """The signature of a program; its constants are arguments behind the others.

    Raises:
      KeyReuseError: naming the equation that gets a key which was consumed before.
    """
    state = _Keys()
    for eqn in jaxpr.eqns:
        if eqn.primitive is assert_consumed_value_p:
            _check_consumed(eqn, state.consumed(eqn.invars[0]))
        signature = key_reuse_signatures.get(eqn.primitive, _of_unknown)
        signature = signature if isinstance(signature, KeyReuseSignature) else signature(eqn)
        for sink in signature.sinks:
            if state.consume(eqn.invars[sink.idx], sink.mask):
                raise KeyReuseError(f"In {eqn.primitive}, argument {sink.idx} is already consumed."
                                    f"\n{FIX}")
        passed_on = {out: eqn.invars[i] for i, out in signature.forwards}
        new = {source.idx for source in signature.sources}
        for i, var in enumerate(eqn.outvars):
            if i in passed_on and (origin := state.origin(passed_on[i])) is not None:
                state.first[var] = origin
            elif i not in new:
                state.consume(var, True)
    return _of_state(jaxpr, state)


def _of_state(jaxpr: Jaxpr, state: _Keys) -> KeyReuseSignature:
    places = {v: i for i, v in enumerate((*jaxpr.invars, *jaxpr.constvars))}
    sinks = [Sink(i, state.masks[v]) for v, i in places.items() if np.any(state.masks.get(v))]
    results = [(i, v, places.get(state.origin(v))) for i, v in enumerate(jaxpr.outvars)
               if _holds_keys(v)]
    return KeyReuseSignature(
        *sinks,
        *(Source(i) for i, v, place in results if place is None and not np.any(state.consumed(v))),
        *(Forward(place, i) for i, _, place in results if place is not None))


# ── Equations ────────────────────────────────────────────────────────────────────────────────


def _of_unknown(eqn: JaxprEqn) -> KeyReuseSignature:
    """A primitive that calls one program does what that does; others consume all keys."""
    programs = list(subjaxprs(eqn.params))
    if len(programs) == 1:
        return _without_constants(programs[0].jaxpr)
    return KeyReuseSignature(*(Sink(i) for i, x in enumerate(eqn.invars) if _holds_keys(x)))


def _without_constants(jaxpr: Jaxpr) -> KeyReuseSignature:
    """The signature of a program inside of another, which passes it no constants."""
    count = len(jaxpr.invars)
    return KeyReuseSignature(*(part for part in jaxpr_type_signature(jaxpr).parts if isinstance(
        part, Source) or getattr(part, "in_idx", getattr(part, "idx", 0)) < count))


def _shifted(signature: KeyReuseSignature, by: int) -> KeyReuseSignature:
    """The same, with arguments in front."""
    return KeyReuseSignature(*(Sink(x.idx + by, x.mask) for x in signature.sinks),
                             *signature.sources,
                             *(Forward(i + by, out) for i, out in signature.forwards))


def _of_slice(eqn: JaxprEqn) -> KeyReuseSignature:
    """The keys of a slice are taken out of the array."""
    mask = np.zeros(eqn.invars[0].aval.shape, bool)
    start, limit = eqn.params["start_indices"], eqn.params["limit_indices"]
    strides = eqn.params["strides"] or (1,) * len(start)
    mask[tuple(map(slice, start, limit, strides))] = True
    return KeyReuseSignature(Sink(0, mask), Source(0))


def _of_concatenate(eqn: JaxprEqn) -> KeyReuseSignature:
    if len(eqn.invars) == 1:
        return _PASSED_ON
    return KeyReuseSignature(*map(Sink, range(len(eqn.invars))), Source(0))


def _of_cond(eqn: JaxprEqn) -> KeyReuseSignature:
    """What any branch consumes is consumed; what all make or pass on is made or passed on."""
    branches = [_shifted(_without_constants(x.jaxpr), 1) for x in eqn.params["branches"]]
    sinks = [sink for branch in branches for sink in branch.sinks]
    masks = {i: functools.reduce(np.logical_or, [x.mask for x in sinks if x.idx == i])
             for i in {x.idx for x in sinks}}
    both = frozenset.intersection(*(branch.parts for branch in branches))
    return KeyReuseSignature(*(Sink(i, mask) for i, mask in masks.items()),
                             *(part for part in both if not isinstance(part, Sink)))


def _check_repeated(what: str, signature: KeyReuseSignature, num_consts: int,
                    replaced: Iterable[int]) -> None:
    """Raise if a function that runs again and again consumes what is not new each time."""
    for sink in signature.sinks:
        if sink.idx < num_consts:
            reason = f"it consumes constant {sink.idx} each time"
        elif sink.idx - num_consts not in replaced:
            reason = f"no new key replaces carry {sink.idx - num_consts}, which it consumes"
        else:
            continue
        raise KeyReuseError(f"{what} function leads to key reuse when repeatedly executed: "
                            f"{reason}.\n{FIX}")


def _of_scan(eqn: JaxprEqn) -> KeyReuseSignature:
    num_consts, num_carry = eqn.params["num_consts"], eqn.params["num_carry"]
    (body,) = subjaxprs(eqn.params)
    signature = _without_constants(body.jaxpr)
    sliced = range(num_carry, len(body.jaxpr.invars) - num_consts)
    _check_repeated("scan body", signature, num_consts,
                    {*sliced, *(x.idx for x in signature.sources if x.idx < num_carry)})
    return signature


def _of_while(eqn: JaxprEqn) -> KeyReuseSignature:
    num_test, num_body = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    test = _without_constants(eqn.params["cond_jaxpr"].jaxpr)
    body = _without_constants(eqn.params["body_jaxpr"].jaxpr)
    new = {source.idx for source in body.sources}
    _check_repeated("while_loop cond", test, num_test, new)
    _check_repeated("while_loop body", body, num_body, new)
    if {x.idx - num_test for x in test.sinks} & {x.idx - num_body for x in body.sinks}:
        raise KeyReuseError(f"while_loop cond and body functions both use the same key.\n{FIX}")
    return _shifted(body, num_test)


def _of_keys(primitive: core.Primitive, makes_keys: bool) -> KeyReuseSignature:
    return KeyReuseSignature(*[Sink(0)] * primitive.consumes_key, *[Source(0)] * makes_keys)


_PASSED_ON = KeyReuseSignature(Forward(0, 0))
Signature = KeyReuseSignature | Callable[[JaxprEqn], KeyReuseSignature]

# By primitive: its signature, or a function of its equation.  Others: `_of_unknown`.
key_reuse_signatures: Mapping[core.Primitive, Signature] = {
    consume_p: KeyReuseSignature(Sink(0), Forward(0, 0)),
    assert_consumed_value_p: _PASSED_ON,
    **{p: _of_keys(p, True) for p in (keys.random_clone_p, keys.random_fold_in_p,
                                      keys.random_seed_p, keys.random_split_p, keys.random_wrap_p)},
    **{p: _of_keys(p, False) for p in (keys.random_bits_p, keys.random_unwrap_p,
                                       random_gamma_p, debug_callback_p)},
    **dict.fromkeys((lax.broadcast_in_dim_p, lax.convert_element_type_p, lax.copy_p,
                     lax.dynamic_slice_p, lax.gather_p, lax.reshape_p, lax.rev_p, lax.squeeze_p,
                     lax.transpose_p), _PASSED_ON),
    lax.dynamic_update_slice_p: KeyReuseSignature(Sink(1), Forward(0, 0)),
    lax.scatter_p: KeyReuseSignature(Sink(2), Forward(0, 0)),
    lax.slice_p: _of_slice, lax.concatenate_p: _of_concatenate,
    # what a backward pass computes again consumes no key a second time
    checkpoint_p: lambda eqn: (
        KeyReuseSignature() if eqn.params["differentiated"] else _of_unknown(eqn)),
    lax.cond_p: _of_cond, lax.scan_p: _of_scan, lax.while_p: _of_while}


# ── Functions ────────────────────────────────────────────────────────────────────────────────

def function_type_signature(fun: Callable, *args: Any) -> KeyReuseSignature:
    """The signature of a function, traced for these arguments, over the leaves of their trees."""
    return jaxpr_type_signature(make_jaxpr(fun)(*args).jaxpr)


def check_key_reuse_jaxpr(jaxpr: Jaxpr) -> None:
    """Raise `KeyReuseError` where a program consumes a key twice."""
    jaxpr_type_signature(jaxpr)


def check_key_reuse(fun: Callable, /, *args: Any) -> None:
    """Raise `KeyReuseError` where a function would consume a key twice; it is traced, not run.

    >>> from minijax import random
    >>> def twice(key):
    ...     return random.bits(key) + random.bits(key)
    >>> check_key_reuse(twice, random.key(0))
    Traceback (most recent call last):
    minijax.errors.KeyReuseError: In random_bits, argument 0 is already consumed.
    Split the key before each use: `key, part = random.split(key)`, then draw from `part`...
    """
    jaxpr_type_signature(make_jaxpr(fun)(*args).jaxpr)
