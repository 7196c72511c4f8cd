"""The model of messages: against formulas by hand, and against rings and trees that are run.

`Ring` and `Tree` are engines whose collectives consist of messages between two ranks, which they
write down: their results are those of the engine of threads, their messages those of the model.
"""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

import minijax as jax
from minijax import P, lax
from minijax import numpy as jnp
from minijax.core.jaxpr import jaxpr_as_fun
from minijax.placement import engine
from minijax.placement.across import Grid
from minijax.placement.communication_costs import (Machine, Transfer, in_ring, in_tree, layouts_of,
                                                   planned, transfers)
from minijax.placement.engine import REDUCTIONS
from tests import ranks
from tests.bench import scaling

A, B = 5e-6, 1e-10  # α and β of the formulas
MACHINE = Machine(latency=A, bandwidth=1 / B)

# Of a block of n bytes on each of p ranks: Thakur, Rabenseifner and Gropp 2005, in α and β.
FORMULAS = {
    (in_ring, "reduce"): lambda p, n: 2 * (p - 1) * A + 2 * (p - 1) / p * n * B,
    (in_ring, "gather"): lambda p, n: (p - 1) * A + (p - 1) * n * B,
    (in_ring, "exchange"): lambda p, n: (p - 1) * A + (p - 1) / p * n * B,
    (in_tree, "reduce"): lambda p, n: 2 * math.ceil(math.log2(p)) * (A + n * B),
    (in_tree, "gather"): lambda p, n: math.ceil(math.log2(p)) * A + (p - 1) * n * B,
    (in_tree, "exchange"): lambda p, n: math.log2(p) * (A + n / 2 * B),  # p is a power of two
    (in_ring, "permute"): lambda p, n: A + n * B, (in_tree, "permute"): lambda p, n: A + n * B}


@pytest.mark.parametrize(("algorithm", "kind"), FORMULAS)
def test_the_time_of_a_collective_is_that_of_the_formula(algorithm, kind):
    for p in (2, 4, 64, 4096, *[3, 7, 1000] * ((algorithm, kind) != (in_tree, "exchange"))):
        for size in (4, 1 << 26):
            seconds = MACHINE.seconds(algorithm(Transfer(kind, p, size, 1, "")))
            assert seconds == pytest.approx(FORMULAS[algorithm, kind](p, size))


def test_small_reductions_take_the_tree_and_large_ones_the_ring():
    small, large = Transfer("reduce", 64, 8, 1, ""), Transfer("reduce", 64, 1 << 26, 1, "")
    assert MACHINE.faster(small) == in_tree(small) and MACHINE.faster(large) == in_ring(large)
    assert not in_ring(small._replace(ranks=1)) and not in_tree(small._replace(ranks=1))


# ── Rings and trees that are run ─────────────────────────────────────────────────────────────

class Counting(engine.ThreadEngine):
    """Collectives as messages between two ranks; `rounds` are the bytes of those of each round."""

    def __init__(self, rank, threads):
        super().__init__(rank, threads)
        self.rounds = []

    def permute(self, x, pairs, where=""):
        self.rounds.append(x.nbytes)
        return super().permute(x, pairs, where)

    def shifted(self, x, group, places):
        """What comes from the rank so many places before."""
        p = len(group)
        return self.permute(np.ascontiguousarray(x), [(group[k], group[(k + places) % p])
                                                      for k in range(p)])


class Ring(Counting):
    algorithm = staticmethod(in_ring)

    def allreduce(self, x, op, group, where=""):
        p, own = len(group), group.index(self.rank)
        parts = [*x.reshape(p, -1)]
        for k in range(p - 1):
            at = (own - k - 1) % p
            parts[at] = REDUCTIONS[op](parts[at], self.shifted(parts[(own - k) % p], group, 1))
        rows = self.allgather(parts[(own + 1) % p], group)
        return np.roll(rows, 1, 0).reshape(x.shape)

    def allgather(self, x, group, where=""):
        p, own = len(group), group.index(self.rank)
        blocks = {own: x}
        for k in range(p - 1):
            x = blocks[(own - k - 1) % p] = self.shifted(x, group, 1)
        return np.stack([blocks[k] for k in range(p)])

    def alltoall(self, x, group, where=""):
        p, own, out = len(group), group.index(self.rank), np.array(x)
        for k in range(1, p):
            out[(own - k) % p] = self.shifted(x[(own + k) % p], group, k)
        return out


