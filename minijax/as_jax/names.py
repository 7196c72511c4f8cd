"""JAX's names that have another place in minijax, or serve libraries only, and their users.

A row is a module of JAX, the place of its names in the package (``a=b``: there it is called b), and
the libraries that need them.  Builds on nothing.
In JAX: `jax/_src/`, `jax/interpreters/`, `jax/extend/`.
"""

from collections.abc import Iterator

TABLE = """
jax as_jax.internals | __version__=version __version_info__=version_info | Equinox, Flax, Optax
jax.version as_jax.internals | __version__=version __version_info__=version_info | Flax, Orbax
jax.core extend.core | get_opaque_trace_state | Flax
jax.core util.source_info | DebugInfo | distrax
jax.core extend.core | DropVar find_top_trace | Haiku
jax.core extend.core | check_jaxpr gensym jaxprs_in_params new_jaxpr_eqn valid_jaxtype | distrax
jax.core as_jax.internals | is_constant_dim | tutorials
jax.core extend.core | concrete_or_error primal_dtype_to_tangent_dtype | TFP
jax.core extend.rules | pytype_aval_mappings=canonicalize_dtype_handlers | TFP
jax.core core.jaxpr | Atom | Equinox
jax.experimental.array_serialization as_jax | serialization=checkpoints | Orbax
jax.experimental.colocated_python experimental | func=colocated_python | Orbax
jax.experimental.colocated_python.serialization as_jax.internals | DeviceList | Orbax
jax.experimental.ode as_jax | api_util=internals | bijx
jax.experimental.ode as_jax.internals | ravel_first_arg | bijx
jax.lib as_jax.internals | __version__=version | Equinox
jax.experimental.hijax as_jax.hijax | AbstractValue AvalMutableQDD AvalQDD HiPrimitive | Flax
jax.experimental.hijax as_jax.hijax | MutableHiType Zero aval_method aval_property | Flax
jax.experimental.hijax as_jax.hijax | control_flow_allowed_effects instantiate_zeros | Flax
jax.experimental.hijax as_jax.hijax | cur_qdd is_undefined_primal register_hitype | Flax
jax.experimental.hijax core | ShapedArray | tutorials
jax.experimental.hijax transforms.array_refs | AbstractRef TransformedRef | tutorials
jax.experimental as_jax.hijax | cur_qdd | Flax
jax._src experimental | checkify | Flax
jax._src extend | linear_util | Quax
jax._src . | public_test_util=test_util | tinygp
jax.extend.ifrt_programs.ifrt_programs as_jax.internals | make_plugin_program=plugin_program | Orbax
jax.extend.source_info_util as_jax.internals | register_exclusion | Flax
jax.extend.source_info_util as_jax.internals | summarize | folx
jax.api_util as_jax.internals | debug_info flatten_fun flatten_fun_nokwargs | Flax
jax.api_util as_jax.internals | safe_map | distrax
jax.api_util as_jax.internals | argnums_partial | tutorials
jax.api_util tree_util | flatten_axes | jaxoplanet
jax.interpreters.ad core.jvp | JVPTrace | tutorials
jax.interpreters.ad core.jvp | JVPTracer | Equinox
jax.interpreters.ad core | UndefinedPrimal=Undefined | Equinox, Lineax
jax.interpreters.ad core | Zero | Equinox
jax.interpreters.ad extend.rules | add_tangents defbilinear defjvp defjvp2 | tutorials
jax.interpreters.ad extend.rules | deflinear deflinear2 | tutorials
jax.interpreters.ad primitives.ad_util | instantiate_zeros=instantiate | Equinox
jax.interpreters.ad extend.rules | is_undefined_primal primitive_jvps | Equinox
jax.interpreters.ad extend.rules | primitive_transposes | Equinox, Lineax
jax.interpreters.batching extend.rules | axis_primitive_batchers primitive_batchers | Equinox
jax.interpreters.batching extend.rules | defvectorized fancy_primitive_batchers | tutorials
jax.interpreters.batching extend.vmappable | register_vmappable | MuJoCo, Brax
jax.interpreters.batching extend.vmappable | unregister_vmappable | tutorials
jax.interpreters.mlir extend.rules | LoweringRuleContext | KFAC-JAX
jax.interpreters.mlir extend.rules | emit_python_callback lower_fun register_lowering | Equinox
jax.interpreters.partial_eval core.tracing | DynamicJaxprTracer | KFAC-JAX
jax.interpreters.partial_eval as_jax.internals | PartialVal trace_to_jaxpr_nounits | Flax
jax.interpreters.partial_eval extend.core | dce_jaxpr | KFAC-JAX
jax.interpreters.pxla as_jax.internals | thread_resources | Flax
jax.interpreters.xla extend.rules | apply_primitive | tutorials
jax.interpreters.xla extend.rules | canonicalize_dtype_handlers | TFP
jax._src.ad_util primitives.convert | stop_gradient_p | Lineax
jax._src.array as_jax.internals | _reconstruct_array=array_from_pickle | CAX
jax._src.api . | grad jit jvp vmap | tutorials
jax._src.api_util as_jax.internals | infer_argnums_and_argnames | e3nn-jax
jax._src.compiler as_jax.internals | backend_compile_and_load | Chex
jax._src.core as_jax.traces | Trace | Quax
jax._src.core extend.core | TraceTag set_current_trace take_current_trace | Quax
jax._src.core core.jaxpr | jaxpr_as_fun | Quax
jax._src.core extend.core | ClosedJaxpr Jaxpr JaxprEqn Literal Var | asdex
jax._src.core extend.core | trace_state_clean | NumPyro
jax._src.dispatch extend.rules | apply_primitive | tutorials
jax._src.dispatch as_jax.internals | wait_for_tokens | Equinox
jax._src.dtypes as_jax.internals | ExtendedDType | Flax
jax._src.interpreters.ad errors | CustomVJPException=UnexpectedTracerError | Diffrax
jax._src.interpreters.batching extend.vmappable | is_vmappable | jaxoplanet
jax._src.interpreters.partial_eval extend.core | dce_jaxpr | asdex
jax._src.interpreters.pxla as_jax.internals | global_result_handlers=result_handlers | Flax
jax._src.literals as_jax.internals | TypedComplex TypedFloat TypedInt | Quax
jax._src.literals as_jax.internals | TypedNdArray | Equinox
jax._src.lax . | lax | tutorials
jax._src.lib.xla_client errors | XlaRuntimeError=JaxRuntimeError | Dynamiqs
jax._src.numpy.util numpy.arguments | promote_dtypes_complex promote_dtypes_inexact | S2FFT
jax._src.pjit transforms.compiled | jit_p | Quax, JAXNS
jax._src.pjit transforms.jit | pjit=jit | JAXNS
jax._src.pjit sharding | auto_axes | JAXNS
jax._src.random random.samplers | Shape | evermore
jax._src.sharding_impls as_jax.internals | canonicalize_sharding | JAXNS
jax._src.state.types transforms.array_refs | AbstractRef | Flax
jax._src.traceback_util errors | UnfilteredStackTrace | JAX's tests
jax._src.traceback_util util.tracebacks | api_boundary | Flax
jax._src.traceback_util util.tracebacks | include_frame=is_user_frame | Equinox
jax._src.traceback_util as_jax.internals | register_exclusion | Equinox, jaxtyping
jax._src.traceback_util as_jax.internals | _exclude_paths=excluded | Flax
jax._src.lib as_jax.internals | version_str=version | tests
jax._src.util as_jax.internals | safe_map safe_zip | tutorials
jax._src.tree_util util.pytree | _registry=kinds | Flax
jax._src.tree_util as_jax.internals | broadcast_flattened_prefix_with_treedef=prefix_leaves | tests
jax._src.tree_util tree_util | dispatch_registry=default_registry | tests
jax._src.xla_bridge as_jax.internals | _backends=backends | Chex
"""


def places(row: str) -> Iterator[tuple[str, str]]:
    """Each of JAX's names in a row, and its place inside the package."""
    modules, names, _ = row.split("|")
    theirs, ours = modules.split()
    for name in names.split():
        name, _, own = name.partition("=")
        yield f"{theirs}.{name}", f"{ours}.{own or name}".lstrip(".")


# JAX's name → the place inside the package.
OURS = dict(pair for row in TABLE.strip().splitlines() for pair in places(row))
