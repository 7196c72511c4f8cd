"""Live cells: an edit takes effect in what exists already, and can be taken back."""

import ast
import gc
import sys
import traceback
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import core, dtypes, lax, tree_util
import minijax.sharp_bits.checking  # which is loaded at its first use
import minijax.util.tree_nodes
from minijax.core import jvp as jvp_module
from minijax.notebook import live, live_reset, source
from minijax.notebook.live import edited
from minijax.notebook.patch import LiveError
from minijax.notebook.source import cell_text
from minijax.primitives import algebra, ad_util, slots

JVP = "minijax.core.jvp.JVPTrace"
MUL = "minijax.primitives.algebra.mul_p"


def edit(names: str, *changes: tuple[str, str]) -> bool:
    """Run the live cell with some pieces of its text replaced."""
    text = cell_text(names.split())
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return live(names, text)


def slope_of_square(x: float = 3.0) -> float:
    return float(jax.jvp(lambda x: x * x, (x,), (1.0,))[1])


def everything() -> dict[tuple[str, str], Any]:
    """What every name of the package means, down to the members of classes and functions' parts.

    Modules are looked at name by name, so that nothing a live cell may touch is missed.
    """
    found: dict[tuple[str, str], Any] = {}
    for module_name, module in list(sys.modules.items()):
        if not module_name.startswith("minijax") or "notebook" in module_name:
            continue
        for name, value in list(vars(module).items()):
            found[module_name, name] = value
            own = getattr(value, "__module__", "") == module_name
            if isinstance(value, type) and own:
                members = {k: v for k, v in vars(value).items() if not k.startswith("__abstract")}
                found.update({(f"{module_name}.{name}", k): v for k, v in members.items()})
            if isinstance(value, core.Primitive):
                found.update({(f"{module_name}.{name}", k): v for k, v in vars(value).items()})
            if hasattr(value, "__code__") and own:
                found[f"{module_name}.{name}", "()"] = (value.__code__, value.__defaults__)
    return found


def assert_unchanged(before: dict[tuple[str, str], Any]) -> None:
    after = everything()
    assert before.keys() == after.keys()
    for place, value in before.items():
        same = after[place] is value or place[1] == "()" and after[place] == value
        assert same or isinstance(value, dict | list) and after[place] == value, place


# ---------------------------------------------------------------- doing nothing


@pytest.mark.parametrize("names", [
    JVP, MUL, "minijax.core.primitive.Primitive.bind",
    "minijax.core.primitive.Primitive.bind .rule .type_of",
    "minijax.dtypes.result_type", "minijax.core.types.ShapedArray", "minijax.core.types.no_effects",
    "minijax.core.conversion._scalar_array", "minijax.util.tree_nodes.Partial"])
def test_an_unchanged_cell_is_a_no_op(names: str) -> None:
    before = everything()
    assert live(names, cell_text(names.split())) is False
    assert live(names, "\n" + cell_text(names.split()) + "\n\n") is False
    assert_unchanged(before)
    assert edited() == []


def test_an_unchanged_cell_does_not_forget_what_was_traced() -> None:
    traced = []

    @jax.jit
    def f(x: Any) -> Any:
        traced.append(x)
        return x + 1

    f(1.0)
    live(JVP, cell_text([JVP]))
    f(1.0)
    assert len(traced) == 1


# ---------------------------------------------------------------- functions


def test_an_edited_function_is_the_same_object_with_other_code() -> None:
    f, imported_elsewhere = dtypes.short_name, slots.broadcast_shapes
    assert edit("minijax.primitives.slots.broadcast_shapes",
                ("ranked = [", "return (7,)\n    ranked = ["))
    assert slots.broadcast_shapes is imported_elsewhere is ad_util.broadcast_shapes
    assert ad_util.broadcast_shapes("add", [(3,), (3,)]) == (7,)
    live_reset()
    assert ad_util.broadcast_shapes("add", [(3,), (3,)]) == (3,)
    assert dtypes.short_name is f


