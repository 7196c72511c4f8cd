"""Impure functions: what they do once, while traced, and what they read that has changed since."""

import cProfile
import sys
import textwrap
import threading

import pytest

import minijax as jax
from minijax import config, errors, lax, numpy as jnp
from tests.sharp_bits import test_traps

HEAD = """\
import collections, datetime, functools, itertools, logging, random as pyrandom, time, types
import numpy as np
import minijax as jax
import minijax.numpy as jnp
from minijax import jit, lax, random
log = logging.getLogger("impure")
"""


def findings_of(program):
    """What the program steps into, and the number of the line marked ``# here``."""
    source = HEAD + textwrap.dedent(program)
    lines = [n for n, text in enumerate(source.splitlines(), 1) if "# here" in text]
    with jax.checking_sharp_bits(False, collect=True) as findings, config.debug_purity(True):
        exec(compile(source, "impure.py", "exec"), {"__name__": "impure"})
    assert all(found.kind == "debug_purity" for found in findings)
    return findings, lines


# ── What happens once ────────────────────────────────────────────────────────────────────────

ONCE = {
    "print in a helper": ("`print` is called while `f` is traced", """
        def show(x):
            print("x")  # here
        def f(x):
            show(x)
            return x
        jit(f)(1.)
        """),
    "print in a body of a loop": ("`print` is called while `body` is traced", """
        def body(c, x):
            print("body")  # here
            return c, None
        lax.scan(body, 1., None, length=3)
        """),
    "print in a branch": ("`print` is called while `<lambda>` is traced", """
        lax.cond(True, lambda x: print("yes") or x,  # here
                 lambda x: x, 1.)
        """),
    "print under another name": ("`print` is called", """
        say = print
        @jit
        def f(x):
            say("x")  # here
            return x
        f(1.)
        """),
    "a log": ("a message is logged", """
        @jit
        def f(x):
            log.error("x is %s", x)  # here
            return x
        f(1.)
        """),
    "open": ("`open` is called", """
        @jit
        def f(x):
            with open("/dev/null") as file:  # here
                return x
        f(1.)
        """),
    "the clock": ("`perf_counter` reads the clock", """
        @jit
        def f(x):
            return x * time.perf_counter()  # here
        f(1.)
        """),
    "the date": ("`now` reads the clock", """
        @jit
        def f(x):
            return x * datetime.datetime.now().second  # here
        f(1.)
        """),
    "Python's random numbers": ("`pyrandom` is drawn from", """
        @jit
        def f(x):
            return x * pyrandom.randint(1, 9)  # here
        f(1.)
        """),
    "NumPy's random numbers": ("`np.random` is drawn from", """
        @jit
        def f(x):
            return x + np.random.normal()  # here
        f(1.)
        """),
    "a generator of NumPy's": ("`rng` is drawn from", """
        rng = np.random.default_rng(0)
        @jit
        def f(x):
            return x + rng.normal()  # here
        f(1.)
        """),
    "a nonlocal counter": ("the closure variable `count` is changed", """
        def make():
            count = 0
            def f(x):
                nonlocal count
                count += 1  # here
                return x
            return jit(f)
        make()(1.)
        """),
    "a counter in the body of a loop": ("the global `count` is changed while `body`", """
        count = 0
        def body(c, x):
            global count
            count = count + 1  # here
            return c, None
        jit(lambda x: lax.scan(body, x, None, length=3))(1.)
        """),
    "a local list, written by a body": ("the closure variable `seen` is changed while `body`", """
        @jit
        def f(x):
            seen = []
            def body(i, c):
                seen.append(1)  # here
                return c
            return lax.fori_loop(0, 3, body, x) * len(seen)
        f(1.)
        """),
    "a list's item": ("the global `totals[0]` is changed", """
        totals = [0, 0]
        @jit
        def f(x):
            totals[0] += 1  # here
            return x
        f(1.)
        """),
    "a list under another name": ("the global `calls` is changed", """
        calls = []
        @jit
        def f(x):
            mine = calls
            mine.append(1)  # here
            return x
        f(1.)
        """),
    "an entry that counts": ("the global `stats` is changed", """
        stats = {}
        @jit
        def f(x):
            stats["calls"] = stats.get("calls", 0) + 1  # here
            return x
        f(1.)
        """),
    "an entry that keeps a tracer": ("A tracer is kept there, which has no numbers.", """
        stats = {}
        @jit
        def f(x):
            stats["x"] = x * 2  # here
            return x
        f(1.)
        """),
    "a deque": ("the global `recent` is changed", """
        recent = collections.deque(maxlen=2)
        @jit
        def f(x):
            recent.append(len(recent))  # here
            return x
        f(1.)
        """),
    "a default argument": ("the default argument `seen` is changed", """
        @jit
        def f(x, *, seen=[]):
            seen.append(1)  # here
            return x
        f(1.)
        """),
    "a default argument, read and added to": ("the default argument `seen` is changed", """
        @jit
        def f(x, *, seen=[]):
            x = x + len(seen)
            seen += [1]  # here
            return x
        f(1.)
        """),
    "a list that is begun anew": ("the global `totals[0]` is changed", """
        totals = [0]
        @jit
        def f(x):
            global totals
            x = x + totals[0]
            totals = [7]  # here
            return x
        f(1.)
        """),
    "an attribute of self": ("`self.steps` is changed", """
        class Model:
            steps = 0
            def step(self, x):
                self.steps += 1  # here
                return x
        model = Model()
        jit(model.step)(1.)
        """),
    "an attribute of a static argument": ("the static argument `self.steps` is changed", """
        class Model:
            steps = 0
            @functools.partial(jit, static_argnums=0)
            def step(self, x):
                self.steps += 1  # here
                return x
        model = Model()
        model.step(1.)
        """),
    "an attribute of a class": ("`Model.built` is changed", """
        class Model:
            built = 0
        @jit
        def f(x):
            Model.built += 1  # here
            return x
        f(1.)
        """),
    "a NumPy array's method": ("the global `totals` is changed", """
        totals = np.arange(3)[::-1].copy()
        @jit
        def f(x):
            totals.sort()  # here
            return x
        f(1.)
        """),
    "a NumPy array, added to": ("the global `totals` is changed", """
        totals = np.zeros(3)
        @jit
        def f(x):
            totals[:] += 1  # here
            return x
        f(1.)
        """),
    "an iterator": ("the global `numbers`, an iterator, is advanced", """
        numbers = iter([1., 2., 3.])
        @jit
        def f(x):
            return x + next(numbers)  # here
        f(1.)
        """),
    "a generator that was begun": ("the global `numbers`, an iterator, is advanced", """
        def count():
            while True:
                yield 1.
        numbers = count()
        next(numbers)
        @jit
        def f(x):
            return x + next(numbers)  # here
        f(1.)
        """),
    "a counter of itertools": ("the global `numbers`, an iterator, is advanced", """
        numbers = itertools.count()
        @jit
        def f(x):
            return x + next(numbers)  # here
        f(1.)
        """),
    "zip": ("the global `pairs`, an iterator, is advanced", """
        pairs = zip([1., 2.], [3., 4.])
        @jit
        def f(x):
            for a, b in pairs:  # here
                x = x + a * b
            return x
        f(1.)
        """),
    "a rule of a custom derivative": ("`print` is called while", """
        @jax.custom_jvp
        def f(x):
            return x
        @f.defjvp
        def rule(p, t):
            print("rule")  # here
            return f(*p), t[0]
        jit(jax.grad(f))(1.)
        """),
    "checkpoint": ("`print` is called while `f` is traced", """
        @jax.checkpoint
        def f(x):
            print("x")  # here
            return x
        f(1.)
        """),
}


