"""Derivatives as users call them: values, trees and refusals are JAX's."""

import functools
import itertools

import jax
import numpy as np
import pytest

import minijax

X = np.array([0.5, -0.3, 1.2], np.float32)


def leaves(tree):
    return [np.asarray(x) for x in jax.tree.leaves(minijax.tree.leaves(tree))]


def same(f, rtol=1e-5):
    ours, theirs = f(minijax), f(jax)
    for a, b in zip(leaves(ours), leaves(theirs), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        if a.dtype != jax.dtypes.float0:
            np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)


def loss(lib):
    def f(params, x, scale=1.0):
        y = lib.numpy.tanh(params["w"] @ x + params["b"])
        return scale * (y * y).sum()
    return f


PARAMS = {"w": np.arange(9, dtype=np.float32).reshape(3, 3) / 9, "b": X}

CALLS = {
    "grad of a tree": lambda lib: lib.grad(loss(lib))(PARAMS, X),
    "grad by two arguments": lambda lib: lib.grad(loss(lib), (0, 1))(PARAMS, X),
    "grad by an integer of NumPy": lambda lib: lib.grad(loss(lib), np.int64(1))(PARAMS, X),
    "grad by the last argument": lambda lib: lib.grad(loss(lib), -1)(PARAMS, X),
    "grad with a keyword": lambda lib: lib.grad(loss(lib))(PARAMS, X, scale=3.0),
    "value and grad": lambda lib: lib.value_and_grad(loss(lib))(PARAMS, X),
    "aux": lambda lib: lib.value_and_grad(
        lambda x: ((x * x).sum(), {"double": x * 2, "n": 3}), has_aux=True)(X),
    "grad aux": lambda lib: lib.grad(lambda x: (x[0] ** 2, x), has_aux=True)(X),
    "jvp": lambda lib: lib.jvp(loss(lib), (PARAMS, X), (PARAMS, X)),
    "jvp aux": lambda lib: lib.jvp(lambda x: (x * 2, x), (X,), (X,), has_aux=True),
    "vjp": lambda lib: lib.vjp(lambda p: p["w"] @ p["b"], PARAMS)[1](X),
    "vjp of integers": lambda lib: lib.vjp(lambda x, n: x * n, 2.0, 3)[1](1.0),
    "vjp of what has no derivative": lambda lib: [
        lib.vjp(f, 2.0)[1]((1.0, ct)) for f, ct in (
            (lambda x: (x * 2, 3), 1), (lambda x: (x * 2, x > 0), True),
            (lambda x: (x * 2, x.astype(int)), 1.5),
            (lambda x: (x * 2, x.astype(int)), np.zeros((), lib.dtypes.float0)))],
    "vjp aux": lambda lib: lib.vjp(lambda x: (x * 2, x), X, has_aux=True)[2],
    "linearize": lambda lib: lib.linearize(loss(lib), PARAMS, X)[1](PARAMS, X),
    "linear_transpose": lambda lib: lib.linear_transpose(lambda x: 2 * x, 1.0)(3.0),
    "float0": lambda lib: lib.grad(lambda x, n: x * n, (0, 1), allow_int=True)(2.0, 3),
    "holomorphic": lambda lib: lib.grad(lambda z: z * z, holomorphic=True)(1 + 2j),
    "unused argument": lambda lib: lib.grad(lambda x, y: x * 2, (0, 1))(1.0, 2.0),
    "constant result": lambda lib: lib.grad(lambda x: 3.0)(1.0),
    "jacfwd": lambda lib: lib.jacfwd(lambda p: p["w"] @ p["b"])(PARAMS),
    "jacrev": lambda lib: lib.jacrev(lambda p: {"y": p["w"] @ p["b"], "z": p["b"]})(PARAMS),
    "jacfwd by two": lambda lib: lib.jacfwd(lambda x, y: x * y, (0, 1))(X, X),
    "jacrev by two": lambda lib: lib.jacrev(lambda x, y: x * y, (0, 1))(X, X),
    "jacfwd aux": lambda lib: lib.jacfwd(lambda x: (x * 2, x[0]), has_aux=True)(X),
    "jacrev aux": lambda lib: lib.jacrev(lambda x: (x * 2, x[0]), has_aux=True)(X),
    "hessian": lambda lib: lib.hessian(lambda x: (x ** 3).sum() * x[0])(X),
    "hessian of a tree": lambda lib: lib.hessian(loss(lib))(PARAMS, X),
    "jacobian of integers out": lambda lib: lib.jacfwd(lambda x: x.astype(int))(X),
}


