"""Flags of JAX without effect in minijax: of XLA, of clusters, of JAX's own development.

Builds on `config`.  A row is JAX's default, which determines the type of a value, and flags that
have it.  In JAX: `jax/_src/config.py` and many other files.
"""

import ast
import numbers
from typing import Any

from minijax import config

# What these ask for is not there, or it always is; any value of their kind is taken.
TAKEN = """
True auto_pcast check_proxy_envs compiler_enable_remat_pass cpu_enable_async_dispatch
True enable_preemption_service include_debug_info_in_dumps include_full_tracebacks_in_locations
True mutable_array_checks pallas_use_mosaic_gpu pprint_use_color
True ragged_dot_use_ragged_dot_instruction sort_devices_by_process_index use_direct_linearize
True use_shardy_partitioner
'' backend_target cross_host_transfer_socket_address cross_host_transport_addresses xla_backend
False bcoo_cusparse_lowering check_static_indices compilation_cache_check_contents
False compilation_cache_expect_pgle compilation_cache_include_metadata_in_key custom_vjp3
False debug_leaked_clients_on_clear_backends disable_bwd_checks disable_vmap_shmap_error
False disallow_mesh_context_manager distributed_debug enable_pgle enable_recoverability
False export_ignore_forward_compatibility force_dcn_cross_host_transfers
False jax2tf_associative_scan_reductions mosaic_allow_hlo pallas_enable_debug_checks
False pallas_poison_buffers pallas_verbose_errors ragged_dot_use_gpu_pallas_triton_lowering
False raise_persistent_cache_errors refs_to_pins remat3
False remove_custom_partitioning_ptr_from_cache_key remove_size_one_mesh_axis_from_type scan3
False share_binary_between_hosts threefry_gpu_kernel_lowering
False use_emit_pipeline_primitive use_simplified_jaxpr_constants
0 captured_constants_report_frames persistent_cache_min_entry_size_bytes serialization_version
0 xla_profile_version
2000000000 captured_constants_warn_bytes
-1 compilation_cache_max_size
10 compiler_detailed_logging_min_ops export_calling_convention_version
'gloo' cpu_collectives_implementation
5 cpu_get_global_topology_timeout_minutes
2 cpu_get_local_topology_timeout_minutes
None cross_host_transfer_timeout_seconds cross_host_transfer_transfer_size
None hlo_source_file_canonicalization_regex pjrt_client_create_options source_url_schema
'all' cuda_visible_devices oneapi_visible_devices rocm_visible_devices
'stablehlo' dump_ir_modes
32 embedded_constants_max_bytes
0.0 exec_time_optimization_effort memory_fitting_effort
'NOTSET' logging_level
'O2' memory_fitting_level
'UNKNOWN' optimization_level
'xla_gpu_per_fusion_autotune_cache_dir' persistent_cache_enable_xla_caches
1.0 persistent_cache_min_compile_time_secs
90 pgle_aggregation_percentile
3 pgle_profiling_runs
'off' send_traceback_to_runtime
1200000 share_binary_between_hosts_timeout_ms
100 traceback_in_locations_limit
'auto' use_magma
"""

# What these would switch on is not there, so that only the default is taken.
ONLY_THE_DEFAULT = """
None array_garbage_collection_guard
'' debug_log_modules dump_ir_to mock_gpu_topology
'ignore' error_checking_behavior_divide error_checking_behavior_nan error_checking_behavior_oob
'warn' explicit_x64_dtypes
False high_dynamic_range_gumbel thread_guard
"""


def _same_only(default: Any) -> config.Kind:
    def check(value: Any) -> Any:
        if value not in (default, "allow"):
            raise ValueError("not the default")
        return value
    return config.Kind(check, lambda text: text or None,
                       f"{default!r} here, the only value that minijax supports")


def _real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError("not a number")
    return float(value)


_KINDS = {bool: config.boolean, int: config.integer, float: config.Kind(_real, float, "a number")}


def _declare(table: str, is_free: bool) -> None:
    rows = (row.split() for row in table.strip().splitlines())
    for name, text in sorted((name, text) for text, *names in rows for name in names):
        default = ast.literal_eval(text)
        kind = _KINDS.get(type(default), config.hashable) if is_free else _same_only(default)
        config.define(name, kind, default, "A flag of JAX that changes nothing here.")


config.define("softmax_custom_jvp", config.boolean, False,
              "Whether nn.softmax keeps its result alone for its derivative.", traced=True)
config.define("allow_f16_reductions", config.boolean, True,
              "Whether float16 and bfloat16 are summed; the sums are computed in float32 here.",
              traced=True)
config.define("log_checkpoint_residuals", config.boolean, False,
              "Warn of what functions under `checkpoint` keep for their backward pass.")
_declare(TAKEN, True)
_declare(ONLY_THE_DEFAULT, False)

# Those that JAX has as `with` statements, too.
(allow_f16_reductions, array_garbage_collection_guard, auto_pcast,
 jax2tf_associative_scan_reductions, no_execution, remove_size_one_mesh_axis_from_type,
 softmax_custom_jvp, thread_guard) = map(config.flags.__getitem__, (
     "allow_f16_reductions array_garbage_collection_guard auto_pcast "
     "jax2tf_associative_scan_reductions no_execution remove_size_one_mesh_axis_from_type "
     "softmax_custom_jvp thread_guard").split())
