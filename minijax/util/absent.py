"""What of JAX minijax lacks: the purpose of each module or method, and an alternative.

Builds on nothing.  JAX has all of them.
"""

# JAX's module → its purpose, and an alternative: `sentence` joins them with "which" and a colon.
INSTEAD = {
    "cloud_tpu_init": ("prepares TPUs", "leave it out, as JAX advises since 0.8.1"),
    "collect_profile": ("profiles another process by XLA",
                        "call jax.profiler.trace in the program itself"),
    "experimental.array_serialization": (
        "writes arrays with TensorStore", "call numpy.savez on jax.tree.leaves"),
    "experimental.buffer_callback": ("passes XLA's buffers to Python", "call jax.pure_callback"),
    **dict.fromkeys(
        (f"experimental.colocated_python.{x}" for x in
         ("api", "func_backend", "obj", "obj_backend")),
        ("runs Python on the hosts of other machines",
         "import it from jax.experimental.colocated_python: there is one process")),
    "experimental.control_deps": ("orders the operations of XLA",
                                  "call jax.lax.optimization_barrier"),
    "experimental.custom_partitioning": (
        "defines the partitioning of an operation for XLA", "write the parts with jax.shard_map"),
    "experimental.fused": ("marks operations for XLA to fuse", "leave it out: jit fuses"),
    "experimental.jax2tf": ("converts programs to TensorFlow", "call jax.pure_callback, or convert "
                            "through NumPy arrays"),
    "experimental.mosaic": ("writes kernels for XLA's Mosaic", "write the loop in jax.numpy"),
    "experimental.pallas": ("writes kernels for XLA's Mosaic and Triton",
                            "write the same in jax.numpy under jit, which compiles one kernel"),
    "experimental.profiler": ("reads profiles of XLA", "call jax.profiler.trace"),
    "experimental.random": ("has stateful generators", "split keys of jax.random"),
    "experimental.roofline": ("estimates times of operations on TPUs",
                              "call jax.jit(f).lower(x).compile().cost_analysis()"),
    "experimental.scheduling_groups": ("groups operations for XLA's scheduler, without effect "
                                       "on results", "leave it out"),
    "experimental.serialize_executable": (
        "stores programs compiled by XLA",
        "set the flag jax_compilation_cache_dir, which keeps machine code for the next process"),
    "experimental.shard_alike": ("requests the same sharding of two arrays from XLA",
                                 "call jax.lax.with_sharding_constraint on both"),
    "experimental.source_mapper": ("maps lines of Python to XLA's programs",
                                   "read the source_info of a jaxpr's equations"),
    "experimental.sparse.api": ("makes sparse arrays", "import them from jax.experimental.sparse"),
    "experimental.sparse.random": ("makes random sparse arrays",
                                   "call jax.experimental.sparse.random_bcoo"),
    **dict.fromkeys(
        ("experimental.sparse.bcsr", "experimental.sparse.coo", "experimental.sparse.csr"),
        ("has another sparse format", "make a BCOO, by BCOO.fromdense or from_scipy_sparse")),
    **dict.fromkeys(
        (f"experimental.sparse.{x}" for x in ("BCSR", "COO", "CSC", "CSR")),
        ("is another sparse format", "make a BCOO, by BCOO.fromdense or from_scipy_sparse")),
    **dict.fromkeys(
        ("experimental.sparse.test_util", "experimental.sparse.util"),
        ("helps JAX's own sparse arrays", "use the functions of jax.experimental.sparse")),
    "experimental.sparse.linalg": ("has direct solvers of sparse equations and eigenvalues",
                                   "call jax.scipy.sparse.linalg.cg or gmres with "
                                   "lambda x: matrix @ x"),
    "experimental.topologies": ("describes TPUs that are not attached", "call jax.devices()"),
    "experimental.transfer": ("sends arrays between machines", "there is one process here"),
    "export": ("stores programs as StableHLO, the language of XLA",
               "keep the function in Python, and its arrays with numpy.savez"),
    "extend.ifrt_programs": ("makes programs for XLA's runtime", "call jax.jit"),
    "extend.lowering": ("has the arguments of lowering rules to MLIR",
                        "lower a primitive with jax.interpreters.mlir.lower_fun"),
    "extend.mlir": ("has MLIR, the language of XLA's programs",
                    "lower a primitive with jax.interpreters.mlir.lower_fun"),
    "extend.pallas": ("extends Pallas", "write the same in jax.numpy under jit"),
    "extend.sharding": ("reads and writes shardings as XLA does", "make a NamedSharding"),
    "extend.xla": ("changes XLA's programs during compilation",
                   "change the program: jax.make_jaxpr, jax.extend.core"),
    "ffi": ("calls functions written for XLA's C interface", "call jax.pure_callback"),
    "lib": ("is jaxlib, the library of XLA", "use jax.extend.backend, or jax.__version__"),
}

# What JAX had until 0.10 → what to call instead.
FORMER = {"device_put_replicated": "jax.device_put", "device_put_sharded": "jax.device_put",
          "lax.pvary": "jax.lax.pcast(..., to='varying')", "numpy.fix": "jax.numpy.trunc"}


def sentence(name: str) -> str | None:
    """The message for an absent module, such as `jax.export`; None for any other name.

    >>> print(sentence("minijax.experimental.fused.more"))
    minijax has no jax.experimental.fused, which marks operations for XLA to fuse:
    leave it out: jit fuses.
    """
    path = name.partition(".")[2]
    if path in FORMER:
        return f"jax.{path} was deprecated, and is removed: use {FORMER[path]} instead."
    while path and path not in INSTEAD:
        path = path.rpartition(".")[0]
    if not path:
        return None
    what, instead = INSTEAD[path]
    return f"minijax has no jax.{path}, which {what}: {instead}."


# ── What a stage of a program has in JAX ─────────────────────────────────────────────────────

def compiler_ir(lowered: object, dialect: str | None = None) -> None:
    """Refuses the object of MLIR that `Lowered.compiler_ir` is in JAX.

    Raises:
      NotImplementedError: always, with what there is.
    """
    raise NotImplementedError(f"minijax has no MLIR, so no compiler_ir({dialect!r}): "
                              "as_text() shows the loops, as_text('jaxpr') the program")


def runtime_executable(compiled: object) -> None:
    """Refuses the object of XLA that `Compiled.runtime_executable` is in JAX.

    Raises:
      NotImplementedError: always, with what there is.
    """
    raise NotImplementedError("minijax has no XLA executable: as_text() shows the machine "
                              "code, cost_analysis() and memory_analysis() its costs")
