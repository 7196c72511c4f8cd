"""What interpreters written outside the package ask of programs, types and traces."""

import importlib

import jax
import jax.extend.core as theirs
import ml_dtypes
import numpy as np
import pytest

import minijax
from minijax import core, lax
from minijax.extend import core as ours


@pytest.mark.parametrize("x", [1, 1.5, True, 1j, "text", None, [1], (), {}, np.ones(2), np.int8(1),
                               np.array("text"), object(), print, np.float64])
def test_what_is_taken_for_an_array(x):
    assert ours.valid_jaxtype(x) == theirs.valid_jaxtype(x)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64", ml_dtypes.bfloat16])
def test_dtypes_of_tangents(dtype):
    dtype = np.dtype(dtype)
    assert ours.primal_dtype_to_tangent_dtype(dtype) == theirs.primal_dtype_to_tangent_dtype(dtype)


def test_types_of_examples_and_of_batches():
    for axis in (0, 1, None):
        batch = core.ShapedArray((3, 3), np.dtype("float32"))
        one = ours.mapped_aval(3, axis, batch)
        assert one.shape == ((3, 3) if axis is None else (3,))
        assert ours.unmapped_aval(3, axis, one) == batch


def test_a_type_has_a_memory_space_and_is_made_with_it():
    """As rules of DrJAX for types do."""
    for lib in (minijax, jax):
        aval = lib.core.ShapedArray((3,), np.dtype("float32"))
        assert aval.memory_space is lib.memory.Space.Device
        assert lib.core.ShapedArray((3,), aval.dtype, memory_space=aval.memory_space) == aval


def test_a_program_is_written_and_checked():
    new, aval = ours.gensym(), core.ShapedArray((), np.dtype("float32"))
    x, y, z = new(aval), new(aval), new(aval)
    eqns = [ours.new_jaxpr_eqn([x, x], [y], lax.mul_p, {}, ours.no_effects),
            ours.new_jaxpr_eqn([y], [z], lax.sin_p, {}, set())]
    jaxpr = minijax.make_jaxpr(lambda x: lax.sin(x * x))(1.).jaxpr
    by_hand = jaxpr.replace(constvars=(), invars=(x,), outvars=(z,), eqns=tuple(eqns))
    ours.check_jaxpr(by_hand)
    assert str(by_hand) == str(minijax.make_jaxpr(lambda x: lax.sin(x * x))(np.float32(1)).jaxpr)
    [found] = ours.jaxpr_as_fun(closed_jaxpr=ours.ClosedJaxpr(by_hand, ()))(2.)
    np.testing.assert_allclose(found, np.sin(4.), 1e-6)
    with pytest.raises(ours.JaxprTypeError, match="used before its definition"):
        ours.check_jaxpr(by_hand.replace(eqns=tuple(reversed(eqns))))


def test_numbers_that_are_known_and_those_that_are_not():
    for top, module in ((minijax, ours), (jax, theirs)):
        assert module.concrete_or_error(None, 3) == 3
        assert module.concrete_or_error(int, np.float32(2.5)) == 2
        with pytest.raises(top.errors.ConcretizationTypeError, match="it is wanted here"):
            top.jit(lambda x, m=module: m.concrete_or_error(int, x, "it is wanted here"))(1)


def test_traces_are_taken_and_set():
    def f(x):
        before = ours.get_opaque_trace_state()
        with ours.take_current_trace() as trace:
            known = int(minijax.numpy.sin(0.))
            with ours.set_current_trace(trace):
                assert ours.get_opaque_trace_state() == before
                return minijax.numpy.sin(x) + known
    assert float(minijax.jit(f)(0.)) == 0
    assert minijax.make_jaxpr(f)(1.).jaxpr.eqns[0].primitive is lax.sin_p
    outside = ours.get_opaque_trace_state()
    minijax.jit(lambda: [] if ours.get_opaque_trace_state() != outside else 1 / 0)()


def test_jax_core_has_the_names_that_programs_outside_ask_for():
    def f(x):
        assert isinstance(minijax.typeof(x), core.AbstractValue)
        assert ours.find_top_trace((x,)) is core.current_trace.get()
        with core.eval_context():
            known = int(minijax.numpy.sin(0.)) + 1
        with core.ensure_compile_time_eval():
            known += int(minijax.numpy.cos(0.))
        return x * known
    closed = minijax.make_jaxpr(f)(1.)
    assert [eqn.primitive.name for eqn in closed.eqns] == ["mul"]
    assert core.eval_jaxpr(closed.jaxpr, closed.consts, 3.) == [6.]
    assert ours.DebugInfo is type(closed.jaxpr.debug_info)
    assert ours.InconclusiveDimensionOperation is minijax.errors.InconclusiveDimensionOperation


