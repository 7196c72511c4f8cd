"""What is weak stays weak exactly where JAX's rule of the same primitive says so."""

import itertools

import jax
import numpy as np
import pytest
from jax._src.core import ShapedArray as TheirType

from minijax import core, lax

OF_JAX_ALONE = {
    "broadcast_in_dim": {"sharding": None}, "convert_element_type": {"sharding": None},
    "reshape": {"sharding": None}, "iota": {"sharding": None},
    "dot_general": {"out_sharding": None}, "split": {},
    **{f"scatter{kind}": {"update_jaxpr": None, "update_consts": ()}
       for kind in ("", "_add", "_sub", "_mul", "_min", "_max")}}
# Programs inside, or parameters, in other words than JAX's.
ELSEWHERE = {"cond", "while", "scan", "reduce", "conv_general_dilated", "linear_solve",
             "sharding_constraint", "polygamma"}
SHARED = sorted(name.removesuffix("_p") for name in dir(lax)
                if name.endswith("_p") and hasattr(jax.lax, name)
                and getattr(lax, name).examples())


def weak_outputs(outs):
    outs = outs[0] if isinstance(outs, tuple) else outs
    return [a.weak_type for a in (outs if isinstance(outs, (list, tuple)) else [outs])]


def theirs(name, avals, weak, params):
    given = [TheirType(a.shape, np.dtype(a.dtype), bool(w))
             for a, w in zip(avals, weak, strict=True)]
    return weak_outputs(getattr(jax.lax, f"{name}_p").abstract_eval(
        *given, **params, **OF_JAX_ALONE.get(name, {})))


@pytest.mark.parametrize("name", [n for n in SHARED if n not in ELSEWHERE])
def test_weak_types_of_results_are_those_of_jax(name):
    primitive, compared = getattr(lax, f"{name}_p"), 0
    for example in primitive.examples()[:8]:
        avals = [core.ShapedArray(np.shape(x), np.asarray(x).dtype) for x in example.args]
        if len(avals) > 4:
            continue
        for weak in itertools.product([False, True], repeat=len(avals)):
            given = [core.ShapedArray(a.shape, a.dtype, w)
                     for a, w in zip(avals, weak, strict=True)]
            ours = weak_outputs(primitive.abstract_eval(*given, **example.params))
            assert ours == theirs(name, avals, weak, example.params), (avals, weak)
            compared += 1
    assert compared
