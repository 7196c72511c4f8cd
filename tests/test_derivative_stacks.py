"""Derivatives of stacks of transformations, loops and rules around functions of trees are JAX's.

``GENERATED=200`` generates two hundred of them; by default a few.
"""

import itertools
import os
import random

import jax
import numpy as np
import pytest

import minijax

# A program takes a tree to a tree like it, and every layer a program to a program; each is written
# once, for whichever library it is given.


def programs(lib):
    jnp = lib.numpy
    return {
        "mixed": lambda t: {"a": jnp.sin(t["a"]) * t["b"], "b": (t["a"] * t["a"]).sum() * 0.3},
        "apart": lambda t: {"a": jnp.cos(t["a"][::-1]), "b": t["b"] * t["b"] * 0.5},
        "one way": lambda t: {"a": t["a"] * jnp.tanh(t["b"]), "b": t["b"]},
        "constant": lambda t: {"a": jnp.ones(3) * 0.5 + 0 * t["a"], "b": jnp.sin(t["a"][1])},
        "crossed": lambda t: {"a": t["b"] * jnp.array([0.5, -1.0, 0.2]), "b": t["a"].sum() * 0.4},
    }


def layers(lib):
    jnp, lax, tree_map = lib.numpy, lib.lax, lib.tree_util.tree_map

    def mean(s, t):
        return tree_map(lambda x, y: 0.5 * x + 0.4 * y, s, t)

    def scan(f, reverse=False):
        def step(c, w):
            new = mean(f(c), tree_map(lambda x: x * w, c))
            return new, {"kept": c, "sum": w * c["a"].sum()}

        def run(t):
            last, rows = lax.scan(step, t, jnp.array([0.3, -0.6, 0.9]), reverse=reverse)
            return {"a": last["a"] + rows["kept"]["a"][1], "b": last["b"] * rows["sum"][2]}
        return run

    def scan_of_rows(f):  # the tree is what the loop closes over, and what it runs over
        def run(t):
            total, rows = lax.scan(
                lambda c, x: (c + f(t)["a"].sum() * x, f({"a": t["a"] * x, "b": c})), 0.0, t["a"])
            return {"a": rows["a"].sum(0) * 0.3, "b": total * rows["b"].mean() * 0.1}
        return run

    def cond(f):
        return lambda t: lax.cond(t["b"] > 0, f, lambda t: mean(t, f(mean(t, t))), t)

    def switch(f):
        return lambda t: lax.switch(jnp.int32(jnp.floor(t["b"])) + 1,
                                    [f, lambda t: t, lambda t: mean(f(t), t)], t)

    def fori(f):
        return lambda t: lax.fori_loop(0, 2, lambda i, c: mean(f(c), tree_map(
            lambda x: x * i, c)), t)

    def while_of_known(f):  # its length, and what it computes, depend on no input
        def run(t):
            count, by = lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 0.9),
                                       (0, jnp.float32(1)))
            return tree_map(lambda x: x * by, f(t))
        return run

    def custom_jvp(f):
        @lib.custom_jvp
        def g(t):
            return f(t)

        @g.defjvp
        def rule(primals, tangents):
            out, dot = lib.jvp(f, primals, tangents)
            return out, tree_map(lambda d, x: 0.9 * d * jnp.cos(0.1 * x), dot, out)
        return lambda t: g(t)

    def custom_vjp(f):
        def mixed(t):  # JAX counts twice what a batch has in common (tests/jax_differences.toml)
            return tree_map(lambda x: x + 0 * t["a"].sum(), f(t))

        @lib.custom_vjp
        def g(t):
            return mixed(t)

        def forward(t):
            return mixed(t), t

        def backward(t, ct):
            return (tree_map(lambda d, x: 1.1 * d * jnp.cos(0.1 * x), lib.vjp(f, t)[1](ct)[0], t),)
        g.defvjp(forward, backward)
        return lambda t: g(t)

    def vmap(f):
        def run(t):
            batch = {"a": jnp.stack([t["a"], 0.5 * t["a"]]), "b": t["b"]}
            out = lib.vmap(f, in_axes=({"a": 0, "b": None},))(batch)
            return tree_map(lambda x: x[0] - 0.25 * x[1], out)
        return run

    def vmap_of_both(f):
        def run(t):
            out = lib.vmap(f, out_axes={"a": 1, "b": 0})(
                tree_map(lambda x: jnp.stack([x, -0.7 * x]), t))
            return {"a": out["a"].mean(1), "b": out["b"].sum()}
        return run

    def gradient(f):
        return lambda t: lib.grad(lambda s: (f(s)["a"].sum() + f(s)["b"]) * 0.5)(t)

    return {"checkpoint": lib.checkpoint, "jit": lib.jit, "scan": scan,
            "reversed scan": lambda f: scan(f, reverse=True), "scan of rows": scan_of_rows,
            "cond": cond, "switch": switch, "fori": fori, "while": while_of_known,
            "custom_jvp": custom_jvp, "custom_vjp": custom_vjp, "vmap": vmap,
            "vmap of both": vmap_of_both, "grad": gradient}


