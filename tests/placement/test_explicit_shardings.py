"""Shardings in types: along explicit axes of a mesh, results have JAX's types, or JAX's errors."""

import contextlib
import functools
import importlib
import re

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax.core.jaxpr import types_in
from minijax.placement.explicit_shardings import without_shardings
from minijax.sharding import AbstractMesh, AxisType

SIZES = {**dict.fromkeys(("xy", "x_", "_y", "yx", "XY", "none"), (8, 16)),
         "x": (8,), "y": (16,), "one": (1, 16), "cube": (8, 8, 8), "stack": (8, 4, 4),
         "of_x": (8, 4, 4), "wide": (16, 4), "wide_y": (16, 4), "y_wide": (16, 4),
         "image": (8, 4, 8, 8), "kernel": (4, 4, 3, 3), "rows": (8,), "i": ()}
SPECS = {"xy": ("x", "y"), "x_": ("x",), "_y": (None, "y"), "yx": ("y", "x"), "XY": (("x", "y"),),
         "x": ("x",), "y": ("y",), "one": (None, "y"), "cube": ("x", None, "y"), "of_x": ("x",),
         "wide_y": (None, "y"), "y_wide": ("y",), "image": ("x",)}
RESULTS = """
xy + xy, xy + none, x_ + _y, xy + y, x_ + y, xy + one, xy * 2.0, xy ** 2, -xy, xy > 0, lax.erf(xy)
xy + yx
XY + x_
lax.add(x_, _y), lax.select_n(xy > 0, xy, xy), jnp.clip(xy, 0, 1), jnp.maximum(xy, 0)
jnp.where(xy > 0, xy, yx)
jnp.where(xy > 0, xy, 0.0), jnp.zeros_like(xy), jnp.full_like(xy, 2), lax.stop_gradient(xy)
xy.sum(0), xy.sum(), xy.sum(1, keepdims=True), xy.max(1), xy.prod(0), xy.mean(0), xy.var(0)
xy.argmax(0), x_.argmax(1), x_.argmax(), (xy > 0).any(0), nn.logsumexp(xy, axis=1), nn.softmax(xy)
jnp.cumsum(x_, 1), jnp.sort(x_, 1), jnp.argsort(x_, 1), jnp.flip(xy, 0), lax.top_k(x_, 2)
jnp.cumsum(xy, 0)
lax.cumlogsumexp(x_, 0)
jnp.sort(xy, 0)
lax.top_k(xy, 2)
xy.T, cube.transpose(2, 0, 1), jnp.moveaxis(cube, 0, -1), jnp.swapaxes(xy, 0, 1), xy[:, None]
xy.reshape(-1), x_.reshape(-1), xy.reshape(2, 4, 16), xy.reshape(4, 2, 16), xy.reshape(8, 1, 16)
none.reshape(4, 32), cube.reshape(64, 8), _y.reshape(8, 4, 2, 2), jnp.ravel(x_), xy.reshape(8, 16)
_y.reshape(-1)
xy.reshape(8, 2, 8)
xy.reshape(4, 32)
XY.reshape(4, 2, 16)
cube.reshape(8, 64)
x_.reshape(8, 2, 2, 4), cube.reshape(4, 2, 64)
jnp.broadcast_to(y, (8, 16)), jnp.broadcast_to(one, (8, 16)), lax.broadcast_in_dim(y, (3, 16), (1,))
jnp.squeeze(one, 0), jnp.concatenate([xy, xy]), jnp.concatenate([x_, x_], 1), jnp.stack([xy, xy])
jnp.concatenate([xy, yx])
jnp.pad(xy, ((1, 1), (0, 0))), jnp.pad(x_, ((0, 0), (1, 1)))
lax.pad(x_, 0.0, ((1, 1, 0), (0, 0, 0)))
xy[:, :8], x_[:, :3], xy[:4], xy[::2], _y[0], _y[-1], x_[None, :, 0], x_[..., 0]
xy[:3]
xy[0]
jnp.split(xy, 2), jnp.split(x_, 2, 1), lax.split(_y, (4, 4), 0), jnp.tile(x_, (1, 2)), jnp.diff(x_)
jnp.tile(xy, (2, 1))
lax.dynamic_slice(x_, (i, i), (8, 2)), lax.dynamic_slice(x_, (i, i), (4, 16)), _y[i]
xy[i]
lax.dynamic_update_slice(_y, one, (i, 0))
lax.dynamic_update_slice(_y, none[:1], (i, 0))
_y[rows], jnp.take(x_, rows, axis=1), jnp.take_along_axis(x_, x_[:, :2].astype(int), 1)
none[x.astype(int)]
xy[rows]
xy.at[rows].get(out_sharding=P('x', 'y')), xy.at[rows].set(0.0, out_sharding=P('x', 'y'))
_y.at[0].set(1.0), _y.at[rows].add(1.0), _y.at[rows].add(_y), x_.at[:, 2:4].set(0.0)
x_.at[:, i].set(0.0)
jnp.zeros(8), jnp.arange(8), jnp.zeros((8,), out_sharding=P('x')), jnp.linspace(0, 1, 8)
lax.broadcasted_iota(int, (8, 4), 0, out_sharding=P('x'))
random.normal(key, (8,), out_sharding=P('x'))
jnp.dot(xy, wide), jnp.dot(x_, y_wide), jnp.dot(x_, wide_y), x_ @ none[0], jnp.matmul(cube, cube)
jnp.dot(xy, y_wide)
jnp.dot(x_, none[0].reshape(16, 1) * jnp.zeros((16, 2), out_sharding=P(None, 'x')))
jnp.dot(xy, jnp.zeros((16, 4), out_sharding=P('x')))
jnp.dot(xy, y_wide, out_sharding=P('x')), jnp.einsum('ij,kj->ik', xy, _y, out_sharding=P('x'))
jnp.vdot(y, y)
jnp.einsum('ij,kj->ik', x_, _y[:4, :] * 0 + 1), jnp.outer(x, y), jnp.meshgrid(x, y)
jnp.linalg.norm(xy)
jnp.einsum('ij,kj->ik', xy, _y)
lax.batch_matmul(of_x, stack * jnp.zeros((8, 1, 1), out_sharding=P("y")))
lax.conv(image, kernel, (1, 1), 'SAME'), jnp.fft.fft(x_), jnp.fft.fft(xy)
lax.conv(image, kernel * jnp.zeros((4, 1, 1, 1), out_sharding=P('y')), (1, 1), 'SAME')
lax.reduce_window(x_, 0.0, lax.add, (1, 2), (1, 2), 'VALID')
jnp.linalg.solve(of_x, of_x), jnp.linalg.qr(of_x), jnp.linalg.eigh(of_x), jnp.linalg.det(of_x)
xy.astype(int), lax.bitcast_convert_type(xy, 'int8'), lax.reduce_precision(xy, 5, 10), jnp.isnan(xy)
lax.complex(xy, xy).real, jnp.tril(xy), nn.one_hot(x.astype(int), 4), nn.relu(xy), nn.gelu(xy)
(xy - xy.mean(-1, keepdims=True)) / jnp.sqrt(xy.var(-1, keepdims=True) + 1e-5), jnp.allclose(xy, xy)
jnp.vstack([x_, x_]), jnp.hstack([x_, x_]), jnp.atleast_3d(xy), jnp.roll(x_, 1, 1)
jnp.median(x_, axis=1)
lax.cond(xy.sum() > 0, lambda z: z * 2, lambda z: z, xy)
lax.cond(xy.sum() > 0, lambda: xy, lambda: none)
lax.while_loop(lambda c: c.sum() < 3, lambda c: c * 2, xy)
lax.fori_loop(0, 3, lambda i, c: c + 1, xy)
lax.while_loop(lambda c: c.sum() < 3, lambda c: c * xy, none)
lax.scan(lambda c, r: (c + r, r * 2), jnp.zeros(16), none)
lax.scan(lambda c, r: (c, r * 2), 0.0, _y)
lax.scan(lambda c, r: (c + r, r * 2), jnp.zeros(16), _y)
lax.map(lambda r: r * 2, _y)
lax.map(lambda r: r * 2, xy)
jax.vmap(lambda r: r * 2)(xy), jax.vmap(lambda r: r @ wide_y)(x_), jax.vmap(lambda r: r * 2, 1)(xy)
jax.vmap(nn.softmax)(xy), jax.vmap(jax.jit(jnp.sin))(xy)
jax.vmap(jax.grad(lambda r: nn.silu(r).sum()))(xy)
jax.vmap(lambda r: jnp.dot(r, y_wide, out_sharding=P('y')))(xy)
jax.vmap(lambda r: jnp.dot(r, none[:, :4].T, out_sharding=P()))(xy[:, :4].T)
jax.vmap(lambda r, s: jnp.dot(r, s, out_sharding=P()), (0, None))(x_, none.T)
jax.vmap(lambda r, m: jnp.dot(m, r[:4], out_sharding=P()))(x_, of_x)
jax.vmap(jax.grad(lambda r, m: jnp.dot(m, r[:4], out_sharding=P('y')).sum()))(x_, of_x)
jax.vmap(jax.grad(lambda r, m: (r[:4] @ m).sum(), (0, 1)))(x_, of_x)
jax.vmap(jax.grad(lambda r, w: (r @ w).sum(), (0, 1)), (0, None))(x_, wide_y)
jax.vmap(jax.grad(lambda r, w: nn.softmax(r @ w)[0], (0, 1)), (0, None))(x_, wide)
jax.vmap(jax.sharding.auto_axes(lambda r, w: r @ w, out_sharding=P('y')), (0, None))(xy, y_wide)
jax.vmap(jax.sharding.auto_axes(lambda m, r: m @ r[:4], out_sharding=P()))(of_x, xy)
jax.vmap(jax.checkpoint(lambda r: jnp.sin(r) * 2))(xy), jax.vmap(lambda r: jnp.zeros(4), 0, -1)(x)
jax.vmap(lambda r: (none, r), out_axes=(1, 0))(x_)
jax.vmap(jax.vmap(jnp.sin))(xy), jax.vmap(jax.vmap(lambda a, b: a * b, (None, 0)), (0, None))(x, y)
jax.jit(jax.vmap(lambda r: r.at[0].set(1.0)))(x_), jax.vmap(lambda r: jnp.sort(r)[::-1])(x_)
jax.jacfwd(lambda q: jnp.sin(q))(x), jax.jacrev(lambda q: q * 2)(x), jax.hessian(jnp.sum)(x)
jax.vmap(lambda r, q: r + q)(xy, none)
jax.vmap(lambda r, q: r + q)(xy, yx)
jax.grad(lambda q: q.sum())(xy), jax.grad(lambda q: nn.silu(q).sum())(xy)
jax.jvp(jnp.sin, (xy,), (xy,))
jax.grad(lambda q, r: (q @ r).sum(), (0, 1))(x_, wide_y)
jax.grad(lambda q, r: jnp.dot(q, r, out_sharding=P('x')).sum(), (0, 1))(xy, y_wide)
jax.grad(lambda q: lax.scan(lambda c, r: (c * r, c), q[0], q)[0].sum())(_y)
jax.grad(lambda q: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c), q).sum())(xy)
jax.checkpoint(jnp.sin)(xy), jax.jit(jnp.sin)(xy), jax.hessian(lambda q: (q ** 3).sum())(x)
jax.sharding.reshard(xy, P(None, 'x')), lax.with_sharding_constraint(xy, P('x', 'y'))
lax.with_sharding_constraint(xy, P('y', 'x'))
jax.sharding.auto_axes(lambda a, b: a @ b, out_sharding=P('x'))(xy, y_wide)
""".strip().splitlines()


