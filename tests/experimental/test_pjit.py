"""Former names of functions, here and in JAX."""

import importlib
import warnings

import jax
import numpy as np
import pytest

import minijax


@pytest.mark.parametrize("name, last", [("experimental.pjit", "pjit"),
                                        ("experimental.shard_map", "shard_map")])
def test_former_names_warn_as_jax_warns(name, last):
    found = []
    for root in ("jax", "minijax"):
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            assert callable(getattr(importlib.import_module(f"{root}.{name}"), last))
        found.append([(w.category, str(w.message)) for w in given])
    assert found[0] == found[1]


def test_they_are_the_functions_of_now():
    spec = minijax.sharding.PartitionSpec
    mesh = minijax.sharding.Mesh(np.array(minijax.devices()), ("x",))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pjit = importlib.import_module("minijax.experimental.pjit").pjit
        shard_map = importlib.import_module("minijax.experimental.shard_map").shard_map
    f = shard_map(lambda x: minijax.lax.psum(x, "x"), mesh, spec("x"), spec(), check_rep=False)
    assert pjit(f)(np.ones(4)).tolist() == [1, 1, 1, 1]
    for name in ("pjit", "shard_map"):
        module = importlib.import_module(f"minijax.experimental.{name}")
        with pytest.raises(AttributeError, match="has no attribute 'other'"):
            _ = module.other
    assert jax.__name__ == "jax"
