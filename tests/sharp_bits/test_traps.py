"""Every trap of the Sharp Bits page that is silent in JAX stops here, at the right line.

Each program runs in JAX without an error or a warning.  With the switch on, minijax stops it at
the line that is marked.
"""

import builtins
import contextlib
import io
import re
import textwrap
import warnings

import jax as real_jax
import pytest

import minijax
from minijax import errors
from tests.programs.test_programs import with_minijax

HEAD = """\
import numpy as np
import jax
import jax.numpy as jnp
from jax import grad, jit, lax, random, vmap
"""

# name: (flag that finds it, program with one marked line)
TRAPS = {
    "a print that will not print again": ("debug_purity", """
        def f(x):
            print("Executing function")  # here
            return x
        jit(f)(4.)
        jit(f)(5.)
        """),
    "a global that changed since tracing": ("debug_purity", """
        g = 0.
        def f(x):
            return x + g  # here
        jit(f)(4.)
        g = 10.
        jit(f)(5.)
        """),
    "a closure cell that changed since tracing": ("debug_purity", """
        def make():
            scale = 1.
            def f(x):
                return x * scale  # here
            def change():
                nonlocal scale
                scale = 2.
            return jit(f), change
        f, change = make()
        f(1.)
        change()
        f(1.)
        """),
    "an attribute that changed since tracing": ("debug_purity", """
        class Model:
            def __init__(self):
                self.rate = 0.1
                self.step = jit(lambda x: x * self.rate)  # here
        model = Model()
        model.step(1.)
        model.rate = 0.5
        model.step(1.)
        """),
    "a global that keeps a tracer": ("debug_purity check_tracer_leaks", """
        g = 0.
        def f(x):
            global g
            g = x  # here
            return x
        jit(f)(4.)
        """),
    "a list that grows while tracing": ("debug_purity", """
        calls = []
        def f(x):
            calls.append(1)  # here
            return x
        jit(f)(4.)
        """),
    "a counter that counts traces and not calls": ("debug_purity", """
        count = 0
        def f(x):
            global count
            count += 1  # here
            return x * 2
        jit(f)(4.)
        """),
    "a NumPy array that is written while tracing": ("debug_purity", """
        log = np.zeros(3)
        def f(x):
            log[0] = 1.  # here
            return x * 2
        jit(f)(4.)
        """),
    "an iterator in a loop": ("debug_purity", """
        iterator = iter(range(10))
        def body(i, x):
            return x + next(iterator)  # here
        lax.fori_loop(0, 10, body, 0)
        """),
    "NumPy's random numbers become a constant": ("debug_purity", """
        def f(x):
            return x + np.random.uniform()  # here
        jit(f)(1.)
        jit(f)(1.)
        """),
    "an index beyond the end": ("debug_out_of_bounds", """
        x = jnp.arange(10)
        x[11]  # here
        """),
    "an index beyond the end in compiled code": ("debug_out_of_bounds", """
        @jit
        def f(x, i):
            return x[i] * 2  # here
        f(jnp.arange(10), 11)
        """),
    "a write beyond the end is dropped": ("debug_out_of_bounds", """
        @jit
        def f(x, i):
            return x.at[i].add(7.)  # here
        f(jnp.zeros(3), 3)
        """),
    "a slice that is moved back into the array": ("debug_out_of_bounds", """
        x = jnp.arange(10.)
        lax.dynamic_slice(x, (8,), (4,))  # here
        """),
    "a key that is used twice": ("debug_key_reuse", """
        key = random.key(0)
        random.normal(key, shape=(1,))
        random.normal(key, shape=(1,))  # here
        """),
    "a raw key that is used twice": ("debug_key_reuse", """
        key = random.PRNGKey(0)
        random.normal(key, shape=(1,))
        random.normal(key, shape=(1,))  # here
        """),
    "a key that is split and then used": ("debug_key_reuse", """
        key = random.key(0)
        key2, part = random.split(key)
        random.normal(key, shape=(1,))  # here
        """),
    "a key that is used twice in compiled code": ("debug_key_reuse", """
        @jit
        def f(key):
            x = random.normal(key)
            return x + random.uniform(key)  # here
        f(random.key(0))
        """),
    "a nan": ("debug_nans", """
        jnp.divide(0., 0.)  # here
        """),
    "a nan in compiled code": ("debug_nans", """
        @jit
        def f(x, y):
            a = x * y
            b = (x + y) / (x - y)  # here
            c = a + 2
            return a + b * c
        f(jnp.array([2., 0.]), jnp.array([3., 0.]))
        """),
    "a nan that only the derivative makes": ("debug_nans debug_infs", """
        def f(x):
            return jnp.where(x > 0, jnp.sqrt(x), 0.)  # here
        grad(f)(0.)
        """),
    "a cast of what does not fit": ("debug_unsafe_casts", """
        x = jnp.arange(254.0, 258.0)
        x.astype('uint8')  # here
        """),
    "a cast of what does not fit in compiled code": ("debug_unsafe_casts", """
        @jit
        def f(x):
            y = x * 2
            return y.astype('int8') + 1  # here
        f(jnp.array([100.]))
        """),
    "whole numbers of 64 bits that lose their upper half": ("debug_dtype_truncation", """
        stamps = np.array([1_700_000_000_000])
        jnp.asarray(stamps)  # here
        """),
    "a function that is compiled at each call": ("debug_recompiles", """
        def f(x):
            return x.sum()
        g = jit(f)
        for n in range(1, 12):
            g(jnp.ones(n))  # here
        """),
    "a new function at each call": ("debug_recompiles", """
        for n in range(12):
            jit(lambda x: x + 1)(1.)  # here
        """),
}
by_trap = pytest.mark.parametrize("name", TRAPS)


def program(name):
    source = HEAD + textwrap.dedent(TRAPS[name][1])
    line = next(n for n, text in enumerate(source.splitlines(), 1) if "# here" in text)
    return source, line


def run(source, name):
    with contextlib.redirect_stdout(io.StringIO()):
        builtins.exec(compile(source, f"{name}.py", "exec"), {"__name__": "trap"})


@by_trap
def test_jax_says_nothing_of(name):
    with warnings.catch_warnings(), real_jax.threefry_partitionable(False):
        warnings.simplefilter("error")
        run(program(name)[0], name)


@by_trap
def test_without_the_switch_neither_do_we(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(with_minijax(program(name)[0]), name)


@by_trap
def test_with_the_switch_the_line_is_named(name):
    source, line = program(name)
    flags = TRAPS[name][0].split()
    with warnings.catch_warnings(), pytest.raises(Exception) as caught:
        warnings.simplefilter("error", errors.SharpBitWarning)
        with minijax.checking_sharp_bits():
            run(with_minijax(source), name)
    if isinstance(caught.value, errors.SharpBitWarning):
        return  # the place of a warning is tested below, from its finding
    found = caught.value.finding
    assert (found.kind in flags, found.file, found.line) == (True, f"{name}.py", line), str(found)
    assert found.fix and re.search(r"[.`)]$", found.fix), found.fix


@by_trap
def test_with_the_switch_to_collect_the_program_goes_on(name):
    source, line = program(name)
    with minijax.checking_sharp_bits(collect=True) as findings:
        run(with_minijax(source), name)
    flags = TRAPS[name][0].split()
    assert any((found.kind in flags, found.file, found.line) == (True, f"{name}.py", line)
               for found in findings), list(map(str, findings))
    assert all(found.kind in flags for found in findings), list(map(str, findings))
