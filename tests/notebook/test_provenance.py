"""Where each piece of a stage comes from: nothing is lost; what is shown is what runs."""

from collections.abc import Callable
from typing import Any

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.compiler import cpu, llvm
from minijax.compiler.loops import Store
from minijax.notebook import provenance
from minijax.notebook.provenance import Provenance, equations_in, numbers_of
from tests.test_laws import PRIMITIVES, WITHOUT_EXAMPLES, cases


def provenance_of(f: Callable, *args: Any) -> Provenance:
    traced = jax.jit(f).trace(*args)
    return Provenance(traced.program, traced.fun_name)


def softmax(x: Any) -> Any:
    y = jnp.exp(x - x.max())
    return y / y.sum()


def loss(weights: Any, x: Any) -> Any:
    for w in weights:
        x = jnp.tanh(x @ w)
    return (x * x).sum()


LAYERS = [jnp.ones((16, 16))] * 5, jnp.ones((64, 16))
PROGRAMS = {
    "softmax": (softmax, jnp.ones(30)),
    "a loop that threads share": (lambda x: jnp.sin(x) * 2.0 + 1.0, jnp.ones(1 << 21)),
    "equal layers": (jax.grad(loss), *LAYERS),
    "steps": (lambda xs: jax.lax.scan(lambda c, x: (jnp.cos(c) + x, c), 0.0, xs), jnp.ones(9)),
}
programs = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)


@pytest.mark.parametrize("name", sorted(PRIMITIVES.keys() - WITHOUT_EXAMPLES.keys()))
def test_equations_and_what_loops_store_come_from_equations_of_the_program(name: str) -> None:
    case = cases(PRIMITIVES[name])[0]
    with case.mode():
        of = provenance_of(case.run, *case.args)
        simplified = of.lowered.simplified.jaxpr
    written = numbers_of(equations_in(of.lowered.jaxpr.jaxpr))
    made = {v for eqn in simplified.eqns for v in eqn.outvars}
    for eqn in equations_in(simplified):
        assert numbers_of([eqn]) and numbers_of([eqn]) <= written, eqn
    if made.issuperset(simplified.outvars):  # the others are copied
        assert all(of.equations[each] for each in of.numbers if isinstance(each, Store))


@programs
def test_the_stages_read_as_they_do_by_themselves(program: Any) -> None:
    of = provenance_of(*program)
    for stage, pieces in of.stages(["jaxpr", "simplified", "source"]).items():
        assert "".join(piece.text for piece in pieces).rstrip() == (
            of.lowered.as_text(stage).rstrip())


@programs
def test_with_locations_the_same_instructions_come_out(program: Any) -> None:
    of = provenance_of(*program)
    module = provenance.LocatedModule(of)
    module.located()
    names = {name[1:] for name in module.behind}
    usual = cpu.undisturbed(lambda: cpu.compile(llvm.assembly(of.kernel), "asm"))
    shown = provenance.pieces_of_machine_code(of, "asm")
    assert [piece.text for piece in shown] == [
        piece.text for piece in provenance._of_asm(of, usual, [()], names)]
    instructions = [piece for piece in shown if not piece.text.endswith(":\n")]
    assert sum(bool(piece.statements) for piece in instructions) > len(instructions) // 2


def test_a_line_of_the_loops_comes_from_the_equations_whose_values_it_makes() -> None:
    of = provenance_of(*PROGRAMS["softmax"])
    numbers = {eqn.primitive.name: numbers_of([eqn]) for eqn in of.lowered.jaxpr.eqns}
    lines = {piece.text.strip(): piece for piece in of.stages(["source"])["source"]}
    assert lines["e += d2"].equations == numbers["reduce_sum"]
    assert lines["d2 = exp(a[i] - b)"].equations == numbers["sub"] | numbers["exp"]
    assert lines["g[i] = d[i] * f"].equations == numbers["div"]
    assert lines["b = maximum(b, a[i])"].statements.isdisjoint(lines["e += d2"].statements)


def test_an_instruction_of_a_function_that_equal_loops_share_comes_from_all_of_them() -> None:
    of = provenance_of(*PROGRAMS["equal layers"])
    tanh = {k for k, eqn in enumerate(of.lowered.jaxpr.eqns, 1) if eqn.primitive.name == "tanh"}
    shown = provenance.pieces_of_machine_code(of, "llvm")
    assert any(len(piece.equations & tanh) > 1 and len(piece.statements) > 1 for piece in shown)


def test_an_elementary_function_that_is_called_comes_from_its_calls() -> None:
    of = provenance_of(lambda x: jnp.sin(x) + jnp.cos(x), jnp.ones(1000))
    numbers = {eqn.primitive.name: numbers_of([eqn]) for eqn in of.lowered.jaxpr.eqns}
    shown = provenance.pieces_of_machine_code(of, "llvm")
    starts = [k for k, piece in enumerate(shown) if piece.text.startswith("define")]
    for name in ("sin", "cos"):
        start = next(k for k in starts if f"@{name}." in shown[k].text)
        inside = shown[start:min([k for k in starts if k > start], default=None)]
        assert {piece.equations for piece in inside} == {numbers[name], provenance.NONE}


def test_of_equal_equations_the_first_is_kept_and_of_a_call_what_is_inside() -> None:
    @jax.jit
    def inner(x: Any) -> Any:
        return jnp.sin(x)
    of = provenance_of(lambda x: inner(x) + jnp.sin(x), 1.0)
    written = [eqn.primitive.name for eqn in equations_in(of.lowered.jaxpr.jaxpr)]
    kept = [numbers_of([eqn]) for eqn in of.lowered.simplified.eqns]
    assert written == ["jit", "sin", "sin", "add"]
    assert kept == [{2}, {4}]


def test_the_lines_are_the_users() -> None:
    pieces = provenance_of(*PROGRAMS["softmax"]).stages(["lines"])["lines"]
    assert [piece.text.split("  ", 1)[-1].strip() for piece in pieces] == [
        "# test_provenance.py", "y = jnp.exp(x - x.max())", "return y / y.sum()"]
    assert [len(piece.equations) for piece in pieces] == [0, 3, 2]
