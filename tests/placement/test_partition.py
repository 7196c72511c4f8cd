"""Programs over whole arrays as programs over blocks: the same numbers, by the least communication.

Four pretended ranks in a grid, `i` by `j`; the law of each primitive is in tests/test_laws.py.
"""

from collections import Counter

import numpy as np
import pytest

import minijax as jax
from minijax import NamedSharding, P, lax
from minijax import numpy as jnp
from minijax.core.jaxpr import jaxpr_as_fun, subjaxprs
from minijax.errors import JaxRuntimeError
from minijax.placement import engine
from minijax.placement.partition import partition
from minijax.transforms import compiled
from tests import gathers, ranks

MESH, ROW = ranks.mesh_of(2, 2), ranks.mesh_of(4)
W, A, B, AB = (), ("i",), ("j",), ("i", "j")  # one axis: whole, or cut


def floats(*shape):
    x = np.arange(np.prod(shape, dtype=int)) * 1.7 + len(shape)
    return np.sin(x).reshape(shape).astype("f")


def sent(closed, inside=""):
    """How many operations of each kind a program sends with; in a loop they have its name."""
    names = Counter(inside + eqn.primitive.name.removeprefix("across_") for eqn in closed.eqns
                    if eqn.primitive.name.startswith("across"))
    for eqn in closed.eqns:
        for inner in subjaxprs(eqn.params):
            names += sent(inner, f"{eqn.primitive.name} ")
    return names


def checked(function, args, layouts, mesh=MESH, compiled_once=False):
    """The partitioned program, whose results are those of the whole one."""
    closed = jax.make_jaxpr(function)(*args)
    args = list(map(jnp.asarray, args))
    part, outs = ranks.run(closed, mesh, layouts, args, compiled_once=compiled_once)
    for out, wanted in zip(outs, jaxpr_as_fun(closed)(*args), strict=True):
        np.testing.assert_allclose(out, np.asarray(wanted), 1e-5, 1e-5)
    return part


# ── Training steps ───────────────────────────────────────────────────────────────────────────

def mlp_step(w1, b1, w2, b2, x, y):
    def loss(ws):
        w1, b1, w2, b2 = ws
        return jnp.mean((jnp.tanh(x @ w1 + b1) @ w2 + b2 - y) ** 2)
    value, slopes = jax.value_and_grad(loss)((w1, b1, w2, b2))
    return *(w - .1 * g for w, g in zip((w1, b1, w2, b2), slopes, strict=True)), value


STEP = [floats(8, 16), floats(16), floats(16, 4), floats(4), floats(32, 8), floats(32, 4)]
TENSORS = [(W, B), (B,), (B, W), (W,)]


@pytest.mark.parametrize(("layouts", "operations", "outs"), [
    ([(W, W), (W,), (W, W), (W,), (A, W), (A, W)], {"reduce": 1},
     [(W, W), (W,), (W, W), (W,), ()]),
    ([*TENSORS, (W, W), (W, W)], {"reduce": 1}, [*TENSORS, ()]),
    ([*TENSORS, (A, W), (A, W)], {"reduce": 2}, [*TENSORS, ()]),
    ([(A, W), (A,), (A, W), (A,), (A, W), (A, W)], {"gather": 4, "exchange": 4, "reduce": 1},
     [(A, W), (A,), (A, W), (A,), ()])], ids=["data", "tensor", "both", "fully sharded"])
def test_a_training_step_sends_what_the_textbook_says(layouts, operations, outs):
    part = checked(mlp_step, STEP, layouts, compiled_once=outs[-2] == (A,))
    assert sent(part.jaxpr) == operations and part.layouts_out == outs
    assert len(part.gathers) == operations.get("gather", 0)


# ── shard_map: a leading axis, which is cut ──────────────────────────────────────────────────

OF_ROWS = P("i")


def on_shards(f, in_specs=OF_ROWS, out_specs=OF_ROWS, mesh=ROW):
    return lambda *xs: jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs)(*xs)


X = floats(8, 4)


