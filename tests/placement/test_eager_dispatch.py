"""What a call asks of the driver, and how many functions it goes through: no time is measured."""

import collections
import sys

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.compiler.targets import driver
from minijax.placement import devices
from minijax.transforms.jit import JitFunction
from tests.compiler.targets.played import Played

ONE_LAUNCH = {"cuMemAllocAsync": 1, "cuLaunchKernel": 1, "cuMemFreeAsync": 1}
X = np.ones(100, np.float32)


@pytest.fixture
def played(monkeypatch):
    bindings = Played(count=2, room=1 << 24)
    monkeypatch.setattr(driver, "bindings", lambda: bindings)
    monkeypatch.setattr(devices, "processors", {})
    minijax.clear_caches()
    yield bindings
    minijax.clear_caches()


def functions_of(call):
    """The functions of Python that a call goes through, those of the driver left out."""
    entered = []

    def note(frame, event, _):
        if event == "call" and not frame.f_code.co_filename.endswith("played.py"):
            entered.append(frame.f_code.co_name)
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return entered[1:]


def asked_by(call, played):
    before = played.asked.copy()
    call()
    return dict(played.asked - before)


def warm(call):
    for _ in range(3):
        call()
    return call


def by_default():
    minijax.config.update("jax_platforms", "cuda")
    return jnp.asarray(X)


PLACES = {"put on the first": lambda: minijax.device_put(X, minijax.devices("cuda")[0]),
          "put on the second": lambda: minijax.device_put(X, minijax.devices("cuda")[1]),
          "of the platform": by_default}


@pytest.fixture(autouse=True)
def usual_platform():
    before = minijax.config.jax_platforms
    yield
    minijax.config.update("jax_platforms", before)


@pytest.fixture
def two_cpus():
    before = minijax.config.jax_num_cpu_devices
    minijax.config.update("jax_platforms", "cpu")
    minijax.config.update("jax_num_cpu_devices", 2)
    yield minijax.devices("cpu")
    minijax.config.update("jax_num_cpu_devices", before)


@pytest.mark.parametrize("place", PLACES)
def test_a_call_is_one_launch_wherever_its_arguments_lie(played, place):
    f, x = minijax.jit(lambda x: x * 2.5), PLACES[place]()
    call = warm(lambda: f(x))
    assert asked_by(call, played) == ONE_LAUNCH
    entered = functions_of(call)
    assert len(entered) <= 15, entered


@pytest.mark.parametrize("number", [0, 1])
def test_a_call_within_default_device_is_one_launch(played, number):
    device = minijax.devices("cuda")[number]
    f = minijax.jit(lambda x: x * 2.5)
    with minijax.default_device(device):
        x = jnp.asarray(X)
        call = warm(lambda: f(x))
        assert asked_by(call, played) == ONE_LAUNCH
        assert len(functions_of(call)) <= 15
        assert call().device == device


@pytest.mark.parametrize("place", PLACES)
def test_an_operation_is_one_launch_wherever_its_operands_lie(played, place):
    x = PLACES[place]()
    call = warm(lambda: x + x)
    assert asked_by(call, played) == ONE_LAUNCH
    entered = functions_of(call)
    assert len(entered) <= 45, collections.Counter(entered)


def test_a_number_is_copied_and_no_more(played):
    minijax.config.update("jax_platforms", "cuda")
    f = minijax.jit(lambda x: x * 2.5)
    asked = asked_by(warm(lambda: f(2.0)), played)
    assert asked == {"cuMemAllocAsync": 2, "cuMemcpyHtoDAsync": 1, "cuLaunchKernel": 1,
                     "cuMemFreeAsync": 2}


def test_fifty_launches_are_asked_for_once(played):
    def many(x):
        for _ in range(25):
            x = x - x.sum()
        return x
    x = minijax.device_put(np.zeros(1 << 17, np.float32), minijax.devices("cuda")[0])
    f = minijax.jit(many)
    call = warm(lambda: f(x))
    assert asked_by(call, played) == {
        "cuMemAllocAsync": 2, "cuGraphLaunch": 1, "cuMemFreeAsync": 2}
    assert len(functions_of(call)) <= 25


def test_a_call_on_another_cpu_device_takes_the_short_way(monkeypatch, two_cpus):
    f = minijax.jit(lambda x, y: {"sum": x + y, "x": x})
    first, other = (minijax.device_put(X, device) for device in two_cpus)
    number, plain = 2.0, jnp.asarray(X)
    usual, calls = warm(lambda: f(first, plain)), {}
    for name, args in {"both": (other, other), "one": (plain, other), "a number": (other, number),
                       "a literal": (other, jnp.float32(2))}.items():
        calls[name] = warm(lambda args=args: f(*args))
    before = {name: call() for name, call in calls.items()}

    def long_way(*_):
        raise AssertionError("the call was not dispatched at once")
    monkeypatch.setattr(JitFunction, "_call_here", long_way)
    for name, call in [*calls.items()] * 2:
        out = call()
        assert out["sum"].devices() == before[name]["sum"].devices() == {two_cpus[1]}, name
        assert (type(out["x"]), out["x"].sharding) == (
            type(before[name]["x"]), before[name]["x"].sharding), name
        np.testing.assert_array_equal(out["sum"], before[name]["sum"])
    assert usual()["sum"].devices() == {two_cpus[0]}
    warm(calls["both"])
    assert len(functions_of(calls["both"])) <= len(functions_of(warm(usual))) + 9


def test_a_sharded_call_takes_the_short_way(monkeypatch, two_cpus):
    mesh = minijax.make_mesh((2,), ("rows",))
    where = minijax.sharding.NamedSharding(mesh, minijax.P("rows"))
    replicated = minijax.sharding.NamedSharding(mesh, minijax.P())
    f = minijax.jit(lambda x: (x * 2, x.sum(0)))
    x, y = (minijax.device_put(np.ones((4, 3), np.float32), each) for each in (where, replicated))
    before = [[out.sharding for out in f(each)] for each in (x, y, x, y)]
    monkeypatch.setattr(JitFunction, "_call_here", None)
    assert [[out.sharding for out in f(each)] for each in (x, y, x, y)] == before
    assert before[0][0].spec[0] == "rows" and before[1][0].is_fully_replicated