def derivatives(lib):
    jnp, tree_map = lib.numpy, lib.tree_util.tree_map

    def number(f):
        return lambda t: (lambda out: jnp.sin(out["a"]).sum() + out["b"])(f(t))

    def along(t):
        return tree_map(lambda x: jnp.cos(x) * 0.5, t)

    return {
        "grad": lambda f: lib.grad(number(f)),
        "hessian": lambda f: lib.hessian(number(f)),
        "jvp of grad": lambda f: lambda t: lib.jvp(lib.grad(number(f)), (t,), (along(t),)),
        "grad of jvp": lambda f: lib.grad(
            lambda t: lib.jvp(number(f), (t,), (along(t),))[1]),
        "grad of grad": lambda f: lib.grad(
            lambda t: number(lambda s: s)(lib.grad(number(f))(t))),
        "vmap of grad": lambda f: lambda t: lib.vmap(lib.grad(number(f)))(
            tree_map(lambda x: jnp.stack([x, 2 * x, -x]), t)),
        "jacobian": lambda f: lib.jacrev(lib.jacfwd(f)),
    }


POINT = {"a": np.array([0.5, -0.3, 1.2], np.float32), "b": np.float32(0.7)}


def chosen(count):
    """Stacks of up to four layers, each under a derivative."""
    choose = random.Random(1)
    names, outer, inner = list(layers(jax)), list(derivatives(jax)), list(programs(jax))
    cases = ((choose.choice(outer),
              tuple(choose.choices(names, k=choose.choice([1, 2, 2, 3, 3, 4, 4]))),
              choose.choice(inner)) for _ in itertools.count())
    # such a rule has no forward derivative; JAX says so in several ways
    return list(itertools.islice(
        (c for c in cases if not (c[0] == "grad of jvp" and "custom_vjp" in c[1])), count))


def value(lib, derivative, stack, program, jitted):
    f = programs(lib)[program]
    for name in reversed(stack):
        f = layers(lib)[name](f)
    f = derivatives(lib)[derivative](f)
    return (lib.jit(f) if jitted else f)(lib.tree_util.tree_map(lib.numpy.asarray, POINT))


def result(lib, case, jitted):
    """What it returns, or the kind of error it raises."""
    try:
        return value(lib, *case, jitted)
    except (TypeError, ValueError) as error:
        if lib is jax:
            return type(error).__name__
        raise


@pytest.mark.parametrize("case", chosen(int(os.environ.get("GENERATED", "8"))),
                         ids=lambda case: f"{case[0]} of {'∘'.join(case[1])} {case[2]}")
def test_a_derivative_of_a_stack_is_jaxs(case, jax_says):
    theirs = jax_says(lambda: result(jax, case, jitted=True))
    if isinstance(theirs, str):
        with pytest.raises((TypeError, ValueError)) as error:
            value(minijax, *case, jitted=False)
        assert theirs in [kind.__name__ for kind in error.type.__mro__]
        return
    ours = result(minijax, case, jitted=False)
    assert minijax.tree_util.tree_structure(ours).num_leaves == len(jax.tree.leaves(theirs))
    for x, y in zip(minijax.tree_util.tree_leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert (x.dtype, x.shape, x.weak_type) == (y.dtype, y.shape, y.weak_type)
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4)
