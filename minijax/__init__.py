"""minijax: JAX rebuilt small enough to read.  This module is the list of its public names.

Each name is loaded on first use.
Start with `notebooks/00_tour.ipynb`.  In JAX: `jax/__init__.py`.
"""

from typing import TYPE_CHECKING

from minijax import config, core, sharp_bits
from minijax.util import exports, jax_flags, lazily, operators

if TYPE_CHECKING:
    from minijax import (ad_checkpoint, config, core, custom_batching, custom_derivatives, debug,
                         distributed, dlpack, dtypes, errors, experimental, extend, image, lax,
                         monitoring, nn, numpy, ops, profiler, random, ref, scipy, sharding,
                         stages, tree, tree_util, typing)
    from minijax.transforms.api import disable_jit, eval_shape, fwd_and_bwd, make_jaxpr, vmap
    from minijax.config import (
        check_tracer_leaks, checking_leaks, debug_dtype_truncation, debug_infs, debug_key_reuse,
        debug_nans, debug_out_of_bounds, debug_purity, debug_recompiles, debug_unsafe_casts,
        default_device, default_matmul_precision, default_prng_impl, enable_checks,
        enable_custom_prng, enable_x64, explain_cache_misses, legacy_prng_key, log_compiles,
        no_execution, no_tracing, numpy_dtype_promotion, numpy_rank_promotion,
        threefry_partitionable, transfer_guard, transfer_guard_device_to_device,
        transfer_guard_device_to_host, transfer_guard_host_to_device)
    from minijax.core import typeof
    from minijax.custom_derivatives import closure_convert, custom_gradient, custom_jvp, custom_vjp
    from minijax.transforms.derivatives import ad, jvp, linearize, vjp
    from minijax.placement.device_put import (
        block_until_ready, copy_to_host_async, default_backend, device_count, device_get,
        device_put, devices, host_count, host_id, host_ids, local_device_count, local_devices,
        print_environment_info, process_count, process_index, process_indices)
    from minijax.dtypes import float0
    from minijax.transforms.gradients import grad, value_and_grad
    from minijax.transforms.linear_transpose import linear_transpose
    from minijax.transforms.jacobians import hessian, jacfwd, jacobian, jacrev
    from minijax.custom.checkpoint import checkpoint, remat
    from minijax.custom.host_callback import effects_barrier, pure_callback
    from minijax.custom.checkpoint_policies import checkpoint_policies
    from minijax.transforms.stages import ShapeDtypeStruct
    from minijax.placement.devices import Device
    from minijax.transforms.jit import clear_caches, jit
    from minijax.placement.memory_spaces import memory
    from minijax.placement.meshes import P, make_mesh, set_mesh
    from minijax.placement.resharding import (Shard, live_arrays, make_array_from_callback,
                                              make_array_from_process_local_data,
                                              make_array_from_single_device_arrays, reshard)
    from minijax.placement.named_sharding import NamedSharding
    from minijax.numpy.index_plan import ds
    from minijax.numpy.operators import Array
    from minijax.util.jax_flags import (allow_f16_reductions, array_garbage_collection_guard,
                                        auto_pcast, jax2tf_associative_scan_reductions,
                                        remove_size_one_mesh_axis_from_type,
                                        softmax_custom_jvp, thread_guard)
    from minijax.transforms.array_refs import Ref, empty_ref, free_ref, freeze, new_ref
    from minijax.placement.pmap import pmap
    from minijax.transforms.scopes import (ensure_compile_time_eval, make_user_context, named_call,
                                           named_scope)
    from minijax.placement.shard_map import shard_map, smap
    from minijax.sharp_bits.findings import checking_sharp_bits
    from minijax.notebook.widgets.explain import explain

__version__ = "0.1.0"
config = config.config  # type: ignore[assignment]  # not the module: its names in an object, as in JAX
__all__ = lazily.attach(globals(), exports.exported)

# ── Hooks: what inner rings call and outer rings define, loaded at its first use ──────────────

operators.Operators.load = lazily.later("minijax.numpy.operators")
core.ShapedArray.sharding = property(
    lazily.later("minijax.placement.named_sharding", "sharding_of_type"))
core.ShapedArray.memory_space = property(  # type: ignore[attr-defined]
    lazily.later("minijax.placement.memory_spaces", "space_of_type"))
core.ShapedArray.mat = core.ShapedArray.manual_axis_type = property(  # type: ignore[attr-defined]
    lazily.later("minijax.sharding", "manual_axis_type"))
core.Tracer._leak_error = lazily.later("minijax.sharp_bits.leaks", "leaked")
core.Primitive.apply_to_parts = lazily.later("minijax.primitives.complex_pairs", "applied")
core.ShapedArray.shardings = config.Hook("minijax.placement.explicit_shardings")
core.EvalTrace.checks, core.EvalTrace.call_checks = sharp_bits.checks, sharp_bits.call_checks
core.Primitive.eager_dispatch = config.Hook(
    "minijax.placement.eager_dispatch", config.platforms, config.platform_name,
    config.default_device, config.mesh)
lazily.attach(vars(core))
lazily.attach(vars(config), table={"config_with_absl": "minijax.util.command_line",
                                   "parse_flags_with_absl": "minijax.util.command_line"})
del TYPE_CHECKING, exports, jax_flags, lazily, operators, sharp_bits