def test_defaults_and_docstring_follow_the_edit() -> None:
    live("minijax.core.primitive.cannot",
         'def cannot(reason="why not"):\n    "New."\n    return reason\n')
    assert core.cannot() == "why not" and core.cannot.__doc__ == "New."
    live_reset()
    with pytest.raises(TypeError):
        core.cannot()


def test_a_cached_function_forgets_what_the_old_code_said() -> None:
    assert dtypes.short_name(np.dtype("float32")) == "f32"
    assert edit("minijax.dtypes.short_name", ('    """', '    return "x"\n    """'))
    assert dtypes.short_name(np.dtype("float32")) == "x"
    live_reset()
    assert dtypes.short_name(np.dtype("float32")) == "f32"


def test_a_helper_written_in_the_cell_becomes_a_function_of_the_module() -> None:
    live("minijax.core.primitive.cannot",
         "def helper(x):\n    return x + '!'\n\ndef cannot(reason):\n    return helper(reason)\n")
    assert core.cannot("no") == "no!"
    live_reset()
    assert not hasattr(core, "helper")


# ---------------------------------------------------------------- blocks


def test_a_rule_in_a_block_takes_effect_in_the_primitive_that_exists() -> None:
    p, f, program = algebra.mul_p, algebra.mul, jax.make_jaxpr(lambda x: x * x)(3.0)
    gradient = jax.jit(jax.grad(lambda x: x * x))
    assert gradient(3.0) == 6.0
    assert edit(MUL, ("lambda t, z, x, y: mul(t, y)", "lambda t, z, x, y: mul(t, neg(y))"))
    assert (algebra.mul_p, algebra.mul, lax.mul.__wrapped__) == (p, f, f)
    assert program.eqns[0].primitive is algebra.mul_p
    assert slope_of_square() == 0.0
    assert gradient(3.0) == 0.0
    live_reset(MUL)
    assert slope_of_square() == gradient(3.0) == 6.0


def test_rules_of_an_edited_block_bind_the_old_primitive_and_not_a_copy() -> None:
    edit(MUL, ("impl=_product", "impl=np.add"))
    program = jax.make_jaxpr(lambda x: jax.jvp(lambda x: x * x, (x,), (x,)))(2.0)
    assert {id(e.primitive) for e in program.eqns if e.primitive.name == "mul"} == {
        id(algebra.mul_p)}
    assert lax.mul(3.0, 4.0) == 7.0


def test_a_rule_made_for_its_block_can_be_edited() -> None:
    edit("minijax.primitives.algebra.add_p", ("np.add", "np.subtract"))
    text = str(jax.make_jaxpr(lambda x: jax.jvp(lambda x: x + x, (x,), (x,)))(1.0))
    assert text.count("add") == 2 and "add_any" not in text
    assert lax.add(5.0, 3.0) == 2.0
    live_reset()
    assert lax.add(5.0, 3.0) == 8.0


def test_a_rule_that_a_family_fills_can_be_replaced() -> None:
    edit("minijax.primitives.ad_util.reduce_sum_p",
         ("jvp=linear(0)", "jvp=lambda primals, tangents, **p: 1 / 0"))
    with pytest.raises(ZeroDivisionError):
        jax.grad(jnp.sum)(jnp.ones(3))
    live_reset()
    assert jax.grad(jnp.sum)(jnp.ones(3)).shape == (3,)


def test_a_compiled_function_computes_what_the_edited_element_rule_says() -> None:
    f = jax.jit(lambda x: x * 3.0)
    assert f(2.0) == 6.0
    edit(MUL, ("impl=_product,", "impl=_product, element=lambda s, x, y: s.add(x, y),"))
    assert f(2.0) == 5.0
    live_reset()
    assert f(2.0) == 6.0


def test_a_function_that_the_module_wraps_below_its_block_stays_wrapped() -> None:
    keys = jax.random.split(jax.random.key(0))
    edit("minijax.primitives.comparison.eq_p", ("np.equal", "np.not_equal"))
    assert bool(lax.eq(1.0, 2.0))
    assert lax.eq(keys, keys).shape == (2,)
    live_reset()
    assert not bool(lax.eq(1.0, 2.0))