class Tree(Counting):
    algorithm = staticmethod(in_tree)

    def allreduce(self, x, op, group, where=""):
        p, own = len(group), group.index(self.rank)
        strides = [1 << k for k in range((p - 1).bit_length())]
        levels = [[(child, child - s) for child in range(s, p, 2 * s)] for s in strides]
        for pairs in levels:
            other = self.permute(x, [(group[a], group[b]) for a, b in pairs])
            x = REDUCTIONS[op](x, other) if own in [parent for _, parent in pairs] else x
        for pairs in levels[::-1]:
            other = self.permute(x, [(group[b], group[a]) for a, b in pairs])
            x = other if own in [child for child, _ in pairs] else x
        return x

    def allgather(self, x, group, where=""):
        p, own, rows = len(group), group.index(self.rank), x[None]
        while len(rows) < p:  # those of the ranks from this one on
            more = self.shifted(rows[:p - len(rows)], group, -len(rows))
            rows = np.concatenate([rows, more])
        return np.roll(rows, own, 0)

    def alltoall(self, x, group, where=""):
        p, own = len(group), group.index(self.rank)
        rows = np.roll(x, -own, 0)  # row k is for the rank k places on
        for stride in (1 << k for k in range((p - 1).bit_length())):
            on_the_way = [k for k in range(p) if k & stride]
            rows[on_the_way] = self.shifted(rows[on_the_way], group, stride)
        return np.roll(rows[::-1], own + 1, 0)


@pytest.mark.parametrize("kind", [Ring, Tree])
@pytest.mark.parametrize("p", [2, 3, 4, 6])
def test_each_collective_that_is_run_sends_the_messages_of_the_model(kind, p):
    group, x = tuple(range(p)), np.arange(p * 4.0).reshape(p, 4)
    calls = {"reduce": lambda here, own: here.allreduce(own, "add", group),
             "gather": lambda here, own: here.allgather(own, group),
             "exchange": lambda here, own: here.alltoall(own, group)}
    for name, call in calls.items():
        def run(call=call):
            plain = engine.current.get()
            own, counting = x + 100 * plain.rank, kind(plain.rank, plain.threads)
            return call(plain, own), call(counting, own), counting.rounds
        for expected, out, rounds in engine.on_threads(range(p), run):
            np.testing.assert_array_equal(out, expected)
            assert rounds == kind.algorithm(Transfer(name, p, x.nbytes, 1, ""))


def mlp_step(params, x, y):
    def loss(params):
        (w1, b1), (w2, b2) = params
        return jnp.mean((jnp.tanh(x @ w1 + b1) @ w2 + b2 - y) ** 2)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


def rnn(w, xs):
    def loss(w):
        h, _ = lax.scan(lambda h, x: (jnp.tanh(x + h @ w), None), jnp.zeros(xs.shape[1:], "f"), xs)
        return (h ** 2).mean()
    return jax.grad(loss)(w)


def floats(*shape):
    return np.sin(np.arange(np.prod(shape)) * 1.7).reshape(shape).astype("f")


PARAMS = [(floats(16, 64), floats(64)), (floats(64, 8), floats(8))]
PROGRAMS = {
    "data": (mlp_step, (P(), P("i"), P("i")), (PARAMS, floats(32, 16), floats(32, 8))),
    "fully sharded": (mlp_step, (P("i"), P("i"), P("i")), (PARAMS, floats(32, 16), floats(32, 8))),
    "loop": (rnn, (P("i"), P()), (floats(8, 8), floats(5, 4, 8))),
    "gather": (lambda x: jnp.sort(x, 0) * x.sum(0), (P("i"),), (jnp.asarray(floats(8, 4)),)),
}


@pytest.mark.parametrize("kind", [Ring, Tree])
@pytest.mark.parametrize("p", [2, 4])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_is_run_sends_the_messages_of_the_model(name, p, kind):
    f, specs, args = PROGRAMS[name]
    plan = planned(f, {"i": p}, specs, specs[0])(*args)
    grid, blocks = Grid.of(ranks.mesh_of(p)), list(zip(
        jax.tree.leaves(args), layouts_of(specs, args), strict=True))

    def run():
        here = engine.current.get()
        counting = kind(here.rank, here.threads)
        engine.current.set(counting)
        jaxpr_as_fun(plan.jaxpr)(*(ranks.block_of(x, layout, grid, here.rank)
                                   for x, layout in blocks))
        return counting.rounds
    cost = MACHINE.cost(plan.jaxpr, kind.algorithm)
    for rounds in engine.on_threads(range(p), run):
        assert len(rounds) == cost.messages > 0 and sum(rounds) == cost.bytes


# ── The steps of the benchmark ───────────────────────────────────────────────────────────────

