"""Programs for many devices, written for JAX: of one process, or of several with one device each.

Each is a function of `jax` that returns a tree of arrays.  `run.py` runs them.
"""

import functools
import importlib

import numpy as np

QUICK = {}  # those that every run of the tests runs
ALL = {}


def program(quick=False):
    def known(f):
        ALL[f.__name__] = f
        if quick:
            QUICK[f.__name__] = f
        return f
    return known


def mesh_of(jax, *names):
    """A mesh of all devices; of two axes the last has two devices."""
    n = jax.device_count()
    shape = (n,) if len(names) == 1 else (n // 2, 2)
    return jax.sharding.Mesh(np.array(jax.devices()).reshape(shape), names)


def sharding(jax, mesh, *names):
    return jax.NamedSharding(mesh, jax.P(*names))


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def small(*shape):
    return (np.arange(np.prod(shape)) % 7 - 3).astype(np.float32).reshape(shape)


# ── Training ─────────────────────────────────────────────────────────────────────────────────

def mlp(jax, p, x):
    return jax.numpy.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]


def mlp_params():
    return {"w1": numbers(6, 8), "b1": np.zeros(8, np.float32),
            "w2": numbers(8, 4, seed=1), "b2": np.zeros(4, np.float32)}


def train(jax, params, x, y, steps, **options):
    def loss(p, x, y):
        return jax.numpy.mean((mlp(jax, p, x) - y) ** 2)

    @functools.partial(jax.jit, **options)
    def step(p, x, y):
        value, grads = jax.value_and_grad(loss)(p, x, y)
        return jax.tree.map(lambda w, g: w - 0.1 * g, p, grads), value
    losses = []
    for _ in range(steps):
        params, value = step(params, x, y)
        losses.append(value)
    return params, losses[-1]


@program(quick=True)
def data_parallel(jax):
    mesh = mesh_of(jax, "data")
    x, y = (jax.device_put(a, sharding(jax, mesh, "data")) for a in (numbers(8, 6), numbers(8, 4)))
    return train(jax, jax.device_put(mlp_params(), sharding(jax, mesh)), x, y, 5)


@program()
def tensor_parallel(jax):
    mesh = mesh_of(jax, "model")
    where = {"w1": (None, "model"), "b1": ("model",), "w2": ("model", None), "b2": ()}
    params = {k: jax.device_put(v, sharding(jax, mesh, *where[k])) for k, v in mlp_params().items()}
    x, y = (jax.device_put(a, sharding(jax, mesh)) for a in (numbers(8, 6), numbers(8, 4)))
    return train(jax, params, x, y, 3)


@program()
def data_and_tensor_parallel(jax):
    mesh = mesh_of(jax, "data", "model")
    where = {"w1": (None, "model"), "b1": ("model",), "w2": ("model", None), "b2": ()}
    params = {k: jax.device_put(v, sharding(jax, mesh, *where[k])) for k, v in mlp_params().items()}
    x, y = (jax.device_put(a, sharding(jax, mesh, "data")) for a in (numbers(8, 6), numbers(8, 4)))
    return train(jax, params, x, y, 3)


@program()
def shardings_of_jit(jax):
    mesh = mesh_of(jax, "data")
    batch, whole = sharding(jax, mesh, "data"), sharding(jax, mesh)
    params = jax.jit(mlp_params, out_shardings=whole)()
    x, y = jax.device_put((numbers(8, 6), numbers(8, 4)), batch)
    return train(jax, params, x, y, 3, in_shardings=(whole, batch, batch), out_shardings=whole)


def transformer_params(width=8, hidden=16, heads=2):
    shapes = {"qkv": (width, 3 * width), "out": (width, width), "up": (width, hidden),
              "down": (hidden, width), "embed": (12, width)}
    return {name: numbers(*shape, seed=i) * 0.3 for i, (name, shape) in enumerate(shapes.items())}


def transformer_loss(jax, p, tokens, constrain=lambda x: x, heads=2):
    jnp = jax.numpy
    x = p["embed"][tokens[:, :-1]]
    b, t, d = x.shape

    def norm(x):
        return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
    q, k, v = jnp.moveaxis((norm(x) @ p["qkv"]).reshape(b, t, 3, heads, d // heads), 2, 0)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / (d // heads) ** 0.5
    weights = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -1e9), axis=-1)
    x = constrain(x + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(b, t, d) @ p["out"])
    x = x + jax.nn.gelu(norm(x) @ p["up"]) @ p["down"]
    logits = norm(x) @ p["embed"].T
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], -1)
    return -jnp.mean(picked)