def test_what_a_statement_registers_is_taken_out_again() -> None:
    live("minijax.core.primitive.cannot", "from minijax import tree_util\n\n"
         "class Mine:\n    pass\n\n"
         "tree_util.register_pytree_node(Mine, lambda m: ((1, 2), None), lambda d, c: Mine())\n\n"
         "def cannot(reason):\n    return Mine()\n")
    mine = core.cannot("x")
    assert tree_util.tree_leaves(mine) == [1, 2]
    live_reset()
    assert tree_util.tree_leaves(mine) == [mine]


def test_a_rule_that_is_a_function_of_its_own_is_edited_like_any() -> None:
    edit("minijax.primitives.algebra._share", ("return mul(", "return neg(t)\n    return mul("))
    assert jax.grad(lambda x: lax.max(x, 0.0))(2.0) == -1.0


def test_a_function_with_its_own_derivative_and_that_derivative_can_be_edited() -> None:
    ordinary = jnp.logaddexp

    def f(x: Any) -> Any:
        return jnp.logaddexp(x, -100.0)
    edit("minijax.numpy.arithmetic._logaddexp", ("near = lax.max", "near = 7 + lax.max"))
    assert ordinary is jnp.logaddexp and f(2.0) == 9.0
    edit("minijax.numpy.arithmetic._logaddexp_jvp",
         ("return out, x + y", "return out, -tangents[0]"))
    assert jax.grad(f)(2.0) == -1.0
    live_reset()
    assert f(2.0) == 2.0 and jax.grad(f)(2.0) == 1.0


def test_a_jitted_function_of_the_package_runs_its_new_code() -> None:
    from minijax.random import keys
    name = "minijax.random.keys." + next(
        name for name, value in vars(keys).items()
        if hasattr(value, "lower") and hasattr(value, "__wrapped__"))
    before = jax.random.key_data(jax.random.split(jax.random.key(0)))
    head, _, body = cell_text([name]).rpartition("    return ")
    live(name, f"{head}    1 / 0\n    return {body}")
    with pytest.raises(ZeroDivisionError):
        jax.random.split(jax.random.key(0))
    live_reset()
    assert (jax.random.key_data(jax.random.split(jax.random.key(0))) == before).all()


def test_edited_compilation_does_not_share_kernels_on_disk_with_the_real_one() -> None:
    from minijax.compiler import cache
    before = cache.cache_key("text")
    edit("minijax.compiler.cpu.compile", ('    """', '    print()\n    """'))
    assert cache.cache_key("text") != before
    live_reset()
    assert cache.cache_key("text") == before


# ---------------------------------------------------------------- classes


def test_an_edited_method_takes_effect_in_objects_that_exist() -> None:
    aval = core.typeof(jnp.ones(3))
    assert edit("minijax.core.types.ShapedArray.str_short", ("return f", "return 'my ' + f"))
    assert aval.str_short(True) == "my f32[3]"
    assert core.typeof(jnp.ones(3)) is aval
    live_reset()
    assert aval.str_short(True) == "f32[3]"


def test_an_edited_class_keeps_its_identity_its_instances_and_its_tables() -> None:
    cls, aval = core.ShapedArray, core.typeof(jnp.ones(3))
    assert edit("minijax.core.types.ShapedArray", ('return f"ShapedArray({', 'return f"Type({'))
    assert core.ShapedArray is cls and isinstance(aval, cls)
    assert core.typeof(jnp.ones(3)) is aval
    assert repr(aval) == "Type(float32[3])"


def test_an_edited_trace_works_at_once() -> None:
    assert edit(JVP, ("        primals, tangents = zip",
                      "        if primitive.name == 'mul':\n"
                      "            return core.run_with(self.parent, primitive.bind_list,\n"
                      "                                 *[self.split(x)[0] for x in args])\n"
                      "        primals, tangents = zip"))
    assert jvp_module.JVPTrace.__name__ == "JVPTrace"
    assert slope_of_square() == 0.0
    live_reset()
    assert slope_of_square() == 6.0


