"""Python's syntax on arrays and tracers agrees with JAX."""


import copy
import inspect
import math
import operator
import pickle

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import core


SIGNS = ["+", "-", "*", "/", "//", "%", "**", "@", "==", "!=", "<", "<=", ">", ">="]


@pytest.mark.parametrize("sign", SIGNS)
def test_an_operator_agrees_with_jax(agrees_with_jax, sign):
    for pair in ("v{}v", "v{}w", "v{}2", "2{}v", "np.float32([1, 2, 3]){}v", "2.5{}w",
                 "np.float64(2){}w"):
        if sign != "@" or "2{}" not in pair and "(2){}" not in pair and "{}2" not in pair \
                and ".5{}" not in pair:
            agrees_with_jax(pair.format(sign), rtol=1e-5)


@pytest.mark.parametrize("expression", [
    "i & 6", "i | 6", "i ^ 6", "i << 1", "i >> 1", "6 & i", "b & True", "1 << k", "~i", "~b",
    "-f", "+f", "abs(f)", "divmod(i, 3)", "divmod(7, jnp.array([2, 3]))", "round(f)",
    "round(f, 1)", "round(s)", "f.T @ f", "f @ [1, 2]", "f + [1, 2]", "f + (1,)", "f + 'a'",
    "f + None", "f == None", "f != 'a'", "f < None", "f == [1]", "-b", "~f", "b - b", "pow(v, 2)",
    "f < 1j", "c < c", "c == c",
])
def test_the_other_operators(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("expression", [
    "bool(s)", "bool(f)", "bool(e)", "bool(jnp.array([1]))", "int(s)", "int(v)", "float(s)",
    "float(jnp.array([1.0]))", "complex(s)", "complex(v)", "int(jnp.array(7))", "[5, 6][k[2]]",
    "[5, 6][s]", "[5, 6][k]", "list(v)", "list(f)", "list(s)", "len(f)", "len(s)", "2 in w",
    "2 in f", "v in w", "'a' in w", "None in w", "w.byteswap()", "c.byteswap()", "p.byteswap()",
    "jax.jit(lambda x: x.byteswap())(i)", "jax.jit(lambda x: jnp.iscomplexobj([x[0, 0], 1]))(c)",
    "9 in w", "hash(f) and 1", "range(jnp.array(3))", "list(reversed(v))", "format(s, '.2f')",
    "f'{v}'", "format(v, '.2f')", "str(f)", "repr(f)", "tuple(k)", "max(v)", "sum(v)", "min(w)",
    "np.asarray(f)", "np.asarray(f, dtype=int)", "np.array(i)", "np.sin(v) * 0 == 0",
    "np.asarray(h)", "v[0].item()", "isinstance(v, jnp.ndarray)", "isinstance(v, jax.Array)",
])
def test_arrays_as_python_and_numpy_take_them(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("expression", [
    "jax.grad(lambda x: x * 2 if x > 1 else x)(3.0)", "jax.grad(lambda x: x * int(x))(3.0)",
    "jax.grad(lambda x: x * x.item())(3.0)",
    "jax.jit(lambda x: sum(x))(v)", "jax.jit(lambda x: [y for y in x][1])(f)",
    "jax.jit(lambda x: -x + 1 - x * 2 / 3 ** x)(v)", "jax.vmap(lambda x: x @ x)(f)",
    "jax.jit(lambda x: 2 - x)(v)", "jax.jit(lambda x: x if x > 1 else -x)(1.0)",
    "jax.jit(lambda x: int(x))(1.0)", "jax.jit(lambda x: float(x))(1.0)",
    "jax.jit(lambda x: complex(x))(1.0)", "jax.jit(lambda i: [1, 2][i])(1)",
    "jax.jit(lambda x: np.sin(x))(v)", "jax.jit(lambda x: x.item())(1.0)",
    "jax.jit(lambda x: x.tolist())(v)", "jax.jit(lambda x: x.devices())(v)",
    "jax.jit(lambda x: hash(x))(v)", "jax.jit(lambda x: bool(x))(v)",
    "jax.vmap(lambda x: bool(x > 1))(v)", "jax.jit(lambda x: list(x))(1.0)",
    "jax.jit(lambda x: len(x))(f)", "jax.jit(lambda x: round(x))(2.6)",
])
def test_tracers_as_python_takes_them(agrees_with_jax, expression):
    agrees_with_jax(expression, rtol=1e-5)


def test_assignment_is_refused_with_the_sentence_of_the_page():
    x = jnp.zeros((3, 3))
    with pytest.raises(TypeError) as caught:
        x[1, :] = 1.0
    assert str(caught.value) == (
        "'<class 'minijax.core.array.ArrayImpl'>' object does not support item assignment. JAX "
        "arrays are immutable. Instead of ``x[idx] = y``, use ``x = x.at[idx].set(y)`` or another "
        ".at[] method: https://jax.readthedocs.io/en/latest/_autosummary/jax.numpy.ndarray.at."
        "html")


def test_a_view_for_numpy_cannot_be_written_to():
    x = jnp.arange(3.0)
    view = np.asarray(x)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 7


def test_arrays_copy_and_pickle_with_their_type():
    for x in (jnp.arange(3), jnp.asarray(2.5), jnp.ones(2, "bfloat16"), minijax.random.key(1)):
        for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            assert y.aval is x.aval
            assert repr(y) == repr(x)


def test_scalar_types_pickle():
    assert pickle.loads(pickle.dumps(jnp.float32)) is jnp.float32


@pytest.mark.parametrize("transform", ["jit", "vmap"])
def test_an_attribute_that_no_tracer_has(transform, refused_alike):
    refused_alike(lambda lib: getattr(lib, transform)(lambda x: x.numpy())(np.ones(2)))


def test_a_pickle_has_the_dtypes_of_the_flags_of_its_reader():
    for lib in (minijax, jax):
        with lib.enable_x64(True):
            wide = pickle.dumps(lib.numpy.arange(3.0))
            assert pickle.loads(wide).dtype == np.float64
        assert pickle.loads(wide).dtype == np.float32
        assert pickle.loads(wide).tolist() == [0, 1, 2]


@pytest.mark.parametrize("transform", ["jit", "vmap"])
@pytest.mark.parametrize("lib", [jax, minijax], ids=["jax", "minijax"])
def test_a_tracer_does_not_pickle(lib, transform):
    with pytest.raises(lib.errors.ConcretizationTypeError, match="in the __reduce__ method, which"):
        getattr(lib, transform)(lambda x: pickle.dumps(x))(np.ones(2))


@pytest.mark.parametrize("shape", [(), (3,), (0, 3), (600, 600)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_numpy_sees_cannot_be_made_writeable(shape, dtype):
    """Small arrays own their memory, large ones borrow it: neither may change."""
    for x in (jnp.ones(shape, dtype), minijax.jit(lambda x: x + 1)(jnp.ones(shape, dtype))):
        before = np.array(x)
        for taken in (np.asarray(x), np.asarray(x).T, np.asarray(x)[...],
                      minijax.device_get(x)):
            with pytest.raises(ValueError, match="WRITEABLE"):
                taken.setflags(write=True)
        np.testing.assert_array_equal(np.asarray(x), before)


def test_dlpack_gives_a_copy_that_is_free_to_change():
    x = jnp.arange(3)
    taken = np.from_dlpack(x)
    np.testing.assert_array_equal(taken, [0, 1, 2])
    assert jnp.from_dlpack(np.arange(3, dtype="int32")).tolist() == [0, 1, 2]
    assert x.__dlpack_device__() == (1, 0)


def test_the_namespace_of_an_array_is_this_module():
    assert jnp.arange(3).__array_namespace__() is jnp
    assert jnp.arange(3).__array_namespace__(api_version="2024.12") is jnp
    told = [str(pytest.raises(ValueError, lib.ones(3).__array_namespace__, api_version="2021.12")
                .value) for lib in (jnp, jax.numpy)]
    assert told[0] == told[1]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("ask", [
    lambda info: info.capabilities(), lambda info: info.default_device(),
    lambda info: info.default_dtypes(), lambda info: info.default_dtypes(device="cpu"),
    lambda info: info.dtypes(), lambda info: info.dtypes(kind="bool"),
    lambda info: info.dtypes(kind="signed integer"), lambda info: info.dtypes(kind="integral"),
    lambda info: info.dtypes(kind="unsigned integer"), lambda info: info.dtypes(kind="numeric"),
    lambda info: info.dtypes(kind="real floating"), lambda info: info.dtypes(kind=()),
    lambda info: info.dtypes(kind="complex floating", device="cpu"),
    lambda info: info.dtypes(kind=("bool", "signed integer")),
    lambda info: str(pytest.raises(KeyError, info.dtypes, kind="real").value),
    lambda info: [device and device.platform for device in info.devices()]])
def test_the_namespace_tells_what_the_array_api_asks(ask, wide):
    with minijax.enable_x64(wide), jax.enable_x64(wide):
        assert ask(jnp.__array_namespace_info__()) == ask(jax.numpy.__array_namespace_info__())
    assert jnp.__array_api_version__ == jax.numpy.__array_api_version__


@pytest.mark.parametrize("stream", [-1, 0, 1])
def test_an_array_on_the_host_has_no_stream(stream):
    told = [str(pytest.raises(RuntimeError, lib.ones(3).__dlpack__, stream=stream).value)
            for lib in (jnp, jax.numpy)]
    assert told[0].partition("\n")[0] == told[1]


@pytest.mark.parametrize("f", [
    lambda x, lib: np.sin(x), lambda x, lib: float(x) * x, lambda x, lib: complex(x),
    lambda x, lib: sum(x.tolist()), lambda x, lib: np.array([x, 2.0]).sum() * x,
    lambda x, lib: np.from_dlpack(x).sum(), lambda x, lib: math.sin(x) * x])
def test_numbers_are_not_taken_out_of_a_derivative_in_silence(f):
    for transform in ("grad", "jit"):
        raised = []
        for lib in (minijax, jax):
            with pytest.raises(Exception) as caught:
                getattr(lib, transform)(lambda x, lib=lib: f(x, lib))(2.0)
            raised.append(type(caught.value).__name__)
        assert raised[0] == raised[1]


def test_whole_numbers_and_truth_values_are_known_under_grad():
    for lib in (minijax, jax):
        assert lib.grad(lambda x: x * (int(x) + (x > 1) + [1, 2, 3][int(x)]))(2.0) == 6.0


@pytest.mark.parametrize("expression", ["[1, 2] + jnp.ones(2)", "jnp.ones(2) + [1, 2]",
                                        "(1, 2) * jnp.ones(2)"])
def test_a_list_is_refused_with_the_operands_in_their_order(expression):
    said = []
    for lib in (minijax, jax):
        with pytest.raises(TypeError) as refused:
            eval(expression, {"jnp": lib.numpy})
        said.append(str(refused.value).splitlines()[0])
    assert said[0] == said[1]


METHODS = ("sum prod mean max min argmax argmin any all std var ptp cumsum cumprod ravel flatten "
           "squeeze transpose conj conjugate round argsort sort nonzero copy tolist diagonal trace "
           "tobytes").split()


@pytest.mark.parametrize("name", METHODS)
def test_a_method_without_arguments_agrees_with_jax(agrees_with_jax, name):
    agrees_with_jax(f"f.{name}()", rtol=1e-5)
    agrees_with_jax(f"i.{name}()", rtol=1e-5)


@pytest.mark.parametrize("expression", [
    "f.sum(0)", "f.sum(axis=1, keepdims=True)", "f.mean(1)", "f.max(axis=0)", "f.std(ddof=1)",
    "f.astype(int)", "f.astype('bfloat16')", "i.astype(bool)", "f.astype(jnp.uint8)",
    "b.astype(float)", "c.astype(float)", "f.astype(complex)",
    "jnp.arange(254.0, 258.0).astype('uint8')",
    "n.astype(int)", "f.reshape(3, 2)", "f.reshape((3, 2))", "f.reshape(-1)", "f.reshape(6, 1)",
    "f.reshape(3, -1, order='F')", "t.transpose(1, 0, 2)", "t.transpose((1, 0, 2))",
    "t.transpose(None)", "t.swapaxes(0, 1)", "f.dot(v)", "f.clip(0, 1)", "f.clip(max=1)",
    "f.take(k)", "f.take(k, axis=1)", "v.repeat(2)", "f.round(1)", "w.searchsorted(3)", "f.T",
    "t.mT", "c.real", "c.imag", "f.real", "f.imag", "f.nbytes", "h.itemsize", "f.ndim", "f.size",
    "f.shape", "f.dtype", "s.weak_type", "f.item(2)", "f.item(0, 1)", "f.item()", "s.item()",
    "b[0, 0].item()", "f.view('int32')", "i.view('float32')", "u.view('int8')",
    "p[:2].view('int16')",
    "w.view('uint8')", "b.view('uint8')", "f.argmax(1)", "f.cumsum(1)", "f.block_until_ready()",
    "f.copy_to_host_async()", "f.is_deleted()", "f.at[0].set(1)", "f.at[0, 1].add(2.0)",
    "jax.jit(lambda x: x.sum(0))(f)", "jax.jit(lambda x: x.reshape(-1).T.mean())(f)",
    "jax.jit(lambda x: x.astype(int))(f)", "jax.vmap(lambda x: x.max())(f)",
    "jax.grad(lambda x: x.std())(f)", "f.reshape(4)", "f.sum(axis=3)", "f.astype('U1')",
    "f.squeeze(0)", "str(f.devices())", "repr(f.device)", "repr(f.sharding)",
    "f.is_fully_addressable", "f.to_device(f.device)", "f.sum(dtype=int)", "f.view('int64')",
    "c.view('float32')", "c.view('int32')", "c.view('float16')", "c.view(bool)",
    "c.view('complex64')", "f[:, :2].view('complex64')", "f.view('complex64')",
    "c[0, 0].view('float32')",
    "i[0, 0].view('int16')", "jax.jit(lambda z: z.view('float32'))(c)",
    "jax.grad(lambda z: (z.view('float32') ** 2).sum())(c)",
])
def test_methods_and_properties_agree_with_jax(agrees_with_jax, expression):
    agrees_with_jax(expression, rtol=1e-5)


def test_methods_say_what_they_do():
    import minijax.numpy as jnp

    assert jnp.ndarray.sum.__doc__.startswith("The sum")
    assert "axis" in str(__import__("inspect").signature(jnp.ndarray.sum))


def subclasses(kind):
    return [kind, *(deep for direct in kind.__subclasses__() for deep in subclasses(direct))]


def test_no_tracer_hides_a_method_behind_an_attribute_of_its_own():
    """`x.var()` and `x.trace()` failed under jit: a tracer had its variable and trace there."""
    jnp.ones(2).var()  # loads the methods
    methods = {name for name, value in vars(core.Array).items() if inspect.isfunction(value)}
    assert "var" in methods
    for kind in subclasses(core.Tracer):
        hidden = {n for n, value in vars(kind).items() if n in methods
                  and not n.startswith("_") and not inspect.isfunction(value)}
        assert not hidden, kind
    assert minijax.jit(lambda x: x.var() + x.trace())(jnp.ones((2, 2))) == 2


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("other", [[1, 2], (1, 2), {}, None])
def test_what_has_no_order_beside_an_array_is_refused_in_pythons_words(compare, swapped, other):
    def said(lib):
        pair = lib.numpy.arange(2), other
        with pytest.raises(TypeError) as caught:
            compare(*pair[::-1] if swapped else pair)
        return str(caught.value).replace("jaxlib._jax.", "")
    assert said(minijax) == said(jax)