def transformer_step(jax, where, tokens_at, *axes):
    mesh = mesh_of(jax, *axes)
    tokens = jax.device_put(np.arange(48).reshape(8, 6) * 5 % 12, sharding(jax, mesh, *tokens_at))
    places = {k: sharding(jax, mesh, *where.get(k, ())) for k in transformer_params()}
    params = {k: jax.device_put(v, places[k]) for k, v in transformer_params().items()}

    @functools.partial(jax.jit, out_shardings=(places, sharding(jax, mesh)))
    def step(p, tokens):
        value, grads = jax.value_and_grad(lambda p: transformer_loss(
            jax, p, tokens, lambda x: jax.lax.with_sharding_constraint(
                x, sharding(jax, mesh, *tokens_at))))(p)
        return jax.tree.map(lambda w, g: w - 0.1 * g, p, grads), value
    for _ in range(2):
        params, value = step(params, tokens)
    return params, value


@program()
def transformer_data_parallel(jax):
    return transformer_step(jax, {}, ("data",), "data")


@program()
def transformer_tensor_parallel(jax):
    where = {"qkv": (None, "model"), "out": ("model",), "up": (None, "model"), "down": ("model",)}
    return transformer_step(jax, where, (), "model")


@program(quick=True)
def transformer_fully_sharded(jax):
    where = dict.fromkeys(("qkv", "out", "up", "down", "embed"), ("data",))
    where["embed"] = (None, "data")
    return transformer_step(jax, where, ("data",), "data")


@program()
def recurrent_network(jax):
    mesh = mesh_of(jax, "data")
    x = jax.device_put(numbers(8, 5, 3), sharding(jax, mesh, "data"))
    w, u = jax.device_put((numbers(3, 4), numbers(4, 4, seed=1)), sharding(jax, mesh))

    @jax.jit
    def grads(w, u, x):
        def loss(w, u):
            def cell(h, row):
                h = jax.numpy.tanh(row @ w + h @ u)
                return h, h.sum()
            h, sums = jax.lax.scan(cell, jax.numpy.zeros((8, 4)), jax.numpy.swapaxes(x, 0, 1))
            return (h ** 2).mean() + sums.mean()
        return jax.value_and_grad(loss, (0, 1))(w, u)
    return grads(w, u, x)


# ── shard_map ────────────────────────────────────────────────────────────────────────────────

def mapped(jax, f, ins, outs, **options):
    mesh = mesh_of(jax, "i")
    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, **options))


def cut(jax, x, *names):
    return jax.device_put(x, sharding(jax, mesh_of(jax, "i"), *names))


@program(quick=True)
def reductions_across_devices(jax):
    lax, P = jax.lax, jax.P
    x = cut(jax, small(8, 3), "i")
    f = mapped(jax, lambda x: [lax.psum(x, "i"), lax.pmean(x, "i"), lax.pmax(x, "i"),
                               lax.pmin(x, "i"), lax.psum(1, "i")], P("i"), P())
    return f(x)


@program()
def gathers_across_devices(jax):
    lax, P = jax.lax, jax.P
    x = cut(jax, small(8, 3), "i")
    return mapped(jax, lambda x: [lax.all_gather(x, "i"), lax.all_gather(x, "i", tiled=True),
                                  lax.all_gather(x, "i", axis=1, tiled=True)], P("i"), P("i"))(x)


@program(quick=True)
def exchanges_across_devices(jax):
    lax, P, n = jax.lax, jax.P, jax.device_count()
    x = cut(jax, small(n * n, 2, 3), "i")
    ring = [(k, (k + 1) % n) for k in range(n)]
    return mapped(jax, lambda x: [
        lax.ppermute(x, "i", ring), lax.ppermute(x, "i", ring[:1]),
        lax.all_to_all(x, "i", 0, 1, tiled=True), lax.psum_scatter(x, "i", tiled=True),
        x + lax.axis_index("i")], P("i"), P("i"))(x)


@program()
def a_sum_across_devices_in_a_scan(jax):
    lax, P = jax.lax, jax.P
    def f(x):
        return lax.scan(lambda c, row: (c + lax.psum(row, "i"), lax.psum(row * 2, "i")),
                        jax.numpy.zeros(3), x)
    return mapped(jax, f, P("i"), P())(cut(jax, small(8, 3), "i"))


