"""Sparse arrays beside JAX's: what they store, products, derivatives, functions of `jax.numpy`."""

import jax
import jax.experimental.sparse
import numpy as np
import pytest
import scipy.sparse

import minijax
import minijax.experimental.sparse
from minijax import lax, numpy as jnp
from minijax.experimental import sparse

A = np.float32([[0, 2, 0], [3, 0, 4]])
V = np.arange(3, dtype=np.float32)
BATCHED = (((2,), (1,)), ((0,), (0,)))

# Functions of the library, its module of sparse arrays, a matrix, and arrays with a batch axis and
# with a dense axis.
PROGRAMS = [
    lambda j, s, x, b, d: (x, b, d, x.T, x.sort_indices(), s.eye(3, 4, 1), s.empty((2, 3))),
    lambda j, s, x, b, d: (x @ V, j.numpy.ones(2) @ x, x @ x.T, x.T @ A, b.sum(0),
                           j.numpy.asarray(A) @ x.T),
    lambda j, s, x, b, d: (2 * x, x / 2, x * A, x + x, x - 2 * x, x + A, abs(-x), x ** 2),
    lambda j, s, x, b, d: (x.sum(), x.sum(0), x.sum(1), b.sum((1, 2)), d.sum(2), d.sum(0)),
    lambda j, s, x, b, d: (x.reshape(6), x.reshape(3, 2), x.astype(int), x[0], x[:, 1:],
                           x[1, ::2], x[None], list(x)),
    lambda j, s, x, b, d: (x + x).sum_duplicates(),
    lambda j, s, x, b, d: (x + x).sum_duplicates(nse=4),
    lambda j, s, x, b, d: j.jit(lambda x: (x.T, x @ V, (x + x).sum_duplicates(nse=3)))(x),
    lambda j, s, x, b, d: j.jit(lambda a: s.BCOO.fromdense(a, nse=5))(A),
    lambda j, s, x, b, d: j.vmap(lambda m: (m @ V, m.T, m * 2))(b),
    lambda j, s, x, b, d: j.vmap(lambda a: s.BCOO.fromdense(a, nse=3))(np.stack([A, 2 * A])),
    lambda j, s, x, b, d: s.bcoo_dot_general(b, np.ones((2, 3, 2), np.float32),
                                             dimension_numbers=BATCHED),
    lambda j, s, x, b, d: (s.bcoo_update_layout(b, n_batch=0), s.bcoo_update_layout(d, n_dense=0)),
    lambda j, s, x, b, d: (s.bcoo_concatenate([x, x], dimension=0), s.bcoo_extract(x, A + 1),
                           s.bcoo_slice(x, start_indices=(0, 1), limit_indices=(2, 3))),
    lambda j, s, x, b, d: s.bcoo_extract(s.BCOO((x.data, x.indices * 0), shape=(2, 3)), A + 1),
    lambda j, s, x, b, d: s.grad(lambda x: (x @ V).sum() ** 2)(x),
    lambda j, s, x, b, d: s.value_and_grad(lambda x, v: (x @ v).sum() ** 2, (0, 1))(x, V),
    lambda j, s, x, b, d: (s.jacfwd(lambda x: x @ V)(x), s.jacrev(lambda x: x @ V)(x)),
    lambda j, s, x, b, d: j.grad(lambda n: s.BCOO((n, x.indices), shape=(2, 3)).T.todense()[0].sum()
                                 )(x.data),
    lambda j, s, x, b, d: s.sparsify(lambda x, v: j.numpy.sin(x.T) * 2 + (x * x).T)(x, V),
    lambda j, s, x, b, d: s.sparsify(lambda x: j.numpy.linalg.norm(j.numpy.flip(x, 0)))(x),
    lambda j, s, x, b, d: s.sparsify(lambda x: j.numpy.concatenate([x, x], 1).squeeze())(x),
    lambda j, s, x, b, d: s.sparsify(j.jit(lambda x: j.numpy.broadcast_to(x, (2, 2, 3))))(x),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_stored_and_what_it_means_are_as_in_jax(program, beside_jax):
    def described(lib):
        module = lib.experimental.sparse
        x = module.BCOO.fromdense(A)
        b = module.BCOO.fromdense(np.stack([A, 2 * A]), n_batch=1)
        d = module.BCOO.fromdense(np.stack([A, 2 * A], -1), n_dense=1)
        leaves = lib.tree.leaves(program(lib, module, x, b, d),
                                 is_leaf=lambda x: isinstance(x, module.JAXSparse))
        return [(repr(x) if isinstance(x, module.JAXSparse) else "", np.asarray(module.todense(x)))
                for x in leaves]
    ours, theirs = beside_jax(described)
    for (text, values), (words, wanted) in zip(ours, theirs, strict=True):
        assert text == words
        np.testing.assert_allclose(values, wanted, rtol=1e-6)
        assert values.dtype == wanted.dtype


X = sparse.BCOO.fromdense(A)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: sparse.sparsify(jnp.cos)(X), "cos is not implemented because it would result in"),
    (lambda: X == A, "sparse rule for eq is not implemented"),
    (lambda: V - X, "Subtraction between sparse and dense array"),
    (lambda: 1 / X, "Division by a sparse array is not implemented"),
    (lambda: jnp.sin(X), r"sin requires ndarray or scalar arguments, got <class '.*BCOO'>"),
    (lambda: X + 1, "Addition between a sparse array X and a dense array Y is not implemented"),
    (lambda: sparse.sparsify(lambda x: lax.cumsum(x))(X), "sparse rule for cumsum"),
    (lambda: X.update_layout(n_batch=1), "call bcoo_fromdense"),
    (lambda: sparse.CSR, "CSR, which is another sparse format: make a BCOO"),
    (lambda: sparse.csr_todense, "of the formats it has BCOO"),
    (lambda: sparse.linalg, "direct solvers of sparse equations"),
    (lambda: sparse.BCOO((V, np.zeros((2, 1), int)), shape=(3,)), r"Invalid data.shape=\(3,\)"),
    (lambda: minijax.jit(sparse.BCOO.fromdense)(A), "argument 'nse' of BCOO.fromdense"),
    (lambda: minijax.vmap(lambda x: x, 1)(X), "Cannot map in_axis=1 for BCOO array"),
])
def test_what_would_be_dense_or_cannot_be_is_refused(call, words):
    with pytest.raises(Exception, match=words):
        call()