@pytest.mark.parametrize("name", ONCE)
def test_what_happens_once_is_found_on_its_line(name, capsys):
    words, program = ONCE[name]
    findings, lines = findings_of(program)
    assert [found.line for found in findings] == lines, list(map(str, findings))
    assert words in findings[0].message and findings[0].file == "impure.py"
    assert findings[0].fix.endswith((".", "`"))


@pytest.mark.parametrize("name", ONCE)
def test_off_the_same_program_runs(name, capsys):
    exec(compile(HEAD + textwrap.dedent(ONCE[name][1]), "impure.py", "exec"), {"__name__": "x"})


# ── What has changed since ───────────────────────────────────────────────────────────────────

STALE = {
    "a global": ("the global `rate` was 0.1 when `f` was traced and is 0.5 now", """
        rate = 0.1
        @jit
        def f(x):
            return x * rate  # here
        f(1.); rate = 0.5; f(1.)
        """),
    "a global of a helper": ("the global `rate` was 0.1", """
        rate = 0.1
        def scaled(x):
            return x * rate  # here
        f = jit(lambda x: scaled(x))
        f(1.); rate = 0.5; f(1.)
        """),
    "a global of a nested function": ("the global `rate` was 0.1", """
        rate = 0.1
        @jit
        def f(x):
            def scaled(x):
                return x * rate  # here
            return scaled(x)
        f(1.); rate = 0.5; f(1.)
        """),
    "a namespace": ("the global `settings.rate` was 0.1", """
        settings = types.SimpleNamespace(rate=0.1)
        @jit
        def f(x):
            return x * settings.rate  # here
        f(1.); settings.rate = 0.5; f(1.)
        """),
    "an attribute of an attribute": ("the global `model.layer.rate` was 0.1", """
        class Part: pass
        model, model_layer = Part(), Part()
        model.layer = model_layer
        model.layer.rate = 0.1
        @jit
        def f(x):
            return x * model.layer.rate  # here
        f(1.); model_layer.rate = 0.5; f(1.)
        """),
    "a class": ("the global `Settings.rate` was 0.1", """
        class Settings:
            rate = 0.1
        @jit
        def f(x):
            return x * Settings.rate  # here
        f(1.); Settings.rate = 0.5; f(1.)
        """),
    "a dict's entry": ("the global `settings['rate']` was 0.1", """
        settings = {"rate": 0.1}
        @jit
        def f(x):
            return x * settings["rate"]  # here
        f(1.); settings["rate"] = 0.5; f(1.)
        """),
    "a default argument": ("the default argument `rates[0]` was 0.1", """
        rates = [0.1]
        def make(rates):
            @jit
            def f(x, rates=rates):
                return x * rates[0]  # here
            return f
        f = make(rates)
        jit(lambda x: f(x))
        g = lambda x: f.__wrapped__(x)
        h = jit(g)
        h(1.); rates[0] = 0.5; h(1.)
        """),
    "an array": ("the global `weights` was [1. 1.] when `f` was traced and is [2. 2.] now", """
        weights = jnp.ones(2)
        @jit
        def f(x):
            return x * weights  # here
        f(1.); weights = weights * 2; f(1.)
        """),
    "a NumPy array written in place": ("the global `weights` was [1. 1.]", """
        weights = np.ones(2)
        @jit
        def f(x):
            return x * weights  # here
        f(1.); weights[:] = 2; f(1.)
        """),
    "a function that was defined anew": ("the global `helper`", """
        def helper(x):
            return x * 2
        @jit
        def f(x):
            return helper(x)  # here
        f(1.)
        def helper(x):
            return x * 3
        f(1.)
        """),
    "a partial's argument": ("`settings['rate']` was 0.1", """
        settings = {"rate": 0.1}
        def scaled(settings, x):
            return x * settings["rate"]
        f = jit(functools.partial(scaled, settings))
        f(1.); settings["rate"] = 0.5; f(1.)
        """),
    "a flag that chooses the branch": ("the global `training` was True", """
        training = True
        @jit
        def f(x):
            return x * 2 if training else x  # here
        f(1.); training = False; f(1.)
        """),
}


