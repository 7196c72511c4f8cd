"""Flags that programs for JAX set, and that change nothing here."""

import jax
import pytest

import minijax


def test_every_flag_of_jax_has_its_name_here():
    names = {name.removeprefix("jax_") for name in jax.config.values}
    ours = {name.removeprefix("jax_") for name in minijax.config.names()}
    assert names - ours <= {"check_vma", "eager_constant_folding", "mock_num_gpu_processes",
                            "jax2tf_default_native_serialization"}


def test_values_must_be_of_their_kind():
    with minijax.config.flags["use_shardy_partitioner"](False):
        assert minijax.config.jax_use_shardy_partitioner is False
    with pytest.raises(ValueError, match="takes an integer, not 'many'"):
        minijax.config.update("jax_traceback_in_locations_limit", "many")
    with pytest.raises(ValueError, match="takes a number, not True"):
        minijax.config.update("jax_memory_fitting_effort", True)


@pytest.mark.parametrize(("name", "value"), [("no_tracing", True), ("transfer_guard", "disallow"),
                                             ("error_checking_behavior_nan", "raise")])
def test_what_would_be_switched_on_and_is_not_there_is_refused(name, value):
    with pytest.raises(ValueError, match="minijax has nothing else"):
        minijax.config.update(f"jax_{name}", value)
    with minijax.transfer_guard("allow"):
        assert minijax.jit(lambda x: x + 1)(1) == 2