@program()
def a_gradient_of_shard_map(jax):
    lax, P = jax.lax, jax.P
    w, x = cut(jax, small(3)), cut(jax, small(8, 3), "i")
    f = mapped(jax, lambda w, x: lax.psum((jax.numpy.sin(x @ w)).sum(), "i"), (P(), P("i")), P())
    return jax.grad(f)(w, x), jax.jit(jax.grad(f, 1))(w, x)


@program()
def gradients_inside_of_shard_map(jax):
    lax, P = jax.lax, jax.P
    w, x = cut(jax, small(3)), cut(jax, small(8, 3), "i")
    grad = jax.grad(lambda w, x: ((x @ w) ** 2).sum())
    return [mapped(jax, lambda w, x: lax.pmean(grad(w, x), "i"), (P(), P("i")), P())(w, x),
            mapped(jax, lambda w, x: lax.psum(grad(w, x), "i"), (P(), P("i")), P(),
                   check_vma=False)(w, x)]


@program()
def shard_map_outside_of_jit(jax):
    mesh, P = mesh_of(jax, "i"), jax.P
    return jax.shard_map(lambda x: jax.lax.psum(x.sum(0), "i"), mesh=mesh, in_specs=P("i"),
                         out_specs=P())(cut(jax, small(8, 3), "i"))


@program()
def a_product_by_hand(jax):
    lax, P = jax.lax, jax.P
    a, b = cut(jax, small(8, 8), None, "i"), cut(jax, small(8, 8), "i")
    return mapped(jax, lambda a, b: lax.psum_scatter(a @ b, "i", tiled=True),
                  (P(None, "i"), P("i")), P("i"))(a, b)


# ── pmap ─────────────────────────────────────────────────────────────────────────────────────

def own_rows(jax, x):
    """The rows of this process, of an array with a row for each device."""
    rows = np.split(x, jax.process_count())
    return rows[jax.process_index()]


@program(quick=True)
def pmap_of_rows(jax):
    n = jax.device_count()
    x = own_rows(jax, small(n, 3))
    f = jax.pmap(lambda x, c: (jax.lax.psum(x, "q") + c, x * 2, jax.lax.axis_index("q")),
                 axis_name="q", in_axes=(0, None))
    return f(x, 3.0)


@program()
def pmap_training(jax):
    n = jax.device_count()
    params = jax.tree.map(lambda w: own_rows(jax, np.stack([w] * n)), mlp_params())
    x, y = (own_rows(jax, a.reshape(n, -1, a.shape[-1])) for a in (numbers(8, 6), numbers(8, 4)))

    @functools.partial(jax.pmap, axis_name="batch")
    def step(p, x, y):
        grads = jax.grad(lambda p: jax.numpy.mean((mlp(jax, p, x) - y) ** 2))(p)
        return jax.tree.map(lambda w, g: w - 0.1 * jax.lax.pmean(g, "batch"), p, grads)
    for _ in range(3):
        params = step(params, x, y)
    return params


# ── Arrays ───────────────────────────────────────────────────────────────────────────────────

@program(quick=True)
def operations_outside_of_jit(jax):
    jnp = jax.numpy
    x, w = cut(jax, small(8, 3), "i"), cut(jax, small(3))
    return [x + 1, x * w, x.sum(), x.sum(1), x.T, x @ w, x[0], x[:, 1], jnp.max(x, 0),
            jnp.where(x > 0, x, w), (x > 0).any(), x.reshape(4, 6), jnp.exp(x).mean(),
            x.astype(int), jnp.concatenate([x, x], 1), jnp.zeros_like(x), -x]


@program()
def orders_and_cumulations(jax):
    jnp = jax.numpy
    x = cut(jax, numbers(8, 4), "i")
    return [jnp.sort(x, 1), jnp.sort(x, 0), jnp.argmax(x, 1), jnp.argmax(x, 0), jnp.cumsum(x, 1),
            jnp.cumsum(x, 0), x.at[2, 1].set(5.), x[np.array([5, 1, 1])], jnp.flip(x, 0),
            jnp.roll(x, 1, 0), jnp.linalg.norm(x)]