def test_its_tree_prints_as_jaxs():
    for lib in (minijax, jax):
        tree = lib.tree.structure({"a": lib.experimental.sparse.BCOO.fromdense(A)})
        assert str(tree) == (
            "PyTreeDef({'a': CustomNode(BCOO[{'shape': " + str(A.shape) +
            ", 'indices_sorted': True, 'unique_indices': True}], [*, *])})")
        assert isinstance(hash(tree), int)


def test_padding_counts_for_nothing():
    padded = sparse.BCOO.fromdense(A, nse=9)
    for f in (lambda x: x, lambda x: x.T, lambda x: x @ A.T, lambda x: x[:, 1:], lambda x: x * x,
              lambda x: x.sum(0), lambda x: x.reshape(3, 2), lambda x: x @ x.T,
              lambda x: sparse.bcoo_rev(x, (0, 1))):
        np.testing.assert_array_equal(sparse.todense(f(padded)), sparse.todense(f(X)))
        assert sparse.todense(f(padded)).any()


def test_a_matrix_of_scipy_and_a_random_one():
    scipys = scipy.sparse.random(5, 6, .3, random_state=0, dtype=np.float32)
    np.testing.assert_array_equal(sparse.BCOO.from_scipy_sparse(scipys).todense(),
                                  scipys.toarray())
    mat = sparse.random_bcoo(minijax.random.key(0), (6, 7), nse=.25, sorted_indices=True)
    assert mat.nse == 11 == np.count_nonzero(mat.todense())
    assert isinstance(jax.experimental.sparse.BCOO.fromdense(A), jax.experimental.sparse.JAXSparse)
