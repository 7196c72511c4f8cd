"""A transformation of one's own: a program is traced, and interpreted in another way."""

from functools import wraps

import jax
import jax.numpy as jnp
from jax import lax
from jax._src.util import safe_map
from jax.extend import core as jex_core


def types(atom):
    return f"{atom.aval.dtype}{list(atom.aval.shape)}"


def looked_at(closed):
    jaxpr = closed.jaxpr
    print("takes", [*map(types, jaxpr.invars)])
    print("gives", [*map(types, jaxpr.outvars)])
    print("knows", [*map(types, jaxpr.constvars)])
    for eqn in jaxpr.eqns:
        print("does", eqn.primitive, [*map(types, eqn.invars)], [*map(types, eqn.outvars)])


def a_small_program_is_looked_at():
    closed = jax.make_jaxpr(lambda x: x + 1)(5)
    looked_at(closed)
    print(closed)


def a_layer_is_looked_at():
    def layer(w, b, x):
        return jnp.tanh(jnp.dot(x, w) + b), x
    looked_at(jax.make_jaxpr(layer)(jnp.ones((3, 4)), jnp.ones(4), jnp.ones(3)))


def squashed(x):
    return jnp.sinh(jnp.tanh(x))


def a_program_and_its_constants():
    table = jnp.array([1.0, 2.0, 4.0])
    plain = jax.make_jaxpr(squashed)(jnp.ones(3))
    with_table = jax.make_jaxpr(lambda x: x * table)(jnp.ones(3))
    print(plain.jaxpr)
    print(list(plain.literals))
    print(with_table.jaxpr)
    return with_table.literals, len(with_table.consts)


def evaluated(jaxpr, consts, *args):
    values = {}

    def read(atom):
        return atom.val if isinstance(atom, jex_core.Literal) else values[atom]

    def write(var, value):
        values[var] = value
    safe_map(write, jaxpr.invars, args)
    safe_map(write, jaxpr.constvars, consts)
    for eqn in jaxpr.eqns:
        outs = eqn.primitive.bind(*safe_map(read, eqn.invars), **eqn.params)
        safe_map(write, eqn.outvars, outs if eqn.primitive.multiple_results else [outs])
    return safe_map(read, jaxpr.outvars)


def a_program_is_evaluated():
    closed = jax.make_jaxpr(squashed)(jnp.ones(3))
    return evaluated(closed.jaxpr, closed.literals, jnp.array([0.1, 0.2, 0.3]))


def constants_and_several_results():
    table = jnp.array([1.0, 2.0, 4.0])
    closed = jax.make_jaxpr(lambda x, y: (x * table + 2, (x * y).sum()))(table, table)
    return evaluated(closed.jaxpr, closed.literals, table, table + 1)


def the_lists_must_be_as_long():
    try:
        safe_map(lambda x, y: x, [1, 2], [3])
    except Exception as error:
        return type(error).__name__


def the_library_evaluates_so_too():
    closed = jax.make_jaxpr(squashed)(jnp.ones(3))
    return (jax.core.eval_jaxpr(closed.jaxpr, closed.literals, jnp.array([0.1, 0.2, 0.3])),
            jex_core.jaxpr_as_fun(closed)(jnp.array([0.1, 0.2, 0.3])))


backwards = {lax.sinh_p: jnp.arcsinh, lax.tanh_p: jnp.arctanh}


def inverted(jaxpr, consts, *args):
    values = {}

    def read(atom):
        return atom.val if isinstance(atom, jex_core.Literal) else values[atom]

    def write(var, value):
        values[var] = value
    safe_map(write, jaxpr.outvars, args)
    safe_map(write, jaxpr.constvars, consts)
    for eqn in jaxpr.eqns[::-1]:
        if eqn.primitive not in backwards:
            raise NotImplementedError(f"nobody said how to undo {eqn.primitive}")
        outs = safe_map(read, eqn.outvars)
        safe_map(write, eqn.invars, [backwards[eqn.primitive](*outs)])
    return safe_map(read, jaxpr.invars)


def inverse(fun):
    @wraps(fun)
    def wrapped(*args, **kwargs):
        closed = jax.make_jaxpr(fun)(*args, **kwargs)
        return inverted(closed.jaxpr, closed.literals, *args)[0]
    return wrapped


def a_function_is_inverted():
    return inverse(squashed)(squashed(0.7)), inverse(squashed)(squashed(jnp.array([0.1, -0.9])))


def what_cannot_be_inverted():
    try:
        inverse(lambda x: jnp.exp(x))(1.0)
    except NotImplementedError as error:
        return str(error)


def the_inverse_is_a_program():
    print(jax.make_jaxpr(inverse(squashed))(squashed(1.0)))


def the_inverse_is_transformed():
    xs = (jnp.arange(5) + 1.0) / 7.0
    f = inverse(squashed)
    return (jax.jit(jax.vmap(jax.grad(f)))(xs), jax.vmap(f)(xs), jax.jvp(f, (xs,), (xs,)),
            jax.hessian(f)(0.2))


def inlined(jaxpr, consts, *args):
    """An interpreter that goes into calls of compiled functions, and counts what it does."""
    values, counts = dict(zip(jaxpr.constvars, consts, strict=True)), {}
    values.update(zip(jaxpr.invars, args, strict=True))
    for eqn in jaxpr.eqns:
        given = [x.val if isinstance(x, jex_core.Literal) else values[x] for x in eqn.invars]
        if eqn.primitive.name == "jit":
            inner = eqn.params["jaxpr"]
            outs, more = inlined(inner.jaxpr, inner.consts, *given)
        else:
            outs, more = eqn.primitive.bind(*given, **eqn.params), {eqn.primitive.name: 1}
            outs = outs if eqn.primitive.multiple_results else [outs]
        values.update(zip(eqn.outvars, outs, strict=True))
        counts = {name: counts.get(name, 0) + more.get(name, 0) for name in {**counts, **more}}
    return [x.val if isinstance(x, jex_core.Literal) else values[x] for x in jaxpr.outvars], counts


def calls_of_compiled_functions():
    inner = jax.jit(lambda x, y: jnp.sin(x) * y)
    closed = jax.make_jaxpr(lambda x: inner(x, 2.0) + inner(x + 1, x))(0.5)
    print([eqn.primitive.name for eqn in closed.eqns])
    print([eqn.params["name"] for eqn in closed.eqns if eqn.primitive.name == "jit"])
    outs, counts = inlined(closed.jaxpr, closed.consts, 0.5)
    print(sorted(counts.items()))
    return outs


def programs_inside_of_programs():
    def f(x, n):
        x = lax.cond(n > 2, jnp.sin, jnp.cos, x)
        x = lax.fori_loop(0, 3, lambda i, y: y * 2, x)
        return lax.scan(lambda c, z: (c + z, c), x, jnp.arange(3.0))

    def names(jaxpr, indent=0):
        for eqn in jaxpr.eqns:
            print(" " * indent + eqn.primitive.name)
            for inside in jex_core.jaxprs_in_params(eqn.params):
                names(inside, indent + 2)
    names(jax.make_jaxpr(f)(0.5, 3).jaxpr)


def programs_are_compared_by_type():
    first = jax.make_jaxpr(squashed)(1.0)
    again = jax.make_jaxpr(squashed)(2.0)
    wide = jax.make_jaxpr(squashed)(jnp.ones(2))
    print(first.in_avals == again.in_avals, first.in_avals == wide.in_avals)
    print([str(aval.dtype) for aval in wide.out_avals], [a.shape for a in wide.out_avals])
    print(str(first) == str(again), str(first) == str(wide))