@pytest.mark.parametrize("name", CALLS)
def test_values_and_trees(name):
    same(CALLS[name], rtol=1e-4)


def test_the_tree_of_a_gradient_is_the_arguments():
    g = minijax.grad(loss(minijax))(PARAMS, X)
    assert set(g) == {"w", "b"} and g["w"].shape == (3, 3)


def test_gradients_agree_with_finite_differences():
    with minijax.enable_x64(True):
        f = lambda x: minijax.numpy.sin(x @ x) * minijax.numpy.exp(x[0])  # noqa: E731
        x = X.astype(np.float64)
        slope = minijax.grad(f)(x)
        eps = 1e-6
        for i in range(3):
            d = np.eye(3)[i] * eps
            want = (f(x + d) - f(x - d)) / (2 * eps)
            np.testing.assert_allclose(slope[i], want, rtol=1e-6)


BAD = {
    "no callable": lambda lib: lib.grad(3),
    "no scalar": lambda lib: lib.grad(lambda x: x)(np.ones(3, np.float32)),
    "a tuple": lambda lib: lib.grad(lambda x: None)(1.0),
    "integer input": lambda lib: lib.grad(lambda x: x)(1),
    "complex input": lambda lib: lib.grad(lambda x: x)(1j),
    "integer output": lambda lib: lib.grad(lambda x: 3)(1.0),
    "boolean output": lambda lib: lib.grad(lambda x: x > 0)(1.0),
    "boolean output and its value": lambda lib: lib.value_and_grad(lambda x: x > 0)(1.0),
    "boolean input, and the value": lambda lib: lib.value_and_grad(lambda x: x * 2)(True),
    "real input of a complex function": lambda lib: lib.value_and_grad(
        lambda x: x, holomorphic=True)(1.0),
    "input that is no array": lambda lib: lib.grad(lambda x: x)("a"),
    "too few arguments": lambda lib: lib.grad(lambda x: x, argnums=3)(1.0),
    "jvp of numbers": lambda lib: lib.jvp(lambda x: x, 1.0, 1.0),
    "jvp trees": lambda lib: lib.jvp(lambda x: x, ({"a": 1.0},), ([1.0],)),
    "jvp shapes": lambda lib: lib.jvp(lambda x: x, (X,), (X[:2],)),
    "jvp dtypes": lambda lib: lib.jvp(lambda x: x, (1.0,), (1,)),
    "linear_transpose of another dtype": lambda lib: lib.linear_transpose(lambda x: 2 * x, 1.0)(3),
    "linear_transpose of another shape": lambda lib: lib.linear_transpose(
        lambda x: 2 * x, 1.0)(np.zeros(2, np.float32)),
    "vjp shape": lambda lib: lib.vjp(lambda x: x, 1.0)[1](X),
    "jacfwd of integers": lambda lib: lib.jacfwd(lambda x: x)(1),
    "jacrev of integers": lambda lib: lib.jacrev(lambda x: x)(1),
    "jacrev to integers": lambda lib: lib.jacrev(lambda x: x.astype(int))(X),
    "jacrev to complex numbers": lambda lib: lib.jacrev(lambda x: x * 1j)(X),
    "too few tangents": lambda lib: lib.linearize(lambda x, y: x * y, 1.0, 2.0)[1](1.0),
    "tangents of another dtype": lambda lib: lib.linearize(lambda x, y: x * y, 1.0, 2.0)[1](1, 2),
    "grad of a generator": lambda lib: lib.grad(numbers),
    "vjp of a generator": lambda lib: lib.vjp(numbers, 1.0),
    "pmap of a generator": lambda lib: lib.pmap(numbers),
}


def numbers(x):
    yield x


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_jaxs_words(name, refused_alike):
    refused_alike(BAD[name])


@pytest.mark.parametrize("transform", ["grad", "value_and_grad", "jacfwd", "jacrev", "hessian"])
@pytest.mark.parametrize("argnums", [(0, 0), (1, -1)])
def test_an_argument_that_is_chosen_twice_is_refused_as_in_jax(transform, argnums):
    for lib in (minijax, jax):
        with pytest.raises(TypeError):
            getattr(lib, transform)(lambda x, y: x * y, argnums)(1.0, 2.0)


