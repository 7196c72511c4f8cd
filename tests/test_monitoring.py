"""Who listens to events is told what JAX tells."""

import jax
import jax.monitoring
import numpy as np
import pytest

import minijax
import minijax.monitoring


def events(lib):
    """What listeners of each kind are told, before they are forgotten and after."""
    told, m = [], lib.monitoring

    def listener(*facts, **details):
        told.append((facts, details))
    kinds = ["event", "event_duration_secs", "event_time_span", "scalar"]
    for kind in kinds:
        getattr(m, f"register_{kind}_listener")(listener)
    for forget in [m.clear_event_listeners, lambda: m.unregister_scalar_listener(listener),
                   lambda: None]:
        m.record_event("/a", where="here")
        m.record_event_duration_secs("/b", 0.5, n=1)
        m.record_event_time_span("/c", 1.0, 2.0)
        m.record_scalar("/d", 3)
        forget()
    for kind in ["event", "event_duration", "event_time_span", "scalar"]:
        with pytest.raises(AssertionError):
            getattr(m, f"unregister_{kind}_listener")(listener)
    return told


def test_listeners_are_told_of_events():
    assert events(minijax) == events(jax) and len(events(minijax)) == 5


def compiled(lib):
    told = []

    def listener(event, duration, **details):
        if details.get("fun_name") in ("counted", "jit(counted)"):
            told.append((event, details, duration >= 0))
    lib.monitoring.register_event_duration_secs_listener(listener)

    @lib.jit
    def counted(x):
        return x * 2 + 1
    for x in (np.ones(3, np.float32), np.zeros(3, np.float32), np.ones(4, np.int32)):
        counted(x)
    lib.monitoring.unregister_event_duration_listener(listener)
    return [entry for entry in told if "jaxpr_to_mlir_module" not in entry[0]]


def test_listeners_are_told_of_tracing_and_compilation():
    assert compiled(minijax) == compiled(jax) and len(compiled(minijax)) == 4