@pytest.mark.parametrize("name", STALE)
def test_what_has_changed_since_tracing_is_found_where_it_is_read(name):
    words, program = STALE[name]
    findings, lines = findings_of(program)
    assert len(findings) == 1, list(map(str, findings))
    assert words in findings[0].message and "still uses the old value" in findings[0].message
    assert not lines or findings[0].line == lines[0], str(findings[0])


def test_a_module_of_settings_is_looked_into(tmp_path, monkeypatch):
    (tmp_path / "settings_for_a_test.py").write_text("rate = 0.1\n")
    monkeypatch.syspath_prepend(tmp_path)
    findings, lines = findings_of("""
        import settings_for_a_test as settings
        @jit
        def f(x):
            return x * settings.rate  # here
        f(1.); settings.rate = 0.5; f(1.)
        """)
    assert [found.line for found in findings] == lines
    assert "`settings.rate` was 0.1" in findings[0].message


def test_the_compiled_function_is_stale_as_the_finding_says():
    scale = 2.0

    @jax.jit
    def f(x):
        return x * scale
    with jax.checking_sharp_bits(collect=True) as findings:
        assert f(1.0) == 2.0
        scale = 3.0
        assert f(1.0) == 2.0
    assert len(findings) == 1 and "is 3.0 now" in findings[0].message