@pytest.mark.parametrize(("function", "args", "layouts", "operations"), [
    (on_shards(lambda x: lax.psum(x, "i"), out_specs=P()), [X], [(A, W)], {"reduce": 1}),
    (on_shards(lambda x: lax.pmax(x, "i"), out_specs=P()), [X], [(A, W)], {"reduce": 1}),
    (on_shards(lambda x: lax.all_gather(x, "i", tiled=True) * x.sum()), [X], [(A, W)],
     {"gather": 1}),
    (on_shards(lambda x: lax.ppermute(x, "i", [(k, (k + 1) % 4) for k in range(4)])), [X],
     [(A, W)], {"permute": 1}),
    (on_shards(lambda x: lax.ppermute(x, "i", [(0, 2), (1, 0)])), [X], [(A, W)], {"permute": 1}),
    (on_shards(lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True)), [X], [(A, W)],
     {"exchange": 1}),
    (on_shards(lambda x: lax.psum_scatter(x, "i", tiled=True), P(None, "i")), [X], [(W, A)],
     {"exchange": 1}),
    (on_shards(lambda x: x * lax.axis_index("i")), [X], [(A, W)], {}),
    (lambda w, x: jax.grad(lambda w: on_shards(
        lambda w, x: lax.pmean(jnp.sum((x @ w) ** 2), "i"), (P(), P("i")), P())(w, x))(w),
     [floats(4), X], [(W,), (A, W)], {"reduce": 1}),
    (on_shards(lambda x: lax.while_loop(lambda c: lax.psum(c.sum(), "i") < 1000, lambda c: c * 2,
                                        jnp.abs(x))), [X], [(A, W)], {"while reduce": 1}),
], ids=["psum", "pmax", "all_gather", "ppermute", "ppermute of some", "all_to_all", "psum_scatter",
        "axis_index", "gradient", "while"])
def test_collectives_send_once(function, args, layouts, operations):
    assert sent(checked(function, args, layouts, ROW).jaxpr) == operations


def test_pmap_is_a_leading_axis_that_is_cut():
    with jax.config.num_cpu_devices(4):
        part = checked(jax.pmap(lambda x: x - lax.pmean(x, "k"), "k"), [X[:4]], [(A, W)], ROW)
    assert sent(part.jaxpr) == {"reduce": 1} and part.layouts_out == [(A, W)]


def test_shards_along_two_axes_of_the_mesh():
    shard = on_shards(lambda x: x - lax.pmean(x, AB), P(AB), P(AB), MESH)
    assert checked(shard, [X], [(AB, W)]).layouts_out == [(AB, W)]


# ── Other programs ───────────────────────────────────────────────────────────────────────────

def rnn(w, u, xs):
    def loss(w, u):
        def step(h, x):
            h = jnp.tanh(x @ w + h @ u)
            return h, h.mean()
        h, means = lax.scan(step, jnp.zeros((4, 8), "f"), xs)
        return (h ** 2).mean() + means.sum()
    return jax.value_and_grad(loss, (0, 1))(w, u)


def attention(q, k, v):
    return jax.value_and_grad(
        lambda q: (jax.nn.dot_product_attention(q, k, v, is_causal=True) ** 2).mean())(q)


def cross_entropy(x, labels):
    return jax.value_and_grad(lambda x: -jnp.take_along_axis(
        jax.nn.log_softmax(x), labels[:, None], 1).mean())(x)


def constrained(spec):
    return lambda x: lax.with_sharding_constraint(x * 2, NamedSharding(MESH, spec))


TABLE, PLACES = floats(10, 6), np.arange(24).reshape(8, 3) % 10


@pytest.mark.parametrize(("function", "args", "layouts", "operations"), [
    (rnn, [floats(6, 8), floats(8, 8), floats(5, 4, 6)], [(W, W), (W, W), (W, A, W)],
     {"reduce": 1}),
    (rnn, [floats(6, 8), floats(8, 8), floats(5, 4, 6)], [(A, W), (A, W), (W, A, W)],
     {"reduce": 1, "gather": 2}),
    (attention, [floats(4, 6, 2, 8)] * 3, [(A, W, B, W)] * 3, {"reduce": 1}),
    (cross_entropy, [floats(8, 10), np.arange(8) % 10], [(A, W), (A,)], {"reduce": 1}),
    (lambda t, at: jax.value_and_grad(lambda t: (t[at] ** 2).sum())(t), [TABLE, PLACES],
     [(W, B), (A, W)], {"reduce": 2}),
    (lambda w, x: jax.value_and_grad(lambda w: (lax.conv(x, w, (1, 1), "SAME") ** 2).mean())(w),
     [floats(5, 3, 3, 3), floats(4, 3, 8, 8)], [(W,) * 4, (A, W, W, W)], {"reduce": 1}),
    (lambda w, x: jax.grad(jax.checkpoint(lambda w: jnp.sin(jnp.tanh(x @ w) @ w.T).sum()))(w),
     [floats(6, 8), floats(4, 6)], [(W, W), (A, W)], {"checkpoint reduce": 1}),
    (lambda p, x: lax.cond(p > 0, lambda x: x * 2, lambda x: x[::-1], x),
     [np.float32(1), X], [(), (A, W)], {"cond gather": 1}),
    (constrained(P(None, "i")), [X], [(A, W)], {"exchange": 1}),
    (constrained(P()), [X], [(A, W)], {"gather": 1}),
    (constrained(P("j", P.UNCONSTRAINED)), [X], [(W, A)], {}),
], ids=["data-parallel loop", "gathers before the loop", "attention", "cross entropy", "embedding",
        "convolution", "checkpoint", "branches", "exchange", "gather", "free axis"])
