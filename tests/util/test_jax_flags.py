"""Flags that programs for JAX set, and that change nothing here."""

import jax
import numpy as np
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


@pytest.mark.parametrize(("name", "value"), [("thread_guard", True),
                                             ("error_checking_behavior_nan", "raise")])
def test_what_would_be_switched_on_and_is_not_there_is_refused(name, value):
    with pytest.raises(ValueError, match="the only value that minijax supports"):
        minijax.config.update(f"jax_{name}", value)


def said(call):
    """Whether a call went through; of an error its class, and its words but for the type."""
    try:
        call()
    except Exception as error:
        return type(error).__name__, str(error).split("\n")[0].split("aval=")[0]
    return "taken"


GUARDED = {
    "numpy to array": lambda lib, f, x: lib.numpy.asarray(np.ones(3)),
    "list to array": lambda lib, f, x: lib.numpy.asarray(1.0),
    "device_put": lambda lib, f, x: lib.device_put({"a": np.ones(2)}),
    "device_put of a number": lambda lib, f, x: lib.device_put(np.float32(1), lib.devices()[0]),
    "device_put of an array": lambda lib, f, x: lib.device_put(x, lib.devices()[0]),
    "a number beside an array": lambda lib, f, x: x + 1.5,
    "numpy beside an array": lambda lib, f, x: x + np.ones(3, np.float32),
    "jit of an array": lambda lib, f, x: f(x),
    "jit of numpy": lambda lib, f, x: f(np.ones(3, np.float32)),
    "jit of a number": lambda lib, f, x: f(1.0),
    "jit anew": lambda lib, f, x: lib.jit(lambda x: x * np.arange(3) + 1)(x),
    "operations": lambda lib, f, x: lib.numpy.concatenate([x, lib.numpy.sin(x) * x]).sum(),
    "random": lambda lib, f, x: lib.random.split(KEYS[lib]),
    "to numpy": lambda lib, f, x: (np.asarray(x), x.tolist(), lib.device_get(x), repr(x)),
}
KEYS = {lib: lib.random.key(0) for lib in (minijax, jax)}


@pytest.mark.parametrize("flag", ["transfer_guard", "transfer_guard_host_to_device",
                                  "transfer_guard_device_to_host"])
@pytest.mark.parametrize("guard", ["allow", "disallow", "disallow_explicit"])
def test_numbers_come_in_as_the_guard_allows(flag, guard):
    def outcomes(lib):
        f, x = lib.jit(lambda x: x + 1), lib.numpy.ones(3)
        for program in GUARDED.values():
            program(lib, f, x)
        with getattr(lib, flag)(guard):
            return {name: said(lambda program=program: program(lib, f, x))
                    for name, program in GUARDED.items()}
    ours, theirs = outcomes(minijax), outcomes(jax)
    if guard == "disallow_explicit" and flag != "transfer_guard_device_to_host":
        del ours["device_put of a number"], theirs["device_put of a number"]  # it is no memory here
    assert ours == theirs


def test_a_guard_may_write_to_the_log(caplog):
    with minijax.transfer_guard("log"), caplog.at_level("WARNING", "minijax"):
        minijax.device_put(np.ones(3))
        assert not caplog.text
        minijax.numpy.ones(3) + np.ones(3)
        assert "host-to-device transfer: aval=ShapedArray(float32[3])" in caplog.text


def test_the_narrower_guard_counts_and_values_are_checked():
    with minijax.transfer_guard("disallow"), minijax.transfer_guard_host_to_device("allow"):
        minijax.numpy.asarray(np.ones(3))
    for lib in (minijax, jax):
        with pytest.raises(ValueError, match="'?disallow_explicit'?"):
            lib.config.update("jax_transfer_guard", "nonsense")
        with lib.transfer_guard("disallow"):
            assert lib.config.jax_transfer_guard == "disallow"


@pytest.mark.parametrize("program", [
    lambda lib, f, x: lib.jit(lambda y: y * 3)(x), lambda lib, f, x: f(x),
    lambda lib, f, x: f(x[:2]), lambda lib, f, x: x + x,
    lambda lib, f, x: lib.make_jaxpr(lambda y: y + 1)(x),
    lambda lib, f, x: lib.eval_shape(lambda y: y + 1, x)])
def test_what_would_trace_is_refused_under_no_tracing(program):
    def outcome(lib):
        f, x = lib.jit(lambda x: x + 1), lib.numpy.ones(3)
        f(x), x + x, x[:2]
        with lib.no_tracing(True):
            told = said(lambda: program(lib, f, x))
        if told == "taken":
            return told
        return told[0], told[1].split("<")[0], told[1].split(" for ")[1]
    assert outcome(minijax) == outcome(jax)
