"""The few things inside of JAX that its helpers of tests themselves use, written over ours."""

from __future__ import annotations

import contextlib
import enum
import functools
import inspect
import itertools
import os
import types
from typing import Any

import ml_dtypes
import numpy as np

from minijax import (config, core, dtypes, effects_barrier, lax, numpy as jnp,
                     make_array_from_single_device_arrays, random)
from minijax.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from minijax.extend import backend, random as generators
from minijax.placement import named_sharding
from minijax.primitives import convert
from minijax.primitives.keys import random_unwrap_p
from minijax.transforms import jacobians
from tests.jax_suite import stand_ins


def environment(convert: Any) -> Any:
    """A reader of variables of the environment."""
    return lambda name, default: convert(os.environ[name]) if name in os.environ else default


of_tests: dict[str, Any] = {}


def test_flag(name: str, default: Any, *_: Any, **__: Any) -> Any:
    """A flag of JAX's helpers: its value alone, for one process."""
    of_tests[name] = default
    return types.SimpleNamespace(name=name, value=default)


def read(name: str) -> Any:
    """The value of a flag, of ours or of JAX's helpers."""
    return of_tests[name] if name in of_tests else config.read(name)


def split_list(items: Any, sizes: Any) -> list[list]:
    """A list cut into lists of these sizes and the rest."""
    ends = [0, *itertools.accumulate(sizes), len(items)]
    return [list(items[start:end]) for start, end in itertools.pairwise(ends)]


def subvals(items: Any, replaced: Any) -> tuple:
    """Items, those at some places replaced."""
    return tuple({**dict(enumerate(items)), **dict(replaced)}.values())


def unzip3(triples: Any) -> tuple[tuple, ...]:
    """The first, the second and the third items of triples."""
    rows = list(triples)
    return tuple(tuple(row[i] for row in rows) for i in range(3))


def unzip2(pairs: Any) -> tuple[tuple, tuple]:
    """The first and the second items of pairs."""
    both = list(pairs)
    return tuple(x for x, _ in both), tuple(y for _, y in both)


class States(dict):
    """All flags by JAX's names; a flag that we lack holds nothing."""

    def __missing__(self, name: str) -> Any:
        return stand_ins.Missing(f"config.{name}")


@functools.lru_cache
def compiled_operation(*_: Any) -> None:
    """JAX's cache of compiled operations: it never changes here."""


def reset_trace_state() -> bool:
    """Whether no transformation is left behind."""
    return core.current_trace.get() is core.base_trace


def get_backend(platform: str | None = None) -> types.SimpleNamespace:
    """The client of a platform, with its names."""
    client = backend.get_backend(platform)
    return types.SimpleNamespace(platform=client.platform, platform_version="minijax")


get_backend.cache_clear = lambda: None  # type: ignore[attr-defined]

class ExplicitX64Mode(enum.Enum):
    """What JAX does with explicit 64-bit dtypes: here it warns."""

    WARN, ERROR, ALLOW = "warn", "error", "allow"


class ExplicitX64:
    """The flag of that name."""

    value = ExplicitX64Mode.WARN

    def __call__(self, mode: Any) -> Any:
        return NothingChanges() if mode in (self.value, "warn") else Refused()


class NothingChanges(contextlib.ContextDecorator):
    """A context in which the flag has the value that it has."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass


class Refused(NothingChanges):
    """A context in which it would have another."""

    def __enter__(self) -> None:
        raise stand_ins.NeedsInternals("config.explicit_x64_dtypes")

    def __call__(self, test: Any) -> Any:  # there may be several of one name
        return super().__call__(test) if inspect.isfunction(test) else test


class ExtendedDType:
    """A dtype of the test's own, which only JAX's own modules may define."""

    @property
    def dtype(self) -> Any:
        raise stand_ins.NeedsInternals("dtypes.ExtendedDType")


def convert_element_type(x: Any, new_dtype: Any = None, weak_type: bool = False, **_: Any) -> Any:
    """A conversion to a dtype that is weak or not."""
    dtype = core.get_aval(x).dtype if new_dtype is None else np.dtype(new_dtype)
    return convert.converted(core.as_value(x), dtypes.canonicalize_dtype(dtype), weak_type)


class AnyArray(type(core.ArrayImpl)):
    """The class of JAX's arrays' class: every array of ours is one of them."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, core.ArrayImpl)