def test_programs_send_no_more_than_they_must(function, args, layouts, operations):
    assert sent(checked(function, args, layouts).jaxpr) == operations


@pytest.mark.parametrize(("layout", "operations"), [
    (W, {"reduce": 1}), (B, {"reduce": 1}), (A, {"scan reduce": 1})])
def test_a_sum_leaves_a_loop_where_all_its_ranks_carry_the_same_block(layout, operations):
    part = checked(lambda c, x: lax.scan(lambda c, row: (c + jnp.sum(row), None), c, x)[0],
                   [floats(4), X], [(layout,), (W, A)])
    assert sent(part.jaxpr) == operations


def test_a_gather_that_only_an_operation_needs_is_named_with_its_reason():
    part = checked(lambda x: jnp.sort(x, 0) + jnp.cumsum(x, 1), [X], [(A, W)])
    [gather] = part.gathers
    assert str(gather).startswith("sort at ") and "test_partition.py" in gather.source.place
    assert str(gather).endswith("gathers 128 bytes at every call, because sort needs axis 0 of "
                                "operand 0 whole")


def test_the_table_says_which_primitives_gather():
    assert gathers.table() == gathers.FILE.read_text(encoding="utf-8"), (
        "python -m tests.gathers --write")


def test_a_reshape_that_keeps_no_axis_says_so():
    part = checked(lambda x: x.reshape(3, 8), [floats(4, 6)], [(A, W)])
    assert [x.why for x in part.gathers] == [
        "reshape does not keep axis 0 of operand 0 in equal blocks"]


def test_large_gathers_are_findings_of_the_check_of_silent_traps():
    closed = jax.make_jaxpr(lambda x, y: (jnp.sort(x, 0), x @ y))(
        np.zeros((1 << 10, 256), "f"), np.zeros((256, 1 << 10), "f"))
    with jax.checking_sharp_bits(collect=True) as findings:
        assert len(partition(closed, ROW, [(A, W), (A, W)]).gathers) == 2
    assert [each.kind for each in findings] == ["gathers"]
    assert findings[0].message == ("sort gathers 1.05 MB at every call, because sort needs axis 0 "
                                   "of operand 0 whole.")


def test_small_reductions_are_joined_large_ones_and_what_is_printed_stay_in_their_order(capsys):
    def f(x):
        total = x.sum()
        jax.debug.print("one {:.0f}", total)
        jax.debug.print("two")
        return total, x.max(), x.sum(0), x.T @ x, (x - x.sum()).sum()
    part = checked(f, [np.ones((8, 128), "f")], [(A, W)])
    assert sent(part.jaxpr) == {"reduce": 4}  # with a product of 64 kB, a maximum, a second round
    assert capsys.readouterr().out == 2 * "one 1024\ntwo\n"


def test_numbers_that_are_only_used_in_part_are_only_made_in_part():
    part = checked(lambda x: x * jnp.arange(8.)[:, None] + jnp.zeros((8, 4)), [X], [(A, W)])
    assert max(v.aval.size for eqn in part.jaxpr.eqns for v in eqn.outvars) == 16


def test_compiled_numbers_of_every_kind_are_sent():
    def f(z, words, b, h):
        keys = jax.random.wrap_key_data(words)
        return (z * z).sum(0), jax.random.key_data(keys[::-1]), b.any(0), h.sum(0), h.max(0)
    x = floats(4, 2)
    args = [x + 1j * x[::-1], np.arange(8).reshape(4, 2).astype("uint32"), x > 0,
            jnp.asarray(x, "bfloat16")]
    closed, args = jax.make_jaxpr(f)(*args), list(map(jnp.asarray, args))
    part, outs = ranks.run(closed, MESH, [(A, W)] * 4, args, compiled_once=True)
    for out, wanted in zip(outs, jaxpr_as_fun(closed)(*args), strict=True):
        np.testing.assert_allclose(out.astype(complex), np.asarray(wanted).astype(complex), 1e-2)
    assert sent(part.jaxpr) == {"reduce": 4, "gather": 1}


