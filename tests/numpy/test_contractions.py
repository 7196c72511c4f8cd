"""Products of vectors and matrices agree with JAX."""

import jax
import ml_dtypes
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp


@pytest.mark.parametrize("expression", [
    "jnp.dot(v, v)", "jnp.dot(f, v)", "jnp.dot(f, f.T)", "jnp.dot(t, t[0].T)", "jnp.dot(i, w)",
    "jnp.dot(2, 3.5)", "jnp.dot(f, 2)", "jnp.dot(h, h.T)", "jnp.dot(f, w)",
    "jnp.dot(b[0], b[0])", "jnp.dot(c, c.T)", "jnp.matmul(f, v)", "jnp.matmul(v, f.T)",
    "jnp.matmul(f, f.T)", "jnp.matmul(t, t[0].T)", "jnp.matmul(t, jnp.swapaxes(t, 1, 2))",
    "jnp.matmul(t[:, None], jnp.swapaxes(t, 1, 2)[None])", "jnp.matmul(f, jnp.ones((5, 3, 2)))",
    "jnp.matmul(t, jnp.ones(4))", "jnp.matmul(jnp.ones(3), t)",
    "jnp.matmul(t[:1], jnp.swapaxes(t, 1, 2))", "jnp.matmul(i, i.T)", "jnp.matmul(e, f.T)",
    "jnp.matmul(f, f.T, preferred_element_type='float16')", "jnp.vdot(f, f)", "jnp.vdot(c, c)",
    "jnp.vecdot(f, v)", "jnp.vecdot(t, t, axis=1)", "jnp.vecdot(c, c)", "jnp.inner(f, f)",
    "jnp.inner(v, 2)", "jnp.outer(v, w)", "jnp.outer(f, v)", "jnp.tensordot(t, t, 3)",
    "jnp.tensordot(f, f.T, 1)", "jnp.tensordot(t, t, axes=((0, 1), (0, 1)))",
    "jnp.tensordot(v, w, 0)", "jnp.kron(m, m)", "jnp.kron(v, f)", "jnp.cross(v, w)",
    "jnp.cross(f, v)", "jnp.cross(m, m[::-1])", "jnp.cross(v[:2], w)",
    "jnp.cross(f.T, f.T, axis=0)", "jnp.trace(m)", "jnp.trace(f, offset=1)",
    "jnp.trace(t, axis1=0, axis2=2)", "jnp.trace(p[:, None] * p)", "jnp.matvec(f, v)",
    "jax.grad(lambda x: jnp.dot(x, v).sum())(f)", "jax.grad(lambda x: (x @ x.T).sum())(f)",
    "jax.grad(lambda x: jnp.matmul(t, x).sum())(jnp.ones((4, 2)))",
    "jax.vmap(jnp.dot, (0, None))(f, v)", "jax.vmap(jnp.dot)(f, f)",
    "jax.vmap(jnp.matmul, (0, None))(t, jnp.ones((4, 2)))", "jax.jit(jnp.matmul)(f, v)",
    "jax.jit(jnp.cross)(v, w)", "jax.jit(jnp.outer)(v, v)",
])
def test_products(agrees_with_jax, expression):
    agrees_with_jax(expression, rtol=1e-05)


