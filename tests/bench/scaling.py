"""Training steps on 2 to 4,096 ranks that are not here: seconds of a step, by a model of messages.

The steps are those of `programs/training.py`, on fixed numbers of examples; the programs are the
partitioned ones, which are read, and not run.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import minijax as jax
from minijax import P
from minijax.placement.communication_costs import Cost, Machine, in_ring, in_tree, planned
from minijax.placement.partition import Partitioned
from tests.bench._picture import Curve, Panel, panels
from tests.bench._report import chosen, options, save
from tests.bench._workloads import rows

MACHINE = Machine(latency=5e-6, bandwidth=10e9, flops=1e12)
RANKS = [2 ** k for k in range(1, 13)]
ALGORITHMS: Mapping[str, Callable | None] = {"ring": in_ring, "tree": in_tree, "faster": None}
WIDTH, TENSORS = 4096, 4  # of the transformer, and how many ranks share one of its products

STEPS = {row.name.split()[0]: row.run for row in rows("minijax", ["training"])
         if " step" in row.name and "64: " not in row.name}


def array(*shape: int, dtype: str = "float32") -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)


class Plan(NamedTuple):
    """A step, and its grid, arguments and their specs for a number of ranks."""

    name: str
    step: Callable
    axes: Callable[[int], dict[str, int]]
    specs: tuple
    arguments: tuple

    def on(self, ranks: int) -> Partitioned:
        """The program of each of so many ranks; parameters keep their layout."""
        return planned(self.step, self.axes(ranks), self.specs, self.specs[0])(*self.arguments)


def of_layers(layer: Mapping[str, Any], rest: Any, place: Any) -> dict[str, Any]:
    """The tree of a transformer of two layers."""
    return {"embed": rest, "place": place, "layers": [layer, layer]}


MLP = ([(array(784, 256), array(256)), (array(256, 10), array(10))],
       array(1 << 16, 784), array(1 << 16, 10))
CNN = ({"kernels": [array(3, 3, 1, 16), array(3, 3, 16, 32)], "out": array(7 * 7 * 32, 10)},
       array(1 << 12, 28, 28, 1), array(1 << 12, 10))
TRANSFORMER = (of_layers(
    {**{name: array(WIDTH, WIDTH) for name in "qkvo"}, "up": array(WIDTH, 4 * WIDTH),
     "down": array(4 * WIDTH, WIDTH)}, array(256, WIDTH), array(64, WIDTH)),
    array(1 << 12, 65, dtype="int32"))
COLUMNS, ROWS = P(None, "model"), P("model")
OF_TENSORS = {**dict.fromkeys(("q", "k", "v", "up"), COLUMNS), "o": ROWS, "down": ROWS}
EACH_CUT = dict.fromkeys(("q", "k", "v", "o", "up", "down"), P("data"))


def along_data(ranks: int) -> dict[str, int]:
    return {"data": ranks}


def along_both(ranks: int) -> dict[str, int]:
    tensors = min(ranks, TENSORS)
    return {"data": ranks // tensors, "model": tensors}


PLANS = [
    Plan("MLP, data", STEPS["MLP"], along_data, (P(), P("data"), P("data")), MLP),
    Plan("CNN, data", STEPS["CNN"], along_data, (P(), P("data"), P("data")), CNN),
    Plan("transformer, data", STEPS["transformer"], along_data, (P(), P("data")), TRANSFORMER),
    Plan("transformer, data and tensor", STEPS["transformer"], along_both,
         (of_layers(OF_TENSORS, P(), P()), P("data")), TRANSFORMER),
    Plan("transformer, fully sharded", STEPS["transformer"], along_data,
         (of_layers(EACH_CUT, P(), P()), P("data")), TRANSFORMER)]


def costs(plan: Plan, ranks: int) -> dict[str, Cost]:
    """What a step takes with each algorithm."""
    program = plan.on(ranks).jaxpr
    return {name: MACHINE.cost(program, algorithm) for name, algorithm in ALGORITHMS.items()}


def panel(name: str, by_ranks: Mapping[int, Mapping[str, Cost]]) -> Panel:
    computing = Curve(3, True, [(ranks, of["ring"].computing) for ranks, of in by_ranks.items()])
    return Panel(name, "seconds", [computing, *(
        Curve(kind, False, [(ranks, of[algorithm].seconds) for ranks, of in by_ranks.items()])
        for kind, algorithm in enumerate(ALGORITHMS))])


def assumptions() -> str:
    return (f"{MACHINE.latency * 1e6:g} µs a message, {MACHINE.bandwidth / 1e9:g} GB/s and "
            f"{MACHINE.flops / 1e12:g} TFLOP/s a rank")


def main() -> None:
    given = options("training steps on many ranks, by a model of messages")
    print(f"Assumed: {assumptions()}; each pair of ranks is connected as well as any other, and a "
          "rank computes nothing while it sends.")
    print(f"{'milliseconds of a step':30}{'ranks':>6}{'computing':>11}{'ring':>11}{'tree':>11}"
          f"{'faster':>11}{'messages':>10}{'MB':>9}")
    results: dict[str, dict[int, dict[str, Cost]]] = {}
    for plan in PLANS:
        if chosen(plan.name, given.words):
            of_plan = results[plan.name] = {}
            for ranks in RANKS[::3] if given.quick else RANKS:
                found = of_plan[ranks] = costs(plan, ranks)
                times = "".join(f"{each.seconds * 1e3:11.2f}" for each in found.values())
                best = found["faster"]
                print(f"{plan.name:30}{ranks:6}{best.computing * 1e3:11.2f}{times}"
                      f"{best.messages:10,}{best.bytes / 1e6:9.1f}", flush=True)
    drawn = [panel(*each) for each in results.items()]
    save("scaling", {name: {ranks: {word: cost._asdict() for word, cost in found.items()}
                            for ranks, found in each.items()} for name, each in results.items()},
         panels(f"A step by the number of ranks: {assumptions()}", [*ALGORITHMS, "computing"],
                [drawn[k:k + 3] for k in range(0, len(drawn), 3)] or [[]]))


if __name__ == "__main__":
    main()
