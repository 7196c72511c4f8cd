"""Products and convolutions on tensor cores: their numbers, their banks, their registers."""

import functools
import itertools
import re
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.compiler.kernels import convolutions, products
from minijax.compiler.loops import MMA, Barrier, Constant, If, Launch, Let, Scalar, Store, walk
from minijax.compiler.schedule import lower_to_kernel
from minijax.compiler.targets import cublas, launches, tensor_cores
from minijax.compiler.targets.emulator import Refused
from minijax.compiler.targets.programs import emulate
from minijax.compiler.targets.thread_block import WARP
from tests import running_text
from tests.compiler.targets.ptx_machine import run_ptx
from tests.compiler.targets.test_emulator import rewritten
from tests.compiler.targets.test_launches import kernel
from tests.compiler.targets.test_ptx import PROCESSORS, usage
from tests.test_laws import LARGE, PRIMITIVES, cases

MACHINES = {"emulator": emulate, "ptx": run_ptx}
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
# The significant bits of factors: the rule of the default precision.
DIGITS = {np.dtype(np.float32): 11, np.dtype(np.float16): 11, BFLOAT16: 8}


@pytest.fixture(autouse=True)
def launched(monkeypatch):
    for module in (products, convolutions):
        monkeypatch.setattr(module, "LAUNCHED", 8)
    monkeypatch.setattr(cublas, "MIN_SHORT_TERMS", 8)
    monkeypatch.setattr(tensor_cores, "is_faster", lambda product: True)


def some(first, second):
    """All pairs, or a few, with each of both."""
    first, second = list(first), list(second)
    if LARGE:
        return list(itertools.product(first, second))
    return [(x, second[k % len(second)]) for k, x in enumerate(first)]


