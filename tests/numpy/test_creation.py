"""Arrays made from values, shapes and ranges agree with JAX."""

import functools

import jax
import numpy as np
import pytest

import minijax

@pytest.mark.parametrize("expression", [
    "jnp.array(1)", "jnp.array(1.5)", "jnp.array(True)", "jnp.array(1j)", "jnp.array([1, 2])",
    "jnp.array([1, 2.5])", "jnp.array([True, 2])", "jnp.array([])", "jnp.array([[]])",
    "jnp.array([[1, 2], [3, 4]], dtype='int8')", "jnp.array((1, [2][0]))", "jnp.array([v, v])",
    "jnp.array([[v, v], [v, v]])", "jnp.array([s, 1, 2])", "jnp.array([jnp.int8(1), 2])",
    "jnp.array(np.arange(3))", "jnp.array(np.arange(3.0), dtype=int)",
    "jnp.array(np.float16(2))", "jnp.array(range(3))", "jnp.array(v)",
    "jnp.array(v, dtype='bfloat16')", "jnp.array(s)", "jnp.array(1, dtype=float)",
    "jnp.array(2.7, dtype=int)", "jnp.array(1, ndmin=3)", "jnp.array(v, ndmin=2)",
    "jnp.array([np.float32(1), np.float32(2)])", "jnp.array(1e300)",
    "jnp.array([1, 2], dtype=bool)", "jnp.array(2**31 - 1)", "jnp.asarray(3)",
    "jnp.asarray([1.5])", "jnp.asarray(v, dtype=int)", "jnp.asarray(np.zeros((2, 0)))",
    "jnp.float32(1)", "jnp.int8([1, 2])", "jnp.bool_(2)", "jnp.bfloat16(1.7)",
    "jnp.complex64(1)", "jnp.uint8(3)", "jnp.array(-1).astype('uint8')",
])
def test_arrays_from_values(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("expression", [
    "jnp.array('a')", "jnp.array(['a'])", "jnp.array(None)", "jnp.array([1, None])",
    "jnp.array([1, [2, 3]])", "jnp.array(object())", "jnp.array(2**40)", "jnp.array([2**40])",
    "jnp.array(300, dtype='int8')", "jnp.array([300], dtype='int8')", "jnp.array({})",
    "jnp.array(lambda: 1)",
])
def test_what_is_no_array(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("expression", [
    "jnp.zeros(3)", "jnp.zeros((2, 3), dtype=int)", "jnp.zeros(())", "jnp.zeros([2, 1])",
    "jnp.zeros(np.array([2, 2]))", "jnp.zeros(jnp.array(3))", "jnp.ones((2,), 'bfloat16')",
    "jnp.ones(2, dtype=bool)", "jnp.empty((2, 0))", "jnp.full((2,), 3)",
    "jnp.full((2,), 3.5, dtype=int)", "jnp.full((2, 3), v)", "jnp.full((), True)",
    "jnp.full((2,), 2**32 - 1, 'uint32')", "jnp.full((2,), 2**40, 'float32')",
    "jnp.full(2, 1 << 31)", "jnp.full(2, 1 << 40)", "jnp.full(2, -(1 << 31) - 1)",
    "jnp.full(2, 1 << 70)", "jnp.full(2, 300, 'int8')", "jnp.zeros_like(1 << 40)",
    "jnp.full_like(1 << 70, 1)", "jnp.full_like(i, 1 << 40)", "lax.full_like(1 << 40, 7)",
    "lax.cond(1 << 40, lambda: 1, lambda: 2)",
    "jnp.full((2,), s)", "jnp.zeros_like(i)", "jnp.zeros_like(2.5)", "jnp.ones_like(b)",
    "jnp.ones_like(f, dtype=int)", "jnp.ones_like(f, shape=(2,))", "jnp.full_like(i, 2.5)",
    "jnp.full_like(f, 7)", "jnp.empty_like(c)", "jnp.zeros('a')", "jnp.zeros((2.5,))",
    "jnp.zeros((-1,))", "jnp.zeros(3, dtype='U3')", "jnp.zeros_like([1])",
    "jax.jit(jnp.zeros)(3)", "jax.jit(lambda n: jnp.ones((2, n)))(3)",
])
def test_arrays_from_shapes(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("expression", [
    "jnp.arange(5)", "jnp.arange(5.0)", "jnp.arange(2, 7)", "jnp.arange(2, 7, 2)",
    "jnp.arange(0, 1, 0.25)", "jnp.arange(5, 2)", "jnp.arange(5, 0, -2)", "jnp.arange(1, 5.5)",
    "jnp.arange(3, dtype='int8')", "jnp.arange(3, dtype=float)", "jnp.arange(jnp.array(4))",
    "jnp.arange(-2.5, 2.5)", "jnp.arange(1.5)", "jnp.arange(True)", "jnp.linspace(0, 1, 5)",
    "jnp.linspace(0, 1, 5, endpoint=False)", "jnp.linspace(0, 10, 4, dtype=int)",
    "jnp.linspace(v, 2, 3)", "jnp.linspace(v, 2, 3, axis=1)",
    "jnp.linspace(0, 1, 3, retstep=True)", "jnp.linspace(2, 3, 1)", "jnp.linspace(2, 3, 0)",
    "jnp.linspace(0, 1)", "jnp.linspace(0, jnp.float16(1), 3)", "jnp.logspace(0, 2, 3)",
    "jnp.logspace(0, 3, 4, base=2)", "jnp.geomspace(1, 1000, 4)", "jnp.geomspace(v, v * 8, 4)",
    "jnp.logspace(w, v, 3, base=2)", "jnp.logspace(w, v, 3, axis=1)", "jnp.arange(1, 5, 0)",
    "jnp.arange()", "jnp.arange(None)", "jnp.linspace(0, 1, -1)", "jax.jit(jnp.arange)(3)",
    "jax.jit(lambda n: jnp.linspace(0, 1, n))(3)",
    "jax.jit(lambda x: jnp.linspace(0, x, 3))(2.0)",
    "jax.grad(lambda x: jnp.linspace(0, x, 3).sum())(2.0)",
])
def test_ranges(agrees_with_jax, expression):
    agrees_with_jax(expression, rtol=1e-05)


def test_an_array_of_traced_numbers_prints_as_the_page_of_sharp_bits_shows():
    import minijax
    jnp = minijax.numpy

    text = str(minijax.make_jaxpr(lambda x: jnp.sum(jnp.array(x)))([1, 2]))
    assert text.split("let")[1].split() == """
        c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] a
        d:i32[] = convert_element_type[new_dtype=int32 weak_type=False] b
        e:i32[1] = broadcast_in_dim[broadcast_dimensions=() shape=(1,)] c
        f:i32[1] = broadcast_in_dim[broadcast_dimensions=() shape=(1,)] d
        g:i32[2] = concatenate[dimension=0] e f
        h:i32[] = reduce_sum[axes=(0,)] g
      in (h,) }""".split()


def test_what_is_an_array_already_is_not_copied():
    import minijax.numpy as jnp

    x = jnp.arange(3)
    assert jnp.asarray(x) is x and jnp.asarray(x, x.dtype) is x
    assert jnp.array(x, x.dtype, copy=False) is x and jnp.array(x) is not x


@pytest.mark.parametrize("x", [np.ones(3, np.float32), 1.5, 3])
@pytest.mark.parametrize("use", [
    lambda jnp, x: jnp.array(x), lambda jnp, x: jnp.array(x, int),
    lambda jnp, x: jnp.array(x, jnp.float32), lambda jnp, x: jnp.array(x, int, copy=False),
    lambda jnp, x: jnp.asarray(x, jnp.float32), lambda jnp, x: jnp.asarray(x, int, copy=True),
    lambda jnp, x: jnp.copy(x), lambda jnp, x: jnp.asarray(x).astype(int, copy=True)])
def test_a_copy_in_a_jaxpr_stands_before_the_conversion(use, x):
    ours, theirs = (str(lib.make_jaxpr(lambda x: use(lib.numpy, x))(x)) for lib in (minijax, jax))
    assert ours == theirs


def test_an_array_made_from_numpy_shares_nothing_with_it():
    import numpy as np

    import minijax.numpy as jnp

    source = np.arange(3.0, dtype=np.float32)
    for made in (jnp.array(source), jnp.asarray(source), jnp.asarray(source[::2])):
        source[:] = 7
        assert 7 not in made.tolist()
        source[:] = np.arange(3.0)


def test_asking_for_64_bits_warns_at_the_line_of_the_user():
    import minijax.numpy as jnp

    with pytest.warns(UserWarning, match="Explicitly requested dtype <class 'jax.numpy.float64'> "
                      "requested in zeros is not available") as given:
        jnp.zeros(3, dtype=jnp.float64)
    assert given[0].filename == __file__


def test_a_traced_size_names_the_argument_it_depends_on():
    import minijax
    import minijax.numpy as jnp

    def example_fun(length, val):
        return jnp.ones((length,)) * val

    with pytest.raises(TypeError) as caught:
        minijax.jit(example_fun)(10, 4)
    text = str(caught.value)
    assert text.startswith(
        "Shapes must be 1D sequences of concrete values of integer type, got (Traced<ShapedArray("
        "int32[], weak_type=True)>with<DynamicJaxprTrace(level=1/0)>,).\nIf using `jit`, try "
        "using `static_argnums` or applying `jit` to smaller subfunctions.\n"
        "The error occurred while tracing the function example_fun at ")
    assert text.endswith("it depends on the value of the argument length.")


@pytest.mark.parametrize("dtype", [">f4", ">i4", ">u2", ">c8"])
@pytest.mark.parametrize("use", [
    lambda L, x: L.numpy.asarray(x), lambda L, x: L.jit(lambda x: x + 1)(x),
    lambda L, x: L.lax.add(x, x), lambda L, x: L.numpy.add(x, x), lambda L, x: L.device_put(x),
    lambda L, x: L.vmap(lambda x: x)(x), lambda L, x: L.numpy.zeros(3).at[:].set(x),
    lambda L, x: L.lax.scan(lambda c, x: (c, x), 0, x), lambda L, x: L.numpy.zeros(2, x.dtype)])
def test_numpy_arrays_of_foreign_byte_order_are_refused(dtype, use):
    for lib in (minijax, jax):
        with pytest.raises(TypeError):
            use(lib, np.array([1, 2, 3], dtype))


@pytest.mark.parametrize("start", ["v", "0.0", "h", "c"])
@pytest.mark.parametrize("num", [0, 1, 2])
@pytest.mark.parametrize("endpoint", [True, False])
def test_the_step_of_few_numbers_agrees_with_jax(agrees_with_jax, start, num, endpoint):
    agrees_with_jax(f"jnp.linspace({start}, 3, {num}, endpoint={endpoint}, retstep=True)[1]")


def test_what_is_like_a_type_alone():
    """A ShapeDtypeStruct, or what stands for an array, is as good a template as an array."""
    class Stands:
        def __init__(self, array):
            self.array = array

        def __jax_array__(self):
            return self.array

    def found(lib):
        np_, struct = lib.numpy, lib.ShapeDtypeStruct((2,), np.float32)
        stands = Stands(np_.array([1, 2]))
        made = [np_.zeros_like(struct), np_.ones_like(struct, dtype=int), np_.full_like(struct, 2),
                np_.empty_like(stands), np_.arange(2) * stands, stands.array @ stands,
                np_.arange(2) == stands]
        return [(x.dtype, x.tolist()) for x in made] + [
            repr(lib.typeof(struct)), np_.shape(stands), np_.ndim(stands), np_.size(stands)]
    assert found(minijax) == found(jax)


@pytest.mark.parametrize("like", ["zeros", "ones", "empty", "full"])
@pytest.mark.parametrize("lib", [jax, minijax], ids=["jax", "minijax"])
def test_the_shape_and_dtype_of_a_template_come_before_its_array(lib, like):
    class Template:
        shape, dtype = (2,), np.dtype(np.float32)

        def __jax_array__(self):
            raise ValueError("not asked for")
    make = getattr(lib.numpy, f"{like}_like")
    made = make(Template(), 2.0) if like == "full" else make(Template())
    assert (made.shape, made.dtype) == ((2,), np.float32)
    with pytest.raises(ValueError, match="not asked for"):
        lib.numpy.asarray(Template())


class Standing:
    """An object that stands for an array."""

    def __init__(self, array):
        self.array = array

    def __jax_array__(self):
        return self.array


@pytest.mark.parametrize("call", [
    "transpose({})", "reshape({}, (4,))", "concatenate([{}, {}])", "stack([{}, {}])", "argmax({})",
    "einsum('ij,jk', {}, {})", "corrcoef({}, {})", "tensordot({}, {})", "var({})",
    "unique({})", "fft.fft({})",
    "add({}, 1)", "dot({}, {})", "sin({})", "where({} > 0, {}, 1)", "linalg.norm({})",
    "linalg.eig({})[0]", "clip({}, 0, 1)", "power({}, 2)", "isin({}, 2)"])
@pytest.mark.parametrize("lib", [jax, minijax], ids=["jax", "minijax"])
def test_what_stands_for_an_array_is_taken_for_it(lib, call):
    """In JAX, by functions that it compiles only if it is a node of a tree, as here."""
    kind = type("Kind", (Standing,), {"__gt__": lambda self, x: self.array > x})
    lib.tree_util.register_pytree_node(kind, lambda x: ((x.array,), None), lambda _, xs: kind(*xs))
    x = np.array([[1., 2.], [3., 5.]], np.float32)

    def found(x):
        return eval(f"jnp.{call.format('x', 'x', 'x')}", {"jnp": lib.numpy, "x": x})
    np.testing.assert_array_equal(found(kind(lib.numpy.array(x))), found(x))


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like"])
def test_keys_like_others_have_words_that_are_all_one_number(name):
    found, wanted = (lib.random.key_data(getattr(lib.numpy, name)(
        lib.random.split(lib.random.key(1), 3))) for lib in (minijax, jax))
    np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


@pytest.mark.parametrize("expression", [
    "jnp.zeros(3, v)", "jnp.zeros(3, s)", "jnp.zeros(3, np.float32(2))", "jnp.array(f, b)",
    "v.astype(h)", "jnp.sum(v, dtype=w)", "lax.full((2,), 1, h)", "jnp.arange(2j)",
    "jnp.arange(1, 2, 1j)", "jnp.copy(v, 'C')", "jnp.copy(v, 'K')", "jnp.full_like(w, 0.5j)",
    "jnp.full((2,), 0.5j, 'float16')", "lax.full_like(v, 0.5j)", "lax.full((2,), 0.5j, bool)",
    "jnp.full((2,), 0.5j)", "jnp.full((2,), 0.5j, 'complex64')", "lax.full((2,), c[0, 0], 'f4')",
])
def test_neither_arrays_are_dtypes_nor_complex_numbers_real(agrees_with_jax, expression):
    agrees_with_jax(expression)


def test_copy_order_and_ndmin_are_named():
    for lib in (minijax, jax):
        x = lib.numpy.array([1, 2, 3])
        with pytest.warns(DeprecationWarning, match="copy, order, and ndmin arguments to jnp.arr"):
            assert lib.numpy.array(x, None, False) is x
        with pytest.raises(TypeError, match="got multiple values for argument 'copy'"):
            lib.numpy.array(x, None, True, copy=False)


@pytest.mark.parametrize("program", [
    "lambda x: jnp.float32(2) * x", "lambda x: jnp.array(2) * x", "lambda x: jnp.zeros(()) + x",
    "lambda x: jnp.asarray(np.array(2, 'float16')) * x", "lambda x: (x, jnp.bool_(True))",
    "lambda x: jnp.full((), 3, 'int8') * x", "lambda x: jnp.complex64(1j) * x",
    "lambda x: jnp.bfloat16(2) * x", "lambda x: jnp.array([2.]) * x",
    "lambda x: jax.vmap(lambda y: jnp.float32(2) * y)(jnp.stack([x, x])).shape[0] * x",
    "jax.grad(lambda x: jnp.float32(2) * x)", "lambda x: jax.jit(lambda y: y * jnp.ones(()))(x)",
])
def test_scalars_made_in_a_program_are_its_literals(program):
    ours, theirs = (str(lib.make_jaxpr(eval(program, {"jax": lib, "jnp": lib.numpy, "np": np}))(1.))
                    for lib in (minijax, jax))
    assert ours == theirs


@pytest.mark.parametrize("program", [
    "lambda x: jax.jit(lambda y: two * y)(x)", "lambda x: jax.jit(lambda y: two + half * y)(x)",
    "lambda x: jax.lax.cond(x > 0, lambda y: y * two, lambda y: y + half, x)",
    "lambda x: jax.lax.scan(lambda y, _: (y * half, None), x, None, length=3)[0]",
    "lambda x: jax.lax.while_loop(lambda y: y < half, lambda y: y * two, x)",
    "lambda x: jax.lax.cond(jnp.array(True), lambda y: y, lambda y: y + half, x)",
    "lambda x: two.astype('float32') * x",
    "jax.grad(lambda x: jax.jit(lambda y: half * y)(x))",
])
def test_they_are_captured_by_the_programs_inside(program):
    def made(lib):
        def fun(x):
            names = {"jax": lib, "jnp": lib.numpy, "two": lib.numpy.array(2),
                     "half": lib.numpy.float32(0.5)}
            return eval(program, names)(x)
        return str(lib.make_jaxpr(fun)(1.))
    assert made(minijax) == made(jax)


def test_a_program_made_inside_of_another_has_them_as_constants():
    def fun(lib, x):
        half = lib.numpy.float32(0.5)
        _, f_lin = lib.linearize(lambda y: lib.numpy.sin(y) * half, x)
        programs.extend([lib.make_jaxpr(lambda y: y * half)(x), lib.make_jaxpr(f_lin)(x)])
        return x
    for lib in (minijax, jax):
        programs: list = []
        lib.eval_shape(functools.partial(fun, lib), 1.)
        assert [len(each.consts) for each in programs] == [1, 2]


def test_scalars_made_outside_of_a_program_are_its_constants():
    two = minijax.vmap(lambda x: minijax.numpy.float32(2), out_axes=None)(np.ones(3))
    assert len(minijax.make_jaxpr(lambda x: two * x)(1.).consts) == 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "int8",
                                   "complex64"])
@pytest.mark.parametrize("ends", [(0, 1), (0.5, np.float64(7)), (np.int8(3), np.int8(90)), (0, 1j)])
def test_linspace_computes_in_the_dtype_that_is_asked_for(dtype, ends):
    for enabled in (False, True):
        types = []
        for lib in (minijax, jax):
            with lib.enable_x64(enabled):
                numbers, step = lib.numpy.linspace(*ends, 5, retstep=True, dtype=dtype)
                types.append((str(numbers.dtype), str(step.dtype), numbers.weak_type))
        assert types[0] == types[1]