def test_super_and_class_cells_mean_the_class_that_exists() -> None:
    edit(JVP, ("        super().__init__(Level(parent, debug_info), parent)",
               "        super().__init__(Level(parent, debug_info), parent)\n"
               "        assert __class__ is JVPTrace"))
    assert slope_of_square() == 6.0
    edit("minijax.core.jvp.JVPTracer.__repr__",
         ('return (f"{super()', 'return (f"my {super()'))
    seen = []
    jax.jvp(lambda x: seen.append(repr(x)) or x, (1.0,), (1.0,))
    assert "my Traced" in seen[0]


def test_a_method_that_did_not_use_super_may_begin_to() -> None:
    edit("minijax.core.trace.EvalTrace.process_primitive",
         ("for x in args:", "super().__repr__()\n    for x in args:"))
    assert lax.mul(2.0, 3.0) == 6.0


def test_properties_static_methods_and_attributes_follow() -> None:
    program = jax.make_jaxpr(jnp.sin)(1.0)
    edit("minijax.core.jaxpr.ClosedJaxpr.in_avals", ("return [", "return 99, ["))
    assert program.in_avals[0] == 99
    edit("minijax.core.types.Effect", ("observable = True", "observable = 'perhaps'"))
    assert core.Effect().observable == "perhaps"
    live_reset()
    assert (len(program.in_avals), core.Effect.observable) == (1, True)


def test_a_member_added_or_removed_is_added_or_removed() -> None:
    text = cell_text(["minijax.core.types.Effect"])
    live("minijax.core.types.Effect", text.replace("observable = True",
                                             "def hello(self):\n        return 'hello'"))
    effect = core.Effect()
    assert effect.hello() == "hello" and not hasattr(effect, "observable")
    live_reset()
    assert effect.observable is True and not hasattr(effect, "hello")


def test_private_names_are_mangled_as_in_the_class() -> None:
    live("minijax.core.types.Effect", "class Effect:\n    __hidden = 3\n"
                                "    observable = property(lambda self: self.__hidden)\n")
    assert core.Effect().observable == 3


def test_the_fields_of_a_dataclass_may_get_a_default() -> None:
    from minijax.core.linearize import LinearProgram
    edit("minijax.core.linearize.LinearProgram",
         ("out_zeros: tuple[Zero | None, ...]", "out_zeros: tuple[Zero | None, ...] = ('new',)"))
    assert LinearProgram(None, ()).out_zeros == ("new",)
    assert jax.grad(lambda x: x * x)(3.0) == 6.0
    live_reset()
    with pytest.raises(TypeError):
        LinearProgram(None, ())


def test_slots_cannot_change_and_the_error_says_so() -> None:
    before = everything()
    with pytest.raises(LiveError, match="slots of JVPTracer"):
        edit("minijax.core.jvp.JVPTracer", ('"tangent")', '"tangent", "more")'))
    assert_unchanged(before)


# ---------------------------------------------------------------- tables and constants


def test_a_table_is_refilled_and_a_constant_replaced_where_it_was_imported() -> None:
    table = slots._IN_NUMPY
    edit("minijax.primitives.slots._IN_NUMPY", ('"divide"', '"my_divide"'))
    assert slots._IN_NUMPY is table and table["div"] == "my_divide"
    live("minijax.primitives.slots.NUMBER", "NUMBER = (np.integer,)\n")
    assert slots.NUMBER == algebra.NUMBER == (np.integer,)
    live_reset()
    assert table["div"] == "divide" and algebra.NUMBER is slots.NUMBER
    assert np.floating in slots.NUMBER


# ---------------------------------------------------------------- undoing


def test_reset_restores_everything() -> None:
    before = everything()
    edit(JVP, ("primals, tangents = zip", "self.seen = 1; primals, tangents = zip"))
    edit(MUL, ("impl=_product", "impl=np.add"))
    edit("minijax.core.primitive.Primitive.bind", ("try:", "try:\n        pass"))
    edit("minijax.core.types.ShapedArray", ("def str_long", "def long"))
    edit("minijax.primitives.algebra.add_p", ("np.add", "np.subtract"))
    live("minijax.core.primitive.cannot", "def cannot(reason):\n    return 3\n")
    live("minijax.primitives.slots.NUMBER", "NUMBER = ()\n")
    assert len(live_reset()) == len(set(edited())) + 7
    assert_unchanged(before)
    assert edited() == []


