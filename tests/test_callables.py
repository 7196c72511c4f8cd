"""What can be called can be transformed, whatever its name, text and annotations are."""

import functools

import jax
import pytest

import minijax


class Doubled:
    """A layer of a neural network, which may have anything where functions have their names."""

    def __init__(self, **attributes):
        vars(self).update(attributes)

    def __call__(self, x):
        return x * 2.0


CALLABLES = {
    "without a name": Doubled(), "with None for a name": Doubled(__name__=None),
    "with a number for a name": Doubled(__name__=3), "with a name": Doubled(__name__="double"),
    "with None for a qualified name": Doubled(__qualname__=None),
    "with no text": Doubled(__doc__=3), "of no module": Doubled(__module__=None),
    "with odd annotations": Doubled(__annotations__=3),
    "that wraps None": Doubled(__wrapped__=None),
    "a partial": functools.partial(Doubled(__name__=None)), "a method": Doubled().__call__,
    "a partial of a function": functools.partial(lambda y, x: x * y, 2.0)}


def with_rules(lib, decorator, f):
    """A function with a rule of its own for its derivative."""
    made = getattr(lib, decorator)(f)
    if decorator == "custom_jvp":
        made.defjvp(lambda primals, tangents: (primals[0] * 2.0, tangents[0] * 2.0))
    else:
        made.defvjp(lambda x: (x * 2.0, None), lambda kept, ct: (ct * 2.0,))
    return made


MADE = {
    **{name: lambda lib, f, name=name: getattr(lib, name)(f) for name in (
        "jit", "grad", "value_and_grad", "jacfwd", "jacrev", "hessian", "checkpoint",
        "make_jaxpr", "named_call")},
    "vmap": lambda lib, f: lambda x: lib.vmap(f)(lib.numpy.stack([x])),
    "pmap": lambda lib, f: lambda x: lib.pmap(f)(lib.numpy.stack([x])),
    "jvp": lambda lib, f: lambda x: lib.jvp(f, (x,), (x,)),
    "vjp": lambda lib, f: lambda x: lib.vjp(f, x)[0],
    "linearize": lambda lib, f: lambda x: lib.linearize(f, x)[0],
    "eval_shape": lambda lib, f: lambda x: lib.eval_shape(f, x).shape,
    "custom_jvp": lambda lib, f: lib.grad(with_rules(lib, "custom_jvp", f)),
    "custom_vjp": lambda lib, f: lib.grad(with_rules(lib, "custom_vjp", f)),
    "vectorize": lambda lib, f: lib.numpy.vectorize(f),
    "debug.callback": lambda lib, f: lambda x: lib.debug.callback(f, x),
    "jit in a program": lambda lib, f: lib.make_jaxpr(lib.jit(f)),
    "jit's name": lambda lib, f: lambda x: lib.jit(f).__name__,
    "vmap's name": lambda lib, f: lambda x: lib.vmap(f).__name__,
    "grad's name": lambda lib, f: lambda x: lib.grad(f).__name__,
    "what jit wraps": lambda lib, f: lambda x: lib.jit(f).__wrapped__ is f,
}


@pytest.mark.parametrize("made", MADE)
def test_anything_that_can_be_called_can_be_transformed(made):
    for which, f in CALLABLES.items():
        try:
            theirs = str(MADE[made](jax, f)(jax.numpy.float32(3)))
        except (TypeError, AttributeError, ValueError):
            theirs = None  # JAX trips over it: `vmap` over a text that is no string
        ours = str(MADE[made](minijax, f)(minijax.numpy.float32(3)))
        names_differ = made.endswith("name") and theirs in ("vmap_f", "grad_f")
        assert theirs in (None, ours) or names_differ, which
