"""What libraries take of JAX's insides does what it does there, in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path


def run(program):
    """What a program prints, its warnings left out."""
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent.parent)})
    assert process.returncode == 0, process.stderr
    return process.stdout


def internals(root):
    """What programs get of the names that libraries ask for, as text."""
    return run(f"""
import os, sys
os.environ.update(JAX_PLATFORMS="cpu", JAX_THREEFRY_PARTITIONABLE="0")
if "{root}" == "minijax":
    import minijax.as_jax
import dataclasses, inspect, pickle
import numpy as np
import jax, jax.core, jax.numpy as jnp, jax.interpreters.pxla as pxla
from jax._src import api, core, pjit
from jax._src.api_util import infer_argnums_and_argnames as infer
from jax._src.lax import lax
from jax._src.literals import TypedInt
from jax._src.public_test_util import check_close
from jax.interpreters import batching, xla
from jax.sharding import Mesh

signature = inspect.signature(lambda a, b, /, c, d=1, *rest, e, **more: 0)
for argnums, argnames in [(None, None), (2, None), ((3, 0), None), (None, "c"), (None, ("d", "e")),
                          ([1], "a")]:
    print(infer(signature, argnums, argnames))
number = pickle.loads(pickle.dumps(TypedInt(3, np.dtype("int32"))))
print(repr(number), number + 1, jnp.ones(2, "int8") + number)
check_close(dict(x=np.float32(1)), dict(x=np.float32(1 + 5e-7)))
for x, y in [(1.0, 1.1), (np.ones(2), np.ones(3)), (1, 2)]:
    try:
        check_close(x, y)
        print("close")
    except AssertionError:
        print("not close")
print(core.trace_state_clean(), jax.jit(lambda x: x * core.trace_state_clean())(1))
print(core.TraceTag() == core.TraceTag(), len({{core.TraceTag(), core.TraceTag()}}))
print(pjit.pjit(lambda x, n: x * n, static_argnums=1)(2.0, 3))
print(api.jit(api.vmap(api.grad(lambda x: lax.mul(x, x))))(jnp.arange(2.0)), lax.add(1, 2))
print(jax.make_jaxpr(pjit.pjit(jnp.sin))(1.0).eqns[0].primitive is pjit.jit_p)
print(jax.core.ShapedArray((2,), "int32").at_least_vspace().dtype,
      jax.core.ShapedArray((2,), "float32").at_least_vspace().shape)
print(pxla.thread_resources.env.physical_mesh.empty)
with Mesh(np.array(jax.devices()), ("x",)):
    print(pxla.thread_resources.env.physical_mesh.axis_names)
print(jax.core.concrete_or_error(int, np.float32(2.5)), jax.core.valid_jaxtype("text"))

class Variable:
    shape, dtype = (2,), np.dtype("float32")
    def __init__(self, value):
        self.value = value

jax.core.pytype_aval_mappings[Variable] = lambda v: jax.core.ShapedArray((2,), "float32")
xla.canonicalize_dtype_handlers[Variable] = lambda v: np.asarray(v.value, "float32")
v, double = Variable([1, 2]), jax.jit(lambda v: v * 2)
print(double(v), double(v), jax.vmap(lambda v: v + 1)(v), jax.lax.neg(v), jnp.square(v))
print(jax.grad(lambda v: (v * 2).sum())(v), jax.lax.scan(lambda c, x: (c, c), v, None, 2)[1])

@dataclasses.dataclass
class Data:
    x: object
    shared: object

def to_elt(cont, get_index, data, axis):
    return Data(cont(data.x, axis), data.shared)

def from_elt(cont, size, data, axis):
    return Data(cont(size, data.x, axis), 7)

jax.tree_util.register_dataclass(Data, ["x", "shared"], [])
batching.register_vmappable(Data, int, int, to_elt, from_elt, None)
def f(d, y):
    assert jnp.shape(d.x) in ((2,), (3,)) and jnp.shape(d.shared) == (2,)
    return Data(d.x * y, d.shared), y + 1
d = Data(jnp.arange(6.).reshape(2, 3), jnp.ones(2))
print(jax.vmap(f)(d, jnp.arange(2.)))
print(jax.jit(jax.vmap(f, in_axes=(1, 0), out_axes=(1, 0)))(d, jnp.arange(3.)))
print(jax.grad(lambda x: jax.vmap(f)(Data(x, d.shared), jnp.arange(2.))[0].x.sum())(d.x))
print(jax.vmap(lambda x: x + 1)(d.x))

print(*map(jax.core.is_constant_dim, [3, np.int32(3), 3.5, jnp.int32(3), None]))
jax.jit(lambda x: print(jax.core.is_constant_dim(x)))(3)
from jax.extend import linear_util as lu
listed = lu.wrap_init(lambda *xs: xs, debug_info=jax.api_util.debug_info("f", max, (1,), dict()))
for places, args in [((2, 0), (1, 2, 3)), (-1, (1, 2, 3)), (-1, (1, [2], 3))]:
    for are_hashed in (True, False):
        try:
            some, rest = jax.api_util.argnums_partial(listed, places, args, are_hashed)
            print(rest, some.call_wrapped(*map(float, rest)))
        except ValueError as error:
            print(str(error).partition(",")[0].partition(". ")[0])