class ArrayImpl(core.ArrayImpl, metaclass=AnyArray):
    """JAX's class of arrays, called with the parts on the devices."""

    def __new__(cls, aval: Any, sharding: Any, arrays: Any, committed: bool) -> Any:
        return make_array_from_single_device_arrays(aval.shape, sharding, arrays, dtype=aval.dtype)


class AnyKeys(type):
    """The class of JAX's class of arrays of keys: every array of ours with such a dtype is one."""

    def __instancecheck__(cls, x: Any) -> bool:
        return dtypes.is_key(getattr(x, "dtype", None))


class PRNGKeyArray(metaclass=AnyKeys):
    """JAX's class of arrays of keys."""


# What JAX's tests ask of arrays of keys: the generator, which is their dtype, and their words.
core.ArrayImpl._impl = property(lambda x: x.dtype)  # type: ignore[attr-defined]
core.ArrayImpl._base_array = property(random.key_data)  # type: ignore[attr-defined]

# What JAX's tests ask of arrays: the values of a live one, and of a deleted one nothing.
for _name, _get in {
        "_value": np.asarray, "_npy_value": lambda x: None, "_arrays": lambda x: None,
        "_check_if_deleted": lambda x: lambda: np.asarray(x),
        "_fully_replicated_shard": lambda x: lambda: x.addressable_data(0)}.items():
    setattr(core.ArrayImpl, _name, property(_get))


def on_words(function: Any, returns_keys: bool = True) -> Any:
    """A function of Threefry's keys as one of their words."""
    def of_words(words: Any, *args: Any) -> Any:
        out = function(random.wrap_key_data(words, impl="threefry2x32"), *args)
        return random.key_data(out) if returns_keys else out
    return of_words


def first_of(best: Any) -> Any:
    """`pargmax`, `pargmin`: the first place along a named axis that has the best value."""
    def index(x: Any, axis_name: Any) -> Any:
        place, size = lax.axis_index(axis_name), lax.axis_size(axis_name)
        return lax.pmin(jnp.where(x == best(x, axis_name), place, size), axis_name)
    index.__name__ = best.__name__.replace("p", "parg")
    return index


config._read = read  # type: ignore[attr-defined]
config.Flag.get_global = lambda flag: config._shared[flag.name]  # type: ignore[attr-defined]


def jax_type(dtype: Any, weak_type: bool) -> Any:
    """A place in the lattice of promotion: a dtype, or the type of Python's numbers of its kind."""
    kinds = {int: np.integer, float: np.floating, complex: np.complexfloating} if weak_type else {}
    return next((x for x, kind in kinds.items() if dtypes.issubdtype(dtype, kind)), dtype)


def curry(f: Any) -> Any:
    """A function that takes its first arguments alone, and returns one of the others."""
    return functools.partial(functools.partial, f)


