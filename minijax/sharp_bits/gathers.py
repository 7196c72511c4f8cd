"""Names operations that gather a whole array from all processes at every call.

Builds on `findings`; the partitioner lists them.  Chapter 11.  JAX has no counterpart.
"""

from collections.abc import Iterable
from typing import Any

from minijax.sharp_bits.findings import Finding, report


def named(gathers: Iterable[Any]) -> None:
    """Warn of the gathers of a program that has been partitioned, or collect them."""
    for each in gathers:
        if each.operation == "sharding_constraint":  # the user asks for it
            continue
        report(Finding("sharp_bits", f"{each}.", by=each,
                       fix="Shard the array along another axis, or reshard it once, before."))
