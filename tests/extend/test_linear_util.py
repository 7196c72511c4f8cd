"""Functions with transformations around them, beside JAX."""

import importlib

import jax
import pytest

import minijax

BOTH = [minijax, jax]


def extend(lib, name):
    return importlib.import_module(f"{lib.__name__}.extend.{name}")


def outcome(f):
    try:
        return f()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def test_functions_with_transformations_around_them():
    def told(lib):
        lu = extend(lib, "linear_util")
        info = lib.extend.core.DebugInfo("f", "f at here:1", None, None)

        @lu.transformation
        def negated(*args):
            result = yield [-x for x in args], {}
            yield -result

        @lu.transformation_with_aux
        def counted(*args):
            result = yield args, {}
            yield result, len(args)

        @lu.transformation2
        def scaled(f, factor, *args):
            return factor * f(*args)
        f = lu.wrap_init(lambda x, y, z=0: x - 2 * y + z, {"z": 5}, debug_info=info)
        g, count = counted(scaled(negated(f), 10))
        yield lu.merge_linear_aux(lambda: 1, count)
        yield outcome(count)
        yield f.call_wrapped(1, 2), g.call_wrapped(1, 2), count()
        yield outcome(lambda: g.call_wrapped(1, 2))
        yield f == lu.wrap_init(f.f, {"z": 5}, debug_info=info), len({f, g}), len(g.transforms)
        yield [outcome(lambda a=a, b=b: lu.merge_linear_aux(a, b))
               for a, b in [(count, count), (count, counted(f)[1])]]
        calls = []
        once = lu.cache(lambda fun, x: calls.append(x) or fun.call_wrapped(x, x))
        for _ in range(2):
            h, tells = counted(f)
            yield once(h, 3), tells(), len(calls)
        eq = lu.transformation_with_aux2(lambda f, store, x: store.store(x) or f(x, x),
                                         use_eq_store=True)
        h, tells = eq(f)() if callable(eq(f)) else eq(f)
        yield h.call_wrapped(1), h.call_wrapped(1), tells(), outcome(lambda: h.call_wrapped(2))
        yield str(lu.wrap_init(len, debug_info=info)).splitlines()
    for mine, theirs in zip(told(minijax), told(jax), strict=True):
        assert mine == theirs


def test_a_function_that_is_wrapped_without_saying_for_whom_warns():
    for lib in BOTH:
        with pytest.warns(DeprecationWarning, match="missing a DebugInfo object"):
            extend(lib, "linear_util").wrap_init(abs)
