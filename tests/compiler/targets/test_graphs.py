"""What a program asks of the driver for its launches: one by one, or many as a CUDA graph."""

import gc
import threading

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.compiler.loops import For, Launch
from minijax.compiler.targets import driver, graphs, programs, ptx
from minijax.compiler.targets.programs import Memory
from tests.compiler.targets.played import Played

WIDE = np.zeros(1 << 17, np.float32)  # each loop over it is a launch


def many(x):
    for _ in range(25):
        x = x - x.sum()
    return x


def one_by_one(x):
    return jnp.cumsum(jnp.sort(x)) + x.sum()


def in_a_loop(x):
    return lax.scan(lambda carry, y: (jnp.sin(carry) * y, None), x, jnp.arange(3.0))[0]


@pytest.fixture
def played(monkeypatch):
    bindings = Played(room=1 << 24)
    monkeypatch.setattr(driver, "bindings", lambda: bindings)
    return bindings


def program(f, *args):
    return programs.Program(minijax.jit(f).lower(*args)._lowered.launches, driver.Gpu())


def test_a_program_passes_each_launch_what_it_asks_for(played):
    made = program(one_by_one, WIDE[:100])
    x = Memory.of(made.device, np.ones(100, np.float32))
    [out] = made(x)
    launches = ptx.launches_of(made.kernel.body)
    asked = [ptx.parameters(made.kernel, each) for each in launches]
    assert len(played.launched) == len(asked)
    for (_, blocks, threads, values), launch, (buffers, temps, numbers) in zip(
            played.launched, launches, asked, strict=True):
        assert (blocks, threads) == (launch.blocks, launch.threads)
        assert len(values) == len(buffers) + temps + len(numbers)
        places = {made.kernel.inputs[0]: x.address, made.kernel.outputs[0]: out.address}
        for buffer, value in zip(buffers, values, strict=False):
            assert places.get(buffer, value) == value
    assert any(out.address in values for *_, values in played.launched)
    del out, x
    assert not played.memory.keys() - {each.address for each in made.constants}


def test_a_loop_of_a_known_length_is_unrolled(played, monkeypatch):
    made = program(in_a_loop, WIDE)
    assert any(isinstance(each, For) for each in made.kernel.body)
    x = Memory.of(made.device, WIDE)
    passed = {f"launch_{k}": ptx.parameters(made.kernel, launch)
              for k, launch in enumerate(ptx.launches_of(made.kernel.body))}
    [out] = made(x)
    indices = [values[len(passed[name][0])] for name, _, _, values in played.launched
               if passed[name][2]]
    assert indices == [0, 1, 2]
    assert (played.asked["cuGraphLaunch"], played.asked["cuLaunchKernel"]) == (1, 0)
    as_a_graph, where = played.launched.copy(), out.address
    for name, value in (("FEW", 1000), ("MOST", 2)):  # one by one, in order; by the host's loop
        monkeypatch.setattr(graphs, name, value)
        alone = programs.Program(made.kernel, made.device)
        played.launched.clear()
        del out
        [out] = alone(x)
        assert out.address == where and played.launched == as_a_graph
        assert alone.idle[0].is_straight == (name == "FEW")
    assert played.asked["cuGraphLaunch"] == 1


def test_many_launches_are_one_graph_whose_addresses_are_changed(played, monkeypatch):
    made = program(many, WIDE)
    assert len(made.kernel.body) > 20 and all(isinstance(x, Launch) for x in made.kernel.body)
    first, second = Memory.of(made.device, WIDE), Memory.of(made.device, WIDE)

    def asked(x):
        before = played.asked.copy()
        made(x)
        names = ("cuGraphLaunch", "cuGraphAddKernelNode", "cuGraphExecKernelNodeSetParams",
                 "cuGraphInstantiate", "cuLaunchKernel", "cuCtxSetCurrent")
        return [played.asked[name] - before[name] for name in names]
    count = len(made.kernel.body)
    reading = sum(made.kernel.inputs[0] in ptx.parameters(made.kernel, launch)[0]
                  for launch in made.kernel.body)
    assert 0 < reading < count
    assert asked(first) == [1, count, 0, 1, 0, 1]
    assert asked(first) == [1, 0, 0, 0, 0, 0]
    assert asked(second) == [1, 0, reading, 0, 0, 0]
    played.launched.clear()
    [out] = made(first)
    as_a_graph, held = played.launched.copy(), out.address
    del out
    monkeypatch.setattr(graphs, "FEW", 1000)
    alone = programs.Program(made.kernel, made.device)
    alone.constants = made.constants  # where the blocks of a launch are counted
    played.launched.clear()
    [out] = alone(first)
    assert out.address == held  # and the workspace is where it was, too
    assert played.launched == as_a_graph


def test_a_call_within_a_call_has_a_graph_of_its_own(played):
    made = program(many, WIDE)
    x = Memory.of(made.device, WIDE)
    launch, calls = played.cuGraphLaunch, []

    def twice(*args):
        if not calls:
            calls.append(None)
            made(x)
        calls.append(args[0])
        return launch(*args)
    played.cuGraphLaunch = twice
    made(x)
    made(x)
    assert len(played.graphs) == 2 == len(set(calls[1:])) and len(made.idle) == 2


def test_a_graph_that_was_half_changed_is_not_used_again(played):
    made = program(many, WIDE)
    x, y = Memory.of(made.device, WIDE), Memory.of(made.device, WIDE)
    made(x)
    [graph] = made.idle
    graph.changes[:] = [lambda: (700,)] * len(graph.changes)
    with pytest.raises(RuntimeError, match="INTERNAL: CUDA"):
        made(y)
    del graph
    gc.collect()
    assert made.idle == [] and played.asked["cuGraphExecDestroy"] == 1
    made(y)
    assert len(made.idle) == 1


def test_a_graph_goes_with_its_program(played):
    made = program(many, WIDE)
    made(Memory.of(made.device, WIDE))
    before = played.asked["cuStreamSynchronize"]
    del made
    gc.collect()
    assert not played.graphs and played.asked["cuGraphDestroy"] == 1
    assert played.asked["cuStreamSynchronize"] == before + 1  # its last launch was awaited


@pytest.mark.parametrize("f", [one_by_one, in_a_loop, many])
def test_gpus_take_turns_in_a_thread(played, f):
    played.count = 2
    made = [programs.Program(minijax.jit(f).lower(WIDE)._lowered.launches, driver.Gpu(k))
            for k in range(2)]
    xs = [Memory.of(each.device, WIDE) for each in made]
    counts = []
    for _ in range(3):
        for each, x in zip(made, xs, strict=True):
            entered = played.asked["cuCtxSetCurrent"]
            each(x)
            counts.append(played.asked["cuCtxSetCurrent"] - entered)
    assert counts[-4:] == [1, 1, 1, 1]


@pytest.mark.parametrize("f", [one_by_one, in_a_loop, many])
def test_a_thread_without_a_gpu_enters_it_once(played, f):
    made = program(f, WIDE)
    x = Memory.of(made.device, WIDE)
    made(x)
    before, launched = played.asked["cuCtxSetCurrent"], len(played.launched)
    thread = threading.Thread(target=lambda: (made(x), made(x)))
    thread.start()
    thread.join()
    assert len(played.launched) == 3 * launched
    assert played.asked["cuCtxSetCurrent"] == before + 1