_no = lambda *_: False
INTERNALS: dict[str, Any] = {
    "config.bool_flag": test_flag, "config.int_flag": test_flag,
    "config.string_flag": test_flag, "config.enum_flag": test_flag,
    "config.bool_env": environment(lambda text: text.lower() in ("1", "true", "yes", "on")),
    "config.int_env": environment(int),
    "config._read": read,
    "config.config": config,
    "config.config_states": States({f"jax_{name}": f for name, f in config.flags.items()}),
    "config.ExplicitX64Mode": ExplicitX64Mode, "config.explicit_x64_dtypes": ExplicitX64(),
    "core.reset_trace_state": reset_trace_state,
    "dispatch.runtime_tokens": types.SimpleNamespace(
        clear=lambda: None, block_until_ready=effects_barrier),
    "lax.control_flow.common._dedup_consts": compiled_operation,
    "lax.control_flow.common._pad_constvars": compiled_operation,
    "dispatch.xla_primitive_callable": compiled_operation,
    "cloud_tpu_init.running_in_cloud_tpu_vm": False,
    "interpreters.mlir._platforms_with_donation": ["cpu"],
    "lib.version": (0, 10, 2),
    "lib.jaxlib_extension_version": 10_000,
    "lib.cuda_versions": None,
    "lib._jax": types.SimpleNamespace(is_optimized_build=lambda: True, is_asan=_no, is_msan=_no,
                                      is_tsan=_no, is_sanitized=_no),
    "dtypes.ExtendedDType": ExtendedDType,
    "array.ArrayImpl": ArrayImpl,
    "dlpack.SUPPORTED_DTYPES_SET": frozenset(map(np.dtype, (
        "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
        "complex64 complex128 bool").split())),
    "sharding.IndivisibleError": named_sharding.IndivisibleError,
    "api._std_basis": jacobians._basis,
    "lax.eval_jaxpr.eval_jaxpr_p": types.SimpleNamespace(
        bind=lambda *args, jaxpr: jaxpr_as_fun(jaxpr)(*args)),
    "interpreters.partial_eval.close_jaxpr": lambda jaxpr: ClosedJaxpr(jaxpr, ()),
    "random.default_prng_impl": lambda: dtypes.key_dtype(config.read("jax_default_prng_impl")),
    "config.jax_ragged_dot_use_ragged_dot_instruction": lambda _: NothingChanges(),
    "lax.lax._convert_element_type": convert_element_type,
    "lax.parallel.pargmax": first_of(lax.pmax), "lax.parallel.pargmin": first_of(lax.pmin),
    "util.curry": curry, "util.split_list": split_list, "util.unzip2": unzip2,
    "util.unzip3": unzip3, "util.subvals": subvals, "lax.lax.asarray": jnp.asarray,
    "numpy.util.promote_dtypes_complex": lambda *xs: [
        jnp.asarray(x, np.result_type(*(x.dtype for x in xs), np.complex64)) for x in xs],
    "dtypes.default_types": {kind: functools.partial(dtypes.canonicalize_dtype, name)
                             for kind, name in zip("biufc", (
                                 "bool", "int64", "uint64", "float64", "complex128"), strict=True)},
    "deprecations.is_accelerated": _no,
    "xla_bridge.get_backend": get_backend,
    "xla_bridge.num_cpu_devices": config.num_cpu_devices,
    **{f"dtypes.{name}": getattr(ml_dtypes, name) for name in dir(ml_dtypes) if name[-1].isdigit()
       or name.endswith(("fn", "fnu", "fnuz"))},
    "dtypes._jax_type": jax_type, "dtypes.isdtype": jnp.isdtype, "dtypes.bool_": np.bool_,
    "dtypes._dtype_and_weaktype": lambda x: (
        dtypes.dtype(x), dtypes.is_weakly_typed(x(0) if isinstance(x, type) else x)),
    "dtypes.check_and_canonicalize_user_dtype": lambda x: dtypes.check_user_dtype_supported(x, ""),
    "dtypes._jax_types": [dtypes.BOOL, *dtypes.NUMERIC],
    "dtypes._weak_types": [int, float, complex],
    "dtypes._intn_dtypes": [np.dtype(x) for x in ("int2", "int4", "uint2", "uint4")],
    "dtypes.python_scalar_types_to_dtypes": {
        bool: np.dtype(bool), int: np.dtype("int64"), float: np.dtype("float64"),
        complex: np.dtype("complex128")},
    "random.prng.PRNGKeyArray": PRNGKeyArray, "random.prng.KeyTy": dtypes.KeyType,
    "random.prng.PRNGImpl": generators.define_prng_impl,
    "random.threefry2x32.threefry_seed": lambda seed: random.key_data(
        generators.random_seed(seed, "threefry2x32")),
    "random.threefry2x32.threefry_split": on_words(random.split),
    "random.threefry2x32.threefry_fold_in": on_words(random.fold_in),
    "random.threefry2x32.threefry_random_bits": on_words(
        lambda key, bit_width, shape: random.bits(key, shape, f"uint{bit_width}"), False),
    "random.prng.random_wrap": lambda words, impl: random.wrap_key_data(words, impl=impl),
    "random.prng.random_unwrap": random_unwrap_p.bind,
    "random.prng.random_bits": lambda key, bit_width, shape: random.bits(
        key, shape, f"uint{bit_width}"),
    "random.prng.prngs": {x: dtypes.key_dtype(x) for x in config.GENERATORS},
    "numpy.indexing.rewriting_take": stand_ins.Missing("numpy.indexing.rewriting_take"),
    "compilation_cache._cache": None,
    "compilation_cache.is_persistent_cache_enabled": _no,
}