def namespace(jax):
    return {"jax": jax, "jnp": jax.numpy, "lax": jax.lax, "nn": jax.nn, "P": jax.P, "np": np,
            "random": jax.random, "key": jax.random.key(0)}


def with_places(text):
    return re.sub(r" at \S+:\d+", "", text)


@pytest.mark.parametrize("program", RESULTS)
def test_results_have_the_types_of_jax(beside_jax, program):
    def said(jax):
        mesh = jax.sharding.AbstractMesh(
            (2, 4), ("x", "y"), (jax.sharding.AxisType.Explicit,) * 2)
        used = [name for name in SIZES if re.search(rf"\b{name}\b", program)]
        args = [jax.ShapeDtypeStruct(
            SIZES[name], "int32" if name in ("rows", "i") else "float32",
            sharding=jax.NamedSharding(mesh, jax.P(*SPECS.get(name, ())))) for name in used]
        types = []

        def traced(*values):
            out = eval(program, namespace(jax) | dict(zip(used, values, strict=True)))
            types.extend(str(jax.typeof(x)) for x in jax.tree.leaves(out))
            return 0
        with jax.sharding.use_abstract_mesh(mesh):
            try:
                jax.make_jaxpr(traced)(*args)
            except Exception as error:
                return type(error).__name__, with_places(str(error))
        return types
    ours, theirs = beside_jax(said)
    assert ours == theirs


