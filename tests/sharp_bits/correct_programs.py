"""Programs without a mistake, each of which comes close to a trap: no check may find anything.

Every function here is one program: it takes nothing, and returns what it computed.
"""

import collections
import contextlib
import dataclasses
import functools
import itertools
import math

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import grad, jit, lax, random, value_and_grad, vmap

RATE = 0.1
TABLE = np.arange(10.0, dtype=np.float32)
SIZES = [4, 8, 2]
SETTINGS = {"depth": 3, "name": "net"}


# ---- purity: what a function may read, and what it may write


def a_global_constant():
    step = jit(lambda x: x - RATE * x)
    return step(1.0), step(2.0)


def a_global_table_of_numpy():
    pick = jit(lambda i: jnp.asarray(TABLE)[i])
    return pick(3), pick(4)


def global_lists_and_dicts_that_stay_as_they_are():
    @jit
    def layers(x):
        for size in SIZES:
            x = x * size + SETTINGS["depth"]
        return x
    return layers(1.0), layers(2.0)


def a_local_dict_as_state():
    @jit
    def sums(x):
        state = {"even": 0.0, "odd": 0.0}
        for i in range(10):
            state["even" if i % 2 == 0 else "odd"] += x
        return state["even"] + state["odd"]
    return sums(5.0), sums(6.0)


def a_local_list_that_grows():
    @jit
    def powers(x):
        found = []
        for i in range(4):
            found.append(x ** i)
        return jnp.stack(found)
    return powers(2.0), powers(3.0)


def an_iterator_made_inside():
    @jit
    def weighted(x):
        weights = iter([1.0, 2.0, 3.0])
        total = 0.0
        for part, weight in zip(x, weights, strict=True):
            total += part * weight
        return total
    return weighted(jnp.ones(3)), weighted(jnp.zeros(3))


def a_generator_made_inside():
    @jit
    def alternating(x):
        signs = ((-1.0) ** i for i in range(4))
        return sum(s * x ** i for i, s in enumerate(signs))
    return alternating(2.0), alternating(3.0)


def an_iterator_outside_of_what_is_traced():
    double = jit(lambda x: 2 * x)
    numbers = itertools.count(1)
    return [double(float(next(numbers))) for _ in range(3)]


def a_counter_outside_of_what_is_traced():
    step, count = jit(lambda x: x / 2), 0
    x = jnp.float32(64.0)
    while x > 1:
        x, count = step(x), count + 1
    return x, count


def another_function_at_each_change_of_a_closure():
    def scaled(by):
        return jit(lambda x: x * by)
    return scaled(2.0)(3.0), scaled(4.0)(3.0)


def an_object_that_is_read():
    @dataclasses.dataclass(frozen=True)
    class Physics:
        gravity: float = 9.81

        @functools.partial(jit, static_argnums=0)
        def fall(self, t):
            return 0.5 * self.gravity * t * t
    return Physics().fall(1.0), Physics().fall(2.0)


def an_object_made_and_changed_inside():
    class Accumulator:
        def __init__(self):
            self.total = 0.0

        def add(self, x):
            self.total = self.total + x

    @jit
    def summed(xs):
        accumulator = Accumulator()
        for x in xs:
            accumulator.add(x)
        return accumulator.total
    return summed(jnp.arange(3.0)), summed(jnp.ones(3))


def an_object_whose_state_changes_between_calls_of_a_function_that_takes_it():
    class Model:
        def __init__(self):
            self.weights = jnp.ones(3)
    update = jit(lambda w, x: w - 0.1 * grad(lambda w: jnp.sum((w * x) ** 2))(w))
    model = Model()
    for _ in range(3):
        model.weights = update(model.weights, jnp.arange(3.0))
    return model.weights


def a_memo_of_what_needs_no_tracer():
    @functools.lru_cache
    def binomial(n, k):
        return math.comb(n, k)

    @jit
    def bernstein(x):
        return sum(binomial(3, k) * x ** k * (1 - x) ** (3 - k) for k in range(4))
    return bernstein(0.25), bernstein(0.5)


def a_print_outside_and_a_debug_print_inside():
    @jit
    def shown(x):
        jax.debug.print("x = {x}", x=x)
        return x + 1
    return shown(1.0), shown(2.0)


def names_and_lengths_of_python_objects():
    Point = collections.namedtuple("Point", "x y")

    @jit
    def norm(p):
        return jnp.sqrt(sum(getattr(p, name) ** 2 for name in p._fields)) / len(p)
    return norm(Point(3.0, 4.0)), norm(Point(6.0, 8.0))


