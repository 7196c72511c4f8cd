"""JAX's names that have another place in minijax, or serve libraries only, and their users.

A row is JAX's name, the place in the package, and the libraries that need it.
Builds on nothing.  In JAX: `jax/_src/`, `jax/interpreters/`, `jax/extend/`.
"""

TABLE = """
jax.__version__                          as_jax.internals.version             Optax, jaxtyping
jax.__version_info__                     as_jax.internals.version_info        Equinox, Flax
jax.version.__version_info__             as_jax.internals.version_info        Flax, Orbax
jax.core.get_opaque_trace_state          extend.core.get_opaque_trace_state  Flax
jax.core.DebugInfo                       util.source_info.DebugInfo                distrax
jax.core.DropVar                         extend.core.DropVar                  Haiku
jax.core.check_jaxpr                     extend.core.check_jaxpr              distrax
jax.core.concrete_or_error               extend.core.concrete_or_error        TFP
jax.core.find_top_trace                  extend.core.find_top_trace           Haiku
jax.core.gensym                          extend.core.gensym                   distrax
jax.core.jaxprs_in_params                extend.core.jaxprs_in_params         distrax
jax.core.new_jaxpr_eqn                   extend.core.new_jaxpr_eqn            distrax
jax.core.primal_dtype_to_tangent_dtype   extend.core.primal_dtype_to_tangent_dtype  TFP
jax.core.pytype_aval_mappings            extend.rules.canonicalize_dtype_handlers    TFP
jax.core.valid_jaxtype                   extend.core.valid_jaxtype            distrax
jax.core.Atom                            core.jaxpr.Atom                           Equinox
jax.experimental.array_serialization.serialization  as_jax.checkpoints        Orbax
jax.experimental.colocated_python.func   experimental.colocated_python        Orbax
jax.experimental.colocated_python.serialization.DeviceList  as_jax.internals.DeviceList  Orbax
jax.lib.__version__                      as_jax.internals.version             Equinox
jax.experimental.hijax                   as_jax.hijax                         Flax
jax._src.checkify                        experimental.checkify                Flax
jax.extend.ifrt_programs.ifrt_programs.make_plugin_program  as_jax.internals.plugin_program  Orbax
jax.extend.source_info_util.register_exclusion  as_jax.internals.register_exclusion  Flax
jax.api_util.debug_info                  as_jax.internals.debug_info          Flax
jax.api_util.flatten_fun                 as_jax.internals.flatten_fun         Flax
jax.api_util.flatten_fun_nokwargs        as_jax.internals.flatten_fun_nokwargs  Flax
jax.api_util.safe_map                    as_jax.internals.safe_map            distrax
jax.interpreters.ad.JVPTrace             core.jvp.JVPTrace            tutorials
jax.interpreters.ad.JVPTracer            core.jvp.JVPTracer           Equinox
jax.interpreters.ad.UndefinedPrimal      core.Undefined                       Equinox, Lineax
jax.interpreters.ad.Zero                 core.Zero                            Equinox
jax.interpreters.ad.add_tangents         extend.rules.add_tangents            tutorials
jax.interpreters.ad.defbilinear          extend.rules.defbilinear             tutorials
jax.interpreters.ad.defjvp               extend.rules.defjvp                  tutorials
jax.interpreters.ad.defjvp2              extend.rules.defjvp2                 tutorials
jax.interpreters.ad.deflinear            extend.rules.deflinear               tutorials
jax.interpreters.ad.deflinear2           extend.rules.deflinear2              tutorials
jax.interpreters.ad.instantiate_zeros    primitives.ad_util.instantiate       Equinox
jax.interpreters.ad.is_undefined_primal  extend.rules.is_undefined_primal     Equinox
jax.interpreters.ad.primitive_jvps       extend.rules.primitive_jvps          Equinox
jax.interpreters.ad.primitive_transposes  extend.rules.primitive_transposes   Equinox, Lineax
jax.interpreters.batching.axis_primitive_batchers  extend.rules.axis_primitive_batchers  Equinox
jax.interpreters.batching.defvectorized  extend.rules.defvectorized           tutorials
jax.interpreters.batching.primitive_batchers  extend.rules.primitive_batchers  Equinox
jax.interpreters.batching.fancy_primitive_batchers  extend.rules.fancy_primitive_batchers  tutorials
jax.interpreters.batching.register_vmappable  extend.vmappable.register_vmappable  MuJoCo, Brax
jax.interpreters.batching.unregister_vmappable  extend.vmappable.unregister_vmappable  tutorials
jax.interpreters.mlir.LoweringRuleContext  extend.rules.LoweringRuleContext  KFAC-JAX
jax.interpreters.mlir.emit_python_callback  extend.rules.emit_python_callback  Equinox
jax.interpreters.mlir.lower_fun          extend.rules.lower_fun               Equinox
jax.interpreters.mlir.register_lowering  extend.rules.register_lowering       Equinox
jax.interpreters.partial_eval.DynamicJaxprTracer  core.tracing.DynamicJaxprTracer    KFAC-JAX
jax.interpreters.partial_eval.PartialVal  as_jax.internals.PartialVal         Flax
jax.interpreters.partial_eval.dce_jaxpr  extend.core.dce_jaxpr            KFAC-JAX
jax.interpreters.partial_eval.trace_to_jaxpr_nounits  as_jax.internals.trace_to_jaxpr_nounits  Flax
jax.interpreters.pxla.thread_resources   as_jax.internals.thread_resources    Flax
jax.interpreters.xla.apply_primitive     extend.rules.apply_primitive         tutorials
jax.interpreters.xla.canonicalize_dtype_handlers  extend.rules.canonicalize_dtype_handlers  TFP
jax._src.ad_util.stop_gradient_p         primitives.convert.stop_gradient_p   Lineax
jax._src.api_util.infer_argnums_and_argnames  as_jax.internals.infer_argnums_and_argnames  e3nn-jax
jax._src.compiler.backend_compile_and_load  as_jax.internals.backend_compile_and_load  Chex
jax._src.core.Trace                      as_jax.traces.Trace                  Quax
jax._src.core.TraceTag                   extend.core.TraceTag                 Quax
jax._src.core.jaxpr_as_fun               core.jaxpr.jaxpr_as_fun                   Quax
jax._src.core.set_current_trace          extend.core.set_current_trace        Quax
jax._src.core.take_current_trace         extend.core.take_current_trace       Quax
jax._src.core.trace_state_clean          extend.core.trace_state_clean        NumPyro
jax._src.dispatch.apply_primitive        extend.rules.apply_primitive         tutorials
jax._src.dispatch.wait_for_tokens        as_jax.internals.wait_for_tokens     Equinox
jax._src.dtypes.ExtendedDType            as_jax.internals.ExtendedDType       Flax
jax._src.interpreters.ad.CustomVJPException  errors.UnexpectedTracerError       Diffrax
jax._src.interpreters.pxla.global_result_handlers  as_jax.internals.result_handlers  Flax
jax._src.linear_util                     extend.linear_util                   Quax
jax._src.literals.TypedComplex           as_jax.internals.TypedComplex        Quax
jax._src.literals.TypedFloat             as_jax.internals.TypedFloat          Quax
jax._src.literals.TypedInt               as_jax.internals.TypedInt            Quax
jax._src.literals.TypedNdArray           as_jax.internals.TypedNdArray        Equinox
jax._src.pjit.jit_p                      transforms.compiled.jit_p          Quax, JAXNS
jax._src.pjit.pjit                       transforms.jit.jit                 JAXNS
jax._src.public_test_util                test_util                            tinygp
jax._src.state.types.AbstractRef         transforms.array_refs.AbstractRef  Flax
jax._src.traceback_util.UnfilteredStackTrace  errors.UnfilteredStackTrace      JAX's tests
jax._src.traceback_util.api_boundary     util.tracebacks.api_boundary              Flax
jax._src.traceback_util.include_frame    util.tracebacks.is_user_frame            Equinox
jax._src.traceback_util.register_exclusion  as_jax.internals.register_exclusion  Equinox, jaxtyping
jax._src.traceback_util._exclude_paths   as_jax.internals.excluded            Flax
jax._src.lib.version_str                 as_jax.internals.version             tests
jax._src.util.safe_map                   as_jax.internals.safe_map            tutorials
jax._src.util.safe_zip                   as_jax.internals.safe_zip            tutorials
jax._src.tree_util._registry             util.pytree.kinds                         Flax
jax._src.tree_util.broadcast_flattened_prefix_with_treedef  as_jax.internals.broadcast_leaves  tests
jax._src.tree_util.dispatch_registry     tree_util.default_registry           tests
jax._src.xla_bridge._backends            as_jax.internals.backends            Chex
"""

# JAX's name → the place inside the package.
OURS: dict[str, str] = dict(row.split()[:2] for row in TABLE.strip().splitlines())
