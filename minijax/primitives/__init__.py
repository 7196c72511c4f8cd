"""The rows: one block per primitive, every slot filled.

Stands on `core`, `jaxpr` and `stage`; never on an interpreter nor a compiler.  Chapter 02.
In JAX: `jax/_src/lax/`.
"""

from __future__ import annotations

import sys

from minijax.core import LOWERINGS, Cannot, Primitive

SLOTS = ("impl", "abstract_eval", "jvp", "transpose", "batch", "examples")


def check_slots(p: Primitive) -> None:
    """Refuse a block with an empty slot; what has no meaning is filled with ``cannot(reason)``.

    Raises:
      TypeError: naming the slot.

    >>> check_slots(Primitive("half", impl=lambda x: [x / 2]))
    Traceback (most recent call last):
    ...
    TypeError: the primitive 'half' has no abstract_eval; fill the slot, or say cannot("why")
    """
    for slot in SLOTS:
        if not isinstance(rule := getattr(p, slot), Cannot) and not callable(rule):
            raise TypeError(f"the primitive {p.name!r} has no {slot}; fill the slot, "
                            'or say cannot("why")')
    filled = [slot for slot in LOWERINGS if getattr(p, slot) is not None]
    if len(filled) != 1:
        raise TypeError(f"the primitive {p.name!r} must be lowered by exactly one of "
                        f"{', '.join(LOWERINGS)}; it has {', '.join(filled) or 'none'}")


def check_package() -> None:
    """Refuse empty slots in every primitive of the package that has been imported."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("minijax.primitives.", "minijax.higher_order.")):
            for p in [value for value in vars(module).values() if isinstance(value, Primitive)]:
                check_slots(p)