def test_reset_of_one_name_leaves_the_other_edits() -> None:
    live("minijax.core.primitive.cannot", "def cannot(reason):\n    return 3\n")
    edit(MUL, ("impl=_product", "impl=np.add"))
    assert live_reset("minijax.core.primitive.cannot") == ["minijax.core.primitive.cannot"]
    assert core.cannot("x") == core.Cannot("x")
    assert lax.mul(3.0, 4.0) == 7.0
    assert edited() == [MUL]


def test_running_the_cell_with_the_old_text_again_is_a_reset() -> None:
    edit(MUL, ("impl=_product", "impl=np.add"))
    assert live(MUL, cell_text([MUL])) is True
    assert lax.mul(3.0, 4.0) == 12.0 and edited() == []


def test_a_cell_edited_twice_differs_from_the_file_and_not_from_its_last_edit() -> None:
    edit(JVP, ("def join", "def extra(self):\n        return 1\n\n    def join"))
    edit(JVP, ("primals, tangents = zip", "self.seen = 1; primals, tangents = zip"))
    assert not hasattr(jvp_module.JVPTrace, "extra")


def test_a_method_and_its_class_may_both_be_edited() -> None:
    edit("minijax.core.types.ShapedArray.str_short", ("return f", "return 'my ' + f"))
    edit("minijax.core.types.ShapedArray", ('return f"ShapedArray({', 'return f"Type({'))
    aval = core.typeof(jnp.ones(2))
    assert aval.str_short(True) == "my f32[2]" and repr(aval).startswith("Type(")
    live_reset("minijax.core.types.ShapedArray.str_short")
    assert aval.str_short(True) == "f32[2]" and repr(aval).startswith("ShapedArray(")


def test_reset_of_an_unknown_name_is_an_error() -> None:
    with pytest.raises(LookupError):
        live_reset("minijax.core.nothing")


# ---------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize("text, error", [
    ("def cannot(reason:\n    return 3\n", SyntaxError),
    ("def cannot(reason=1/0):\n    return 3\n", ZeroDivisionError),
    ("def helper():\n    pass\n\ndef cannot(r):\n    return 3\n\nraise KeyError('late')", KeyError),
    ("@undefined\ndef cannot(reason):\n    return 3\n", NameError),
])
def test_a_cell_that_fails_leaves_the_package_as_it_was(text: str, error: type) -> None:
    before = everything()
    with pytest.raises(error):
        live("minijax.core.primitive.cannot", text)
    assert_unchanged(before)
    assert edited() == []


@pytest.mark.parametrize("name, old, new", [
    (JVP, "def join", "wrong = 1 / 0\n\n    def join"),
    (MUL, "impl=_product", "impl=_product, nonsense=3"),
    ("minijax.core.primitive.Primitive.bind", "try:", "try"),
])
def test_a_class_or_block_that_fails_leaves_the_package_as_it_was(
        name: str, old: str, new: str) -> None:
    before = everything()
    with pytest.raises((ZeroDivisionError, TypeError, SyntaxError)):
        edit(name, (old, new))
    assert_unchanged(before)


def test_a_failing_edit_leaves_the_edits_before_it() -> None:
    live("minijax.core.primitive.cannot", "def cannot(reason):\n    return 3\n")
    with pytest.raises(ZeroDivisionError):
        live("minijax.core.primitive.cannot", "def cannot(reason=1/0):\n    return 4\n")
    assert core.cannot("x") == 3
    with pytest.raises(LookupError):
        live("minijax.core.nothing", "nothing = 1")


def test_tracebacks_show_the_text_of_the_cell() -> None:
    edit(MUL, ("lambda t, z, x, y: mul(t, y)", "lambda t, z, x, y: undefined_thing(t, y)"))
    with pytest.raises(NameError) as caught:
        slope_of_square()
    text = "".join(traceback.format_exception(caught.value))
    assert "<minijax live minijax.primitives.algebra.mul_p>" in text
    assert "derivatives=(lambda t, z, x, y: undefined_thing(t, y)" in text