def test_a_refusal_shows_the_users_line():
    def user(x):
        return minijax.numpy.ones(3) + minijax.numpy.ones(4)
    with pytest.raises(TypeError, match="incompatible shapes") as caught:
        minijax.grad(user)(1.0)
    notes = " ".join(caught.value.__notes__)
    assert "`user`" in notes and f"test_derivatives.py:{user.__code__.co_firstlineno + 1}" in notes


def types(lib, tree):
    return [(str(x.dtype), x.shape, x.weak_type) for x in lib.tree.leaves(tree)]


OF_A_NUMBER = {
    "a row of a stack": lambda lib, x: lib.numpy.stack([x, x * x])[1],
    "a reversed stack": lambda lib, x: lib.numpy.flip(lib.numpy.stack([x, 1.0]))[1],
    "sorted": lambda lib, x: lib.numpy.sort(lib.numpy.stack([x, 2 * x]))[0],
    "padded": lambda lib, x: lib.numpy.pad(lib.numpy.atleast_1d(x), 1).sum(),
    "several results": lambda lib, x: {"a": lib.numpy.stack([x, 2 * x]), "b": x * np.float32(2)},
    "a fractional power": lambda lib, x: x ** 2.5,
    "a whole power": lambda lib, x: x ** lib.numpy.int32(2),
    "power of a number": lambda lib, x: 2.0 ** x,
    "logsumexp": lambda lib, x: lib.nn.logsumexp(lib.numpy.stack([x, 0.0])),
    "relu": lambda lib, x: lib.nn.relu(x),
}
DERIVATIVES = {
    "jvp": lambda lib, f: lib.jvp(f, (2.0,), (2.0,)),
    "vjp": lambda lib, f: lib.vjp(f, 2.0)[1](f(2.0)),
    "jacfwd": lambda lib, f: lib.jacfwd(f)(2.0),
    "jacrev": lambda lib, f: lib.jacrev(f)(2.0),
    "hessian of a tree": lambda lib, f: lib.hessian(
        lambda t: lib.tree.map(lambda y: y * t["b"], f(t["a"])))({"a": 2.0, "b": 3.0}),
}


@pytest.mark.parametrize("function", OF_A_NUMBER)
@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_derivatives_by_a_python_number_are_as_weakly_typed_as_jaxs(
        function, derivative, beside_jax):
    def found(lib):
        return DERIVATIVES[derivative](lib, lambda x: OF_A_NUMBER[function](lib, x))
    ours, theirs = beside_jax(found)
    assert types(minijax, ours) == types(jax, theirs)
    same({minijax: ours, jax: theirs}.get)


@pytest.mark.parametrize("call", [
    lambda jax: jax.vjp(jax.numpy.sin, "a"), lambda jax: jax.jacfwd(jax.numpy.sin)("a"),
    lambda jax: jax.jacrev(jax.numpy.sin)("a"), lambda jax: jax.grad(jax.numpy.sin)("a"),
    lambda jax: jax.linearize(jax.numpy.sin, "a"), lambda jax: jax.vmap(jax.numpy.sin)("a"),
    lambda jax: jax.jvp(jax.numpy.sin, ("a",), ("a",))])
def test_what_is_no_array_is_refused_as_in_jax_up_to_the_full_stop(call):
    messages = []
    for package in (minijax, jax):
        with pytest.raises(TypeError) as caught:
            call(package)
        messages.append(str(caught.value).splitlines()[0])
    assert messages[0] == messages[1]


