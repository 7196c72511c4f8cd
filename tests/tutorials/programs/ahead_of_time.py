"""Ahead of time: a function is traced, lowered, compiled and called, one after the other."""

import jax
import jax.numpy as jnp
import numpy as np


def mixed(x, y):
    return 3 * x - y


SCALAR = jax.ShapeDtypeStruct((), jnp.dtype("int32"))


def told(f, *args, **kwargs):
    try:
        return f(*args, **kwargs)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def stage_by_stage():
    """The text of the lowered function is HLO, which is left out."""
    traced = jax.jit(mixed).trace(5, 4)
    print(traced.jaxpr)
    compiled = traced.lower().compile()
    return compiled(5, 4), compiled(1, 2)


def what_it_costs():
    lowered = jax.jit(mixed).trace(5.0, 4.0).lower()
    for stage in (lowered, lowered.compile()):
        costs = stage.cost_analysis()
        print("flops" in costs, costs["flops"])
    memory = lowered.compile().memory_analysis()
    print(memory.argument_size_in_bytes >= 8, memory.output_size_in_bytes >= 4)


def from_types_alone():
    compiled = jax.jit(mixed).trace(SCALAR, SCALAR).lower().compile()
    return compiled(5, 4), jax.jit(mixed).lower(SCALAR, y=SCALAR).compile()(5, y=4)


def of_what_has_a_shape_and_a_dtype():
    class Like:
        shape, dtype = (3,), np.dtype("float32")
    compiled = jax.jit(mixed).lower(Like(), np.ones(3, np.float32)).compile()
    return compiled(jnp.arange(3.0), jnp.ones(3))


def called_with_other_types():
    compiled = jax.jit(mixed).trace(SCALAR, SCALAR).lower().compile()
    wide, real = jnp.arange(3), jnp.float32(7.0)
    return told(compiled, wide, wide), told(compiled, real, real), told(compiled, 1, real)


def called_with_other_arguments():
    compiled = jax.jit(mixed).trace(SCALAR, SCALAR).lower().compile()
    return [told(compiled, 1), told(compiled, 1, 2, 3), told(compiled, 1, y=2)]


def called_with_another_tree():
    compiled = jax.jit(lambda d: d["a"] + d["b"]).lower({"a": 1.0, "b": 2.0}).compile()
    return compiled({"a": 3.0, "b": 4.0}), told(compiled, {"a": 1.0, "c": 2.0})


def static_arguments_are_built_in():
    f = jax.jit(mixed, static_argnums=0)
    lowered = f.trace(7, 8).lower()
    by_name = jax.jit(mixed, static_argnames="y").lower(SCALAR, y=2).compile()
    return lowered.compile()(5), by_name(6)


def static_arguments_need_values():
    f = jax.jit(mixed, static_argnums=0)
    print(told(f.trace, SCALAR, SCALAR).partition(":")[0])
    return f.trace(10, SCALAR).lower().compile()(5)


def rows(x):
    assert x.shape == (3, 2)
    return x @ jnp.ones(2)


def numbers(*shape):
    return jnp.arange(np.prod(shape)).reshape(shape)


def compiled_functions_are_not_transformed():
    jitted = jax.jit(rows)
    compiled = jitted.trace(numbers(3, 2)).lower().compile()
    for f, x in ((jax.vmap(compiled), numbers(4, 3, 2)), (jax.jit(compiled), numbers(3, 2))):
        print(told(f, x).partition("Tracer")[0])
    print(told(jax.grad(lambda x: compiled(x).sum()), jnp.ones((3, 2))).partition(":")[0])
    return jax.vmap(jitted)(numbers(4, 3, 2)), compiled(numbers(3, 2))


def described(info):
    return f"{info.shape} {info.dtype}"


def types_of_what_goes_in_and_comes_out():
    def f(state, *, rate):
        return {"new": state["w"] * rate, "size": state["b"].sum()}
    state = {"w": jnp.ones((2, 3)), "b": jnp.arange(4)}
    traced = jax.jit(f).trace(state, rate=0.5)
    lowered = traced.lower()
    compiled = lowered.compile()
    print(traced.fun_name)
    for stage in (traced, lowered, compiled):
        print(jax.tree.map(described, stage.out_info))
        print(stage.out_tree)
        print(stage.in_tree)
        print(jax.tree.map(described, stage.args_info))
        print([str(aval.dtype) for aval in jax.tree.leaves(stage.in_avals)])
    print(isinstance(jax.tree.leaves(lowered.args_info)[0], jax.stages.ArgInfo))
    return compiled(state, rate=0.25)


def types_without_a_program():
    f = jax.jit(lambda x, n: (jnp.sin(x) * n, x.shape), static_argnums=1)
    print(f.eval_shape(jax.ShapeDtypeStruct((2, 3), jnp.float32), 4)[0])
    print(jax.eval_shape(mixed, SCALAR, SCALAR))


def arguments_that_are_given_away():
    f = jax.jit(lambda x, y: (x + 1, y), donate_argnums=0)
    lowered = f.lower(jnp.ones(3), jnp.ones(2))
    print(lowered.donate_argnums, [info.donated for info in jax.tree.leaves(lowered.args_info)])
    x = jnp.ones(3)
    out = lowered.compile()(x, jnp.ones(2))
    print(x.is_deleted())
    g = jax.jit(lambda x, y: (x + 1, y), donate_argnames="y")
    by_name = g.lower(jnp.ones(3), y=jnp.ones(2))
    print(jax.tree.map(lambda info: info.donated, by_name.args_info))
    return out


def stages_have_types():
    f = jax.jit(mixed)
    traced = f.trace(1, 2)
    print(isinstance(f, jax.stages.Wrapped), isinstance(traced, jax.stages.Traced),
          isinstance(traced.lower(), jax.stages.Lowered),
          isinstance(f.lower(1, 2).compile(), jax.stages.Compiled))


def constants_and_closures():
    table = jnp.array([1.0, 2.0, 3.0])
    compiled = jax.jit(lambda i: table[i]).lower(0).compile()
    return [compiled(i) for i in range(3)]


def options_of_the_compiler():
    f = jax.jit(mixed).lower(1, 2)
    return f.compile({"xla_embed_ir_in_executable": True})(1, 2), f.compile(
        compiler_options={"xla_embed_ir_in_executable": False})(1, 2)
