"""Launches as PTX: NVIDIA's assembler takes each, for two generations, and nothing is spilled."""

import importlib.util
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.compiler.targets import launches, ptx
from tests.compiler.targets.test_launches import PROGRAMS, X, kernel

PROCESSORS = ("sm_80", "sm_90")
LEAN = ("a chain", "a sum over all", "a maximum down the columns", "softmax of rows",
        "softmax of columns", "the normal form of a layer", "a transpose", "a running total",
        "a sort")
DTYPES = ("bool", "int8", "uint16", "int32", "uint64", "float16", "bfloat16", "float32")


def assembler():
    """The program, from the wheel of NVIDIA's compiler."""
    try:
        found = importlib.util.find_spec("nvidia.cuda_nvcc")
    except ModuleNotFoundError:
        found = None
    if found is None or not found.submodule_search_locations:
        pytest.skip("NVIDIA's assembler has a wheel for Linux and Windows")
    return Path(found.submodule_search_locations[0], "bin", "ptxas")


def usage(source, processor, folder):
    """Of each launch the registers, and the bytes that do not fit into them."""
    text = ptx.compile(ptx.assembly(launches.scheduled(source)), processor)
    (folder / "k.ptx").write_text(text)
    done = subprocess.run([assembler(), "-v", f"-arch={processor}", folder / "k.ptx", "-o",
                           folder / "k.cubin"], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return [tuple(map(int, re.findall(rf"(\d+) {what}", done.stderr)))
            for what in ("registers", "bytes spill stores")]


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_assembler_takes_each_launch(name, processor, tmp_path):
    registers, spilled = usage(kernel(PROGRAMS[name], X), processor, tmp_path)
    assert registers and max(registers) <= 255
    assert name not in LEAN or not any(spilled)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_of_each_kind_are_shuffled(dtype, tmp_path):
    x = np.ones((3, 70), jnp.dtype(dtype))
    usage(kernel(lambda x: (x.max(1), x.min(1), jnp.cumsum(x, 1)), x), "sm_80", tmp_path)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64", "float32", "float64"])
def test_atomic_operations_of_each_kind_are_one_instruction(dtype, tmp_path):
    def f(x, i):
        return [jnp.zeros(9, dtype).at[i].add(x)] + [
            getattr(jnp.zeros(9, dtype).at[i], op)(x) for op in ("min", "max") if dtype[0] != "f"]
    with jax.enable_x64():
        source = kernel(f, np.ones(64, dtype), np.zeros(64, np.int32))
    usage(source, "sm_80", tmp_path)
    text = (tmp_path / "k.ptx").read_text()
    kind = {"i": "s", "u": "u", "f": "f"}[dtype[0]] + dtype[-2:]
    found = set(re.findall(r"atom\.global\.(\w+)\.(\w)", text))
    expected = {"add"} if dtype[0] == "f" else {"add", "min", "max"}
    assert {op for op, _ in found} == expected and "atom.global.cas" not in text
    assert dtype[0] == "f" or f"atom.global.max.{kind}" in text


FUNCTIONS = [getattr(jax.lax, name) for name in (
    "exp", "exp2", "expm1", "log", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "erf_inv", "logistic", "cbrt",
    "rsqrt", "sqrt", "floor", "ceil", "round", "is_finite", "abs", "sign", "neg")]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_elementary_functions_keep_to_their_registers(f, tmp_path):
    registers, spilled = usage(kernel(f, np.ones(1000, np.float32)), "sm_80", tmp_path)
    assert max(registers) <= 128 and not any(spilled)


def test_what_is_passed_is_addresses_in_the_order_of_the_kernels():
    made = launches.scheduled(kernel(PROGRAMS["a sum over all"], np.zeros(1 << 20, np.float32)))
    [launch] = ptx.launches_of(made.body)
    [counter] = made.constants
    assert ptx.parameters(made, launch) == (
        [made.inputs[0], made.outputs[0], counter], True, [])


@pytest.mark.parametrize("f, loads, stores", [
    (lambda x: jnp.cumsum(x, 1), 4, 4), (lambda x: x * 2 + 1, 4, 4),
    (lambda x: x.ravel()[1:] * 2, 1, 1), (lambda x: x.ravel()[4:] * 2, 4, 4),
    (lambda x: x.astype(jnp.float16), 4, 2), (lambda x: x.ravel()[::2] + 1, 1, 1)])
def test_adjacent_numbers_are_accessed_at_once(f, loads, stores):
    source = kernel(f, np.zeros((512, 2048), np.float32))
    text = ptx.compile(ptx.assembly(launches.scheduled(source)))
    for word, count in (("ld", loads), ("st", stores)):
        widths = {int(x or 1) for x in re.findall(rf"{word}[.]global(?:[.]nc)?(?:[.]v(\d))?", text)}
        assert max(widths) == count


def test_the_text_is_made_without_a_gpu():
    text = ptx.compile(ptx.assembly(launches.scheduled(kernel(PROGRAMS["a chain"], X))), "sm_90")
    assert ".target sm_90" in text and ".visible .entry launch_0" in text and "fma.rn.f32" in text
