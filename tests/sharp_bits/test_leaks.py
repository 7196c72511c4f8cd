"""Leaked tracers: each transformation finds its own, and says who holds them."""

import gc
import re
import sys
import types

import jax as real_jax
import jax.numpy as real_jnp
import numpy as np
import pytest

import minijax as jax
from minijax import config, errors, lax, numpy as jnp

pytestmark = pytest.mark.usefixtures("few_objects")

kept: list = []


@pytest.fixture(autouse=True, scope="module")
def frozen_again():
    """The search for who holds a tracer thaws what the suite has frozen for speed."""
    was_frozen = gc.get_freeze_count() > 0
    yield
    if was_frozen:
        gc.collect()
        gc.freeze()


@pytest.fixture(autouse=True)
def nothing_kept():
    kept.clear()
    yield
    kept.clear()


def spill(x):
    y = x + 1.0  # made here
    kept.append(y)
    return y


MADE = spill.__code__.co_firstlineno + 1


@jax.custom_jvp
def with_rule(x):
    return x * 2.0


@with_rule.defjvp
def spilling_rule(primals, tangents):
    return with_rule(*primals), spill(tangents[0])


@jax.custom_vjp
def with_backward(x):
    return x * 2.0


with_backward.defvjp(lambda x: (x * 2.0, x), lambda x, ct: (spill(ct),))

TRANSFORMS = {
    "jit": lambda f: jax.jit(f)(1.0),
    "jit inside jit": lambda f: jax.jit(lambda x: jax.jit(f)(x) * 2)(1.0),
    "grad": lambda f: jax.grad(f)(1.0),
    "jvp": lambda f: jax.jvp(f, (1.0,), (1.0,)),
    "vjp": lambda f: jax.vjp(f, 1.0),
    "linearize": lambda f: jax.linearize(f, 1.0),
    "jacfwd": lambda f: jax.jacfwd(f)(jnp.ones(2)),
    "vmap": lambda f: jax.vmap(f)(jnp.arange(3.0)),
    "jit of grad": lambda f: jax.jit(jax.grad(f))(1.0),
    "scan": lambda f: lax.scan(lambda c, _: (f(c), None), 1.0, None, length=3),
    "fori_loop": lambda f: lax.fori_loop(0, 3, lambda n, c: f(c), 1.0),
    "while_loop": lambda f: lax.while_loop(lambda c: c < 9.0, f, 1.0),
    "a loop's condition": lambda f: lax.while_loop(lambda c: f(c) < 9.0, lambda c: c + 1, 1.0),
    "cond": lambda f: lax.cond(True, f, lambda v: v, 1.0),
    "switch": lambda f: lax.switch(1, [lambda v: v, f], 1.0),
    "map": lambda f: lax.map(f, jnp.arange(3.0)),
    "pmap": lambda f: jax.pmap(f)(jnp.ones(1)),
    "vectorize": lambda f: jnp.vectorize(f)(jnp.arange(3.0)),
    "linear_transpose": lambda f: jax.linear_transpose(f, 1.0)(1.0),
    "checkpoint": lambda f: jax.checkpoint(f)(1.0),
    "make_jaxpr": lambda f: jax.make_jaxpr(f)(1.0),
    "eval_shape": lambda f: jax.eval_shape(f, 1.0),
    "a rule of custom_jvp": lambda _: jax.jit(jax.grad(with_rule))(1.0),
    "a rule of custom_vjp": lambda _: jax.jit(jax.grad(with_backward))(1.0),
}


def leaked(run):
    """The error of a call that leaks; it is raised as the transformed function returns."""
    with pytest.raises(errors.TracerLeakError, match="^Leaked trace") as caught, \
            jax.checking_leaks():
        run()
    return caught.value


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_leak_is_found_as_the_function_returns(name):
    error = leaked(lambda: TRANSFORMS[name](spill))
    assert len(kept) >= 1
    text = str(error)
    assert f"made at: test_leaks.py:{MADE} (spill): y = x + 1.0" in text
    assert "held by: item 0 of a list <- `kept`, a global of the module" in text
    assert (error.finding.kind, error.finding.line) == ("check_tracer_leaks", MADE)
    assert error.finding.fix


@pytest.mark.parametrize("name", TRANSFORMS)
def test_without_the_check_the_same_call_succeeds(name):
    TRANSFORMS[name](spill)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_function_that_returns_its_values_is_left_alone(name):
    with jax.checking_leaks():
        if "rule" not in name:
            TRANSFORMS[name](lambda x: [x, x + 1.0][1])


