"""What `watch` prints: which transformation met which primitive, in which order."""

from typing import Any

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.core import Primitive
from minijax.notebook import watch


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_a_derivative_shows_its_rule_under_the_primitive(capsys: Any) -> None:
    out = watch(lambda x: jax.jvp(lax.sin, (x,), (1.0,)), 0.0)
    assert [float(x) for x in out] == [0.0, 1.0]
    assert printed(capsys) == [
        "jvp    b:f32[] = sin a",
        "  eval   0 = sin 0",
        "  eval   1 = cos 0",
        "  eval   1 = mul 1 1",
    ]


def test_vmap_of_a_derivative_is_three_deep(capsys: Any) -> None:
    watch(jax.vmap(lambda x: jax.jvp(lambda y: y * y, (x,), (x,))), jnp.arange(3.0))
    lines = printed(capsys)
    assert lines[0].startswith("jvp ") and lines[1].startswith("  vmap ")
    assert lines[2] == "    eval   f32[3] = mul f32[3] f32[3]"


def test_grad_records_the_tangent_part_and_then_walks_back(capsys: Any) -> None:
    watch(jax.grad(lambda x: x * x), 3.0)
    columns = [line.split()[0] for line in printed(capsys)]
    assert columns[:2] == ["jvp", "eval"] and "record" in columns and columns[-1] == "eval"


def test_tracing_a_jitted_function_is_seen_and_its_second_call_is_not(capsys: Any) -> None:
    f = jax.jit(lambda x: x + 1.0)
    watch(f, 1.0)
    assert printed(capsys)[0].startswith("stage  b:f32[] = add a 1")
    assert watch(f, 2.0) == 3.0
    assert "runs unseen" in printed(capsys)[0]


def test_parameters_are_shown_when_they_are_short(capsys: Any) -> None:
    watch(jnp.sum, jnp.ones((2, 3)))
    assert "eval   6 = reduce_sum[axes=(0, 1)] f32[2,3]" in printed(capsys)


def test_what_ran_before_an_error_is_printed_and_everything_is_put_back(capsys: Any) -> None:
    ordinary = Primitive.bind

    def f(x: Any) -> Any:
        y = x * 2.0
        raise KeyError(y)

    with pytest.raises(KeyError):
        watch(f, 1.0)
    assert printed(capsys) == ["eval   2 = mul 1 2"]
    assert Primitive.bind is ordinary


def test_watching_changes_no_program() -> None:
    def f(x: Any) -> Any:
        return jnp.sin(x) * x

    seen = []
    watch(lambda: seen.append(str(jax.make_jaxpr(jax.grad(f))(1.0))))
    assert seen == [str(jax.make_jaxpr(jax.grad(f))(1.0))]