# ── What is refused, and Python ──────────────────────────────────────────────────────────────

def test_an_axis_that_cannot_be_cut_evenly_is_refused():
    closed = jax.make_jaxpr(jnp.sin)(floats(3))
    with pytest.raises(ValueError, match="size 3 of float32.3. cannot be cut along .'i',. into 2"):
        partition(closed, MESH, [(A,)])
    with pytest.raises(ValueError, match="pad it, or leave it whole"):
        partition(closed, MESH, [(W,)], [(A,)])


def test_a_constraint_along_another_mesh_is_refused():
    with pytest.raises(ValueError, match="so that all are over one mesh"):
        partition(jax.make_jaxpr(constrained(P("j")))(X), ROW, [(A, W)])


def test_python_is_called_once_with_whole_arrays(capsys):
    checked(lambda x: (jax.debug.print("{}", x[0, 0]), x)[1], [np.ones((4, 2))], [(A, W)])
    assert capsys.readouterr().out == "1.0\n1.0\n"  # the second is that of the whole program


def test_io_of_an_array_that_is_cut_over_processes_is_refused_with_the_cure(monkeypatch):
    def save(x):
        return jax.experimental.io_callback(lambda x: None, None, x)
    closed = jax.make_jaxpr(save)(X)
    assert not partition(closed, MESH, [(W, W)]).gathers
    assert len(partition(closed, MESH, [(A, W)]).gathers) == 1
    monkeypatch.setattr(engine.ALONE, "ranks_are_processes", True, raising=False)
    with pytest.raises(NotImplementedError, match="no process has all of it") as error:
        partition(closed, MESH, [(A, W)])
    assert any("with_sharding_constraint" in note for note in error.value.__notes__)


# ── The engine of threads ────────────────────────────────────────────────────────────────────

ALL = (0, 1, 2, 3)


def on_four(run):
    return engine.on_threads(range(4), lambda: run(engine.current.get()))


def wait(here, group, where=""):
    return here.allgather(np.zeros(()), group, where)


def test_what_each_rank_gets():
    def run(here):
        x = np.array([here.rank, 10 * here.rank])
        return (here.allreduce(x, "max", ALL), here.allgather(x[:1], ALL),
                here.alltoall(np.arange(4) + 10 * here.rank, ALL),
                here.permute(x, [(0, 2), (2, 1)]))
    for rank, (most, gathered, exchanged, permuted) in enumerate(on_four(run)):
        assert most.tolist() == [3, 30] and gathered.tolist() == [[0], [1], [2], [3]]
        assert exchanged.tolist() == [rank, 10 + rank, 20 + rank, 30 + rank]
        assert permuted.tolist() == {1: [2, 20], 2: [0, 0]}.get(rank, [0, 0])


@pytest.mark.parametrize(("run", "message"), [
    (lambda here: here.allreduce(np.zeros(2 + (here.rank == 3)), "add", ALL, "psum at a.py:1"),
     r"different programs: at psum at a.py:1, rank 0 .*float64.2. by add .*rank 3.*float64.3."),
    (lambda here: here.rank and wait(here, ALL, "x.py:2"),
     r"no rank can go on:(.|\n)*rank 3 waits at x.py:2 for .0.(.|\n)*rank 0 has ended"),
    (lambda here: wait(here, ((0, 1), (1, 2), (2, 3), (0, 3))[here.rank]), "no rank can go on"),
], ids=["other types", "one has ended", "a circle"])
def test_no_rank_waits_for_ever(run, message):
    with pytest.raises(JaxRuntimeError, match=message):
        on_four(run)


def test_the_error_of_a_rank_ends_all():
    with pytest.raises(ZeroDivisionError):
        on_four(lambda here: 1 / 0 if here.rank == 1 else wait(here, ALL))


def test_a_rank_fails_in_compiled_code(monkeypatch):
    part = partition(jax.make_jaxpr(lambda x: jnp.sin(x).sum())(X), ROW, [(A, W)])
    compiled.executable(part.jaxpr)

    def run(here):
        block = jnp.zeros((2, 4), "f")
        return here.rank == 1 or compiled.run_program(part.jaxpr, "f", [block])
    with pytest.raises(JaxRuntimeError, match="rank 1 has ended"):
        on_four(run)