def a_nonlocal_that_is_local_to_the_traced_function():
    @jit
    def fold(x):
        total = jnp.zeros(())

        def add(y):
            nonlocal total
            total = total + y
        for i in range(3):
            add(x[i])
        return total
    return fold(jnp.arange(3.0)), fold(jnp.ones(3))


def a_context_manager_inside():
    @jit
    def f(x):
        with contextlib.suppress(KeyError):
            return {"a": x}["b"]
        return x + 1
    return f(1.0), f(2.0)


def values_returned_beside_the_result():
    @jit
    def loss(w):
        hidden = jnp.tanh(w)
        return jnp.sum(hidden ** 2), hidden
    return value_and_grad(loss, has_aux=True)(jnp.arange(3.0))


def a_pullback_that_is_kept():
    out, pullback = jax.vjp(lambda x: jnp.sin(x) * x, jnp.arange(3.0))
    return out, pullback(jnp.ones(3)), pullback(jnp.zeros(3))


def a_linear_function_that_is_kept():
    out, tangent_of = jax.linearize(jnp.sin, 1.0)
    return out, tangent_of(1.0), tangent_of(2.0)


def closures_over_tracers_of_an_enclosing_transformation():
    def f(x):
        inner = jit(lambda y: y * x)
        return inner(2.0) + vmap(lambda z: z * x)(jnp.arange(3.0)).sum()
    return grad(f)(3.0), jit(f)(3.0)


def a_custom_rule():
    @jax.custom_jvp
    def safe_sqrt(x):
        return jnp.sqrt(x)

    @safe_sqrt.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return safe_sqrt(x), t / (2 * jnp.sqrt(jnp.maximum(x, 1e-6)))
    return grad(safe_sqrt)(0.0), jit(grad(safe_sqrt))(4.0)


# ---- indices: what lies within the bounds, and what is meant where it does not


def negative_indices():
    x = jnp.arange(5)
    return x[-1], x[jnp.array([-5, 4])], jit(lambda i: x[i])(-2)


def slices_beyond_the_end():
    x = jnp.arange(5)
    return x[2:100], x[-100:2], x[10:]


def a_mode_says_what_is_meant():
    x = jnp.arange(5.0)
    i = jnp.array([1, 7, -9])
    return (x.at[i].get(mode="fill", fill_value=0), x.at[i].get(mode="clip"),
            x.at[i].set(9, mode="drop"), jnp.take(x, i, mode="wrap"))


def padding_with_an_index_that_is_dropped():
    @jit
    def histogram(values, mask):
        where = jnp.where(mask, values, 4)
        return jnp.zeros(4).at[where].add(1.0, mode="drop")
    return histogram(jnp.array([0, 1, 1, 3]), jnp.array([True, True, False, True]))


def neighbours_by_clipped_indices():
    @jit
    def blur(x):
        i = jnp.arange(x.size)
        left, right = jnp.maximum(i - 1, 0), jnp.minimum(i + 1, x.size - 1)
        return (x[left] + x + x[right]) / 3
    return blur(jnp.arange(6.0))


def a_branch_that_guards_an_index():
    @jit
    def lookup(x, i):
        return lax.cond(i < x.size, lambda i: x[i], lambda i: -1.0, i)
    x = jnp.arange(3.0)
    return lookup(x, 1), lookup(x, 7), vmap(lookup, (None, 0))(x, jnp.array([0, 7, 2]))


def a_loop_over_indices():
    x = jnp.arange(8.0)

    @jit
    def total(x):
        return lax.fori_loop(0, x.size, lambda i, acc: acc + x[i], 0.0)
    return total(x), grad(total)(x)


def a_while_loop_that_stops_at_the_end():
    @jit
    def find(x, wanted):
        def searching(i):
            return (i < x.size) & (x[jnp.minimum(i, x.size - 1)] != wanted)
        return lax.while_loop(searching, lambda i: i + 1, 0)
    x = jnp.array([4, 2, 7])
    return find(x, 7), find(x, 5), vmap(find, (None, 0))(x, jnp.array([4, 5]))


def windows_that_fit():
    x = jnp.arange(10.0)
    return vmap(lambda i: lax.dynamic_slice(x, (i,), (3,)))(jnp.arange(8))