@pytest.mark.parametrize("switch", ["with", "global"])
def test_a_call_that_would_go_straight_to_compiled_code_is_looked_at(switch):
    rate = 0.1

    @jax.jit
    def f(x):
        return x * rate
    x = jnp.ones(2)
    before = config.debug_purity.value
    try:
        if switch == "global":
            config.update("jax_debug_purity", True)
        with config.debug_purity(True) if switch == "with" else config.debug_nans(False):
            f(x), f(x)
            rate = 0.2
            with pytest.raises(errors.ImpureFunctionError, match="`rate` was 0.1"):
                f(x)
            rate = 0.1
            f(x)
    finally:
        config.update("jax_debug_purity", before)
    rate = 0.3
    f(x)


# ── What is harmless ─────────────────────────────────────────────────────────────────────────

HARMLESS = {
    "state of its own": """
        @jit
        def f(x):
            state = dict(even=0, odd=0)
            for i in range(10):
                state['even' if i % 2 == 0 else 'odd'] += x
            return state['even'] + state['odd']
        f(1.); f(2.)
        """,
    "a memo": """
        tables = {}
        def table(n):
            if n not in tables:
                tables[n] = np.arange(n)
            return tables[n]
        f = jit(lambda x: x * table(3).sum())
        f(1.); f(1.)
        """,
    "functools.cache": """
        @functools.cache
        def table(n):
            return np.arange(n)
        f = jit(lambda x: x * table(3).sum())
        f(1.); f(1.)
        """,
    "what is made when first needed": """
        made = None
        def table():
            global made
            if made is None:
                made = np.arange(3)
            return made
        f = jit(lambda x: x * table().sum())
        f(1.); f(1.)
        """,
    "a layer that is built when first called": """
        class Layer:
            built = False
            def __call__(self, x):
                if not self.built:
                    self.built, self.w = True, np.ones(3)
                return x * self.w
        layer = Layer()
        f = jit(lambda x: layer(x).sum())
        f(1.); f(1.)
        """,
    "a global that it does not use": """
        unused = 0
        @jit
        def f(x, verbose=False):
            return x if not verbose else x + unused
        f(1.); unused = 1; f(1.)
        """,
    "a value that comes back": """
        depth = 0
        @jit
        def f(x):
            global depth
            depth += 1
            y = x * 2
            depth -= 1
            return y
        f(1.); f(1.)
        """,
    "a step counted outside": """
        step = 0
        f = jit(lambda x: x * 2)
        for step in range(3):
            f(float(step))
        """,
    "a new array of the same numbers": """
        weights = np.ones(3)
        f = jit(lambda x: x * weights)
        f(1.); weights = np.ones(3); f(1.)
        """,
    "a generator seeded inside": """
        f = jit(lambda x: x * np.random.default_rng(0).normal())
        f(1.); f(1.)
        """,
    "a draw outside": """
        rng = np.random.default_rng(0)
        f = jit(lambda x: x * 2)
        f(rng.normal()); f(rng.normal()); f(np.random.normal())
        """,
    "a log that is turned off": """
        @jit
        def f(x):
            log.debug("never")
            return x
        f(1.)
        """,
    "debug.print": """
        @jit
        def f(x):
            jax.debug.print("{}", x)
            return x
        f(1.)
        """,
    "a print that is no trace's": """
        def f(x):
            print("each time")
            return x * x
        jax.grad(f)(1.); jax.vmap(f)(jnp.ones(2)); f(1.)
        """,
    "a generator of its own": """
        @jit
        def f(x):
            halves = (x / n for n in (1, 2))
            return sum(halves)
        f(1.)
        """,
    "recursion": """
        @jit
        def f(x):
            def power(n):
                return x if n == 0 else x * power(n - 1)
            return power(3)
        f(1.); f(2.)
        """,
    "a jitted function inside": """
        inner = jit(lambda x: x * 2)
        f = jit(lambda x: inner(x) + inner(x + 1))
        f(1.); f(1.)
        """,
    "an unused global beside callbacks and rules": """
        unused = 0
        @jax.custom_jvp
        def g(x):
            return x * 2
        g.defjvp(lambda p, t: (g(*p), t[0] * 2))
        @jax.custom_vjp
        def h(x):
            return x * 3
        h.defvjp(lambda x: (h(x), x), lambda x, ct: (ct * 3,))
        @jit
        def f(x, key, more=False):
            y = x * jnp.float32(2)
            jax.debug.callback(lambda v: None, y)
            jax.debug.print("{}", y)
            z = lax.cond(x > 0, g, h, y) + lax.scan(lambda c, v: (c + v, c), x, jnp.ones(3))[0]
            z = lax.while_loop(lambda c: c < 9, lambda c: c + jnp.float32(np.nan) * 0 + 10, z)
            return z + random.normal(key) + jnp.arange(3) + (unused if more else 0)
        f(1., random.key(0)); unused = 1; f(1., random.key(1))
        """,
    "a callback": """
        seen = []
        def keep(x):
            seen.append(float(x))
        @jit
        def f(x):
            jax.debug.callback(keep, x)
            return x
        f(1.); f(2.)
        """,
}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_correct_program_is_not_blamed(name, capsys):
    findings, _ = findings_of(HARMLESS[name])
    assert not findings, list(map(str, findings))