from jax.extend.core.primitives import call_p
from jax._src.tree_util import broadcast_flattened_prefix_with_treedef as broadcast
args, tree = jax.tree.flatten(((2.0, dict(a=3.0)),))
def product(x):
    return dict(b=x[0] * x[1]["a"])
wrapped = lu.wrap_init(product, debug_info=jax.api_util.debug_info("f", product, args, dict()))
flat, out_tree = jax.api_util.flatten_fun_nokwargs(wrapped, tree)
def call(*args):
    return call_p.bind(*args, subfuns=(flat,))
print(jax.jvp(lambda x: call(x, 3.0), (2.0,), (1.0,)), out_tree())
print(broadcast([1, 2], jax.tree.structure((0, 0)), jax.tree.structure(([0, 0], dict(a=0)))))
derivative = jax.linearize(lambda x: jnp.sin(x) * x, 3.0)[1]
print(sorted(eqn.primitive.name for eqn in derivative.func.args[0].eqns))

class CountTracer(core.Tracer):
    __slots__ = ("value", "count")
    def __init__(self, trace, value, count):
        self._trace, self.value, self.count = trace, value, count
    @property
    def aval(self):
        return jax.typeof(self.value)

class CountTrace(core.Trace):
    __slots__ = ("tag", "parent_trace")
    def __init__(self, parent_trace, tag):
        self.parent_trace, self.tag = parent_trace, tag
        super().__init__()
    def counted(self, x):
        is_own = isinstance(x, CountTracer) and x._trace.tag is self.tag
        return (x.value, x.count) if is_own else (x, 0)
    def process_primitive(self, primitive, tracers, params):
        values, counts = zip(*map(self.counted, tracers))
        with core.set_current_trace(self.parent_trace):
            out = primitive.bind(*values, **params)
        return CountTracer(self, out, sum(counts) + (primitive.name == "mul"))
    def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
        values, counts = zip(*map(self.counted, tracers))
        outs = primitive.bind_with_trace(
            self.parent_trace, values, tuple(map(jax.typeof, values)),
            dict(subfuns=(fun, jvp), symbolic_zeros=symbolic_zeros))
        return [CountTracer(self, x, sum(counts) + 10) for x in outs]

def count(f, x):
    with core.take_current_trace() as parent:
        trace = CountTrace(parent, core.TraceTag())
        with core.set_current_trace(trace):
            out = trace.full_raise(f(CountTracer(trace, x, 0)))
        return out.value, out.count

triple = jax.custom_jvp(lambda x, y: x * 3)
triple.defjvp(lambda primals, tangents: (triple(*primals), tangents[0] * 7 + tangents[1]))
def f(x):
    y = jax.lax.mul(triple(jax.lax.mul(x, x), jnp.float32(1.0)), x)
    return jax.lax.broadcast_in_dim_p.bind(
        y, shape=(2,), broadcast_dimensions=(), sharding=None)
print(count(f, jnp.float32(2.0)), jax.grad(lambda x: count(f, x)[0][0])(jnp.float32(2.0)))

from jax.experimental import hijax
class Twice(hijax.HiPrimitive):
    def is_high(self, x):
        return True
    def impl(self, x):
        return x * 2
    to_lojax = impl
print(Twice("twice").bind(jnp.ones(2)))
from jax._src import traceback_util
from jax.extend import source_info_util
before = len(traceback_util._exclude_paths)
traceback_util.register_exclusion("layers.py")
source_info_util.register_exclusion("layers.py")
print(len(traceback_util._exclude_paths) - before)
traceback_util._exclude_paths.remove("layers.py")
print("layers.py" in traceback_util._exclude_paths)
print(jax.jit(jax.vmap(lambda x: count(f, x)[0]))(jnp.arange(3.0)), isinstance(1.0, core.Tracer),
      jax.jit(lambda x: x * isinstance(x, core.Tracer))(2.0))
""")


def test_internals_that_libraries_ask_for_do_what_jaxs_do():
    assert internals("minijax") == internals("jax")


def test_arrays_that_jax_pickled():
    program = """
import pickle, sys, numpy as np
if ROOT == "minijax":
    import minijax.as_jax
import jax.numpy as jnp
arrays = jnp.arange(3.0), jnp.asarray(2.0), jnp.ones(2, "bfloat16"), jnp.zeros((2, 0), bool)
"""
    written = run(program.replace("ROOT", "'jax'") + "print(pickle.dumps(arrays))")
    read = run(program.replace("ROOT", "'minijax'") + f"""
for x, y in zip(arrays, pickle.loads({written}), strict=True):
    print(repr(x) == repr(y), type(x) is type(y), x.aval == y.aval)
""")
    assert set(read.split()) == {"True"}