# ── All functions of one array ───────────────────────────────────────────────────────────────

MODULES = ("numpy", "nn", "numpy.linalg", "numpy.fft", "scipy.special", "lax")
# JAX: the batch of `diag` goes first; no values are tokens.
OTHERS = {"diag", "create_token"}


def of_module(jax, name):
    return functools.reduce(getattr, name.split("."), importlib.import_module(
        f"{jax.__name__}.{name}") and jax)


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("argument", ["xy", "x_", "x", "of_x"])
def test_what_works_in_jax_gives_its_type(beside_jax, module, argument):
    def said(jax):
        mesh = jax.sharding.AbstractMesh(
            (2, 4), ("x", "y"), (jax.sharding.AxisType.Explicit,) * 2)
        array = jax.ShapeDtypeStruct(SIZES[argument], "float32", sharding=jax.NamedSharding(
            mesh, jax.P(*SPECS[argument])))
        where, types = of_module(jax, module), {}
        for name in sorted(set(dir(where)) - OTHERS):
            f = getattr(where, name)
            if name.startswith("_") or isinstance(f, type) or not callable(f):
                continue

            def traced(x, name=name, f=f):
                types[name] = [str(jax.typeof(y)) for y in jax.tree.leaves(f(x))]
                return 0
            with contextlib.suppress(Exception), jax.sharding.use_abstract_mesh(mesh):
                jax.make_jaxpr(traced)(array)
        return types
    ours, theirs = beside_jax(said)
    common = {name for name in theirs if hasattr(of_module(minijax, module), name)}
    assert len(common) > 2
    assert {name: ours.get(name) for name in common} == {name: theirs[name] for name in common}


