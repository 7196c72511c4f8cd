"""Two tiers of machine code: the same bits, and when one follows the other."""

import gc
import inspect
import signal

import numpy as np
import pytest

import minijax
from minijax import config, jit, lax, numpy as jnp
from minijax.compiler import cache, cpu, executable
from minijax.compiler.lowered import Lowered
from minijax.compiler.tiers import QuickCode
from minijax.transforms import compiled
from tests.test_laws import LARGE, PRIMITIVES, cases

SUMS = ("reduce_sum", "reduce_prod", "dot_general", "cumsum", "logsumexp")
X = np.random.default_rng(0).normal(size=(37, 513)).astype(np.float32)


@pytest.fixture(autouse=True)
def callables_of_machine_code(monkeypatch):
    """Callables without the pattern that tests put in their memory, which hides the tier."""
    written = inspect.getclosurevars(executable.callable_of).nonlocals.get("written")
    if written:
        monkeypatch.setattr(executable, "callable_of", written)


@pytest.fixture
def place(monkeypatch, tmp_path):
    """An empty cache on disk."""
    monkeypatch.setenv("MINIJAX_CACHE_DIR", str(tmp_path))
    return tmp_path


def bits(x):
    """The bytes of an array, with one nan."""
    is_key = jnp.issubdtype(x.dtype, minijax.dtypes.prng_key)
    x = np.array(minijax.random.key_data(x) if is_key else x)
    if np.any(x != x):
        x[x != x] = np.nan
    return x.dtype, x.shape, x.tobytes()


def in_both_tiers(f, *args):
    """The results of a function by quick code and by code that is optimised."""
    for quick in (True, False):
        with config.disable_most_optimizations(quick):
            leaves = minijax.tree.leaves(jit(lambda *xs: f(*xs)).lower(*args).compile()(*args))
            yield [bits(x) for x in leaves]


def sums(x):
    return jnp.sum(jnp.exp(x)), jnp.prod(x, -1), jnp.sum(x, 0), jnp.mean(x[:, :19], 1)


@pytest.mark.parametrize(
    "p", [p for name, p in PRIMITIVES.items() if LARGE or name in SUMS], ids=str)
def test_both_tiers_give_the_same_bits(p, monkeypatch):
    monkeypatch.setenv("MINIJAX_CACHE_DIR", "")
    for case in cases(p):
        with case.mode():
            quick, optimised = in_both_tiers(case.run, *case.args)
        assert quick == optimised, case.example


def sums_of_branches(x):
    """Of elementary functions, for which loops have vector lengths; some sums are short."""
    yield jnp.sum(jnp.sin(jnp.concatenate([x[0, :100], x[1, :100] * 2])))
    for size in range(6, 13):
        yield jnp.prod(jnp.cos(jnp.pad(x[0, :size], (1, 2))))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_over_branches_have_the_same_bits_in_both_tiers(dtype, monkeypatch):
    monkeypatch.setenv("MINIJAX_CACHE_DIR", "")
    with minijax.enable_x64(dtype == "float64"):
        quick, optimised = in_both_tiers(lambda x: [*sums_of_branches(x)], X.astype(dtype))
    assert quick == optimised


def callable_of(f, *args):
    """The callable of a function's kernel, and the function that it runs in machine code."""
    run = compiled.executable(jit(lambda *xs: f(*xs)).trace(*args).program)
    return run, lambda: run.__globals__["run"]


def test_the_second_call_optimises_for_all_callers(place):
    call, code = callable_of(sums, X)
    other, code_of_other = callable_of(sums, X)
    first = code()
    assert isinstance(first, QuickCode) and code_of_other() is first
    before = list(map(bits, call(X)))
    assert code() is first
    assert list(map(bits, other(X))) == before
    assert not isinstance(code(), QuickCode)
    assert code_of_other() is code() is first.run
    assert list(map(bits, call(X))) == before


def test_an_error_of_the_compiler_leaves_a_program_in_its_first_tier(place, monkeypatch):
    call, code = callable_of(sums, X)
    first, tried = code().run, []
    monkeypatch.setattr(cpu, "compile", lambda *_, **__: tried.append(1) or 1 / 0)
    before = list(map(bits, call(X)))
    for _ in range(2):
        assert list(map(bits, call(X))) == before
    assert tried == [1] and code() is first


def test_an_interrupt_of_the_compiler_leaves_it_to_the_next_call(place, monkeypatch):
    call, code = callable_of(lambda x: jnp.sum(x * 3, 0), X)
    before = list(map(bits, call(X)))
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(code(), "optimised", lambda: signal.raise_signal(signal.SIGINT))
        call(X)
    assert isinstance(code(), QuickCode)
    assert list(map(bits, call(X))) == before
    assert not isinstance(code(), QuickCode)


def test_what_is_compiled_ahead_of_time_is_optimised(place):
    f = jit(lambda x: sums(x))
    f(X)
    f.lower(X).compile()
    run = compiled.executable(f.trace(X).program)
    assert not isinstance(run.__globals__["run"], QuickCode)


def test_what_is_compiled_ahead_of_time_is_compiled_once(place, monkeypatch):
    levels, compile = [], cpu.compile
    monkeypatch.setattr(cpu, "compile", lambda text, **how: levels.append(how["level"]) or compile(
        text, **how))
    ahead = jit(lambda x: sums(x) + (x * 3,)).lower(X).compile()
    assert levels == [None]
    ahead(X), ahead(X)
    assert levels == [None]


@pytest.mark.parametrize("f, quick", [
    (lambda x: jnp.tanh(x), True),
    (lambda x: x @ x.T @ x @ x.T @ x, True),
    (lambda x: jnp.ones((999, 999)) @ jnp.resize(x, (999, 999)), True),
    (lambda x: lax.top_k(jnp.resize(x, 1 << 20), 32), True),
    (lambda x: lax.fori_loop(0, 10 ** 8, lambda k, y: y * 0.5, x), False),
    (lambda x: lax.while_loop(lambda y: y[0, 0] > 0, lambda y: y - 1, x), False)])
def test_only_programs_that_end_soon_have_a_first_tier(f, quick, place):
    assert isinstance(callable_of(f, X)[1](), QuickCode) == quick


def test_the_tier_on_disk_is_the_last_one(place):
    def fresh():
        gc.collect()
        cache._loaded.clear()
        return callable_of(sums, X)

    assert isinstance(fresh()[1](), QuickCode)
    names = [path.name for path in place.iterdir() if ".quick" in path.name]
    assert len(names) == 1
    call, code = fresh()  # a process that begins with the first tier
    before = list(map(bits, call(X)))
    call.improve()
    assert not hasattr(call, "improve")
    assert not isinstance(code(), QuickCode)
    assert list(map(bits, call(X))) == before
    assert not isinstance(fresh()[1](), QuickCode)
    assert not isinstance(Lowered(jit(sums).trace(X).program, "f").compile().__globals__["run"],
                          QuickCode)
