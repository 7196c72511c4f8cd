"""pmap gives what JAX's vmap gives, a row for each device; on one device, what its pmap gives."""

import jax
import numpy as np
import pytest

import minijax
from minijax import config, lax

X = np.arange(8, dtype=np.float32).reshape(4, 2)


@pytest.fixture
def four_devices():
    before = config.num_cpu_devices.value
    config.update("num_cpu_devices", 4)
    yield
    config.update("num_cpu_devices", before)


CALLS = {
    "rows": lambda lib, pmap: pmap(lambda x: x * x)(X),
    "two arguments": lambda lib, pmap: pmap(lambda x, y: (x @ y).sum())(X, X),
    "axes": lambda lib, pmap: pmap(
        lambda x, y: x + y, in_axes=(0, 1), out_axes=1)(X, X.T),
    "whole arguments": lambda lib, pmap: pmap(lambda x, y: x + y, in_axes=(0, None))(X, 1.0),
    "keywords": lambda lib, pmap: pmap(lambda x, y: x - 2 * y)(X, y=X),
    "trees": lambda lib, pmap: pmap(
        lambda t: {"sum": t["a"] + t["b"]}, in_axes=({"a": 0, "b": None},))({"a": X, "b": 2.0}),
    "fewer rows than devices": lambda lib, pmap: pmap(lambda x: x + 1)(X[:3]),
    "a constant result": lambda lib, pmap: pmap(lambda x: 1)(X),
    "a constant result, once": lambda lib, pmap: pmap(lambda x: (x, 1), out_axes=(0, None))(X),
    "psum": lambda lib, pmap: pmap(lambda x: x / lib.lax.psum(x, "i"), axis_name="i")(X),
    "pmean": lambda lib, pmap: pmap(lambda x: lib.lax.pmean(x, "i"), axis_name="i")(X),
    "a result that all rows share": lambda lib, pmap: pmap(
        lambda x: lib.lax.psum(x, "i"), axis_name="i", out_axes=None)(X),
    "axis_index": lambda lib, pmap: pmap(
        lambda x: x * lib.lax.axis_index("i"), axis_name="i")(X),
    "all_gather": lambda lib, pmap: pmap(
        lambda x: lib.lax.all_gather(x, "i", axis=1), axis_name="i")(X),
    "ppermute": lambda lib, pmap: pmap(lambda x: lib.lax.ppermute(
        x, "i", [(0, 1), (1, 2), (2, 3), (3, 0)]), axis_name="i")(X),
    "grad inside": lambda lib, pmap: pmap(lib.grad(lambda x: (x * x).sum()))(X),
    "grad inside of a sum over the rows": lambda lib, pmap: pmap(lib.grad(
        lambda x: lib.lax.psum((x * x).sum(), "i")), axis_name="i")(X),
    "grad outside": lambda lib, pmap: lib.grad(
        lambda x: (pmap(lambda r: r ** 3)(x) * X).sum())(X),
    "jvp": lambda lib, pmap: lib.jvp(pmap(lib.lax.sin), (X,), (X,)),
    "vmap outside": lambda lib, pmap: lib.vmap(pmap(lambda x: x * 3), in_axes=1)(X),
    "vmap inside": lambda lib, pmap: pmap(lib.vmap(lambda x: x * 3))(X),
    "jit outside": lambda lib, pmap: lib.jit(pmap(lambda x: x.sum()))(X),
    "jit inside": lambda lib, pmap: pmap(lib.jit(lambda x: x.sum()))(X),
    "a loop": lambda lib, pmap: pmap(lambda x: lib.lax.fori_loop(
        0, 3, lambda i, c: c + lib.lax.psum(x, "i"), x), axis_name="i")(X),
}