# ── What follows from types ──────────────────────────────────────────────────────────────────

GRID = AbstractMesh((2, 4), ("x", "y"), (AxisType.Explicit,) * 2)


def typed(*spec, shape=(8, 16), mesh=GRID):
    return minijax.ShapeDtypeStruct(shape, "float32", sharding=minijax.NamedSharding(
        mesh, minijax.P(*spec)))


def test_equal_types_are_one_object_and_the_replicated_one_is_that_without_a_mesh():
    assert typed("x").aval is typed("x", None).aval is not typed("y").aval
    assert typed().aval is minijax.ShapeDtypeStruct((8, 16), "float32").aval
    assert typed("x").aval.update(dtype=np.int32).sharding.spec[0] == "x"
    assert typed("x").aval.update(shape=(16, 8)).sharding.spec[0] is None


def test_axes_of_other_types_are_no_part_of_a_type():
    mesh = AbstractMesh((2, 4), ("x", "y"), (AxisType.Explicit, AxisType.Auto))
    assert typed("x", "y", mesh=mesh).aval.str_short() == "float32[8@x,16]"


def test_a_program_for_the_compiler_has_no_shardings_in_its_types_and_else_is_the_same():
    def f(x):
        y = minijax.reshard(x, minijax.NamedSharding(GRID, minijax.P(None, "y")))
        return lax.scan(lambda c, r: (c + minijax.jit(minijax.numpy.sin)(r), r), y[0], y)
    closed = minijax.make_jaxpr(f)(typed("x", "y"))
    plain = without_shardings(closed)
    assert all(x.explicit_sharding is None for x in types_in(plain.jaxpr))
    assert any(x.explicit_sharding is not None for x in types_in(closed.jaxpr))
    text = str(closed).replace("@x", "").replace("@y", "").replace("Explicit", "Auto")
    assert "".join(str(plain).split()) == "".join(text.split())
    assert without_shardings(plain) is plain


def test_a_user_s_function_is_named_where_shardings_contradict_each_other():
    def added(x):
        return x + x.T
    with pytest.raises(minijax.errors.ShardingTypeError) as caught:
        minijax.eval_shape(added, typed("x", "y", shape=(8, 8)))
    notes = "\n".join(caught.value.__notes__)
    assert "in `added`" in notes and "jax.reshard" in notes


def test_after_an_error_of_types_the_same_function_works():
    f = minijax.jit(lambda x, y: x + y)
    with pytest.raises(minijax.errors.ShardingTypeError):
        f.lower(typed("x"), typed("y"))
    assert f.lower(typed("x"), typed("x")).out_info.sharding.spec[0] == "x"