@pytest.mark.parametrize("keeps", [True, False])
def test_a_program_runs_as_its_own_lines_or_as_the_callers(keeps):
    def inside(x):
        return lax.sin(x)

    def outside(x):
        return core.eval_jaxpr(closed.jaxpr, closed.consts, x, propagate_source_info=keeps)
    closed = minijax.make_jaxpr(inside)(1.)
    [eqn] = minijax.make_jaxpr(outside)(1.).eqns
    assert ("inside" if keeps else "outside") in str(eqn.source_info)


def test_the_types_of_arrays_are_those_of_jax():
    own = {jax._src.literals.TypedNdArray, np.longlong}
    assert theirs.array_types - own == ours.array_types - own


def test_primitives_by_name_and_calls():
    primitives = importlib.import_module("jax.extend.core.primitives")
    mine = minijax.extend.core.primitives
    for name in {name for name in dir(primitives) if name.endswith("_p")} & set(dir(mine)):
        if name != "remat_p":  # which is called checkpoint here, see jax_differences.toml
            assert str(getattr(mine, name)) == str(getattr(primitives, name)), name
    for lib in (minijax, jax):
        lu, core = importlib.import_module(f"{lib.__name__}.extend.linear_util"), lib.extend.core
        info = core.DebugInfo("f", "f", None, None)
        f = lu.wrap_init(lambda x, jnp=lib.numpy: [jnp.sin(x), x], debug_info=info)
        call_p = core.primitives.call_p
        assert call_p.multiple_results and isinstance(call_p, core.CallPrimitive)
        np.testing.assert_allclose(call_p.bind(1., subfuns=(f,)), [np.sin(1), 1], 1e-6)
        np.testing.assert_allclose(lib.jit(lambda x, p=call_p, f=f: p.bind(x, subfuns=(f,)))(1.),
                                   [np.sin(1), 1], 1e-6)
        np.testing.assert_allclose(core.call_impl(f, 1., name="f"), [np.sin(1), 1], 1e-6)


def test_results_that_nothing_reads():
    for lib in (minijax, jax):
        core = lib.extend.core
        x, y = core.Var(lib.typeof(1.)), core.Var(lib.typeof(1.))
        none = core.DropVar(lib.typeof(1.))
        closed = lib.make_jaxpr(lib.lax.sin)(1.)
        sin = closed.jaxpr.eqns[0].primitive
        eqns = [core.new_jaxpr_eqn([x], [v], sin, dict(closed.jaxpr.eqns[0].params),
                                   core.no_effects, None) for v in (none, y)]
        jaxpr = closed.jaxpr.replace(invars=[x], outvars=[y], eqns=eqns)
        assert repr(none) == "_" and "_:f32[] = sin" in str(jaxpr)
        assert float(lib.core.eval_jaxpr(jaxpr, [], 0.)[0]) == 0


def several(jnp, lax):
    def f(x, y, z):
        c, ys = lax.scan(lambda c, x: (c + x, c * y), x, jnp.arange(3.0))
        return c, ys, lax.cond(x > 0, lambda: y, lambda: z), jnp.sin(z)
    return f


@pytest.mark.parametrize("used", [[True] * 4, [True, False, False, False], [False] * 4, True,
                                  [False, True, False, False], [False, False, True, True]])
@pytest.mark.parametrize("instantiate", [False, True, [False, True, False]])
def test_dead_code_is_removed_as_in_jax(used, instantiate):
    from jax._src.interpreters.partial_eval import dce_jaxpr
    (program, flags), (other, expected) = (
        dce(lib.make_jaxpr(several(lib.numpy, lib.lax))(1.0, 2.0, 3.0).jaxpr, used, instantiate)
        for lib, dce in ((minijax, ours.dce_jaxpr), (jax, dce_jaxpr)))
    assert flags == expected and len(program.invars) == len(other.invars)
    assert [str(e.primitive) for e in program.eqns if e.primitive.name != "jit"] == [
        str(e.primitive) for e in other.eqns if e.primitive.name not in ("jit", "pjit")]
    values = [x for x, flag in zip((1.0, 2.0, 3.0), flags, strict=True) if flag]
    np.testing.assert_allclose(
        np.concatenate([[0.0], *map(np.ravel, core.eval_jaxpr(program, (), *values))]),
        np.concatenate([[0.0], *map(np.ravel, jax.core.eval_jaxpr(other, (), *values))]))


def test_the_text_of_a_program_by_a_method():
    for program in (minijax.make_jaxpr(abs)(1.0), minijax.make_jaxpr(abs)(1.0).jaxpr):
        assert program.pretty_print(use_color=False) == str(program)
        with pytest.raises(NotImplementedError, match="source_info of the equations|eqn"):
            program.pretty_print(source_info=True)


def test_a_rule_is_put_back_as_it_was_read():
    """JAX's tests replace an `impl` for a while, and give the old one back."""
    before = lax.sin_p.impl
    calls = []
    try:
        lax.sin_p.def_impl(lambda x: calls.append(x) or before(x))
        lax.sin_p.def_impl(before)
        np.testing.assert_allclose(minijax.jit(lax.sin, backend="numpy")(0.5), np.sin(0.5), 1e-6)
    finally:
        lax.sin_p.impl = before