def a_write_into_a_ring():
    def push(state, value):
        buffer, at = state
        return (buffer.at[at].set(value), (at + 1) % buffer.size), None
    return lax.scan(push, (jnp.zeros(4), 0), jnp.arange(10.0))[0]


def one_hot_labels():
    logits = jnp.array([[1.0, 2.0, 3.0], [0.5, 0.1, 0.2]])
    labels = jnp.array([2, 0])
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
    return -picked.mean(), jax.nn.one_hot(jnp.array([1, -1, 7]), 3)


def sorting_searching_and_ranking():
    x = jnp.array([3.0, 1.0, 2.0])
    order = jnp.argsort(x)
    edges = jnp.array([0.0, 1.5, 2.5])
    return x[order], jnp.searchsorted(edges, x), jnp.digitize(x, edges), jnp.median(x)


def interpolation_and_histograms():
    x = jnp.linspace(0.0, 1.0, 5)
    return jnp.interp(0.3, x, x ** 2), jnp.histogram(x, bins=3)[0], jnp.bincount(
        jnp.array([0, 1, 1]), length=3)


def sizes_given_where_shapes_would_depend_on_values():
    @jit
    def first_two(x):
        return jnp.nonzero(x, size=2, fill_value=0)[0], jnp.unique(x, size=3)
    return first_two(jnp.array([0, 3, 0, 3]))


def rows_of_a_matrix_in_any_order():
    x = jnp.arange(12.0).reshape(3, 4)
    return x[jnp.array([2, 0])], x[:, jnp.array([3, 3])], x.at[jnp.array([0, 0]), 1].add(1.0)


def masks_as_indices():
    x = jnp.arange(6.0)
    return x[x > 2], x.at[x > 2].set(0.0), jnp.where(x > 2, x, 0.0).sum()


# ---- numbers: nans and infinities that are meant, or never made


def a_masked_softmax():
    @jit
    def attend(scores, mask):
        return jax.nn.softmax(jnp.where(mask, scores, -jnp.inf))
    return attend(jnp.arange(4.0), jnp.array([True, True, False, True]))


def a_maximum_that_starts_at_minus_infinity():
    @jit
    def running(x):
        return lax.scan(lambda m, v: (jnp.maximum(m, v), m), -jnp.inf, x)
    return running(jnp.array([1.0, 3.0, 2.0]))[0]


def the_shortest_path_begins_at_infinity():
    distances = jnp.full(4, jnp.inf).at[0].set(0.0)
    edges = jnp.array([[0, 1], [1, 2], [2, 3]])

    def relax(d, edge):
        return d.at[edge[1]].min(d[edge[0]] + 1.0), None
    return lax.scan(relax, distances, edges)[0]


def both_sides_of_a_where_are_safe():
    def f(x):
        safe = jnp.where(x > 0, x, 1.0)
        return jnp.where(x > 0, jnp.log(safe), 0.0)
    return vmap(grad(f))(jnp.array([-1.0, 0.0, 2.0]))


def a_norm_that_is_safe_at_zero():
    def norm(x):
        square = jnp.sum(x * x)
        return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)
    return grad(norm)(jnp.zeros(3)), jit(grad(norm))(jnp.ones(3))


def a_division_kept_from_zero():
    @jit
    def normalised(x):
        return x / jnp.maximum(jnp.linalg.norm(x), 1e-6)
    return normalised(jnp.zeros(3)), normalised(jnp.ones(3))


def the_logarithm_of_a_sum_of_exponentials():
    x = jnp.array([1000.0, 1001.0])
    return jax.nn.logsumexp(x), grad(jax.nn.logsumexp)(x), jax.nn.log_softmax(x)


def a_comparison_with_infinity():
    x = jnp.array([1.0, 5.0])
    return jnp.isinf(x), x < jnp.inf, jnp.isnan(x), jnp.finfo(jnp.float32).max


def a_branch_that_is_not_taken():
    @jit
    def root(x):
        return lax.cond(x >= 0, jnp.sqrt, lambda x: -jnp.sqrt(-x), x)
    return root(4.0), root(-4.0)


def activations_far_from_zero():
    x = jnp.array([-100.0, 0.0, 100.0])
    return (jax.nn.sigmoid(x), jax.nn.softplus(x), jax.nn.gelu(x), jnp.tanh(x),
            vmap(grad(jax.nn.softplus))(x))


def statistics_of_data():
    x = random.normal(random.key(0), (20,))
    return x.mean(), x.std(), jnp.quantile(x, 0.3), jnp.var(x)


