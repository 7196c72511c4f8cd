"""Profiles have what was traced, compiled and run, and the blocks that users name."""

import gzip
import inspect
import json

import jax
import pytest

import minijax
from minijax import config, profiler

jnp = minijax.numpy


def events_of(folder, name="*.trace.json.gz"):
    [file] = folder.glob(f"plugins/profile/*/{name}")
    return json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]


def test_a_profile_of_a_step(tmp_path):
    @minijax.jit
    def step(x):
        return jnp.sin(x) * 2
    x = jnp.arange(3.)
    with profiler.trace(tmp_path, create_perfetto_trace=True):
        with profiler.StepTraceAnnotation("train", step_num=3):
            first, second = step(x), step(x)
        jnp.cos(x)
        profiler.annotate_function(lambda: None, name="nothing", size=2)()
    step(x)
    assert (first == second).all() and not config.profiling.value
    events = events_of(tmp_path)
    assert events_of(tmp_path, "perfetto_trace.json.gz") == events
    names = [event["name"] for event in events]
    assert names.count("step") == 2 and "cos" in names
    assert "tracing step for jit" in names and "XLA compilation of jit(step)" in names
    [train], [nothing] = ([e for e in events if e["name"] == name] for name in ("train", "nothing"))
    assert train["args"] == {"step_num": "3"} and nothing["args"] == {"size": "2"}
    for event in events:
        assert event["ph"] == "X" and event["dur"] >= 0
        if event["name"] == "step":
            assert event["args"] == {"operands": "f32[3]"}
            assert train["ts"] <= event["ts"] <= event["ts"] + event["dur"] <= (
                train["ts"] + train["dur"])


def test_a_profile_is_written_whatever_happens_in_it(tmp_path):
    with (pytest.raises(ZeroDivisionError), profiler.trace(tmp_path),
          profiler.TraceAnnotation("here")):
        raise ZeroDivisionError
    assert "here" in [event["name"] for event in events_of(tmp_path)]


def test_one_at_a_time(tmp_path):
    for top in (minijax, jax):
        with pytest.raises(RuntimeError, match="No profile started"):
            top.profiler.stop_trace()
    with (profiler.trace(tmp_path),
          pytest.raises(RuntimeError, match="Profile has already been started")):
        profiler.start_trace(tmp_path)
    with pytest.raises(NotImplementedError, match=r"ui\.perfetto\.dev"):
        profiler.start_trace(tmp_path, create_perfetto_link=True)


def test_options_name_the_folder_and_turn_events_off(tmp_path):
    for level in (0, 2):
        options = profiler.ProfileOptions()
        assert vars(options).keys() == {x for x in dir(jax.profiler.ProfileOptions())
                                        if x[0] != "_"}
        options.session_id, options.host_tracer_level = f"level{level}", level
        with profiler.trace(tmp_path, profiler_options=options), profiler.TraceAnnotation("mine"):
            pass
        [file] = (tmp_path / "plugins/profile" / f"level{level}").iterdir()
        assert ("mine" in gzip.decompress(file.read_bytes()).decode()) == bool(level)


def test_the_profile_of_memory_counts_the_arrays_that_are_alive(tmp_path):
    held = [minijax.numpy.full((123, 45), float(k)) for k in range(3)]
    profiler.save_device_memory_profile(tmp_path / "memory")
    message = gzip.decompress((tmp_path / "memory").read_bytes())
    assert b"float32[123,45]" in message and b"cpu:0" in message
    place, count = 2 << 3, len(held)  # of a sample's values: how many, and how many bytes
    assert bytes([place, count, place]) in message


def test_without_a_profile_nothing_is_kept():
    with profiler.TraceAnnotation("nobody looks"):
        pass
    assert not profiler._running


def test_parameters_are_those_of_jax():
    for name in ("start_trace", "stop_trace", "trace", "annotate_function"):
        ours, theirs = (inspect.signature(getattr(top.profiler, name)).parameters.values()
                        for top in (minijax, jax))
        assert [(p.name, p.kind, p.default) for p in ours] == [
            (p.name, p.kind, p.default) for p in theirs]
