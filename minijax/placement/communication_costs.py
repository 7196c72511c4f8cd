"""What a program would cost on many ranks that are not here: messages, bytes and seconds of each.

Builds on `partition`.  Chapter 11, *Named axes and many devices*.  JAX has no counterpart.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import tree_util
from minijax.core import get_aval
from minijax.core.jaxpr import ClosedJaxpr, subjaxprs
from minijax.placement.devices import CpuDevice
from minijax.placement.meshes import Mesh
from minijax.placement.moves import Layout, bytes_of
from minijax.placement.partition import Partitioned, partition
from minijax.transforms import api, compiled


# ── The program of each rank ─────────────────────────────────────────────────────────────────

def planned(f: Callable, axes: Mapping[Any, int], in_specs: Any, out_specs: Any = None
            ) -> Callable[..., Partitioned]:
    """What `f` becomes on ranks in a grid, of which none need be here.

    Args:
      f: a function of arrays, in trees.
      axes: the names and sizes of the axes of the grid.
      in_specs: how the arguments are cut along them, a `P` for each; a tree prefix.
      out_specs: the same of the results; None for the layouts in which they are computed.

    Returns:
      A function of arguments, of which only the types count, that returns the program over blocks.

    Raises:
      ValueError: where an array is not cut evenly.

    >>> import minijax as jax
    >>> from minijax import P
    >>> plan = planned(lambda x: x.sum(), {"i": 1024}, P("i"))(jax.ShapeDtypeStruct((4096,), "f4"))
    >>> print(plan.jaxpr.eqns[-1].primitive, plan.jaxpr.in_avals)
    across_reduce [ShapedArray(float32[4])]
    """
    def plan(*args: Any) -> Partitioned:
        closed, results = api.make_jaxpr(f, return_shape=True)(*args)
        specs = in_specs if type(in_specs) is tuple else (in_specs,) * len(args)
        outs = [None] * len(closed.out_avals) if out_specs is None else layouts_of(
            out_specs, results)
        devices = np.array([*map(CpuDevice, range(math.prod(axes.values())))], object)
        mesh = Mesh(devices.reshape([*axes.values()]), [*axes])
        return partition(closed, mesh, layouts_of(specs, args), outs)
    return plan


def layouts_of(specs: Any, tree: Any) -> list[Layout]:
    """The layouts of the arrays of a tree by the specs of a prefix of it."""
    leaves, structure = tree_util.tree_flatten(tree)
    flat = tree_util.flatten_axes("specs", structure, specs)
    return [tuple(spec.names(get_aval(x).ndim)) for spec, x in zip(flat, leaves, strict=True)]


# ── What it sends ────────────────────────────────────────────────────────────────────────────

class Transfer(NamedTuple):
    """One operation by which ranks exchange blocks.

    Args:
      kind: "reduce", "gather", "exchange" or "permute".
      ranks: how many take part in it.
      bytes: of the block of each.
      times: how often a call of the program does it, in loops.
      where: the operation that needs it, and the user's line.
    """

    kind: str
    ranks: int
    bytes: int
    times: int
    where: str


def transfers(program: ClosedJaxpr, times: int = 1) -> Iterator[Transfer]:
    """What a program over blocks sends; a loop of unknown length counts once, each branch too.

    >>> import minijax as jax
    >>> from minijax import P
    >>> x = jax.ShapeDtypeStruct((8, 3), "float32")
    >>> [sent] = transfers(planned(lambda x: x.sum(0), {"i": 4}, P("i"))(x).jaxpr)
    >>> sent[:4]
    ('reduce', 4, 12, 1)
    """
    for eqn in program.eqns:
        params, (_, _, kind) = eqn.params, eqn.primitive.name.partition("across_")
        if kind:
            yield Transfer(kind, params["grid"].count(params["names"]),
                           bytes_of(eqn.invars[0].aval), times, params["where"])
        for inner in subjaxprs(params):
            yield from transfers(inner, times * params.get("length", 1))


def in_ring(sent: Transfer) -> list[float]:
    """The bytes of the messages that each rank sends, one after the other.

    To the next rank in the ring what came from the one before; a reduction is one of parts, then a
    gather of them. In an exchange, to each other rank its part.
    """
    others, part = sent.ranks - 1, sent.bytes / sent.ranks
    return {"reduce": [part] * (2 * others), "gather": [float(sent.bytes)] * others,
            "exchange": [part] * others, "permute": [float(sent.bytes)] * (others > 0)}[sent.kind]


def in_tree(sent: Transfer) -> list[float]:
    """The bytes of the messages of each round, of which there is one for each level of a tree.

    A reduction goes up to the root, and down again. In round k of a gather or an exchange, a rank
    sends to the one 2^k places away all blocks that go through there, as in Bruck's algorithms.
    """
    p, size = sent.ranks, float(sent.bytes)
    strides = [1 << k for k in range((p - 1).bit_length())]
    return {"reduce": [size] * (2 * len(strides)),
            "gather": [size * min(stride, p - stride) for stride in strides],
            "exchange": [size / p * sum(1 for block in range(p) if block & stride)
                         for stride in strides],
            "permute": [size] * (p > 1)}[sent.kind]


def operations(program: ClosedJaxpr) -> float:
    """The floating-point operations of a program, as `cost_analysis` counts them."""
    return program.derived(
        ("operations",), lambda: float(compiled.lowered(program, "planned").costs["flops"]))


# ── What it takes ────────────────────────────────────────────────────────────────────────────

class Cost(NamedTuple):
    """What one call of a program over blocks takes on each rank.

    Args:
      computing, sending: seconds; a rank computes nothing while it sends.
      messages, bytes: what it sends.
    """

    computing: float
    sending: float
    messages: int
    bytes: float

    @property
    def seconds(self) -> float:
        return self.computing + self.sending


class Machine(NamedTuple):
    """Equal ranks, of which each pair is connected as well as any other.

    A message of n bytes takes α + n β seconds: the latency, and the time of its bytes. How many
    there are follows from the algorithm: many small ones in a ring, few large ones in a tree.

    Args:
      latency: α, the seconds that a message takes, however short.
      bandwidth: 1/β, the bytes that a rank sends in a second.
      flops: the floating-point operations that a rank computes in a second.
    """

    latency: float = 5e-6
    bandwidth: float = 10e9
    flops: float = 1e12

    def seconds(self, messages: Sequence[float]) -> float:
        """The time of messages of so many bytes, one after the other."""
        return len(messages) * self.latency + sum(messages) / self.bandwidth

    def faster(self, sent: Transfer) -> list[float]:
        """The messages in a ring or in a tree, whichever takes less time."""
        return min(in_ring(sent), in_tree(sent), key=self.seconds)

    def cost(self, program: ClosedJaxpr, algorithm: Callable[[Transfer], list[float]] | None = None
             ) -> Cost:
        """What a call of a program over blocks takes.

        Args:
          algorithm: `in_ring` or `in_tree`; by default the faster one for each size.

        >>> import minijax as jax
        >>> from minijax import P
        >>> plan = planned(lambda x: x.sum(0), {"i": 1024}, P("i"))
        >>> program = plan(jax.ShapeDtypeStruct((1 << 20, 16), "float32")).jaxpr
        >>> [Machine().cost(program, each).messages for each in (in_ring, in_tree)]
        [2046, 20]
        """
        rounds = [(sent.times, (algorithm or self.faster)(sent)) for sent in transfers(program)]
        return Cost(operations(program) / self.flops,
                    sum(times * self.seconds(messages) for times, messages in rounds),
                    sum(times * len(messages) for times, messages in rounds),
                    sum(times * sum(messages) for times, messages in rounds))