@program()
def products(jax):
    a, b = small(8, 8), small(8, 8).T
    places = [(None,), ("i",), (None, "i")]
    f = jax.jit(lambda a, b: a @ b)
    return [f(cut(jax, a, *p), cut(jax, b, *q)) for p in places for q in places]


@program()
def products_over_two_axes(jax):
    mesh = mesh_of(jax, "x", "y")
    a = jax.device_put(small(8, 8), sharding(jax, mesh, "x", "y"))
    b = jax.device_put(small(8, 8), sharding(jax, mesh, "y", "x"))
    return [a @ b, a @ a, a.sum(), a.sum(0), a.T + b, jax.numpy.einsum("ij,jk,k->i", a, b, b[0])]


@program()
def convolution_of_a_batch(jax):
    x, k = cut(jax, small(8, 1, 6, 6), "i"), cut(jax, small(2, 1, 3, 3))
    f = jax.jit(lambda x, k: jax.lax.conv(x, k, (1, 1), "SAME"))
    return f(x, k), jax.jit(jax.grad(lambda k, x: (f(x, k) ** 2).mean()))(k, x)


@program()
def constraints(jax):
    mesh = mesh_of(jax, "i")
    rows, columns = sharding(jax, mesh, "i"), sharding(jax, mesh, None, "i")

    @jax.jit
    def f(x):
        y = jax.lax.with_sharding_constraint(x * 2, columns)
        return y, jax.lax.with_sharding_constraint(y.T, rows)
    x = jax.device_put(small(8, 8), rows)
    return f(x), jax.device_put(x, columns), jax.jit(lambda x: x + 1, out_shardings=columns)(x)


@program()
def random_numbers(jax):
    mesh = mesh_of(jax, "i")
    rows = sharding(jax, mesh, "i")
    draw = jax.jit(lambda key: (jax.random.normal(key, (8, 2)), jax.random.permutation(key, 8)),
                   out_shardings=rows)
    keys = jax.jit(lambda key: jax.random.split(key, 8), out_shardings=rows)(jax.random.key(0))
    return draw(jax.random.key(1)), jax.jit(jax.vmap(lambda k: jax.random.uniform(k, (2,))))(keys)


@program()
def control_flow(jax):
    lax = jax.lax
    x = cut(jax, numbers(8, 3), "i")

    @jax.jit
    def f(x):
        doubled = lax.while_loop(lambda x: (x ** 2).sum() < 1e3, lambda x: x * 2, x)
        return doubled, lax.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, x), (
            lax.fori_loop(0, 3, lambda i, x: x + x.mean(0) * i, x))
    return f(x)


@program()
def other_dtypes(jax):
    jnp = jax.numpy
    xs = [cut(jax, x, "i") for x in (
        small(8, 2).astype(np.int32), small(8, 2) > 0, small(8, 2).astype(jnp.bfloat16),
        small(8, 2).astype(np.float16), (small(8, 2) + 1j * small(8, 2)).astype(np.complex64))]
    return [[jax.jit(lambda x: (x.sum(0), (x + x).T))(x) for x in xs],
            jax.jit(lambda x: (x.all(0), x.any()))(xs[1])]


@program()
def donated_arrays(jax):
    x = cut(jax, small(8, 3), "i")
    f = jax.jit(lambda x: x + 1, donate_argnums=0)
    return f(f(x))


@program()
def compiled_ahead_of_time(jax):
    x = cut(jax, small(8, 3), "i")
    return jax.jit(lambda x: x.sum(0) * 2).lower(x).compile()(x)


@program()
def a_mesh_that_is_set(jax):
    mesh = jax.make_mesh((jax.device_count(),), ("i",), (jax.sharding.AxisType.Auto,))
    with jax.set_mesh(mesh):
        x = jax.device_put(small(8, 3), jax.P("i"))
        return [jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, jax.P(None)))(x),
                jax.jit(lambda x: x + jax.numpy.arange(3), out_shardings=jax.P("i"))(x),
                jax.numpy.ones(4), x + 1]


@program()
def explicit_axes(jax):
    mesh = jax.make_mesh((jax.device_count(),), ("i",), (jax.sharding.AxisType.Explicit,))
    with jax.set_mesh(mesh):
        x = jax.reshard(small(8, 8), jax.P("i", None))
        f = jax.jit(lambda x: (jax.numpy.sin(x), x.sum(1), x.T, jax.reshard(x, jax.P(None, "i"))))
        return f(x), x * 2