def numbers(shape, dtype, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def rounded(x):
    """float64 of a factor with the digits that its product sees."""
    size, exponent = np.frexp(np.asarray(x, np.float64))
    digits = 2.0 ** DIGITS[x.dtype]
    return np.ldexp(np.round(size * digits) / digits, exponent)


def multiplies(made):
    return sum(isinstance(each, MMA) for each in walk(made.body))


def result(f, *args, machine="emulator"):
    made = launches.scheduled(kernel(f, *args))
    assert multiplies(made)
    return MACHINES[machine](made, args), made


def assert_near(got, exact, scale, dtype):
    """Sums have the digits of float32, results those of their dtype."""
    error = np.abs(got.astype(np.float64) - exact)
    last = {np.dtype(np.float16): 2.0**-11, BFLOAT16: 2.0**-8}.get(got.dtype, 0)
    assert (error <= 2e-6 * scale + last * np.abs(exact) + 6e-8).all(), error.max()


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", DIGITS, ids=lambda dtype: dtype.name)
def test_products_have_the_digits_of_their_precision(machine, dtype):
    axes, sizes = "bji,kjb->bik", {"b": 2, "i": 37, "j": 43, "k": 21}
    x, y = (numbers([sizes[a] for a in part], dtype, k)
            for k, part in enumerate(axes[:axes.index("-")].split(",")))
    [z], _ = result(lambda x, y: jnp.maximum(jnp.einsum(axes, x, y), 0), x, y,
                    machine=machine)
    exact = np.maximum(np.einsum(axes, rounded(x), rounded(y)), 0)
    assert_near(z, exact, np.einsum(axes, abs(rounded(x)), abs(rounded(y))), dtype)


CONVOLUTIONS = {
    "channels last": ((2, 9, 8, 9), (3, 2, 9, 10), ("NHWC", "HWIO", "NHWC"), {}),
    "channels first": ((2, 9, 9, 8), (10, 9, 3, 2), ("NCHW", "OIHW", "NCHW"), {
        "window_strides": (2, 1), "padding": ((1, 2), (0, 1)), "rhs_dilation": (1, 2)}),
    "groups, transposed": ((2, 16, 5), (16, 8, 3), None, {
        "padding": ((2, 1),), "lhs_dilation": (3,), "feature_group_count": 2}),
    "groups of images": ((4, 8, 12), (16, 8, 3), None, {"batch_group_count": 2}),
}


def convolved(name, x, w, **more):
    _, _, letters, params = CONVOLUTIONS[name]
    rank = x.ndim - 2
    return jax.lax.conv_general_dilated(x, w, **{
        "window_strides": (1,) * rank, "padding": ((1, 1),) * rank, "dimension_numbers": letters,
        **params, **more})


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name, dtype", some(CONVOLUTIONS, DIGITS))
def test_convolutions_are_products_of_windows(machine, dtype, name):
    x, w = (numbers(shape, dtype, k) for k, shape in enumerate(CONVOLUTIONS[name][:2]))
    f = functools.partial(convolved, name)
    [z], made = result(lambda x, w: jnp.maximum(f(x, w), 0), x, w, machine=machine)
    assert [type(each) for each in made.body] == [Launch]
    with jax.enable_x64():
        exact = np.maximum(f(rounded(x), rounded(w)), 0)
        assert_near(z, exact, f(abs(rounded(x)), abs(rounded(w))), dtype)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_other_convolutions_are_exact_tiles(dtype):
    for name, (of_x, of_w, *_) in CONVOLUTIONS.items():
        x, w = ((numbers(shape, float) * 9).astype(dtype) for shape in (of_x, of_w))
        f = functools.partial(convolved, name, precision="highest")
        made = launches.scheduled(kernel(f, x, w))
        assert not multiplies(made) and [type(each) for each in made.body] == [Launch]
        [z] = emulate(made, [x, w])
        np.testing.assert_allclose(z, f(x, w), rtol=1e-5, atol=1e-3)


def test_derivatives_of_convolutions_are_products_too():
    x, w = (numbers(shape, np.float32, k) for k, shape in enumerate(
        CONVOLUTIONS["channels last"][:2]))
    f = lambda x, w: jax.grad(
        lambda *args: (convolved("channels last", *args) ** 2).sum(), (0, 1))(x, w)
    got, _ = result(f, x, w)
    for a, b in zip(got, f(x, w), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-2, atol=0.5)


def test_the_highest_precision_keeps_all_digits():
    x, y = numbers((40, 24), np.float32), numbers((24, 40), np.float32, 1)
    f = lambda x, y: jnp.tanh(x @ y)
    assert multiplies(launches.scheduled(kernel(f, x, y)))
    with jax.default_matmul_precision("highest"):
        made = launches.scheduled(kernel(lambda x, y: f(x, y), x, y))
    assert not multiplies(made)


EACH = [(8, 4), (4, 8), (2, 8), (8, 2), (4, 4), (2, 2)]


def planned(monkeypatch, each, parts=1):
    monkeypatch.setattr(tensor_cores.TensorTile, "plan", lambda product: (0, each, parts))


@pytest.mark.parametrize("each, dtype", some(EACH[:3], DIGITS) if LARGE else [
    (EACH[0], np.dtype(np.float32)), (EACH[1], BFLOAT16)])
def test_no_two_threads_ask_one_bank_for_different_words(monkeypatch, each, dtype):
    planned(monkeypatch, each)
    for transposed in (False, True):
        x, y = numbers((130, 33), dtype), numbers((33, 130), dtype, 1)
        f = lambda x, y: jnp.sin((x.T if transposed else x) @ (y.T if transposed else y))
        arguments = (x.T.copy(), y.T.copy()) if transposed else (x, y)
        wavefronts = []

        def watch(statement, block, threads, places):
            buffer = statement.buffer
            if buffer.role != "shared" or (buffer.name == "strip" and isinstance(statement, Store)):
                return
            words = places * buffer.dtype.itemsize // 4
            for warp in np.unique(threads // WARP):
                own = np.unique(words[threads // WARP == warp])
                wavefronts.append(np.bincount(own % 32).max())
        [z] = emulate(launches.scheduled(kernel(f, *arguments)), arguments, watch=watch)
        exact = np.sin(rounded(x) @ rounded(y))
        assert np.abs(z.astype(float) - exact).max() < 0.1 and set(wavefronts) == {1}


@pytest.mark.parametrize("dtype", DIGITS, ids=lambda dtype: dtype.name)
def test_parts_of_a_sum_are_joined(monkeypatch, dtype):
    planned(monkeypatch, (2, 2), 3)
    x, w = (numbers(shape, dtype, k) for k, shape in enumerate(CONVOLUTIONS["channels last"][:2]))
    f = functools.partial(convolved, "channels last", preferred_element_type=np.float32)
    [z], _ = result(f, x, w)
    np.testing.assert_allclose(z, f(rounded(x).astype(np.float32), rounded(w).astype(np.float32)),
                               rtol=1e-4, atol=1e-4)


def made_for(dtype):
    x, y = numbers((32, 40), dtype), numbers((40, 32), dtype, 1)
    return launches.scheduled(kernel(lambda x, y: jnp.sin(x @ y), x, y)), [x, y]


def test_no_barrier_can_be_spared():
    made, arguments = made_for(np.float16)
    barriers = [each for each in walk(made.body) if isinstance(each, Barrier)]
    assert len(barriers) == 4
    for barrier in barriers:
        with pytest.raises(Refused, match="a race for|nothing has been stored"):
            emulate(rewritten(made, lambda s, b=barrier: () if s is b else (s,)), arguments)


FAULTS = {"rows": lambda s: replace(s, x=(*s.x[2:4], *s.x[:2], *s.x[4:])),
          "words": lambda s: replace(s, x=(*s.x[4:], *s.x[:4])),
          "numbers": lambda s: replace(s, y=s.y[::-1]),
          "sums": lambda s: replace(s, sums=(*s.sums[2:], *s.sums[:2]))}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_layout_of_fragments_is_found(machine, fault):
    made, arguments = made_for(np.float16)
    [right] = MACHINES[machine](made, arguments)
    wrong = rewritten(made, lambda s: (FAULTS[fault](s) if isinstance(s, MMA) else s,))
    [z] = MACHINES[machine](wrong, arguments)
    assert np.abs(z.astype(float) - right.astype(float)).max() > 0.1


@pytest.mark.parametrize("machine", MACHINES)
def test_digits_that_tf32_has_not_are_refused(monkeypatch, machine):
    monkeypatch.setattr(tensor_cores, "rounded_to_tf32", lambda b, x: x)
    made, arguments = made_for(np.float32)
    with pytest.raises(Refused, match="more digits than TF32"):
        MACHINES[machine](made, arguments)


def test_tf32_rounds_to_the_nearest_and_keeps_what_is_no_number():
    x = np.eye(16, dtype=np.float32)
    y = np.zeros((16, 16), np.float32)
    y[0, :6] = 1 + 2.0**-11, 1 + 3 * 2.0**-11, -1 - 2.0**-11, 1 + 2.0**-12, np.inf, 2.0**-130
    [z], _ = result(lambda x, y: jnp.sin(y) * 0 + jnp.abs(x @ y), x[:, :16], y)
    with np.errstate(invalid="ignore"):
        expected = [1 + 2.0**-10, 1 + 2.0**-9, 1 + 2.0**-10, 1, np.nan, 2.0**-130]
    np.testing.assert_array_equal(z[0, :6], np.array(expected, np.float32))


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("dtype", DIGITS, ids=lambda dtype: dtype.name)
def test_the_assembler_has_registers_for_every_tile(monkeypatch, dtype, processor, tmp_path):
    kinds = {"float32": "tf32.tf32", "float16": "f16.f16", "bfloat16": "bf16.bf16"}
    for each in EACH[:6 if LARGE else 1]:
        planned(monkeypatch, each)
        x, y = np.zeros((4095, 333), dtype), np.zeros((333, 517), dtype)
        source = kernel(lambda x, y: jax.nn.gelu(x @ y), x, y)
        registers, spilled = usage(source, processor, tmp_path)
        assert max(registers) <= 128 and not any(spilled)
        text = (tmp_path / "k.ptx").read_text()
        assert re.search(rf"mma[.]sync[.]aligned[.]m16n8k\d+[.]row[.]col[.]f32[.]"
                         rf"{kinds[dtype.name]}[.]f32", text)
        assert "ld.shared.b16" not in text


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("letters, dtype", some(["NHWC", "NCHW"], ["float32", "bfloat16"]))
def test_the_assembler_has_registers_for_every_window(dtype, processor, letters, tmp_path):
    last = letters == "NHWC"
    x = np.zeros((32, 28, 28, 64) if last else (32, 64, 28, 28), jnp.dtype(dtype))
    w = np.zeros((3, 3, 64, 128) if last else (128, 64, 3, 3), jnp.dtype(dtype))
    f = lambda x, w: jax.nn.relu(jax.lax.conv_general_dilated(
        x, w, (2, 2), "SAME", dimension_numbers=(letters, "HWIO" if last else "OIHW", letters)))
    registers, spilled = usage(kernel(f, x, w), processor, tmp_path)
    assert max(registers) <= 128 and not any(spilled)
    assert "mma.sync" in (tmp_path / "k.ptx").read_text()


def test_threads_of_a_warp_multiply_together():
    made, arguments = made_for(np.float16)
    [launch] = made.body
    few = Scalar("few", np.dtype(bool))
    five = Constant(np.int64(5), np.dtype(np.int64))
    alone = rewritten(made, lambda s: (Let(few, "lt", (launch.thread, five)), If(few, (s,)))
                      if isinstance(s, MMA) else (s,))
    for machine in MACHINES.values():
        with pytest.raises(Refused, match="do not multiply with the others"):
            machine(alone, arguments)


def test_the_text_has_the_products_of_warps_and_a_numba_program_none():
    x, w = (numbers(shape, np.float16) for shape in CONVOLUTIONS["channels last"][:2])
    lowered = jax.jit(functools.partial(convolved, "channels last")).lower(x, w)
    assert re.search(r"mma\(\(acc.*\), \(", lowered.as_text("launches"))
    assert "mma" not in lowered.as_text("numba.cuda")


@pytest.mark.parametrize("name", ["dot_general", "conv_general_dilated"])
def test_examples_of_any_shape_are_their_meaning(monkeypatch, name):
    for module in (products, convolutions):
        monkeypatch.setattr(module, "MIN_SIDE", 1)
    monkeypatch.setattr(tensor_cores, "MIN_TERMS", 1)
    monkeypatch.setattr(cublas, "has", lambda call: False)
    multiplied = 0
    for case in list(cases(PRIMITIVES[name]))[:None if LARGE else 6]:
        with case.mode():
            source = lower_to_kernel(jax.make_jaxpr(case.run)(*case.args), name, on_gpu=True)
            made = launches.scheduled(source)
            inputs = [running_text.laid_out(np.asarray(x), buffer) for x, buffer in zip(
                jax.tree.leaves(case.args), source.inputs, strict=True)]
            expected = np.asarray(case.run(*case.args)[0])
        if multiplies(made):
            multiplied += 1
            for machine in MACHINES.values():
                got = machine(made, inputs)[0].reshape(expected.shape)
                np.testing.assert_allclose(got.astype(float), expected.astype(float), rtol=2**-8,
                                           atol=2**-9 * max(np.abs(expected).max(), 1))
    assert multiplied > 1