def test_every_purity_trap_is_among_those_that_jax_runs_in_silence():
    assert sum("debug_purity" in flags for flags, _ in test_traps.TRAPS.values()) >= 10


# ── Errors, and what is left behind ──────────────────────────────────────────────────────────

def impure(x):
    print("impure")
    return x


def test_the_error_says_what_where_why_and_what_to_do(capsys):
    with config.debug_purity(True), pytest.raises(errors.ImpureFunctionError) as caught:
        jax.jit(impure)(1.0)
    line = impure.__code__.co_firstlineno + 1
    assert str(caught.value).splitlines() == [
        "`print` is called while `impure` is traced; when the compiled function runs, it will "
        "not print again.",
        f'In impure, test_purity.py:{line}: print("impure")',
        "Use jax.debug.print, which prints at each call."]
    assert caught.value.finding.kind == "debug_purity"


def test_an_impure_function_is_refused_at_every_call(capsys):
    f = jax.jit(impure)
    with config.debug_purity(True):
        for _ in range(2):
            with pytest.raises(errors.ImpureFunctionError):
                f(1.0)
    assert f(1.0) == 1.0


def test_the_profiling_hook_is_given_back(capsys):
    def hook(frame, event, arg):
        pass

    def fail(x):
        raise RuntimeError("stop")

    def interrupted(x):
        raise KeyboardInterrupt
    with config.debug_purity(True):
        for fun, error in ((impure, errors.ImpureFunctionError), (fail, RuntimeError),
                           (interrupted, KeyboardInterrupt)):
            with pytest.raises(error):
                jax.jit(fun)(1.0)
            assert sys.getprofile() is None
        jax.jit(lambda x: lax.scan(lambda c, _: (c, c), x, None, length=2))(1.0)
        assert sys.getprofile() is None
        try:
            sys.setprofile(hook)
            jax.jit(lambda x: x + 2)(1.0)
            assert sys.getprofile() is hook
        finally:
            sys.setprofile(None)


