"""Calls back into Python: in order, once for each example and step, eager and compiled alike."""

import threading

import jax
import numpy as np
import pytest

import minijax

X = np.arange(3, dtype=np.float32)


def said(lib, f, capfd):
    f(lib)
    jax.effects_barrier()
    return capfd.readouterr().out


def two_prints(lib):
    @lib.jit
    def f(x):
        lib.debug.print("x = {x}", x=x, ordered=True)
        lib.debug.print("x = {x}", x=x, ordered=True)
        y = x * 2
        lib.debug.print("{} {}", y, "text", ordered=True)
        return 0
    f(X), f(X + 1)


def in_a_loop(lib):
    def step(c, x):
        lib.debug.print("{c} {x}", c=c, x=x)
        return c + x, None
    lib.jit(lambda x: lib.lax.scan(step, 0.0, x)[0])(X)


PROGRAMS = {
    "twice the same": two_prints,
    "scan": in_a_loop,
    "while": lambda lib: lib.lax.while_loop(
        lambda c: c < 3, lambda c: (lib.debug.print("{}", c), c + 1)[1], 0),
    "branch": lambda lib: [lib.jit(lambda p: lib.lax.cond(
        p, lambda: lib.debug.print("yes"), lambda: lib.debug.print("no")))(p) for p in (True, 0)],
    "vmap": lambda lib: lib.vmap(lambda v: lib.debug.print("{}", v))(X),
    "jit vmap": lambda lib: lib.jit(lib.vmap(lambda v: lib.debug.print("{}", v)))(X),
    "grad": lambda lib: lib.grad(lambda x: (lib.debug.print("{}", x), x * x)[1])(2.0),
    "grad jit": lambda lib: lib.grad(lib.jit(
        lambda x: (lib.debug.print("{}", x), x * x)[1]))(2.0),
    "tree": lambda lib: lib.debug.print("{a} {b}", a={"k": X}, b=(1, None)),
    "key": lambda lib: lib.debug.print("{} {!r}", lib.random.key(0), lib.random.key(1)),
    "keys": lambda lib: lib.debug.print("{k} {}", 1, k=lib.random.split(lib.random.key(0), 3)),
    "key jit": lambda lib: lib.jit(lambda k: lib.debug.print("{} {!r}", k, k))(lib.random.key(1)),
    "keys vmap": lambda lib: lib.vmap(lambda k: lib.debug.print("{}", k))(
        lib.random.split(lib.random.key(0), 3)),
    "keys scan": lambda lib: lib.lax.map(lambda k: lib.debug.print("{}", k, ordered=True),
                                         lib.random.split(lib.random.key(0), 3)),
    "keys in a callback": lambda lib: [f(lambda k: lib.debug.callback(
        lambda v: print(v.dtype, v.shape), k))(lib.random.split(lib.random.key(0), 3))
        for f in (lambda f: f, lib.jit)],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_printed_is_what_jax_prints(name, capfd):
    ours, theirs = (said(lib, PROGRAMS[name], capfd) for lib in (minijax, jax))
    assert ours == theirs and ours


def test_a_key_has_no_format_of_its_own_as_in_jax():
    for lib in (minijax, jax):
        with pytest.raises(TypeError, match="^unsupported format string passed to PRNGKeyArray."):
            lib.debug.print("{:>10}", lib.random.key(0))


def test_the_interpreted_backend_prints_the_same(capfd):
    compiled = said(minijax, in_a_loop, capfd)
    minijax.config.update("jax_platforms", "numpy")
    try:
        assert said(minijax, in_a_loop, capfd) == compiled
    finally:
        minijax.config.update("jax_platforms", None)


def test_an_error_in_the_function_is_raised_when_the_call_ends():
    seen = []

    def fussy(x):
        seen.append(float(x))
        if x == 1:
            raise ValueError("not one")
    step = lambda v: (minijax.debug.callback(fussy, v), v)[1]  # noqa: E731
    f = minijax.jit(lambda x: minijax.lax.map(step, x))
    with pytest.raises(minijax.errors.JaxRuntimeError, match="ValueError: not one") as caught:
        f(X)
    assert type(caught.value.__cause__) is ValueError
    assert seen == [0.0, 1.0]
    np.testing.assert_array_equal(f(X + 5), X + 5)


def test_the_function_may_compute_with_the_library():
    seen = []

    @minijax.jit
    def f(x):
        minijax.debug.callback(lambda v: seen.append(minijax.jit(lambda w: w + 1)(v)), x)
        return x
    f(1.0)
    assert seen == [2.0]


def test_threads_do_not_mix_their_calls():
    seen: dict[int, list] = {i: [] for i in range(8)}

    def work(i):
        @minijax.jit
        def f(x):
            minijax.debug.callback(lambda v: seen[i].append(int(v)), x)
            return x
        for k in range(50):
            f(1000 * i + k)
    threads = [threading.Thread(target=work, args=(i,)) for i in seen]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(seen[i] == list(range(1000 * i, 1000 * i + 50)) for i in seen)


@pytest.mark.parametrize("call", [
    lambda lib: lib.debug.print("a", 1), lambda lib: lib.debug.print("a", k=1),
    lambda lib: lib.debug.callback(3)])
def test_bad_input_is_refused_in_jaxs_words(call):
    with pytest.raises(Exception) as theirs:
        call(jax)
    with pytest.raises(type(theirs.value)) as ours:
        call(minijax)
    assert str(ours.value) == str(theirs.value)


def test_a_format_may_say_how_many_digits(capfd):
    minijax.jit(lambda x: minijax.debug.print("{x:.2f} {:>6.1f}", x * 2, x=x))(1.0)
    assert capfd.readouterr().out == "1.00    2.0\n"


def test_values_are_weakly_typed_only_where_nothing_is_compiled():
    def seen(lib):
        found = []

        def f(x):
            lib.debug.callback(lambda x, y: found.append((repr(x), repr(y))), x, y=2)
        for each in (f, lib.jit(f), lib.grad(lambda x: (f(x), x)[1])):
            each(1.5)
            lib.effects_barrier()
        return found
    assert seen(minijax) == seen(jax)