# ── Who holds it ─────────────────────────────────────────────────────────────────────────────

class Model:
    shared: dict = {}

    def keep(self, x):
        self.history = {"y": [x * 2.0]}
        return x


model = Model()
last = None


def assigns_a_global(x):
    global last
    last = x * 2.0
    return x


def keeps_in_a_default(x, seen=[]):  # noqa: B006
    seen.append(x)
    return x


def keeps_in_a_class(x):
    Model.shared["y"] = x
    return x


def keeps_a_generator(x):
    def halves(y):
        while True:
            y = y / 2.0
            yield y
    steps = halves(x)
    kept.append(steps)
    return next(steps)


def keeps_an_exception(x):
    try:
        raise ValueError("not today")
    except ValueError as error:
        kept.append(error)
    return x


def keeps_a_function(x):
    kept.append(lambda: x)
    return x


def keeps_in_an_array_of_objects(x):
    table = np.empty(1, object)
    table[0] = x * 2.0
    kept.append(table)
    return x


@pytest.mark.parametrize(("fun", "words"), [
    (model.keep, "item 0 of a list <- entry 'y' of a dict <- attribute `history` of a Model <- "
                 "`model`, a global of the module"),
    (assigns_a_global, "`last`, a global of the module"),
    (keeps_in_a_default, "item 0 of a list <- the default of the argument `seen` of "
                         "keeps_in_a_default() at test_leaks.py:"),
    (keeps_in_a_class, "entry 'y' of a dict <- attribute `shared` of the class Model <- "
                       "`Model`, a global of the module"),
    (keeps_a_generator, "`y`, a variable of the suspended generator halves() at test_leaks.py:"),
    (keeps_an_exception, "`x`, a variable of keeps_an_exception() at test_leaks.py:"),
    (keeps_an_exception, " <- a traceback <- a ValueError <- item 0 of a list <- `kept`"),
    (keeps_a_function, "`x`, which <lambda>() at test_leaks.py:"),
    (keeps_in_an_array_of_objects, "something that Python's garbage collector does not look into"),
])
def test_the_chain_of_references_is_told(fun, words):
    try:
        assert words in str(leaked(lambda: jax.jit(lambda x: fun(x))(1.0)))
    finally:
        Model.shared.clear()
        vars(model).clear()
        keeps_in_a_default.__defaults__[0].clear()
        globals()["last"] = None


def test_a_variable_of_a_running_function_is_named():
    box = {}

    def fill(x):
        box["x"] = x
        return x
    assert "entry 'x' of a dict <- `box`, a variable of " in str(leaked(lambda: jax.jit(fill)(1.)))


def test_a_module_loaded_by_name_is_named():
    module = types.ModuleType("settings_of_a_test")
    sys.modules[module.__name__] = module
    module.__builtins__ = {}

    def fill(x):
        sys.modules["settings_of_a_test"].found = x
        return x
    try:
        text = str(leaked(lambda: jax.jit(fill)(1.0)))
    finally:
        del sys.modules[module.__name__]
    assert "`found`, a global of the module `settings_of_a_test`" in text


def test_a_list_that_the_collector_was_told_to_leave_alone_is_found():
    gc.freeze()
    assert "`kept`, a global of the module" in str(leaked(lambda: jax.jit(spill)(1.0)))


def test_of_tracers_inside_tracers_the_outermost_is_shown():
    error = leaked(lambda: jax.jit(jax.grad(spill))(1.0))
    assert str(error).count("held by:") == 1 and "JVPTracer" in str(error)


def test_many_leaks_are_shown_in_part():
    def fill(x):
        kept.extend(x + n for n in range(30))
        return x
    text = str(leaked(lambda: jax.jit(fill)(1.0)))
    assert text.count("held by:") == 10 and "… and 20 more" in text


# ── What is no leak ──────────────────────────────────────────────────────────────────────────

def closes_over_itself(x):
    def power(n):
        return x if n == 0 else power(n - 1) * x
    return power(3)


def catches_an_error(x):
    try:
        return x.no_such_attribute
    except AttributeError:
        return x


def has_a_rule_that_closes_over_a_tracer(x):
    @jax.custom_jvp
    def scaled(y):
        return y * x
    scaled.defjvp(lambda p, t: (scaled(*p), t[0] * x))
    return scaled(x)


def hands_a_tracer_to_a_jitted_function(x):
    return jax.jit(lambda y: x * y)(3.0)


def uses_a_generator_to_its_end(x):
    return sum(x * n for n in range(3))


