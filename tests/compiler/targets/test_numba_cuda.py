"""The launches as a Numba program: NVIDIA's compiler and assembler take it, and Numba runs it.

Without a GPU Numba's simulator runs it, in which each thread is one of Python's; it has no shuffles
and no library of functions.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import minijax
from minijax import jit, lax, numpy as jnp, tree
from tests import numba_cuda
from tests.compiler.targets.test_ptx import assembler
from tests.test_laws import LARGE, PRIMITIVES, WITHOUT_EXAMPLES

EVERY = sorted(PRIMITIVES.keys() - WITHOUT_EXAMPLES.keys())


@pytest.mark.parametrize("name", EVERY if LARGE else ["sinh"])
def test_nvidias_compiler_takes_the_numba_program_of_each_launch(tmp_path, name):
    """And joins no product and sum to one operation, which would round once; where LLVM computes
    once what NVVM computes twice, there are more of these.
    """
    assembler()  # or the test is skipped
    outcome = numba_cuda.assemble([name], tmp_path)
    assert not outcome.refused
    assert outcome.launches or outcome.not_printed
    assert name not in ("sinh", "bessel_i0e") or outcome.joined == {name: 0}


def test_a_quotient_by_a_constant_is_a_product_that_no_sum_absorbs():
    text = jit(lambda x: x / 3 - 1).lower(SQUARE).as_text("numba.cuda")
    assert ", float32(0.33333334)) - " in text


SQUARE = np.linspace(-2, 2, 4096, dtype=np.float32).reshape(64, 64)
PROGRAMS = {
    "transpose": (lambda x: x.T * 2, SQUARE),
    "gather": (lambda x: x[jnp.array([3, 1, 3]), ::2], SQUARE),
    "branches": (lambda x: lax.cond(x[0, 0] > 0, lambda x: -x, lambda x: x * x, x), SQUARE[:2]),
    "integers": (lambda x: (x << 3) // 7 % 5, np.arange(-40, 40, dtype=np.int32)),
    "unsigned": (lambda x: x * x >> 5, np.arange(100, 200, dtype=np.uint8)),
}
OF_A_GPU = {
    "elementary": (lambda x: jnp.tanh(x) + jnp.log1p(abs(x)), SQUARE),
    "sums": (lambda x: (x.sum(0), x.sum(1), x.max()), SQUARE),
    "softmax": (minijax.nn.softmax, SQUARE),
    "sort": (lambda x: jnp.sort(x, 0), SQUARE),
    "cumulative": (lambda x: jnp.cumsum(x.ravel()), SQUARE),
    "product": (lambda x: jnp.einsum("ij,kj->ik", x, x), SQUARE),
    "scatter": (lambda x: x.at[jnp.array([0, 2, 0])].add(1.5), SQUARE),
    "random": (lambda x: minijax.random.normal(minijax.random.key(3), (64,)) + x[0], SQUARE),
}

RUNNING = """
import runpy, sys
import numpy as np

for name in sys.argv[1:]:
    main = runpy.run_path(name + ".py")["main"]
    outs = main(np.load(name + ".npy"))
    outs = outs if isinstance(outs, tuple) else (outs,)
    with np.load(name + ".npz") as expected:
        for k, out in enumerate(outs):
            assert out.dtype == expected[f"y{k}"].dtype, (name, out.dtype)
            np.testing.assert_allclose(out, expected[f"y{k}"], rtol=1e-5, atol=1e-5, err_msg=name)
"""


def run(programs, folder, **environment):
    for name, (f, x) in programs.items():
        path = folder / name
        path.with_suffix(".py").write_text(jit(f).lower(x).as_text("numba.cuda"), "utf-8")
        np.save(path, x)
        np.savez(path, **{f"y{k}": np.asarray(y) for k, y in enumerate(tree.leaves(jit(f)(x)))})
    return subprocess.run([sys.executable, "-W", "ignore", "-c", RUNNING, *programs], cwd=folder,
                          text=True, stderr=subprocess.PIPE, env=os.environ | environment)


def test_numba_simulates_what_is_printed(tmp_path):
    done = run(PROGRAMS, tmp_path, NUMBA_ENABLE_CUDASIM="1")
    assert not done.returncode, done.stderr


@pytest.mark.of_tests
def test_the_simulation_finds_a_missing_barrier(tmp_path, monkeypatch):
    from minijax.compiler.targets.numba_cuda import CudaText
    monkeypatch.setattr(CudaText, "print_barrier", lambda self, barrier: self.flush())
    done = run({"transpose": PROGRAMS["transpose"]}, tmp_path, NUMBA_ENABLE_CUDASIM="1")
    assert "transpose" in done.stderr


@pytest.mark.skipif(os.environ.get("DEVICE") != "cuda", reason="a GPU is needed")
def test_numba_runs_what_is_printed_on_a_gpu(tmp_path):
    done = run(PROGRAMS | OF_A_GPU, tmp_path)
    assert not done.returncode, done.stderr
