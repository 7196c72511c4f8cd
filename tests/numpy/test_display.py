"""Arrays show themselves as JAX's do, character for character."""

import numpy as np
import pytest

import jax
import minijax

ARRAYS = ["jnp.arange(3)", "jnp.asarray(2.5)", "jnp.float32(1)", "jnp.zeros((0, 3))",
          "jnp.arange(2000)", "jnp.ones((3, 4, 50))", "jnp.array([1, 2], 'bfloat16')",
          "jnp.array(True)", "jnp.array(1 + 2j)", "jnp.arange(30.)", "jnp.arange(100.) / 8",
          "jnp.array([1e-10, 1e10])", "jnp.array([jnp.nan, jnp.inf])", "jnp.eye(3)",
          "jnp.array([[True, False]])", "jnp.full((2, 2), 1e-3)", "jnp.array([], int)",
          "jnp.arange(12, dtype='uint8').reshape(3, 4)", "jnp.zeros(13) + 1234.5678",
          "jnp.array([0.1, 0.25], 'float16')", "jnp.asarray([1, 2]) * 1.5"]


@pytest.mark.parametrize("expression", ARRAYS)
def test_repr_and_str_are_those_of_jax(expression):
    ours, theirs = (eval(expression, {"jnp": top.numpy}) for top in (minijax, jax))
    assert repr(ours) == repr(theirs)
    assert str(ours) == str(theirs)
    assert f"{ours}" == f"{theirs}"


def test_repr_follows_the_print_options_of_numpy():
    for options in ({"precision": 3}, {"linewidth": 40}, {"threshold": 5}, {"suppress": True}):
        with np.printoptions(**options):
            ours, theirs = (top.numpy.arange(20) / 8 for top in (minijax, jax))
            assert repr(ours) == repr(theirs)


def test_keys_show_as_on_the_page_of_sharp_bits():
    assert repr(minijax.random.key(0)) == "Array((), dtype=key<fry>) overlaying:\n[0 0]"
    assert str(minijax.random.key(0)) == "Array((), dtype=key<fry>) overlaying:\n[0 0]"


def test_keys_are_no_numbers():
    with pytest.raises(TypeError, match="key_data"):
        np.asarray(minijax.random.key(0))


def test_tracers_show_as_on_the_page_of_sharp_bits():
    seen = []
    minijax.jit(lambda x: seen.append((str(x), f"{x}")))(2)
    text = "Traced<ShapedArray(int32[], weak_type=True)>with<DynamicJaxprTrace(level=1/0)>"
    assert seen == [(text, text)]