WEIGHTS = 2 * (4 + 2 * 4) * scaling.WIDTH ** 2  # of two layers of the transformer
REST = (2 * 256 + 64) * scaling.WIDTH  # the embeddings are used twice, and so sent twice


@pytest.fixture(scope="module")
def costs():
    """The costs of each step on 64 ranks."""
    return {plan.name: scaling.costs(plan, 64) for plan in scaling.PLANS}


def test_a_data_parallel_step_sends_its_gradients_once(costs):
    large, small = 4 * 784 * 256, 4 * (256 + 256 * 10 + 10)
    for name, algorithm in (("ring", in_ring), ("tree", in_tree)):
        formula = FORMULAS[algorithm, "reduce"]
        assert costs["MLP, data"][name].sending == pytest.approx(
            formula(64, large) + formula(64, small))
    assert costs["MLP, data"]["faster"].sending == pytest.approx(
        FORMULAS[in_ring, "reduce"](64, large) + FORMULAS[in_tree, "reduce"](64, small))
    assert costs["transformer, data"]["ring"].bytes == 2 * 63 / 64 * 4 * (WEIGHTS + REST)


def test_a_fully_sharded_step_gathers_weights_and_sends_parts_of_gradients(costs):
    fully, data = costs["transformer, fully sharded"], costs["transformer, data"]
    assert fully["ring"][1:] == data["ring"][1:]  # whose reductions are the same two rounds
    assert fully["tree"].bytes < data["tree"].bytes


def test_a_tensor_parallel_step_also_sends_activations(costs):
    # 16 groups of four ranks, of which each has a quarter of most weights.
    gradients = 2 * 15 / 16 * 4 * (WEIGHTS / scaling.TENSORS + REST)
    activations = 4 * (4096 // 16) * 64 * scaling.WIDTH
    sent = costs["transformer, data and tensor"]["ring"].bytes - gradients
    assert sent / (2 * 3 / 4 * activations) == 12  # q, k and v send three on the way back


OF_XLA = """
import re
import jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from tests.bench import scaling
from tests.bench._workloads import rows
step = {row.name.split()[0]: row.run for row in rows("jax", ["training"])}["transformer"]
for plan in scaling.PLANS[2:4]:
    axes = {name: size for name, size in plan.axes(4).items() if size > 1}
    mesh = jax.make_mesh(tuple(axes.values()), tuple(axes), (AxisType.Auto,))
    place = lambda spec: NamedSharding(mesh, P(*[n if n in axes else None for n in spec]))
    specs = scaling.jax.tree_util.broadcast_prefix(plan.specs, plan.arguments)
    leaves, tree = jax.tree.flatten(jax.tree.map(lambda x: (x.shape, str(x.dtype)),
                                                 plan.arguments), is_leaf=lambda x: type(x) is tuple
                                    and type(x[-1]) is str)
    args = tree.unflatten([jax.ShapeDtypeStruct(*x, sharding=place(spec))
                           for x, spec in zip(leaves, specs)])
    out = jax.tree.map(lambda x: x.sharding, args[0])
    text = jax.jit(lambda *args: step(*args), out_shardings=out).lower(*args).compile().as_text()
    print(sum(each.count("f32[") for each in re.findall("= (.*?) all-reduce[(]", text)))
"""


@pytest.mark.skipif(not os.environ.get("LARGE"), reason="LARGE=1: XLA takes some seconds")
def test_xla_reduces_as_many_arrays():
    done = subprocess.run([sys.executable, "-c", OF_XLA], text=True, capture_output=True, env={
        **os.environ, "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4"})
    ours = [len(list(transfers(plan.on(4).jaxpr))) for plan in scaling.PLANS[2:4]]
    assert ours == [15, 12] and done.stdout.split() == list(map(str, ours)), done.stderr


def test_computing_is_shared_by_the_ranks(costs):
    flops = {"MLP": 2 * 65536 * 256 * (2 * 784 + 3 * 10),  # as the benchmark counts them
             "CNN": 2 * 4096 * 9 * (2 * 784 * 16 + 3 * 196 * 16 * 32),
             "transformer": 6 * 4096 * 64 * (WEIGHTS + 256 * scaling.WIDTH
                                             + 2 * 2 * 64 * scaling.WIDTH)}
    for name, cost in costs.items():
        computed = cost["ring"].computing * scaling.MACHINE.flops * 64
        assert 1 < computed / flops[name.split(",")[0]] < 1.07


def test_no_step_of_the_benchmark_gathers_an_activation():
    for plan in scaling.PLANS:
        gathers = plan.on(64).gathers
        assert all("cut along different axes" in each.why for each in gathers), gathers
        assert bool(gathers) == ("sharded" in plan.name)