def test_lines_of_an_edited_rule_are_not_the_users_lines() -> None:
    """The equations that a live rule emits belong to the line of the user's, as before."""
    edit(MUL, ("lambda t, z, x, y: mul(t, y)", "lambda t, z, x, y: mul(t, neg(neg(y)))"))
    program = jax.make_jaxpr(lambda x: jax.jvp(lambda x: x * x, (x,), (x,)))(2.0)
    assert {e.source_info.short_file for e in program.eqns} == {"test_live.py"}


def test_nothing_of_an_undone_edit_stays_alive() -> None:
    import weakref
    live("minijax.core.primitive.cannot",
         "class Box:\n    pass\n\ndef cannot(reason):\n    return Box\n")
    box = weakref.ref(core.cannot(1))
    live_reset()
    gc.collect()
    assert box() is None


def test_trees_registered_before_an_edit_flatten_with_the_edited_class() -> None:
    from functools import partial
    held = tree_util.Partial(partial(max), 1.0)
    leaves, treedef = tree_util.tree_flatten(held)
    edit("minijax.util.tree_nodes.Partial", ("class Partial(functools.partial):",
                                           "class Partial(functools.partial):\n    hello = 1"))
    assert held.hello == 1 and isinstance(treedef.unflatten(leaves), tree_util.Partial)


# ---------------------------------------------------------------- every definition


def rewritten(node: ast.stmt) -> ast.stmt:
    """A statement that means the same, and is not the same."""
    if isinstance(node, ast.FunctionDef):
        node.body.append(ast.Pass())
    elif isinstance(node, ast.ClassDef):
        for part in node.body:
            if isinstance(part, ast.FunctionDef):
                rewritten(part)
        node.body += ast.parse("def added(self): return 1").body
    elif isinstance(node, ast.Assign) and not source.set_on(node):
        none = ast.arguments([], [], None, [], [], None, [])
        node.value = ast.Call(ast.Lambda(none, node.value), [], [])
    return node


def some_results() -> list[str]:
    """What a few programs give that go through every transformation."""
    def f(x: Any) -> Any:
        return jnp.sum(jnp.sin(x) * x + jax.nn.relu(x))

    x = jnp.arange(4.0)
    pairs = {"a": x, "b": (x, 1.0)}
    results = [f(x), jax.grad(f)(x), jax.vmap(jax.grad(lambda y: jnp.tanh(y) * y))(x),
               jax.jit(jax.grad(f))(x), jax.hessian(f)(x), x[1:3], x.at[0].set(3.0),
               jax.lax.scan(lambda c, a: (c + a, c * a), 0.0, x),
               jax.tree_util.tree_map(lambda leaf: leaf * 2, pairs), jnp.int8(3) + x,
               jax.make_jaxpr(jax.grad(f))(x)]
    return [str(result) for result in results]


@pytest.mark.parametrize("module", [
    "minijax.core.types", "minijax.core.array", "minijax.core.trace", "minijax.core.primitive",
    "minijax.tree_util", "minijax.util.pytree", "minijax.dtypes", "minijax.core.tracing",
    "minijax.core.jaxpr", "minijax.core.jvp", "minijax.core.vmap",
    "minijax.core.transpose", "minijax.primitives.families", "minijax.primitives.slots",
    "minijax.primitives.ad_util", "minijax.primitives.algebra", "minijax.primitives.reduce"])
def test_every_definition_of_a_module_can_be_edited_at_once_and_put_back(module: str) -> None:
    wanted, before = some_results(), everything()
    names = dict.fromkeys(name for node in source.module_tree(module).body
                          for name in source.bound_names(node)[:1])
    for name in names:
        nodes = ast.parse(cell_text([f"{module}.{name}"])).body
        live(f"{module}.{name}", "\n\n".join(
            ast.unparse(ast.fix_missing_locations(rewritten(node))) for node in nodes))
    assert edited() and some_results() == wanted
    live_reset()
    assert_unchanged(before)
    assert some_results() == wanted