def assert_same(ours, theirs):
    for a, b in zip(minijax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert isinstance(a, minijax.Array)
        assert (str(a.dtype), a.shape) == (str(b.dtype), b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("name", CALLS)
def test_pmap_is_vmap_on_as_many_devices(name, four_devices):
    def one_device(f, **options):
        return jax.jit(jax.vmap(f, **options))
    assert_same(CALLS[name](minijax, minijax.pmap), CALLS[name](jax, one_device))


ONE = X[:1]
ON_ONE_DEVICE = {
    "rows": lambda lib: lib.pmap(lambda x: x * x)(ONE),
    "a sum": lambda lib: lib.pmap(lambda x: lib.lax.psum(x, "i"), axis_name="i")(ONE),
    "axis_size": lambda lib: lib.pmap(lambda x: x, axis_size=1)(ONE),
    "devices": lambda lib: lib.pmap(lambda x: x, devices=lib.devices())(ONE),
    "a backend": lambda lib: lib.pmap(lambda x: x, backend="cpu")(ONE),
    "donated": lambda lib: lib.pmap(lambda x: x + 1, donate_argnums=0)(ONE),
    "static": lambda lib: lib.pmap(
        lambda n, x: x * n if n > 1 else x, static_broadcasted_argnums=0)(3, ONE),
    "static, with axes": lambda lib: lib.pmap(
        lambda x, n, y: x * y if n == "times" else x, in_axes=(0, None, None),
        static_broadcasted_argnums=(1,))(ONE, "times", 5.0),
    "not compiled": lambda lib: not_compiled(lib, lambda: lib.pmap(lambda x: x * 2)(ONE)),
    "nothing sent": lambda lib: lib.pmap(
        lambda x: lib.lax.ppermute(x + 1, "i", []), axis_name="i")(ONE),
}


def not_compiled(lib, call):
    with lib.disable_jit():
        return call()


@pytest.mark.parametrize("name", ON_ONE_DEVICE)
def test_on_one_device_pmap_gives_what_jaxs_gives(name):
    assert_same(ON_ONE_DEVICE[name](minijax), ON_ONE_DEVICE[name](jax))


BAD = {
    "no function": lambda lib: lib.pmap(3),
    "axes that are none": lambda lib: lib.pmap(lambda x: x, in_axes="a"),
    "axes in parts": lambda lib: lib.pmap(lambda x: x, in_axes=(0.5,)),
    "out axes that are none": lambda lib: lib.pmap(lambda x: x, out_axes=1.5),
    "no devices": lambda lib: lib.pmap(lambda x: x, devices=[]),
    "an unknown backend": lambda lib: lib.pmap(lambda x: x, backend="abacus")(ONE),
    "nothing mapped": lambda lib: lib.pmap(lambda x: x, in_axes=None)(ONE),
    "no arguments": lambda lib: lib.pmap(lambda: 1)(),
    "a number": lambda lib: lib.pmap(lambda x: x)(3.0),
    "axis_size differs": lambda lib: lib.pmap(lambda x: x, axis_size=2)(ONE),
    "a static argument missing": lambda lib: lib.pmap(
        lambda x, n: x, static_broadcasted_argnums=1)(ONE),
    "a static argument by name": lambda lib: lib.pmap(
        lambda x, n: x, static_broadcasted_argnums=(1,))(ONE, n=3),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_jaxs_words(name, refused_alike):
    refused_alike(BAD[name])


def test_a_row_without_a_device_is_refused_and_the_ways_out_are_named():
    def model(x):
        return x
    with pytest.raises(ValueError, match="pmap of model over an axis of size 4 requires 4 replicas"
                       ".*only 1 device.*vmap.*JAX_NUM_CPU_DEVICES=4"):
        minijax.pmap(model)(X)
    with pytest.raises(ValueError):
        jax.pmap(model)(X)


def test_a_list_of_devices_limits_the_rows(four_devices):
    two = minijax.devices()[:2]
    np.testing.assert_array_equal(minijax.pmap(lambda x: -x, devices=two)(X[:2]), -X[:2])
    with pytest.raises(ValueError, match=r"size 3 requires 3 replicas.*only 2 devices"):
        minijax.pmap(lambda x: x, devices=two)(X[:3])


def test_no_rows_are_refused_as_in_jax():
    for lib in (minijax, jax):
        with pytest.raises(ValueError):
            lib.pmap(lambda x: x)(X[:0])


def test_sizes_that_differ_are_named(four_devices):
    with pytest.raises(ValueError, match=r"(?s)pmap got inconsistent.*argument x.*argument y"):
        minijax.pmap(lambda x, y: x)(X, X[:2])


def test_axes_that_are_no_prefix_are_refused():
    for lib in (minijax, jax):
        with pytest.raises(ValueError, match="pmap in_axes"):
            lib.pmap(lambda t: t, in_axes=({"a": 0},))({"a": ONE, "b": ONE})


def test_of_a_result_that_differs_between_rows_axis_none_is_the_first(four_devices):
    first = minijax.pmap(lambda x: x, out_axes=None, axis_name="i")(X)
    np.testing.assert_array_equal(first, X[0])
    assert first.sharding.spec == minijax.P() and first.sharding.num_devices == 4
    np.testing.assert_array_equal(jax.pmap(lambda x: x, out_axes=None)(ONE), ONE[0])


def test_the_function_is_traced_once_and_not_run_again(four_devices):
    traced = []
    mapped = minijax.pmap(lambda x, n: traced.append(n) or x * n, static_broadcasted_argnums=1)
    for n in (2, 2, 3):
        np.testing.assert_array_equal(mapped(X, n), X * n)
    assert traced == [2, 3]


def test_errors_name_the_users_argument_whatever_is_static():
    def choose(n, x):
        return x if x > 0 else -x
    with pytest.raises(minijax.errors.TracerBoolConversionError, match="choose.*for pmap"):
        minijax.pmap(choose, static_broadcasted_argnums=0)(1, X[:1, 0])
    with pytest.raises(minijax.errors.TracerBoolConversionError, match="argument x"):
        minijax.jit(choose, static_argnums=0)(1, 2.0)
    with pytest.raises(jax.errors.TracerBoolConversionError, match="argument x"):
        jax.jit(choose, static_argnums=0)(1, 2.0)


def test_pmap_keeps_the_name_and_can_be_lowered():
    def model(x):
        return x + 1
    assert minijax.pmap(model).__name__ == "model"
    assert "add" in minijax.pmap(model).lower(ONE).as_text("jaxpr")


def test_one_device_takes_an_array_that_was_put_on_any(four_devices):
    first, *_, last = minijax.devices()
    for device, place in [(first, first), (last, first), (first, last)]:
        mapped = minijax.pmap(lambda x: x + 1, devices=[device])(minijax.device_put(X[:1], place))
        np.testing.assert_array_equal(mapped, X[:1] + 1)
        assert mapped.devices() == {device}
    with pytest.raises(ValueError, match=r"incompatible devices.*argument x .*device ids \[0\]"):
        minijax.pmap(lambda x: x, devices=[first, last])(minijax.device_put(X[:2], first))


def test_devices_are_pretended_and_their_number_is_a_flag(four_devices):
    assert minijax.device_count() == len(minijax.local_devices()) == 4
    assert [device.id for device in minijax.devices()] == [0, 1, 2, 3]
    assert repr(minijax.devices()[3]) == "CpuDevice(id=3)"
    assert minijax.numpy.zeros(2).devices() == {minijax.devices()[0]}


# ── Groups of devices ────────────────────────────────────────────────────────────────────────

GROUPS = [[3, 0], [1, 2]]
ROWS = np.arange(16, dtype=np.float32).reshape(4, 4)
WITHIN = {
    "psum": lambda lax, x, **k: lax.psum(x, "i", **k),
    "psum of a number": lambda lax, x, **k: x * lax.psum(2, "i", **k),
    "psum of truths": lambda lax, x, **k: lax.psum(x > 6, "i", **k),
    "pmax": lambda lax, x, **k: lax.pmax(x, "i", **k),
    "pmin": lambda lax, x, **k: lax.pmin(x, "i", **k),
    "pmean": lambda lax, x, **k: lax.pmean(x, "i", **k),
    "all_gather": lambda lax, x, **k: lax.all_gather(x, "i", axis=1, **k),
    "all_gather, tiled": lambda lax, x, **k: lax.all_gather(x, "i", tiled=True, **k),
    "psum_scatter": lambda lax, x, **k: lax.psum_scatter(x[:2], "i", **k),
    "psum_scatter, tiled": lambda lax, x, **k: lax.psum_scatter(x, "i", tiled=True, **k),
    "all_to_all": lambda lax, x, **k: lax.all_to_all(x.reshape(2, 2), "i", 0, 0, **k),
    "all_to_all, tiled": lambda lax, x, **k: lax.all_to_all(x, "i", 0, 0, tiled=True, **k),
    "pswapaxes": lambda lax, x, **k: lax.pswapaxes(x.reshape(2, 2), "i", 0, **k)}


def slope(lib, f, **k):
    """Of what each device makes of all."""
    return lib.grad(lambda x: (f(lib.lax, x, **k) ** 2.0 * (1 + x.sum())).sum())


@pytest.mark.parametrize("name", WITHIN)
@pytest.mark.parametrize("derived", [False, True])
@pytest.mark.usefixtures("four_devices")
def test_groups_of_devices_do_what_jax_does_along_an_axis_of_each(name, derived):
    f = WITHIN[name]
    if derived and name in ("pmax", "pmin"):
        pytest.skip("extremes along an axis have no derivative in JAX")

    def of(lib, **k):
        return slope(lib, f, **k) if derived else lambda x: f(lib.lax, x, **k)
    out = minijax.pmap(of(minijax, axis_index_groups=GROUPS), axis_name="i")(ROWS)
    alone = jax.vmap(jax.vmap(of(jax), axis_name="i"))(ROWS[np.array(GROUPS)])
    wanted = np.zeros_like(alone, shape=out.shape)
    wanted[np.ravel(GROUPS)] = np.reshape(alone, out.shape)
    assert out.dtype == alone.dtype
    np.testing.assert_allclose(out, wanted, rtol=1e-6)


UNEVEN = [[2], [0, 1, 3]]


@pytest.mark.usefixtures("four_devices")
def test_groups_of_other_sizes_have_sums_and_extremes():
    def f(x):
        return [op(x, "i", axis_index_groups=UNEVEN) for op in (lax.psum, lax.pmax, lax.pmin)]
    total, high, low = minijax.pmap(f, axis_name="i")(np.array([3, 1, 7, 2]))
    assert total.tolist() == [6, 6, 7, 6]
    assert (high.tolist(), low.tolist()) == ([3, 3, 7, 3], [1, 1, 7, 1])
    with pytest.raises(ValueError, match="all be the same size"):
        minijax.pmap(lambda x: lax.all_gather(x, "i", axis_index_groups=UNEVEN),
             axis_name="i")(ROWS)


@pytest.mark.parametrize("groups", [[[0, 1]], [[0, 1], [1, 2]], [[0, 1], [2, 3], [4, 5]]])
@pytest.mark.usefixtures("four_devices")
def test_each_device_is_in_one_group(groups):
    with pytest.raises(ValueError, match="must cover all indices exactly once"):
        minijax.pmap(lambda x: lax.psum(x, "i", axis_index_groups=groups), axis_name="i")(ROWS)


@pytest.mark.usefixtures("four_devices")
def test_groups_are_of_one_axis_of_devices():
    def total(axes, over):
        return over(lambda x: lax.psum(x, axes, axis_index_groups=GROUPS),
                    axis_name="i")(ROWS)
    with pytest.raises(ValueError, match="only supported for sums over just named axes"):
        total(("i", 0), minijax.pmap)
    with pytest.raises(NotImplementedError, match="not supported in vmap"):
        total("i", minijax.vmap)