def takes_its_value_back(x):
    kept.append(x)
    return kept.pop()


@pytest.mark.parametrize("fun", [
    closes_over_itself, catches_an_error, has_a_rule_that_closes_over_a_tracer,
    hands_a_tracer_to_a_jitted_function, uses_a_generator_to_its_end, takes_its_value_back,
    lambda x: jax.vjp(lambda y: jnp.sin(y) * x, x)[1](x)[0],
    lambda x: jax.linearize(lambda y: jnp.sin(y) * x, x)[1](x),
    lambda x: jax.value_and_grad(lambda y: (y * x, {"aux": y}), has_aux=True)(x)[0][1]["aux"],
    lambda x: jax.vjp(lambda y: (y * x, [y]), x, has_aux=True)[2][0],
    lambda x: jax.jvp(lambda y: (y * x, y), (x,), (x,), has_aux=True)[2],
    lambda x: jax.hessian(lambda y: (y * y) * x)(x),
    lambda x: jnp.logaddexp(x, x) + jax.nn.relu(x),
])
def test_a_correct_function_is_not_blamed(fun):
    with jax.checking_leaks():
        jax.jit(fun)(1.0)
        jax.vmap(jax.checkpoint(fun))(jnp.ones(2))


def test_what_a_call_returns_may_be_kept():
    with jax.checking_leaks():
        kept.append(jax.jit(lambda x: x + 1)(1.0))
        kept.append(jax.vjp(jnp.sin, 1.0)[1])
        assert kept[1](1.0)[0] == jnp.cos(1.0)


# ── Flag, cache, collecting ──────────────────────────────────────────────────────────────────

def test_a_function_traced_before_is_traced_anew_while_checking():
    f = jax.jit(spill)
    f(1.0)
    kept.clear()
    leaked(lambda: f(1.0))


def test_a_leak_is_found_at_every_call():
    f = jax.jit(spill)
    for _ in range(2):
        leaked(lambda: f(1.0))
    assert f(1.0) == 2.0


def test_the_flag_has_jaxs_name_and_is_off():
    assert config.jax_check_tracer_leaks is False
    with config.check_tracer_leaks(True):
        assert config.jax_check_tracer_leaks


def test_a_collected_leak_lets_the_program_go_on():
    with jax.checking_sharp_bits(collect=True) as findings:
        assert jax.vmap(spill)(jnp.arange(2.0)).tolist() == [1.0, 2.0]
    assert [found.kind for found in findings] == ["check_tracer_leaks"]
    assert findings[0].line == MADE and "tracer of it is left" in findings[0].message


def test_an_error_in_the_function_is_raised_as_it_is():
    def fail(x):
        kept.append(x)
        raise RuntimeError("stop")
    with jax.checking_leaks(), pytest.raises(RuntimeError, match="stop"):
        jax.jit(fail)(1.0)


# ── The error where a leaked tracer is used ──────────────────────────────────────────────────

def side_effecting(x):
    y = x + 1
    kept.append(y)


def used(library, numpy):
    """The message of the error that using a leaked tracer raises."""
    library.jit(side_effecting)(numpy.ones((2, 3), numpy.float32))
    with pytest.raises(library.errors.UnexpectedTracerError) as caught:
        kept.pop() + 1
    return str(caught.value).splitlines()


def test_the_message_is_jaxs_line_by_line():
    with real_jax.threefry_partitionable(False):
        theirs = used(real_jax, real_jnp)
    ours = used(jax, jnp)
    # JAX lists the frames inside the traced function alone; the page wants its caller, too
    here = __file__
    inside = [line for line in ours if not re.match(rf"{here}|.*/_?pytest/|.*/pluggy/", line)
              or "(side_effecting)" in line]
    assert inside[:-1] == theirs[:-1]
    assert sum("(used)" in line for line in ours) == 1
    assert re.fullmatch(r"See https://\S+#jax.errors.UnexpectedTracerError", ours[-1])


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_as_many_frames_are_shown_as_the_flag_says(limit):
    def inner(x):
        return spill(x)

    def outer(x):
        return (lambda x: inner(x))(x)
    with config.tracer_error_num_traceback_frames(limit):
        jax.jit(outer)(1.0)
        text = str(kept[0]._leak_error())
    assert f"the final {limit} stack frames" in text
    frames = [line for line in text.splitlines() if line.startswith(__file__)]
    assert len(frames) == limit
    assert frames[-1].endswith("(spill)") and (limit == 1 or frames[-2].endswith(".inner)"))