def test_cotangents_that_are_not_wanted_are_not_computed_in_any_program():
    """A loop and a compiled function between: the same numbers for the others."""
    def f(lib, w, x, y):
        h = lib.jit(lambda w, x: lib.numpy.sin(w @ x))(w, x)
        return lib.lax.scan(lambda c, z: (c * z + y, c), h, y * lib.numpy.ones((2, 3)))[0].sum() * y
    for wanted in ([True, False, False], [False, True, True], [False, False, True]):
        given = np.eye(3, dtype=np.float32) + 1, np.arange(3, dtype=np.float32), np.float32(2)
        results = []
        for lib in (minijax, jax):
            _, pull = lib.vjp(functools.partial(f, lib), *given)
            found = pull.with_refs(*(lib.ad.GradValue() if w else lib.ad.DontWant()
                                     for w in wanted))(lib.numpy.float32(1))
            assert [type(ct).__name__ == "DidntWant" for ct in found] == [not w for w in wanted]
            results.append([np.asarray(ct) for ct, w in zip(found, wanted, strict=True) if w])
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_a_pull_back_goes_through_jit_and_another_argument_may_be_put_in_it(beside_jax):
    def pulled(lib):
        w, x = lib.numpy.eye(2) + 1, lib.numpy.array([1.0, 2.0])
        y, pull = lib.jit(lambda w, x: lib.vjp(lambda w, x: lib.numpy.sin(w @ x), w, x))(w, x)
        before = lib.jit(lambda pull, ct: pull(ct))(pull, y)
        pull.args_res[1] = 10 * x
        return [np.asarray(leaf) for leaf in lib.tree.leaves((before, pull(y)))]
    for ours, theirs in zip(*beside_jax(pulled), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


# ── Weak types ───────────────────────────────────────────────────────────────────────────────

def scan_of_both(lib, w, c, x):
    return lib.lax.scan(lambda c, x: (c * w, x * w), c * w, x)


def batched_rule(lib, w, c, x):
    mul = lib.custom_vjp(lambda x, c: x * c)
    mul.defvjp(lambda x, c: (x * c, (x, c)), lambda r, ct: (ct * r[1], (r[0] * ct).sum()))
    return lib.vmap(lambda x: lib.lax.scan(lambda x, _: (mul(x, c), None), x, None, length=3)[0])(x)


WEAKLY = {
    "product": lambda lib, w, c, x: w * c + x,
    "scan": scan_of_both,
    "cond": lambda lib, w, c, x: lib.lax.cond(c > 0, lambda c: c * w, lambda c: c, c),
    "jit": lambda lib, w, c, x: lib.jit(lambda w, c: (w * c, w))(w, c),
    "checkpoint": lambda lib, w, c, x: lib.checkpoint(lambda c: lib.numpy.sin(c * w))(c),
    "vmap": lambda lib, w, c, x: lib.vmap(lambda x: lib.numpy.sin(x) * c)(x),
    "a rule in a batch": batched_rule,
    "square": lambda lib, w, c, x: (lib.lax.square(x), lib.lax.square(c)),
    "product of groups": lambda lib, w, c, x: lib.lax.ragged_dot(
        x.reshape(3, 1), x.reshape(3, 1, 1), np.ones(3, np.int32)),
    "complex": lambda lib, w, c, x: (abs(x * (w + 1j * c)), (x * 1j * c).real, (x * 1j).imag),
}


@pytest.mark.parametrize("weak", [*itertools.product([False, True], repeat=4)], ids=str)
@pytest.mark.parametrize("name", WEAKLY)
def test_derivatives_of_programs_are_as_weak_as_those_of_jax(name, weak, jax_says):
    def weakness(lib):
        def given(lib, is_weak, shape=()):
            return lib.ShapeDtypeStruct(shape, np.float32, weak_type=is_weak)

        def of_all(w, c, x):
            out, back = lib.vjp(functools.partial(WEAKLY[name], lib), w, c, x)
            cotangent = lib.tree.map(lambda y: y if weak[3] else lib.lax.convert_element_type(
                y, y.dtype), out)
            return out, back(out), back(cotangent)
        found = lib.eval_shape(of_all, given(lib, weak[0]), given(lib, weak[1]),
                               given(lib, weak[2], (3,)))
        return [(x.shape, str(x.dtype), x.weak_type) for x in lib.tree.leaves(found)]
    assert weakness(minijax) == jax_says(lambda: weakness(jax))


@pytest.mark.parametrize("weak", [*itertools.product([False, True], repeat=4)], ids=str)
def test_a_transposed_scan_is_as_weak_as_its_cotangents(weak, beside_jax):
    def weakness(lib):
        def given(k, shape=()):
            return lib.ShapeDtypeStruct(shape, np.float32, weak_type=weak[k])
        back = lib.linear_transpose(lambda c, x: lib.lax.scan(lambda c, x: (c + x, c), c, x),
                                    given(0), given(1, (3,)))
        found = lib.eval_shape(back, (given(2), given(3, (3,))))
        return [x.weak_type for x in lib.tree.leaves(found)]
    ours, theirs = beside_jax(weakness)
    assert ours == theirs