@program()
def arrays_of_two_meshes(jax):
    one, two = mesh_of(jax, "i"), mesh_of(jax, "x", "y")
    x = jax.device_put(small(8, 3), sharding(jax, one, "i"))
    y = jax.device_put(small(8, 3), sharding(jax, two, ("x", "y")))
    return [x + y, jax.device_put(x, sharding(jax, two, "y"))]


@program()
def batches_and_derivatives(jax):
    x, w = cut(jax, small(8, 3), "i"), cut(jax, small(3))
    f = lambda w, row: jax.numpy.sin(w * row).sum()
    return [jax.jit(jax.vmap(f, (None, 0)))(w, x), jax.jit(jax.vmap(jax.grad(f), (None, 0)))(w, x),
            jax.jit(jax.hessian(lambda w, x: ((x @ w) ** 2).sum()))(w, x),
            jax.jvp(lambda x: x.mean(0), (x,), (x,))]


@program(quick=True)
def arrays_from_parts(jax):
    where = sharding(jax, mesh_of(jax, "i"), "i")
    x = small(8, 3)
    rows = own_rows(jax, x)
    pieces = [jax.device_put(x[index], device)
              for device, index in where.addressable_devices_indices_map((8, 3)).items()]
    return [jax.make_array_from_process_local_data(where, rows),
            jax.make_array_from_process_local_data(where, x, (8, 3)),
            jax.make_array_from_callback((8, 3), where, lambda index: x[index]),
            jax.make_array_from_single_device_arrays((8, 3), where, pieces)]


# ── What is printed and refused ──────────────────────────────────────────────────────────────

# Evaluated in the last process, after the names in `texts`.
EXPRESSIONS = """
jax.devices(), jax.local_devices(), jax.local_devices(0), jax.local_devices()[0].id
jax.process_index(), jax.process_count(), jax.device_count(), jax.local_device_count()
jax.process_indices(), jax.local_devices()[0].process_index, jax.distributed.is_initialized()
jax.local_devices(7)
jnp.ones(3).device, jnp.ones(3).sharding, jnp.ones(3).is_fully_addressable
mesh, mesh.local_mesh, mesh.is_multi_process, mesh.local_devices, mesh.device_ids
a, str(a), f'{a}', repr(r), str(r), f'{r}', r.tolist(), np.asarray(r)
a.sharding, r.sharding, a.device, a.committed, a.format, a.is_ready(), a.platform(), a.is_deleted()
a.is_fully_addressable, a.is_fully_replicated, r.is_fully_addressable, r.is_fully_replicated
a.addressable_shards, a.global_shards[0].data is None or a.global_shards[-1].data is None
r.addressable_shards, [(s.replica_id, s.index) for s in a.addressable_shards]
a.addressable_data(0), a.addressable_data(0).sharding, a.addressable_data(0).committed
a.addressable_data(1)
np.asarray(a)
a.tolist()
a.item()
a.__array__()
jax.device_get(a)
__import__('pickle').dumps(a)
np.from_dlpack(a)
float(a[0]), bool(a[0] == 0), a[0], a.sum(), a + 1, (a + 1).sharding, a.sum().sharding, a @ a
S.is_fully_addressable, S.addressable_devices, S.num_devices, S.shard_shape((8,))
S.addressable_devices_indices_map((8,)), S._addressable_device_assignment
a.on_device_size_in_bytes(), a.nbytes, len(a), a.shape, a.dtype, a.T, a.copy()
jnp.zeros_like(a).sharding, a.reshape(4, 2), jnp.sort(a), jnp.linalg.norm(a)
jax.block_until_ready(a), jax.device_get(r), jax.device_put(a, R)
jax.device_put(np.ones(3), jax.devices()[0])
jax.device_put(np.ones(3), SingleDeviceSharding(jax.devices()[0]))
jax.device_put(np.arange(7.), S)
jax.device_put(np.arange(4.) + jax.process_index(), S)
jax.jit(lambda x: x * a)(a)
jax.jit(lambda x: x + r)(a)
jax.jit(lambda x: x * 2, in_shardings=S)(np.arange(4.))
jax.jit(lambda x: x * 2, in_shardings=R)(np.arange(4.))
jax.jit(lambda x: x * 2, in_shardings=R)(a)
jax.jit(lambda x: x * 2, out_shardings=R)(np.arange(4.))
jax.jit(lambda x: x.sum(), out_shardings=R)(a)
jax.jit(lambda x: x[:3], out_shardings=S)(a)
jax.make_array_from_process_local_data(S, np.arange(4.)).addressable_data(0)
jax.make_array_from_process_local_data(S, np.arange(3.), (8,))
jax.make_array_from_process_local_data(S, {'a': np.arange(4.), 'b': np.ones((2, 3))})
jax.make_array_from_callback((4, 2), S, lambda i: np.ones((4, 2))[i]).addressable_shards
jax.make_array_from_callback((4, 2), S, lambda i: np.ones((4, 2)))
jax.make_array_from_callback((5,), S, lambda i: np.ones((5,))[i])
jax.make_array_from_single_device_arrays((4,), S, [np.ones(2)])
jax.make_array_from_single_device_arrays((4,), S, [])
jax.make_array_from_single_device_arrays((8,), S, [jax.device_put(np.ones(7), here)])
jax.make_array_from_single_device_arrays((8,), S, [jax.device_put(np.ones(4), here)] * 2)
utils.process_allgather(np.arange(2) + jax.process_index())
utils.process_allgather(np.arange(2) + jax.process_index(), tiled=True)
utils.process_allgather({'a': 3, 'b': [np.ones((1, 2))]})
utils.process_allgather(a)
utils.process_allgather(a, tiled=True), utils.process_allgather(r, tiled=True)
utils.broadcast_one_to_all(np.arange(3) + jax.process_index())
utils.broadcast_one_to_all({'a': jax.process_index()}, is_source=jax.process_index() == 1)
utils.assert_equal(jax.process_index(), 'they differ')
utils.assert_equal({'a': np.arange(3)}), utils.sync_global_devices('here')
utils.sync_global_devices(f'in {jax.process_index()}')
utils.host_local_array_to_global_array(np.arange(4) * jax.process_index(), mesh, P('x'))
utils.host_local_array_to_global_array(np.ones(2), mesh, None)
utils.global_array_to_host_local_array(a, mesh, P('x'))
utils.global_array_to_host_local_array(a, mesh, P())
"""


