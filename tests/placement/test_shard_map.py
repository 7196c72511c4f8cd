"""Types inside of `shard_map` say what varies along which axes of the mesh, and gradients follow.

Each program is evaluated with both libraries, on four pretended devices each.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minijax
from minijax import config, lax
from minijax.experimental.ode import odeint
from tests.recorded import Answers

# Values, eager and compiled: `run(f, in_specs, out_specs, *args)`.
VALUES = """
run(lambda w, x: lax.pmean(grad(loss)(w, x), 'i'))
run(lambda w, x: lax.psum(grad(loss)(w, x), 'i'))
run(lambda w, x: grad(loss)(w, x))
cut(W, lambda w, x: grad(loss)(w, x)[None])
run(lambda w, x: grad(lambda w: lax.psum(loss(w, x), 'i'))(w))
run(lambda w, x: grad(lambda w: lax.pmean(loss(w, x), 'i'))(w))
cut(W, lambda w, x: grad(lambda x: lax.psum(loss(w, x), 'i'))(x))
run(lambda w, x: grad(loss, (0, 1))(w, x), (P(), I))
cut(W, lambda w, x: grad(loss)(lax.pcast(w, 'i', to='varying'), x)[None])
run(lambda w, x: jax.value_and_grad(loss)(w, x)[1])
run(lambda w, x: jax.jvp(lambda w: lax.psum(loss(w, x), 'i'), (w,), (w,)))
cut(W, lambda w, x: jax.jvp(lambda w: w * x, (w,), (w,)))
run(lambda w, x: grad(grad(lambda w: lax.psum(loss(w, x), 'i')))(w))
run(lambda w, x: grad(lambda w: grad(loss)(w, x))(w))
run(V, lambda w, x: jax.hessian(lambda w: lax.psum(((w * x) ** 3).sum(), 'i'))(w))
run(V, lambda w, x: jax.jacrev(lambda w: w * x)(w))
cut(V, lambda w, x: jax.jacfwd(lambda w: w * x)(w))
cut(V, lambda w, x: jax.jacrev(lambda x: lax.psum(w * x, 'i'))(x))
run(V, lambda w, x: jax.vjp(lambda w: w * x, w)[1](x))
run(V, lambda w, x: jax.vjp(lambda w: lax.psum(w * x, 'i'), w)[1](w))
run(V, lambda w, x: jax.linearize(lambda w: lax.psum(w * x, 'i'), w)[1](w))
run(lambda x: grad(lambda x: (lax.all_gather(x, 'i') * 2).sum())(x), I, I, X)
run(lambda x: grad(lambda x: (lax.all_gather(x, 'i', to='invarying') ** 2).sum())(x), I, I, X)
run(lambda w: grad(lambda w: (lax.all_gather(w, 'i') ** 2).sum())(w), P(), P(), V)
run(lambda x: grad(lambda x: (x * lax.ppermute(x, 'i', RING)).sum())(x), I, I, X)
run(V, lambda w, x: grad(lambda w: (w * lax.ppermute(w * x, 'i', RING)).sum())(w))
run(lambda x: grad(lambda x: (lax.psum_scatter(x, 'i', tiled=True) ** 2).sum())(x), I, I, F)
run(lambda w: grad(lambda w: (lax.psum_scatter(w, 'i') ** 2).sum())(w), P(), P(), F[:4])
run(lambda x: grad(lambda x: (lax.all_to_all(x, 'i', 0, 0, tiled=True) ** 2).sum())(x), I, I, F)
run(lambda w, x: grad(lambda w: (lax.axis_index('i') * w * x).sum())(w))
run(lambda w, x: grad(lambda w: lax.psum(w, 'i') * 1.)(w))
run(lambda w: lax.psum(w, 'i'), P(), P(), V)
run(lambda w: (lax.pmean(w, 'i'), lax.pmax(w, 'i'), lax.pmin(w, 'i')), P(), P(), V)
run(lambda w: lax.all_gather(w, 'i', to='invarying'), P(), P(), V)
run(lambda x: lax.all_gather(x, 'i', to='invarying', tiled=True), I, P(), X)
run(lambda w: lax.ppermute(w, 'i', RING), P(), I, V)
run(lambda w: w * 2, P(), I, V)
run(lambda w: (w, {'a': w * 2}), P(), (P(), {'a': I}), V)
run(lambda x: lax.psum((x, 1, {'a': 2.}), 'i'), I, P(), X)
cut(W, lambda w, x: lax.scan(lambda c, y: (c * 2 + y, c), vary(w), x)[0][None])
run(lambda w, x: lax.scan(lambda c, y: (c * 2 + w, y * w), w, x), (P(), I))
run(lambda w, x: grad(lambda w: lax.scan(lambda c, y: (c * w + y, None), vary(1.), x)[0])(w))
run(lambda w, x: grad(lambda w: lax.scan(lambda c, y: (c + total(w * y), None), 0., x)[0])(w))
run(lambda w, x: grad(lambda w: lax.fori_loop(0, 3, lambda i, c: c * w + x.sum(), vary(1.)))(w))
run(lambda x: lax.while_loop(lambda c: total(c).sum() < 1e3, lambda c: c * 2, x), I, I, X + 1)
run(lambda x: lax.while_loop(lambda c: c.sum() < 1e3, lambda c: c * 2, x), I, I, X + 1)
run(lambda w, x: grad(lambda w: lax.cond(w > 0, lambda: (w * x).sum(), lambda: x.sum()))(w))
run(lambda w, x: grad(jax.jit(loss))(w, x))
run(lambda w, x: jax.jit(grad(loss))(w, x))
run(V, lambda w, x: jax.jit(lambda w, x: lax.psum(w * x, 'i'))(w, x))
run(V, lambda w, x: grad(lambda w: jax.jit(lambda w, x: lax.psum(w * x, 'i'))(w, x).sum())(w))
run(lambda w, x: grad(jax.checkpoint(loss))(w, x))
run(lambda w, x: grad(jax.checkpoint(lambda w: lax.psum(loss(w, jnp.sin(x)), 'i')))(w))
run(lambda w, x: jax.vmap(lambda y: grad(loss)(w, y))(x))
run(V, lambda w, x: jax.vmap(lambda v: grad(lambda v: (v * x).sum())(v))(w))
run(V, lambda w, x: jax.vmap(lambda v: lax.psum(v * x, 'i'))(w))
run(lambda w, x: grad(lambda w: jax.nn.relu(w * x).sum())(w))
run(lambda w, x: grad(lambda w: jax.nn.logsumexp(w * x))(w))
run(lambda w, x: grad(lambda w: jax.nn.softmax(w * x)[0])(w))
run(lambda w, x: grad(lambda w: jnp.linalg.norm(w * x))(w), (P(), I), P(), W, X + 1)
run(lambda w, x: grad(lambda w: jnp.where(x > 3, w, x).sum())(w))
run(V, lambda w, x: grad(lambda w: (jnp.concatenate([w, x]) ** 2).sum())(w))
run(lambda w, x: grad(lambda w: (w @ x)[0])(w), (P(), I), P(), M, F.reshape(8, 2))
run(lambda w, x: grad(lambda w: ((x @ w) ** 2).sum())(w), (P(), I), P(), M.T, F.reshape(8, 2))
run(lambda w, x: grad(lambda w: w[lax.axis_index('i')])(w), (P(), I), P(), F[:4], X)
run(F, lambda w, x: grad(lambda w: lax.dynamic_slice(w, (index(),), (2,)).sum())(w))
run(V, lambda w, x: grad(lambda w: (w.at[0].set(x[0]) * w).sum())(w))
run(F[:4], lambda w, x: grad(lambda w: (w.at[index()].add(x[0]) ** 2).sum())(w))
run(V, lambda w, x: grad(lambda w: jnp.sort(w * x)[0])(w))
run(V, lambda w, x: grad(lambda w: jnp.cumsum(w * x).sum())(w))
run(lambda w, x: grad(lambda w: lax.stop_gradient(w) * (w * x).sum())(w))
run(lambda w, x: grad(lambda w: own_jvp(w * x).sum())(w))
run(lambda w, x: grad(lambda w: own_vjp(w * x).sum())(w))
run(lambda w, x: grad(lambda w: product(w, lax.psum(x.sum(), 'i')))(w))
cut(W, lambda w, x: grad(lambda x: product(vary(w), x).sum())(x))
cut(W, lambda w, x: product(vary(w), x))
cut(W, lambda w, x: own_vjp(x) + own_jvp(lax.psum(x, 'i')))
run(lambda k: jax.random.normal(jax.random.fold_in(k, lax.axis_index('i')), (2,)), P(), I, KEY)
run(lambda k: jax.random.normal(k, (2,)), P(), P(), KEY)
run(lambda k: jax.random.gamma(jax.random.fold_in(k, lax.axis_index('i')), 2., (2,)), P(), I, KEY)
run(lambda k: jax.random.permutation(jax.random.fold_in(k, lax.axis_index('i')), 4), P(), I, KEY)
run(lambda x: jnp.searchsorted(jnp.arange(8.), x), I, I, X)
run(lambda x: jnp.zeros_like(x) + jnp.full_like(x, 2), I, I, X)
run(lambda x: lax.associative_scan(jnp.add, x), I, I, X)
run(lambda x: lax.map(lambda y: y * 2, x), I, I, X)
run(lambda x: jnp.linalg.inv(x.reshape(2, 2) + 9 * jnp.eye(2)), I, I, F)
run(lambda x: grad(lambda x: jnp.linalg.solve(9 * jnp.eye(2) + x, x[:2]).sum())(x), I, I, F[:8])
run(lambda x: jnp.array([x.sum(), 1.]), I, I, X)
run(lambda x: jax.eval_shape(lambda x: lax.psum(x, 'i'), x).shape[0] * x, I, I, X)
grad(lambda w: sm(lambda w, x: lax.psum(loss(w, x), 'i'), (P(), I), P())(w, X))(W)
grad(lambda w: sm(lambda w, x: loss(w, x)[None], (P(), I), I)(w, X).sum())(W)
grad(lambda w: jax.jit(sm(lambda w, x: lax.psum(loss(w, x), 'i'), (P(), I), P()))(w, X))(W)
grad(lambda x: sm(lambda x: x * lax.psum(x, 'i'), I, I)(x).sum())(X)
grad(lambda w: sm(lambda w, x: grad(loss)(w, x), (P(), I), P())(w, X))(W)
grad(lambda w: sm(lambda w: w * 2, P(), P())(w))(W)
grad(lambda w: sm(lambda w: product(w, w + 1), P(), P())(w))(W)
grad(lambda w: sm(lambda w, x: summed(w, x), (P(), I), P())(w, X))(W)
grad(lambda w: sm(lambda w, x: lax.psum(own_vjp(w * x).sum(), 'i'), (P(), I), P())(w, X))(W)
grad(lambda w: sm(lambda w, x: lax.pmean(own_jvp(w * x).sum(), 'i'), (P(), I), P())(w, X))(W)
jax.jvp(lambda w: sm(lambda w, x: lax.psum(loss(w, x), 'i'), (P(), I), P())(w, X), (W,), (W,))
jax.vmap(lambda w: sm(lambda w, x: lax.psum(loss(w, x), 'i'), (P(), I), P())(w, X))(V)
jax.vmap(lambda w: sm(lambda w, x: grad(loss)(w, x), (P(), I), P())(w, X))(V)
jax.vmap(sm(lambda x: grad(lambda x: lax.psum(x * x, 'i').sum())(x), I, I))(F.reshape(2, 8))
run(lambda w, x: lax.psum(grad(loss)(w, x), 'i'), (P(), I), P(), W, X, check_vma=False)
run(lambda w, x: total(grad(lambda w: total(loss(w, x)))(w)), (P(), I), P(), W, X, check_vma=False)
run(lambda w: w, P(), I, V, check_vma=False)
run(lambda x: lax.pcast(x, 'i', to='varying'), I, I, X, check_vma=False)
on_grid(P(), P(), W, lambda w, x: grad(loss)(w, x))
on_grid(P(), P(), W, lambda w, x: lax.psum(grad(loss)(w, x), ('i', 'j')))
on_grid(P('i'), P('i'), V, lambda w, x: grad(loss)(w, x))
on_grid(P('j'), P('j'), V, lambda w, x: grad(loss)(w, x))
on_grid(P('i'), I, V, lambda w, x: grad(lambda w: lax.psum(loss(w, x), 'j'))(w).sum()[None])
on_grid(P('i'), P('i'), V, lambda w, x: grad(lambda w: lax.psum(loss(w, x), ('j', 'i')))(w))
run(lambda x, y: lax.psum(x * y, 'i'), (I, P('j')), P('j'), V, V, mesh=grid)
run(lambda x, y: grad(lambda x: (x * y).sum())(x), (I, P('j')), I, V, V, mesh=grid)
run(lambda x, y: lax.psum(x * y, ('i', 'j')), (I, P('j')), P(), V, V, mesh=grid)
run(lambda x: lax.all_gather(x, BOTH, tiled=True, to='invarying'), P(BOTH), P(), X, mesh=grid)
run(lambda x: lax.axis_index(('i', 'j'))[None] + x, P(('i', 'j')), P(('i', 'j')), X[:4], mesh=grid)
run(lambda x: jax.jit(lambda x: lax.psum(x, 'j'))(total(x)), P(BOTH), P(), X, mesh=grid)
on_grid(P(), P(), W, lambda w, x: grad(jax.jit(lambda w: lax.psum(loss(w, x), 'j')))(w))
on_grid(P(), P(), W, lambda w, x: lax.scan(lambda c, y: (c + grad(loss)(w, y), None), 0., x)[0])
on_grid(P(), P(), W, lambda w, x: jax.vmap(grad(loss), (None, 0))(w, x))
on_grid(P('j'), P('j'), V, lambda w, x: grad(lambda w: own_vjp(jnp.sin(w * x)).sum())(w))
on_grid(P('j'), P('j'), V, lambda w, x: grad(lambda w: own_jvp(jnp.sin(w * x)).sum())(w))
grad(lambda w: sm(lambda w, x: grad(loss)(w, x), (P('j'), IJ), P('j'), mesh=grid)(w, M).sum())(V)
split(lambda x: part(lambda y: lax.psum(y * 2, 'j'), P(None, 'j'), P())(x))
split(lambda x: part(lambda y: grad(lambda w: (w * y).sum())(V[0])[None, None], TWO[1], P())(x))
total_of(lambda w, x: grad(lambda w: part(lambda w, y: summed_over_j(w * y), TWO, P())(w, x))(w))
total_of(lambda w, x: total(part(lambda w, y: grad(lambda w: (w * y).sum())(w), TWO, P())(w, x)))
"""

# Refusals: one line, and the message.
REFUSALS = """
jax.jit(sm(lambda x: lax.all_gather(x, 'i'), I, P()))(X)
jax.jit(sm(lambda x: {'a': x, 'b': lax.psum(x, 'i')}, I, P()))(X)
jax.jit(sm(lambda x: {'a': x, 'b': x}, I, {'a': P(), 'b': I}))(X)
jax.jit(sm(lambda x: (x, x), I, (P(), P())))(X)
jax.jit(sm(lambda x: x, IJ, P('i'), mesh=grid))(M)
jax.jit(sm(lambda x: x, IJ, P(), mesh=grid))(M)
jax.jit(sm(lambda x: lax.psum(x, 'i'), IJ, P(), mesh=grid))(M)
jax.jit(sm(lambda x: x, I, P()))(X)
jax.jit(sm(lambda w, x: grad(lambda x: loss(w, x))(x), (P(), I), P()))(W, X)
sm(lambda x: lax.pcast(x, 'i', to='varying'), I, I)(X)
sm(lambda x: lax.pcast(x, 'i', to='invarying'), I, I)(X)
sm(lambda x: lax.pcast(x, {'i'}, to='varying'), I, I)(X)
sm(lambda x: lax.pcast(x, ('i', 'j'), to='varying'), I, I, mesh=grid)(X)
sm(lambda x: lax.scan(lambda c, y: (c + y, None), 0., x)[0], I, I)(X)
jax.jit(sm(lambda x: lax.scan(lambda c, y: (c + y, None), 0., x)[0], I, I))(X)
sm(lambda x: lax.scan(lambda c, y: ((c[0] + y, c[1] * y), None), (0., 1.), x)[0], I, I)(X)
sm(lambda x: lax.scan(lambda c, y: (lax.psum(c, 'i'), None), x.sum(), x)[0], I, P())(X)
sm(lambda x: lax.while_loop(lambda c: c < 5, lambda c: c + x.sum(), 0.), I, P())(X)
sm(lambda x: lax.fori_loop(0, 3, lambda i, c: c + x.sum(), 0.), I, P())(X)
sm(lambda w, x: lax.cond(w > 0, lambda: x.sum(), lambda: 1.), (P(), I), P())(W, X)
sm(lambda w, x: lax.switch(0, [lambda: x.sum(), lambda: 1.]), (P(), I), P())(W, X)
sm(lambda w, x: jax.vjp(lambda w: w * x, w)[1](w), (P(), I), P())(V, X)
sm(lambda w, x: jax.vjp(lambda w: w * 2, w)[1](x), (P(), I), P())(V, X)
sm(lambda w, x: jax.linearize(lambda w: w * 2, w)[1](x), (P(), I), P())(V, X)
sm(lambda w, x: grad(lambda w: product(w, x).sum())(w), (P(), I), P())(W, X)
sm(lambda x: lax.psum(x, ('i', 'j')), I, P(), mesh=grid)(X)
"""

# What is printed: programs inside of `shard_map`, types, parts of types.
TEXTS = """
text(lambda w, x: w * x + 2.)
text(lambda w, x: (lax.psum(x, 'i'), lax.pmean(w, 'i')))
text(lambda w, x: lax.axis_index('i') * x)
text(lambda w, x: jax.jit(lambda x: x * w)(x))
text(lambda w, x: w * x, (P('j'), P('i')), V, V, mesh=grid)
text(lambda w, x: lax.psum(w * x, BOTH), ACROSS, V, V, mesh=grid)
text(lambda w, x: lax.pcast(w, ('j', 'i'), to='varying'), (P(), P('i')), V, V, mesh=grid)
text(lambda w, x: lax.psum(w * x, 'j'), (P('j'), P('i')), V, V, mesh=grid)
text(lambda w, x: grad(lambda w: (w * x)[0])(w), (P(), IJ), V[:1], M[:2], mesh=grid)
text(lambda w, x: w * x, (P(), I), W, X, check_vma=False)
types(lambda w, x: (w, x, w * x, lax.psum(x, 'i'), lax.axis_index('i'), 1., jnp.zeros(3)))
types(lambda w, x: (jnp.zeros_like(x), jnp.full_like(x, 2), lax.full_like(x, 1), jnp.ones_like(w)))
types(lambda w, x: (lax.pmax(x, 'i'), lax.pmin(w, 'i'), lax.all_gather(x, 'i')))
types(lambda w, x: (lax.all_gather(x, 'i', to='invarying'), lax.pmean(x, 'i')))
types(lambda w, x: (lax.ppermute(x, 'i', RING), lax.psum_scatter(jnp.ones(4), 'i')))
types(lambda w, x: (lax.all_to_all(jnp.ones(4), 'i', 0, 0), lax.pcast(w, 'i', to='varying')))
types(lambda w, x: (x > 0, jnp.int32(x), x.sum(), x[0], x.reshape(1, 2), x @ x))
types(lambda w, x: (grad(loss)(w, x), grad(loss, 1)(w, x), loss(w, x)))
types(lambda w, x: (jax.jit(lambda x: x)(x), jax.jit(lambda w: w)(w), jax.jit(jnp.add)(w, x)))
types(lambda w, x: lax.scan(lambda c, y: (c, (y, w)), w, x))
types(lambda w, x: (own_vjp(x), own_vjp(w), own_jvp(x), own_jvp(w), product(w, w)))
types(lambda w, x: lax.cond(w > 0, lambda: (x, w), lambda: (x, w)))
types(lambda w, x: lax.cond(x[0] > 0, lambda: (x, w), lambda: (x, w)))
types(lambda w, x: (w, x, w * x, total(w * x), lax.psum(w * x, BOTH)), ACROSS, V, V, mesh=grid)
types(lambda w, x: (lax.axis_index('j'), lax.axis_index(BOTH)), ACROSS, V, V, mesh=grid)
types(lambda w, x: (x, w * x, index(), total(x)), (P(), I), W, X, check_vma=False)
types(lambda k, x: (k, jax.random.fold_in(k, index()), jax.random.key_data(k)), (P(), I), KEY, X)
inside(lambda w, x: [jax.typeof(y).manual_axis_type.varying for y in (w, x, w * x)])
inside(lambda w, x: (jax.typeof(x).mat, jax.typeof(w).mat == jax.typeof(1.).mat))
inside(lambda w, x: jax.typeof(x) == jax.typeof(x * 2))
inside(lambda w, x: [repr(jax.typeof(x)), jax.typeof(x).str_short(True)])
inside(lambda w, x: repr(jax.typeof(x).update(shape=(3,))))
inside(lambda w, x: jax.typeof(w) == jax.typeof(x[0]))
"""

KINDS = {"values": VALUES, "refusals": REFUSALS, "texts": TEXTS}
PROGRAMS = {kind: text.strip().splitlines() for kind, text in KINDS.items()}


def namespace(jax):
    """The names that programs use."""
    jnp, lax, P = jax.numpy, jax.lax, jax.P
    devices = np.array(jax.devices()[:4])
    line = jax.sharding.Mesh(devices, ("i",))
    grid = jax.sharding.Mesh(devices.reshape(2, 2), ("i", "j"))

    def sm(f, in_specs, out_specs, mesh=line, **options):
        return jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options)

    I, W, X = P("i"), np.float32(3), np.arange(8, dtype=np.float32)  # noqa: E741
    M = np.float32([[1, 2], [3, 4]])

    def total(x):
        return lax.psum(x, "i")

    def index():
        return lax.axis_index("i")

    def run(f, *others, **options):
        """What a function gives, mapped over devices, and compiled: the same."""
        if not callable(f):
            return run(others[0], (P(), I), P(), f, X)
        in_specs, out_specs, *args = others or ((P(), I), P(), W, X)
        mapped = sm(f, in_specs, out_specs, **options)
        outs = mapped(*args), jax.jit(mapped)(*args)
        first, second = ([np.asarray(x) for x in jax.tree.leaves(out)] for out in outs)
        for a, b in zip(first, second, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)
        return outs[0]

    def cut(w, f):
        return run(f, (P(), I), I, w, X)

    def on_grid(in_spec, out_spec, w, f):
        return run(f, (in_spec, P("i", "j")), out_spec, w, M, mesh=grid)

    def shown_inside(f, in_specs=None, *args, **options):
        in_specs, args, texts = in_specs or (P(), I), args or (W, X), []

        def g(*args):
            texts.append(f(*args))
            return jnp.zeros(())
        sm(g, in_specs, P(), **options)(*args)
        return texts[0]

    def text(f, *others, **options):
        return shown_inside(lambda *args: str(jax.make_jaxpr(f)(*args)), *others, **options)

    def types(f, *others, **options):
        return shown_inside(lambda *args: [jax.typeof(x).str_short()
                                           for x in jax.tree.leaves(f(*args))],
                            *others, **options)

    @jax.custom_jvp
    def own_jvp(x):
        return jnp.sin(x)
    own_jvp.defjvp(lambda primals, tangents: (own_jvp(*primals), 3 * tangents[0]))

    @jax.custom_vjp
    def own_vjp(x):
        return jnp.sin(x)
    own_vjp.defvjp(lambda x: (own_vjp(x), x), lambda x, ct: (5 * x * ct,))

    @jax.custom_vjp
    def product(x, y):
        return x * y
    product.defvjp(lambda x, y: (x * y, (x, y)), lambda xy, ct: (xy[1] * ct, xy[0] * ct))

    @jax.custom_vjp
    def summed(w, x):
        return lax.psum((w * x).sum(), "i")
    summed.defvjp(lambda w, x: (summed(w, x), (w, x)), lambda wx, ct: (
        lax.psum(7 * ct * wx[1].sum(), "i"), ct * wx[0] * jnp.ones_like(wx[1])))

    return {
        "jax": jax, "jnp": jnp, "lax": lax, "P": P, "grad": jax.grad, "grid": grid, "sm": sm,
        "run": run, "text": text, "types": types, "product": product, "summed": summed,
        "split": lambda f: jax.jit(sm(f, I, I, grid, axis_names={"i"}))(M),
        "part": lambda f, i, o: jax.shard_map(f, in_specs=i, out_specs=o, axis_names={"j"}),
        "total_of": lambda f: jax.jit(sm(f, (P(), I), P(), grid, axis_names={"i"}))(W, M),
        "summed_over_j": lambda x: lax.psum(x.sum(), "j"), "TWO": (P(), P(None, "j")),
        "inside": shown_inside, "cut": cut, "on_grid": on_grid, "total": total, "index": index,
        "BOTH": ("i", "j"), "ACROSS": (P("j"), P("i")),
        "loss": lambda w, x: ((w * x) ** 2).sum(), "vary": lambda x: lax.pcast(
            x, "i", to="varying"), "own_jvp": own_jvp, "own_vjp": own_vjp,
        "I": I, "IJ": P("i", "j"), "W": W, "KEY": jax.random.key(7), "X": X,
        "V": np.float32([2, -1]), "F": np.arange(16, dtype=np.float32), "M": M,
        "RING": [(0, 1), (1, 2), (2, 3), (3, 0)]}


def shown(x):
    """A result as text: its arrays rounded."""
    if isinstance(x, tuple | list):
        return f"[{', '.join(map(shown, x))}]"
    if isinstance(x, dict):
        return str({key: shown(y) for key, y in x.items()})
    if not hasattr(x, "dtype"):
        return str(x)
    digits = [float(f"{v:.4g}") + 0.0 for v in  # which shows -0.0 as 0.0
              np.asarray(x, np.float64).ravel()]
    return f"{x.dtype}{[*x.shape]}{digits}"


def results(jax):
    """What each program gives, or raises, as text."""
    names, found = namespace(jax), {}
    for program in (program for programs in PROGRAMS.values() for program in programs):
        try:
            found[program] = shown(eval(program, names))
        except Exception as error:
            found[program] = f"{type(error).__name__}: {error}"
    return found


@pytest.fixture(scope="module")
def ours():
    before = config.num_cpu_devices.value
    config.update("num_cpu_devices", 4)
    yield results(minijax)
    config.update("num_cpu_devices", before)


@pytest.fixture(scope="module")
def theirs():
    """What JAX says, from a process of its own where it is not recorded."""
    answers = Answers(Path(__file__))
    code = ("import json, jax, tests.placement.test_shard_map as t; "
            "print(json.dumps(t.results(jax)))")
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
    live = {}

    def ask(program):
        if not live:
            process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                     env={**os.environ, "XLA_FLAGS": flags}, timeout=600)
            assert process.returncode == 0, process.stderr
            live.update(json.loads(process.stdout.splitlines()[-1]))
        return live[program]
    yield {program: answers.said(answers.key(program), lambda program=program: ask(program))
           for programs in PROGRAMS.values() for program in programs}
    answers.close()


@pytest.mark.parametrize("program", PROGRAMS["values"])
def test_values_are_those_of_jax(ours, theirs, program):
    assert ours[program] == theirs[program]


@pytest.mark.parametrize("program", PROGRAMS["refusals"])
def test_what_is_refused_is_refused_as_in_jax(ours, theirs, program):
    # JAX advises to cast the branch that varies already, along no axes; it writes sets in any order
    end = "\n\nThis might" if "lax.cond" in program or "switch" in program else "\n\nCheck"
    mine, other = (text.partition(end)[0] for text in (ours[program], theirs[program]))
    assert sorted(mine.split("'")) == sorted(other.split("'"))


def test_sums_of_groups_need_no_types(ours):
    def mapped(**options):
        return minijax.shard_map(
            lambda x: minijax.lax.psum(x, "i", axis_index_groups=[[0, 1], [2, 3]]),
            mesh=minijax.make_mesh((4,), ("i",), (minijax.sharding.AxisType.Auto,)),
            in_specs=minijax.P("i"), out_specs=minijax.P("i"), **options)(np.arange(4))
    with pytest.raises(NotImplementedError, match="check_vma=False"):
        mapped()
    assert mapped(check_vma=False).tolist() == [1, 1, 5, 5]


@pytest.mark.parametrize("program", PROGRAMS["texts"])
def test_types_and_programs_are_printed_as_in_jax(ours, theirs, program):
    assert ours[program] == theirs[program]


INTERNAL = {
    "a sampler": lambda x: minijax.random.poisson(minijax.random.fold_in(
        minijax.random.key(0), lax.axis_index("i")), 2.0, (2,)) + x,
    "a series": lambda x: minijax.scipy.special.betainc(2.0, 3.0, minijax.nn.sigmoid(x)),
    "a differential equation, backwards": lambda x: minijax.grad(lambda x: odeint(
        lambda y, t: -y, x, np.float32([0, 1]))[1].sum())(x)}


@pytest.mark.parametrize("what", INTERNAL)
def test_loops_and_rules_of_the_package_cast_by_themselves(ours, what):
    """JAX's own refuse values that vary."""
    mesh = minijax.make_mesh((4,), ("i",), (minijax.sharding.AxisType.Auto,))
    P = minijax.P("i")
    typed, untyped = (minijax.jit(minijax.shard_map(
        INTERNAL[what], mesh=mesh, in_specs=P, out_specs=P, check_vma=check))(
            np.linspace(-1, 1, 8, dtype=np.float32)) for check in (True, False))
    np.testing.assert_array_equal(typed, untyped)