# ---- keys


def keys_split_in_a_loop():
    key, draws = random.key(0), []
    for _ in range(3):
        key, part = random.split(key)
        draws.append(random.normal(part, (2,)))
    return draws


def raw_keys_split_in_a_loop():
    key, draws = random.PRNGKey(0), []
    for _ in range(3):
        key, part = random.split(key)
        draws.append(random.uniform(part))
    return draws


def a_key_for_each_row():
    keys = random.split(random.key(1), 4)
    return vmap(lambda k: random.uniform(k, (2,)))(keys), random.key_data(keys)


def keys_folded_with_a_step():
    base = random.key(0)
    return [random.uniform(random.fold_in(base, step)) for step in range(3)]


def keys_in_a_scan():
    @jit
    def walk(key):
        def step(carry, _):
            x, key = carry
            key, part = random.split(key)
            return (x + random.normal(part), key), x
        return lax.scan(step, (0.0, key), length=5)[1]
    return walk(random.key(3))


def keys_as_what_a_scan_runs_over():
    keys = random.split(random.key(4), 5)
    return lax.scan(lambda x, k: (x + random.uniform(k), None), 0.0, keys)[0]


def dropout_in_a_gradient():
    def loss(w, key):
        kept = random.bernoulli(key, 0.5, w.shape)
        return jnp.sum(jnp.where(kept, w, 0.0) ** 2)
    key = random.key(5)
    values = []
    for _ in range(2):
        key, part = random.split(key)
        values.append(jit(grad(loss))(jnp.ones(4), part))
    return values


def a_checkpoint_draws_again_what_it_drew():
    @jax.checkpoint
    def noisy(x, key):
        return jnp.sin(x) * random.normal(key, x.shape)
    return grad(lambda x: noisy(x, random.key(6)).sum())(jnp.ones(3))


def keys_given_to_a_function_that_splits():
    def init(key, sizes):
        keys = random.split(key, len(sizes) - 1)
        return [random.normal(k, (m, n)) for k, m, n in zip(keys, sizes, sizes[1:], strict=False)]
    return init(random.key(7), [2, 3, 1])


def a_key_in_one_of_two_branches():
    @jit
    def sample(key, flag):
        return lax.cond(flag, lambda k: random.normal(k), lambda k: random.uniform(k), key)
    return sample(random.key(8), True), sample(random.key(8), False)


def the_same_seed_twice():
    return random.normal(random.key(9)), random.normal(random.key(9))


# ---- dtypes and compiling


def casts_of_what_fits():
    x = jnp.array([0.0, 1.9, 254.0])
    return x.astype("uint8"), jnp.round(x).astype(int), (x > 1).astype(jnp.float32)


def arithmetic_that_wraps_around():
    x = jnp.array([250, 5], jnp.uint8)
    return x + jnp.uint8(10), -jnp.array([1], jnp.uint32), ~jnp.array([0], jnp.int32)


def data_of_64_bits_that_fits():
    images = np.linspace(0.0, 1.0, 12).reshape(3, 4)
    labels = np.array([0, 2, 1])
    return jnp.asarray(images).sum(), jit(lambda i: jnp.arange(3)[i])(labels)


def half_precision():
    x = jnp.ones(4, jnp.bfloat16)
    return (x * 3).sum(), x.astype(jnp.float16), x.astype(jnp.float32) / 3


def a_last_batch_that_is_smaller():
    mean = jit(lambda x: x.mean())
    data = jnp.arange(10.0)
    return [mean(data[i:i + 4]) for i in range(0, 10, 4)]


def a_static_argument_of_two_values():
    power = jit(lambda x, n: x ** n, static_argnums=1)
    return power(2.0, 2), power(2.0, 3), power(3.0, 2)


def one_function_for_training_and_one_for_testing():
    @functools.partial(jit, static_argnames="train")
    def forward(w, x, *, train):
        return (jnp.tanh(x @ w) if train else x @ w).sum()
    w, x = jnp.ones((3, 2)), jnp.ones((4, 3))
    return forward(w, x, train=True), forward(w, x, train=False), grad(forward)(w, x, train=True)


def derivatives_of_derivatives():
    def f(x):
        return jnp.sum(jnp.sin(x) * x ** 2)
    x = jnp.arange(1.0, 4.0)
    return jax.hessian(f)(x), jax.jacfwd(jax.jacrev(f))(x), jit(vmap(grad(jnp.cos)))(x)