@pytest.mark.parametrize("expression", [
    "jnp.matmul(jnp.ones((2, 3, 1)), t[..., :5])", "jnp.matmul(t, jnp.ones((1, 5)))",
    "jnp.dot(v, jnp.ones(4))", "jnp.matmul(f, f)", "jnp.matmul(f, 2)", "jnp.matmul(2, f)",
    "jnp.matmul(jnp.ones((2, 2, 2)), jnp.ones((3, 2, 2)))", "jnp.dot([1, 2], v)",
    "jnp.tensordot(f, f, ('bad', 'axes'))", "jnp.tensordot(v, f, ([0], [0, 1]))",
    "jnp.tensordot(f, f, 3)", "jnp.tensordot(f, f, ((0,), (0, 1)))",
    "jnp.cross(jnp.ones(4), jnp.ones(4))", "jnp.inner(f, jnp.ones(4))",
])
def test_refusals(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("expression", [
    "jnp.einsum('ij,kj->ik', f, f)", "jnp.einsum('ij,jk', f, f.T)", "jnp.einsum('ij->ji', f)",
    "jnp.einsum('ij->', f)", "jnp.einsum('ij->j', f)", "jnp.einsum('ii', m)",
    "jnp.einsum('ii->i', m)", "jnp.einsum('i,i', v, v)", "jnp.einsum('i,j->ij', v, w)",
    "jnp.einsum('ij,j', f, v)", "jnp.einsum('bij,bjk->bik', t, jnp.swapaxes(t, 1, 2))",
    "jnp.einsum('...ij,...jk->...ik', t, jnp.swapaxes(t, 1, 2))",
    "jnp.einsum('...j,j', t, jnp.ones(4))", "jnp.einsum('...->...', f)",
    "jnp.einsum('ij...->ji...', t)", "jnp.einsum('i...->...', t)",
    "jnp.einsum('i...,i...->i', t, t)", "jnp.einsum('...i->i', t)", "jnp.einsum('...->', t)",
    "jnp.einsum('i...j,i...->j', t, t[:, :, 0])", "jnp.einsum('...,...->', f, v)",
    "jnp.einsum('ij,jk,kl->il', f, f.T, f)", "jnp.einsum('ij,jk,k->i', f, f.T, jnp.ones(2))",
    "jnp.einsum('a,b,c->abc', v, v, v)", "jnp.einsum('ijk,ijk->i', t, t)",
    "jnp.einsum('ijk,kj->i', t, jnp.ones((4, 3)))", "jnp.einsum('iij->j', jnp.ones((2, 2, 3)))",
    "jnp.einsum('ij,ij->ij', f, g)", "jnp.einsum(' i j , j k -> i k ', f, f.T)",
    "jnp.einsum('1a,2a->12', f, f)", "jnp.einsum('éa,_a', f, f)", "jnp.einsum('...1a->...a1', t)",
    "jnp.einsum('a.b,b1', f, f.T)",
    "jnp.einsum(f, [0, 1], f, [2, 1], [0, 2])", "jnp.einsum(f, [0, 1], v, [1])",
    "jnp.einsum(f, ['batch', 'in'], f, ['out', 'in'], ['out', 'batch'])",
    "jnp.einsum(f, [('a', 0), ('b', 1)], v, [('b', 1)])", "jnp.einsum(f, [100, 200], f, [3, 200])",
    "jnp.einsum(f, [-1, 0], v, [0])", "jnp.einsum(f, [1, -1], f, [0, -1])", "jnp.einsum(f, 'ba')",
    "jnp.einsum(t, [..., 'b'], f, ['a', 'c'], [..., 'a', 'b'])", "jnp.einsum(m, ['x', 'x'])",
    "jnp.einsum(f, [1.5, True], v, [1])", "jnp.einsum(*[v, [7]] * 2, *(x for n in range(60) for "
    "x in (jnp.ones(1), [n + 10])))",
    "jnp.einsum('ij,jk', i, i.T)", "jnp.einsum('ij,jk', h, h.T)", "jnp.einsum('ij,j', f, w)",
    "jnp.einsum('bqhd,bkhd->bhqk', jnp.ones((2, 3, 2, 4)), jnp.ones((2, 5, 2, 4)))",
    "jax.grad(lambda x: jnp.einsum('ij,kj->', x, f))(f)",
    "jax.jit(lambda x: jnp.einsum('ij,kj->ik', x, x))(f)",
    "jax.vmap(lambda x: jnp.einsum('i,j->ij', x, x))(f)",
])
def test_einsum(agrees_with_jax, expression):
    agrees_with_jax(expression, rtol=1e-05)


@pytest.mark.parametrize("expression", [
    "jnp.einsum('ij,jk,kl,l', f, f.T, f, jnp.ones(3))", "jnp.einsum('bi,ijk,bk->bj', f, t.T, f)",
    "jnp.einsum('a,b,c,d,e,f->', *[v] * 6)", "jnp.einsum('ij,ij,ij,ij', f, g, f, g)",
    "jnp.einsum('ii,i,ij,kj->k', jnp.ones((2, 2)), jnp.ones(2), f, g)",
    "jnp.einsum('ij,jk,k', f, f.T, jnp.ones(2), optimize=False)",
    "jnp.einsum('ij,jk,k', f, f.T, jnp.ones(2), optimize=[(0, 2), (0, 1)])",
])
def test_einsum_of_many(agrees_with_jax, expression):
    agrees_with_jax(expression, rtol=1e-05)


def sizes_of_products(program, *shapes):
    """How many numbers each product of a program gives."""
    eqns = minijax.make_jaxpr(program)(*map(np.ones, shapes)).eqns
    return [eqn.outvars[0].aval.size for eqn in eqns if eqn.primitive.name == "dot_general"]


def test_the_order_of_a_sum_of_products_is_that_of_least_work():
    chain = lambda *arrays: jnp.einsum("ab,bc,c->a", *arrays)
    assert sizes_of_products(chain, (9, 9), (9, 9), (9,)) == [9, 9]
    assert sizes_of_products(lambda *x: jnp.linalg.multi_dot(x), (2, 9), (9, 9), (9,)) == [9, 2]
    assert sizes_of_products(lambda *x: jnp.einsum("ab,bc,c->a", *x, optimize=False),
                             (9, 9), (9, 9), (9,)) == [81, 9]


@pytest.mark.parametrize("expression", [
    "jnp.einsum('ij,jk', f, f)", "jnp.einsum('ij', f, f)", "jnp.einsum('ijk', f)",
    "jnp.einsum('ij->ik', f)", "jnp.einsum('ij,jk', [[1]], f)",
    "jnp.einsum(f, [0, 'a'])", "jnp.einsum(f, [0, 1], [5])", "jnp.einsum(f, [0, 1, 2])",
    "jnp.einsum('ij->ii', f)", "jnp.einsum('ij->i->j', f)", "jnp.einsum('..ij', f)",
    "jnp.einsum('...ijk', f)", "jnp.einsum('ij', f, f)", "jnp.einsum('i-j', f)",
    "jnp.einsum('ij,jk,kl', f, f.T, f, optimize='nonsense')", "jnp.einsum_path('ijk', f)",
    "jnp.einsum('ij,jk,kl', f, f.T, f, optimize=[(0, 1)])", "jnp.einsum_path('ij,jk', f, f)",
])
def test_refusals_of_einsum(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("name", ["cross", "inner", "kron", "outer", "tensordot", "vecdot"])
def test_a_list_is_refused_at_its_position(name):
    with pytest.raises(TypeError, match=f"{name} requires .* <class 'list'> at position 1"):
        getattr(jnp, name)(np.ones(3, np.float32), [1, 2, 3])


def test_einsum_multiplies_by_what_it_is_given():
    for lib in (minijax, jax):
        seen = []

        def product(*args, lib=lib, seen=seen, **options):
            seen.append(sorted(options))
            return lib.lax.dot_general(*args, **options) * 2

        x = np.ones((2, 3), "f")
        found = lib.numpy.einsum("ij,kj->ik", x, x, _dot_general=product)
        assert found.tolist() == [[6, 6], [6, 6]] and "preferred_element_type" in seen[0]


SHAPES = {"i": 2, "j": 3, "k": 4, "l": 5, "m": 60}


@pytest.mark.parametrize("optimize", ["auto", "greedy", "optimal", "dp", "branch-all", True, False])
def test_the_path_of_einsum_is_jaxs(optimize):
    for equation in ("ij,jk,k", "ij,jk,kl", "ij,jk,kl,lm->im", "im,mj,jk,kl", "ij", "ij,jk"):
        terms = equation.partition("->")[0].split(",")
        arrays = [np.ones([SHAPES[label] for label in term]) for term in terms]
        paths = [lib.numpy.einsum_path(equation, *arrays, optimize=optimize)[0]
                 for lib in (minijax, jax)]
        assert paths[0] == paths[1], equation


def test_a_path_that_is_given_is_the_path():
    arrays, path = [np.ones((2, 2))] * 3, [(0, 2), (0, 1)]
    for lib in (minijax, jax):
        assert lib.numpy.einsum_path("ij,jk,kl", *arrays, optimize=path)[0] == path


@pytest.mark.filterwarnings("error::numpy.exceptions.ComplexWarning")
def test_a_real_factor_beside_a_complex_one_has_a_real_cotangent():
    x, y = np.arange(5, dtype="float32"), np.arange(5, dtype="complex64")
    ours, theirs = (lib.jacobian(lambda x, y, lib=lib: lib.lax.dot(x, y).real)(x, y)
                    for lib in (minijax, jax))
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs)


def test_einsum_contracts_two_operands_at_a_time():
    for lib in (minijax, jax):
        with pytest.raises(NotImplementedError, match="simultaneous contraction of 3 or more"):
            lib.numpy.einsum("ij,ik,il->jkl", *[np.ones((2, 3))] * 3, optimize=[(0, 1, 2)])


@pytest.mark.parametrize("name", ["matmul", "vecdot"])
def test_stacks_of_one_broadcast_to_stacks_of_none(name):
    shapes = [(m, n, 2, 2) for m in (0, 1, 3) for n in (0, 1, 3)] + [(0, 2), (1, 2), (2, 2)]
    for a in shapes:
        for b in shapes:
            x, y = np.ones(a, np.float32), np.ones(b, np.float32)
            try:
                expected = getattr(np, name)(x, y).shape
            except ValueError:
                continue
            assert getattr(minijax.numpy, name)(x, y).shape == expected, (a, b)


MIXED = {name: [np.arange(1, 5).astype(dtype) for dtype in pair] for name, pair in {
    "int32 and float32": ("int32", "float32"), "int8 and float16": ("int8", "float16"),
    "bool and int8": ("bool", "int8"), "float32 and float16": ("float32", "float16"),
    "bfloat16 and float16": (ml_dtypes.bfloat16, "float16"), "uint8 and int8": ("uint8", "int8"),
    "float32 and complex64": ("float32", "complex64")}.items()}
STACKED = [((3, 1, 5, 4), (1, 1, 4, 2)), ((1, 5, 4), (1, 4, 2)), ((3, 2, 5, 4), (4,)),
           ((4,), (3, 1, 4, 2)), ((3, 1, 5, 4), (1, 2, 4, 2)), ((5, 4), (3, 4, 2))]
VECTORS = [((5, 2, 3), (5, 2, 3)), ((5, 2, 3), (2, 3)), ((3,), (2, 3)), ((5, 1, 3), (1, 2, 3))]
SUMS = {"ij,jk->ki": "23,34", "bij,bjk->kbi": "523,534", "bij,bjk->bki": "523,534",
        "ij,kj->": "23,43", "ij,ji->": "23,32", "i,j->ji": "2,3", "j,ij->i": "3,23",
        "bi,bj->ijb": "52,53", "ij,jk,kl->il": "23,34,45", "ij,jk,k->i": "23,34,4",
        "bhqd,bhkd->bhqk": "5234,5264"}


def equations(lib, f, *args):
    return [(str(eqn.primitive), str(eqn.params.get("dimension_numbers")),
             [(str(x.aval.dtype), x.aval.shape) for x in (*eqn.invars, *eqn.outvars)])
            for eqn in lib.make_jaxpr(f)(*args).eqns]


@pytest.mark.parametrize("name", MIXED)
def test_a_product_of_two_dtypes_is_one_equation_as_in_jax(name, beside_jax):
    for f in (lambda lib: lib.numpy.dot, lambda lib: lib.numpy.matmul,
              lambda lib: lib.numpy.inner, lambda lib: lib.numpy.vecdot,
              lambda lib: lambda x, y: lib.numpy.einsum("i,i", x, y)):
        ours, theirs = beside_jax(lambda lib, f=f: (
            equations(lib, f(lib), *MIXED[name]), np.asarray(f(lib)(*MIXED[name]))))
        assert ours[0] == theirs[0]
        np.testing.assert_array_equal(ours[1], theirs[1], strict=True)
        np.testing.assert_array_equal(minijax.jit(f(minijax))(*MIXED[name]), theirs[1])


@pytest.mark.parametrize("name", MIXED)
def test_a_cotangent_of_a_product_has_the_dtype_of_its_factor(name, beside_jax):
    def cotangents(lib):
        out, pull_back = lib.vjp(lib.numpy.matmul, *MIXED[name])
        return [*map(np.asarray, pull_back(lib.numpy.ones_like(out)))]
    for ours, theirs in zip(*beside_jax(cotangents), strict=True):
        if theirs.dtype != jax.dtypes.float0:
            np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("shapes", STACKED, ids=str)
def test_a_product_of_stacks_has_the_equations_of_jax(shapes, beside_jax):
    ours, theirs = beside_jax(lambda lib: equations(
        lib, lib.numpy.matmul, *(np.ones(shape, np.float32) for shape in shapes)))
    assert ours == theirs


@pytest.mark.parametrize("shapes", VECTORS, ids=str)
def test_a_product_of_vectors_in_stacks_has_the_equations_of_jax(shapes, beside_jax):
    ours, theirs = beside_jax(lambda lib: equations(
        lib, lib.numpy.vecdot, *(np.ones(shape, np.float32) for shape in shapes)))
    assert ours == theirs


@pytest.mark.parametrize("subscripts", SUMS)
def test_an_einsum_has_the_equations_of_jax(subscripts, beside_jax):
    arrays = [np.ones([*map(int, sizes)], np.float32) for sizes in SUMS[subscripts].split(",")]
    ours, theirs = beside_jax(lambda lib: equations(
        lib, lambda *args: lib.numpy.einsum(subscripts, *args), *arrays))
    assert ours == theirs