@pytest.mark.parametrize("mesh, own, passed", [
    ("explicit", None, "P('d')"), ("explicit", "P('d')", "P()"), ("explicit", "P('d')", "P('d')"),
    ("explicit", None, "P(None, 'd')"), ("auto", None, "P('d')"), ("auto", "P('d')", "P()"),
    ("explicit", None, "(P(), P('d'))"), ("explicit", "P('d')", "None"), ("two", None, "P('e')"),
    ("two", None, "P('d')"), ("two", None, "P(('d', 'e'))"), ("two", "P('d')", "P('e')"),
    ("both", None, "P(('d', 'e'))"), ("both", "P('d')", "P('e')"), ("both", "P('d')", "P('d')"),
])
def test_specs_agree_with_what_the_type_of_an_array_says_as_in_jax(beside_jax, mesh, own, passed):
    def said(j):
        kind, P = j.sharding.AxisType, j.P
        grid = {"auto": lambda: j.make_mesh((1,), ("d",), (kind.Auto,)),
                "explicit": lambda: j.make_mesh((1,), ("d",)),
                "both": lambda: j.make_mesh((1, 1), ("d", "e")),
                "two": lambda: j.make_mesh((1, 1), ("d", "e"), (kind.Explicit, kind.Auto))}[mesh]()
        x = np.ones((2, 3), "float32")
        if own:
            x = j.device_put(x, j.NamedSharding(grid, eval(own, {"P": P})))
        specs = eval(passed, {"P": P})
        given = (x, x) if isinstance(specs, tuple) and not isinstance(specs, P) else x
        options = {} if specs is None else {"in_specs": (specs,)}
        try:
            return j.shard_map(lambda x: 0, mesh=grid, out_specs=P(), **options)(given).shape
        except ValueError as error:
            return str(error)
    ours, theirs = beside_jax(said)
    assert ours == theirs