def test_an_interrupt_inside_the_hook_leaves_nothing_behind(monkeypatch):
    from minijax.sharp_bits.purity import SideEffects

    def stop(*_):
        raise KeyboardInterrupt
    monkeypatch.setattr(SideEffects, "_on_builtin", stop)
    with config.debug_purity(True):
        with pytest.raises(KeyboardInterrupt):
            jax.jit(lambda x: [abs(1), x][1])(1.0)
        assert sys.getprofile() is None
        monkeypatch.undo()
        assert jax.jit(lambda x: x * 2)(1.0) == 2.0


def test_a_profiler_at_work_is_left_alone_and_changes_are_still_found():
    calls = []

    def f(x):
        calls.append(1)
        return x
    profiler = cProfile.Profile()
    with config.debug_purity(True), pytest.raises(errors.ImpureFunctionError, match="`calls`"):
        profiler.runcall(jax.jit(f), 1.0)
    assert any("test_purity" in str(entry.code) for entry in profiler.getstats())


def test_a_debugger_sees_the_lines_of_the_traced_function():
    lines = []

    def f(x):
        y = x * 2
        return y

    def trace(frame, event, arg):
        if frame.f_code is f.__code__ and event == "line":
            lines.append(frame.f_lineno - f.__code__.co_firstlineno)
        return trace
    before = sys.gettrace()
    try:
        sys.settrace(trace)
        with config.debug_purity(True):
            jax.jit(f)(1.0)
    finally:
        sys.settrace(before)
    assert lines[:2] == [1, 2]


def test_what_another_thread_prints_is_its_own_matter(capsys):
    ready, done = threading.Event(), threading.Event()

    def talk():
        ready.wait()
        print("from another thread")
        done.set()
    talker = threading.Thread(target=talk)
    talker.start()

    @jax.jit
    def f(x):
        ready.set()
        done.wait()
        return x
    with config.debug_purity(True):
        assert f(1.0) == 1.0
    talker.join()


def test_nothing_that_a_function_captured_is_kept_alive():
    import gc
    import weakref

    class Big:
        rate = 1.0
    big = Big()
    f = jax.jit(lambda x, big=big: x * 2)
    with config.debug_purity(True):
        f(1.0), f(1.0)
    alive = weakref.ref(big)
    del f, big
    gc.collect()
    assert alive() is None


def test_with_the_check_off_the_hook_is_not_set():
    def f(x):
        assert sys.getprofile() is None
        return x
    jax.jit(f)(1.0)


def test_with_the_check_a_program_computes_the_same():
    def f(x):
        return lax.fori_loop(0, 5, lambda i, c: jnp.sin(c) + i, x)
    plain, program = jax.jit(f)(0.5), str(jax.make_jaxpr(f)(0.5))
    with config.debug_purity(True):
        assert jax.jit(f)(0.5) == plain and str(jax.make_jaxpr(f)(0.5)) == program
