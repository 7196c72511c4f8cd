"""Flags of JAX without effect in minijax: of XLA, of clusters, of JAX's own
development.

Builds on `config`.  A row is a name and JAX's default, which determines the type of a value.
In JAX: `jax/_src/config.py` and many other files.
"""

import ast
import numbers
from typing import Any

from minijax import config

# What these ask for is not there, or it always is; any value of their kind is taken.
TAKEN = """
auto_pcast True
backend_target ''
bcoo_cusparse_lowering False
captured_constants_report_frames 0
captured_constants_warn_bytes 2000000000
check_proxy_envs True
check_static_indices False
compilation_cache_check_contents False
compilation_cache_expect_pgle False
compilation_cache_include_metadata_in_key False
compilation_cache_max_size -1
compiler_detailed_logging_min_ops 10
compiler_enable_remat_pass True
cpu_collectives_implementation 'gloo'
cpu_enable_async_dispatch True
cpu_get_global_topology_timeout_minutes 5
cpu_get_local_topology_timeout_minutes 2
cross_host_transfer_socket_address ''
cross_host_transfer_timeout_seconds None
cross_host_transfer_transfer_size None
cross_host_transport_addresses ''
cuda_visible_devices 'all'
custom_vjp3 False
debug_leaked_clients_on_clear_backends False
disable_bwd_checks False
disable_vmap_shmap_error False
disallow_mesh_context_manager False
distributed_debug False
dump_ir_modes 'stablehlo'
embedded_constants_max_bytes 32
enable_pgle False
enable_preemption_service True
enable_recoverability False
exec_time_optimization_effort 0.0
export_calling_convention_version 10
export_ignore_forward_compatibility False
force_dcn_cross_host_transfers False
hlo_source_file_canonicalization_regex None
jax2tf_associative_scan_reductions False
include_debug_info_in_dumps True
include_full_tracebacks_in_locations True
logging_level 'NOTSET'
memory_fitting_effort 0.0
memory_fitting_level 'O2'
mosaic_allow_hlo False
mutable_array_checks True
oneapi_visible_devices 'all'
optimization_level 'UNKNOWN'
pallas_enable_debug_checks False
pallas_poison_buffers False
pallas_use_mosaic_gpu True
pallas_verbose_errors False
persistent_cache_enable_xla_caches 'xla_gpu_per_fusion_autotune_cache_dir'
persistent_cache_min_compile_time_secs 1.0
persistent_cache_min_entry_size_bytes 0
pgle_aggregation_percentile 90
pgle_profiling_runs 3
pjrt_client_create_options None
pprint_use_color True
ragged_dot_use_gpu_pallas_triton_lowering False
ragged_dot_use_ragged_dot_instruction True
raise_persistent_cache_errors False
refs_to_pins False
remat3 False
remove_custom_partitioning_ptr_from_cache_key False
remove_size_one_mesh_axis_from_type False
rocm_visible_devices 'all'
scan3 False
send_traceback_to_runtime 'off'
serialization_version 0
share_binary_between_hosts False
share_binary_between_hosts_timeout_ms 1200000
sort_devices_by_process_index True
source_url_schema None
threefry_gpu_kernel_lowering False
traceback_in_locations_limit 100
use_direct_linearize True
use_emit_pipeline_primitive False
use_magma 'auto'
use_shardy_partitioner True
use_simplified_jaxpr_constants False
xla_backend ''
xla_profile_version 0
"""

# What these would switch on is not there, so that only the default is taken.
ONLY_THE_DEFAULT = """
array_garbage_collection_guard None
debug_log_modules ''
dump_ir_to ''
error_checking_behavior_divide 'ignore'
error_checking_behavior_nan 'ignore'
error_checking_behavior_oob 'ignore'
explicit_x64_dtypes 'warn'
high_dynamic_range_gumbel False
mock_gpu_topology ''
thread_guard False
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


_KINDS = {bool: config.boolean, int: config.integer,
          float: config.Kind(_real, float, "a number")}


def _declare(table: str, is_free: bool) -> None:
    for row in table.strip().splitlines():
        name, _, text = row.partition(" ")
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