# What minijax alone refuses, or says in other words.
REFUSALS = {
    "a + jax.device_put(jnp.ones(8), here)": "ValueError: Received incompatible devices",
    "a + jax.device_put(np.arange(8.), backwards)": "ValueError: Received incompatible devices",
    "jax.jit(lambda x: io_callback(lambda x: x, x, x))(a)": "NotImplementedError: io_callback of",
    "jax.grad(lambda x: jax.pmap(jnp.sin)(x)[0])(np.ones(1))": "NotImplementedError: pmap inside",
    "jax.jit(jnp.log)(checked(a - 3))": "FloatingPointError: invalid value (nan) encountered in"}


def refusals(jax):
    """What the refused expressions raise, in each of two processes."""
    from minijax.experimental import io_callback
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
    turned = jax.sharding.Mesh(np.array(jax.devices()[::-1]), ("x",))
    names = {"jax": jax, "jnp": jax.numpy, "np": np, "here": jax.local_devices()[0],
             "io_callback": io_callback, "backwards": sharding(jax, turned, "x"),
             "a": jax.device_put(np.arange(8.), sharding(jax, mesh, "x"))}
    raised = {}
    for line in REFUSALS:
        with jax.debug_nans("checked" in line):
            try:
                raised[line] = str(eval(line, {**names, "checked": lambda x: x}))
            except Exception as error:
                raised[line] = f"{type(error).__name__}: {error}"
    return raised


def texts(jax):
    """What the expressions show, or raise, in the last of two processes."""
    n = jax.device_count()
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
    names = {"jax": jax, "jnp": jax.numpy, "np": np, "mesh": mesh, "P": jax.P,
             "S": sharding(jax, mesh, "x"), "R": sharding(jax, mesh),
             "SingleDeviceSharding": jax.sharding.SingleDeviceSharding,
             "here": jax.local_devices()[0],
             "utils": importlib.import_module(jax.__name__ + ".experimental.multihost_utils")}
    names["a"] = jax.device_put(np.arange(4. * n), names["S"])
    names["r"] = jax.device_put(np.arange(3.), names["R"])
    shown = {}
    for line in EXPRESSIONS.strip().splitlines():
        try:
            shown[line] = str(eval(line, names))
        except Exception as error:
            shown[line] = f"{type(error).__name__}: {error}"
    return shown
