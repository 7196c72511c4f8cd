"""Meshes, shardings and what lies over them are JAX's, on eight pretended devices each."""

import contextlib
import importlib
import io
import json
import os
import pickle
import subprocess
import sys

import jax
import numpy as np
import pytest

import minijax
from minijax import config, lax

# What is evaluated with both, after the names in `namespace`.
PROGRAMS = """
mesh
str(mesh), auto, auto.shape, mesh.abstract_mesh, mesh.device_ids, mesh.axis_types, auto.local_mesh
jax.make_mesh((2,), ('x',)), AbstractMesh((2,), ('x',)), jax.make_mesh((16,), ('x',))
Mesh(jax.devices(), ('x', 'y'))
P('x', None, ('x', 'y')), P(), P(('x',)), P('x') + P('y'), P('x', unreduced={'y'}), P('x') == P('x')
P('x') == P('x', None), tuple(P('x', None)), len(P('x', 'y')), P('x')[0], P.UNCONSTRAINED
P('x', None).index(None), P('x', 'x').count('x'), P('x').update(partitions=('y',)), P().index('x')
P('x', unreduced={'y'}).update(('z',)), P('x').update(reduced={'y'})
[(m.are_all_axes_auto, m.are_all_axes_explicit, m.are_all_axes_manual) for m in (auto, mesh, bare)]
bare.update((4,)), bare.update(axis_types=mesh.axis_types[:1]), auto.is_scalar, bare.axis_sizes
bare.update_axis_types({'i': mesh.axis_types[0]})
bare.devices
bare.is_multi_process
jax.device_put(X, Format(Layout((0, 1)), S)).sharding, Format(), Format(None, S), Layout((1, 0))
Layout((0, 1)) == Layout((0, 1)), a.format.layout.major_to_minor, one.format.sharding
jax.jit(lambda x: x, in_shardings=Format(Layout((0, 1)), rows))(X).sharding
jax.ShapeDtypeStruct((8, 2), 'float32', sharding=Format(None, S)).sharding
with_layout_constraint(one, Layout((0,))), jax.jit(lambda x, y: x + y, in_shardings=None)(1., y=2.)
create_device_mesh((4, 2)), create_device_mesh((2,), devices=jax.devices()[2:4])
create_device_mesh((3,))
NamedSharding(auto, P('x', 'x'))
NamedSharding(auto, P('z'))
S, S.spec, S.mesh, S.num_devices, S.memory_kind, S.update(spec=P('y')), S.with_memory_kind('device')
S.shard_shape((8, 2)), S.devices_indices_map((8, 2)), S.is_fully_replicated, S.is_fully_addressable
S.shard_shape((9, 2))
S.is_equivalent_to(NamedSharding(auto, P(('x',), 'y')), 2), S.is_equivalent_to(rows, 2)
NamedSharding(auto, P()).is_fully_replicated, SingleDeviceSharding(jax.devices()[1])
one.sharding, one.device, one.devices(), one.committed, one.addressable_shards, one.platform()
one.addressable_data(0), one.on_device_size_in_bytes(), one.is_ready(), one.format, one.clone()
a.sharding, a.device, a.committed, a.is_fully_addressable, a.is_fully_replicated, a.format
a.addressable_shards, a.addressable_data(3), a.global_shards[1].data, e.addressable_shards[1]
[shard.replica_id for shard in e.addressable_shards], a.addressable_shards[0].data.sharding
[jnp.zeros_like(x, dtype=int).sharding for x in (a, e, one)], jnp.ones_like(a, shape=(8,)).sharding
[jnp.ones_like(x, *how).sharding for x in (OF_S, stands) for how in ((), (int,), (int, (8,)))]
jnp.zeros_like(OF_S).dtype, jnp.full_like(OF_S, 2.5), lax.full_like(OF_S, 3).sharding
jax.typeof(e), jax.typeof(e.T * 2), jax.typeof(e.sum(1)), jax.typeof(a), jax.typeof(e).sharding
jax.typeof(jax.jit(jnp.sin)(e)), jax.typeof(e) == jax.typeof(e * 2), jax.typeof(e) == jax.typeof(X)
jax.typeof(jax.device_put(np.ones((8, 2)), NamedSharding(mesh, P(('x', 'y'))))), jax.typeof(e).shape
jax.typeof(lax.conv(e[None], np.ones((1, 2, 1), 'float32'), (1,), 'SAME'))
jax.eval_shape(lambda: jax.reshard(X, NamedSharding(mesh, P('x')))), jax.eval_shape(lambda: X * 2)
jax.reshard(e, NamedSharding(mesh.abstract_mesh, P('y'))).sharding
entered(auto, lambda: [f(X).sharding for f in (jnp.sin, jax.jit(jnp.cos), lambda x: jnp.arange(8))])
entered(auto, lambda: jax.jit(lambda x: lax.with_sharding_constraint(x, P('x')))(X).sharding)
inside(auto, lambda: [f(X).sharding for f in (jnp.sin, jax.jit(jnp.cos), jnp.zeros_like, jnp.sum)])
inside(auto, lambda: (jnp.ones(8).sharding, jnp.arange(4).sharding, (jnp.ones(8) + 1).sharding))
inside(mesh, lambda: (jnp.ones(8).sharding, jnp.arange(4).sharding, (jnp.ones(8) + 1).sharding))
inside(auto, lambda: (jax.random.key(0).sharding, jax.random.normal(jax.random.key(0)).sharding))
inside(auto, lambda: (jnp.sin(a).sharding, a * 2, lax.scan(lambda c, x: (c + x, c), 0., X[:, 0])))
inside(auto, lambda: jax.grad(lambda x: jnp.sum(x * x))(X).sharding), jnp.sin(X).sharding
inside(auto, lambda: (jax.vmap(jnp.sum)(X), float(jnp.ones(()) + 1), jnp.ones(3)[jnp.arange(2)]))
inside(auto, lambda: lax.with_sharding_constraint(jnp.ones(8), OF_AUTO).sharding)
inside(mesh, lambda: jax.reshard(X, OF_MESH).sharding)
inside(mesh, lambda: jax.jit(lambda x: jax.reshard(x, OF_MESH))(X).sharding)
inside(auto, lambda: jax.jit(lambda x: x * 2, out_shardings=OF_AUTO)(X).sharding)
jnp.sin(e).sharding, (jnp.sin(a) + 1).sharding, a.sum().sharding, e.sum(0).sharding
a.sum(1).sharding, a.T.sharding, (a @ a.T).sharding, a[0].sharding, (a + one[0]).sharding
jax.jit(lambda x: x * 2)(a).sharding, jax.jit(lambda x: x * 2)(e).sharding, a @ a.T
jax.jit(lambda x: x * 2, out_shardings=columns)(X).sharding
jax.jit(lambda x: x * 2, in_shardings=columns)(X).sharding
jax.jit(lambda x: x * 2, in_shardings=columns)(a)
jax.jit(lambda x: x * 2, in_shardings=P('x'))(a)
jax.jit(lambda x: x * 2, in_shardings=(S, S))(a)
jax.jit(lambda x: x * 2, in_shardings=3)
jax.jit(lambda x, n: x * n, in_shardings=rows, static_argnums=1)(X, 2).sharding
jax.jit(lambda n, x: x * n, in_shardings=(S,), static_argnames='n')(2, X).sharding
jax.jit(lambda x, n: x * n, in_shardings=(S, None), static_argnums=1)(X, 2)
jax.jit(lambda x: x, in_shardings=rows)(x=X)
jax.jit(lambda x: x, in_shardings=S)(np.ones(8))
jax.jit(lambda x: {'b': x[0]}, out_shardings=S)(X)
jax.jit(lambda x: x * 2, out_shardings=columns).lower(X).compile()(X).sharding
jax.jit(lambda x: x * 2, out_shardings=columns).lower(X).compile().output_shardings
jax.jit(lambda x: x, in_shardings=rows).lower(X).compile().input_shardings
jax.jit(lambda x: (x, {'a': x[0]})).lower(X).compile().output_formats
jax.jit(lambda x, *, y: x + y['a']).lower(X, y={'a': X}).compile().input_formats
lax.scan(lambda c, x: (c + x, c * x), jnp.zeros(2), a)[0].sharding.spec
lax.scan(lambda c, x: (c + x, c * x), jnp.zeros(8), a.T)[1].sharding
[x.sharding for x in jax.jit(lambda x: (x * 2, jnp.zeros(3), 1.))(to_other(one))]
jax.jit(lambda x: lax.scan(lambda c, x: (c, x * 2), 0., x)[1])(jax.device_put(X, rows)).shape
lax.with_sharding_constraint(np.ones(8), S)
jax.jit(lambda x: lax.with_sharding_constraint(x, rows).shape)(np.ones((9, 2)))
jax.jit(lambda x: x, out_shardings=rows)(np.ones(9))
jax.device_put(np.ones(9), rows)
jax.device_put(np.ones(9), S)
jax.device_put(np.ones(8), P('x'))
jax.device_put({'a': X, 'b': X}, {'a': rows, 'b': S})['b'].sharding
jax.device_put(a, jax.devices()[3]).sharding, jax.device_put(X, jax.devices()[3]).device
[jax.device_put(a, jax.memory.Space.Host).sharding, jax.device_put(1., jax.memory.Space.Host)]
jax.jit(lambda x: jax.device_put(x, jax.memory.Space.Host))(a) * 2
jax.device_put(1., jax.devices()[2]) + jax.device_put(2., jax.devices()[1])
jax.jit(lambda a, b: a * b['c'])(jax.device_put(1., jax.devices()[3]), {'c': to_other(a)})
lax.mul(jax.device_put(1., jax.devices()[3]), jax.device_put(jnp.ones(()), S))
jax.reshard(np.ones(8), P('x'))
lax.with_sharding_constraint(X, rows).sharding, jax.reshard(X, NamedSharding(mesh, P('x'))).sharding
lax.with_sharding_constraint(X, P('x'))
jax.jit(lambda x: lax.with_sharding_constraint(x, rows) + 1)(X).sharding
jax.vmap(lambda x: lax.with_sharding_constraint(x, rows) + 1)(np.ones((2, 8))).sharding
jnp.zeros(8, device=rows).sharding, jnp.zeros(8, out_sharding=P('x'))
jax.sharding.get_mesh(), jax.sharding.get_abstract_mesh(), jax.sharding.ManualAxisType()
jax.ShapeDtypeStruct((8, 2), 'float32', sharding=S), jax.ShapeDtypeStruct((8,), 'int32').sharding
jax.ShapeDtypeStruct((8, 2), 'float32', sharding=3)
jax.typeof(one).sharding, jax.ds(1, 2), jnp.arange(5)[jax.ds(1, 3)], jax.ds(2, None)
list(jax.sharding.AxisType), list(jax.memory.Space), isinstance(jax.devices()[0], jax.Device)
jax.make_array_from_callback((8, 2), S, lambda i: X[i]).addressable_data(3)
jax.make_array_from_single_device_arrays((8, 2), S, [s.data for s in a.addressable_shards])
jax.make_array_from_single_device_arrays((8, 2), S, [s.data for s in a.addressable_shards][:3])
jax.make_array_from_process_local_data(S, X).sharding.spec
one.flat
donated(lambda x: jax.jit(double, in_shardings=rows, donate_argnums=0)(x).sharding)
donated(lambda x: jax.jit(double, in_shardings=NamedSharding(auto, P()), donate_argnums=0)(x))
P('x', ('y', ('z',)))
P('x', unreduced={'x'})
P(unreduced={None})
P('x', unreduced=['y'])
P('x', unreduced={'z'}) + P('y', reduced={'w'})
Mesh(jax.devices(), (None,))
AbstractMesh((2,), ('x',), axis_types=('explicit',))
NamedSharding(auto, P(unreduced={'x'}))
NamedSharding(mesh, P(unreduced={'z'}))
NamedSharding(bare, P('i')).is_equivalent_to(NamedSharding(bare, P('i')), 1)
S.check_compatible_aval((3,))
lax.full((8,), 1., sharding=rows).sharding, lax.full_like(a, 2.).sharding
[x.sharding for x in a], [x.sharding for x in jax.device_put(X, NamedSharding(auto, P()))]
lax.full_like(jax.device_put(X, jax.devices()[3]), 1, shape=(2,)).sharding
jax.make_array_from_single_device_arrays((8, 2), S, [a] * 8)
shard_map(double, P('x'), P('x'))(X).sharding
jax.jit(shard_map(double, P('x'), P('x')))(X).sharding
shard_map(double, P('x', 'y'), P('y', 'x'))(X), shard_map(double, P('y', 'x'), P('y', 'x'))(X.T)
shard_map(double, P(('y', 'x')), P(('x', 'y')))(X), shard_map(double, P(None, 'y'), P('y'))(X)
shard_map(lambda x: lax.psum(x, 'x'), P('x', 'y'), P(None, 'y'))(X)
shard_map(lambda x: lax.psum(x, ('x', 'y')), P('x', 'y'), P())(X)
shard_map(double, P('x'), P(), check_vma=False)(X)
shard_map(double, P('z'), P('z'))(X)
shard_map(double, P('x'), P('x'))(np.ones(9))
shard_map(double, P('x', 'y', 'x'), P('x'))(X)
shard_map(lambda x: {'a': x.sum()}, P('x'), P('x'))(X)
shard_map(lambda x, y: (x, y), (P('x'), P()), (P('x'), P()))(X, 3.)
shard_map(lambda: lax.axis_index(('x', 'y'))[None], (), P(('x', 'y')))()
shard_map(lambda x: lax.all_gather(x, 'x', tiled=True), P('x'), P('x'))(X[:4])
shard_map(lambda x: lax.all_to_all(x, 'x', 0, 0, tiled=True), P('x'), P('x'))(np.arange(16.))
shard_map(lambda x: lax.psum_scatter(x, 'x', tiled=True), P('x'), P('x'))(np.arange(16.))
shard_map(lambda x: lax.pcast(x, 'x', to='varying'), P(), P('x'))(X[:2])
shard_map(lambda x: lax.ppermute(x, 'x', [(0, 1), (1, 0)]), P('x'), P('x'))(np.arange(4.))
jax.grad(lambda x: shard_map(lambda x: lax.psum(x * x, 'x'), P('x'), P())(x).sum())(X)
jax.shard_map(double, in_specs=P('x'), out_specs=P('x'))(X)
jax.shard_map(3, mesh=auto, in_specs=P('x'), out_specs=P('x'))
jax.shard_map(double, mesh=auto, in_specs='x', out_specs=P('x'))(X)
jax.shard_map(double, mesh=auto, in_specs=P('x', 'y'), out_specs=P('x'), axis_names={'x'})(X)
set(jax.set_mesh(mesh)) if 0 else inside(mesh, lambda: jax.sharding.get_mesh())
inside(mesh, lambda: (jnp.zeros(8, out_sharding=P('x')).sharding, jax.reshard(X, P('y')).sharding))
inside(mesh, lambda: jax.jit(lambda x: x, out_shardings=P('x'))(X).sharding)
inside(mesh, lambda: e.at[jnp.arange(4)].get(out_sharding=P('x')).sharding)
inside(mesh, lambda: jnp.ones((4, 2)).at[jnp.arange(2)].set(2., out_sharding=P('x')).sharding)
inside(line, lambda: jax.shard_map(double, out_specs=P('i'))(jax.reshard(X, P('i'))))
inside(line, lambda: jax.smap(double, in_axes=0, out_axes=0, axis_name='i')(jax.reshard(X, P('i'))))
thrice(jax.jit(lambda x: lax.with_sharding_constraint(x, rows) + 1), X)
inside(mesh, lambda: thrice(jax.jit(lambda x: jnp.sin(jax.reshard(x, OF_E))), X))
thrice(jax.jit(lambda x: jax.jit(lambda x: lax.with_sharding_constraint(x, rows))(x) * 2), X)
thrice(jax.jit(lambda x: x * 2, out_shardings=columns), X), thrice(jax.jit(lambda x: x * 2), a)
thrice(jax.jit(shard_map(double, P('x'), P('x'))), X), thrice(jnp.sin, e)
inside(auto, lambda: thrice(jax.jit(double), X))
[f(x).sharding for f in [jax.jit(double)] for x in (X, a, X, e, X, one, a)]
thrice(jax.jit(lambda x: lax.with_sharding_constraint(x, rows)).lower(X).compile(), X)
lax.with_sharding_constraint(X, OF_E)
jax.jit(lambda x: lax.with_sharding_constraint(x, OF_E))(X)
inside(mesh, lambda: lax.with_sharding_constraint(X, P('x')))
inside(mesh, lambda: lax.with_sharding_constraint(X, rows))
inside(mesh, lambda: lax.with_sharding_constraint(e, OF_E)).sharding
inside(mesh, lambda: lax.with_sharding_constraint(X, P()))
inside(auto, lambda: lax.with_sharding_constraint(X, OF_E))
inside(mesh, lambda: jax.reshard(X, rows))
lax.with_sharding_constraint(X, NamedSharding(mesh, P())).sharding
jax.reshard(X, rows)
jax.jit(lambda x: jax.reshard(x, rows))(X)
jax.reshard(X, NamedSharding(auto, P())).sharding
printed(lambda: jax.debug.visualize_array_sharding(a, use_color=False))
printed(lambda: jax.debug.visualize_array_sharding(e, use_color=False))
printed(lambda: jax.debug.visualize_sharding((64, 64), S, use_color=False))
printed(lambda: jax.debug.visualize_sharding((8, 2), NamedSharding(auto, P()), use_color=False))
printed(lambda: jax.debug.visualize_sharding((8, 8, 8), S))
P('x', 'y') is P('x', 'y'), P((), 'x') is P(None, 'x'), Mesh(jax.devices(), 'i') is bare
Mesh(jax.devices(), 'i') is Mesh(jax.devices(), 'i'), pickle.loads(pickle.dumps(P('x'))) is P('x')
P('x', unreduced={'y'}) + ('z',)
('z',) + P('x', reduced={'y'})
rows.check_compatible_aval(())
[f(a).sharding for f in (jnp.flip, jnp.sort, lambda x: jnp.cumsum(x, 0), lambda x: x.at[1].set(2.))]
make_array((2,), PAIR, [jax.device_put(X[0, :1], d) for d in FEW[2:]])
make_array((2,), PAIR, [jax.device_put(X[0, :1], FEW[0])] * 2)
make_array((2,), PAIR, [jax.device_put(X[d.id, :1], d) for d in FEW[1::-1]])
[x.devices() for x in jax.value_and_grad(to_other)(jax.device_put(2., FEW[2]))]
[x.devices() for x in jax.jvp(to_other, (1.,), (2.,))]
jax.grad(lambda x: jax.device_put(x, S).sum())(jax.device_put(X, FEW[3])).sharding
jax.vmap(to_other)(X).devices(), jax.linearize(to_other, 1.)[1](2.).devices()
inside(mesh, lambda: str(lax.reduce_sum(e, [0], out_sharding=P(None, unreduced={'x'}))))
jax.ShapeDtypeStruct((8, 2), 'float32', sharding=S).update(shape=(4, 2), dtype='int8')
jax.pmap(double, devices=jax.devices()[::-1])(jax.pmap(double)(X)).addressable_data(0)
shard_map(lambda n, x: x.reshape(n), (None, P('x')), P('x'))((4, 1), X)
jax.grad(lambda x: shard_map(lambda x: summed(x) ** 2, P(), P())(x).sum())(one)
inside(mesh, lambda: (inferred(e), jax.grad(inferred)(e), jax.jvp(inferred, (e,), (e,))))
inside(mesh, lambda: (jax.vmap(inferred, 1)(e), jax.vmap(jax.grad(inferred))(X)))
printed(lambda: shard_map(shown, XY, XY)(X))
printed(lambda: shard_map(lambda x: shown(x.sum())[None], P('y'), P('y'))(X))
printed(lambda: shard_map(lambda x: [shown([lax.psum(x, 'y')]), x][1], XY, XY)(X))
inside(auto, lambda: jax.shard_map(lambda x: x, out_specs=P('x'))(a))
printed(lambda: [inside(m, lambda: typed(auto_axes(typed, out_sharding=DOWN)(a))) for m in both])
printed(lambda: inside(mesh, lambda: typed(auto_axes(typed, axes='y', out_sharding=DOWN)(e))))
printed(lambda: [inside(m, lambda: typed(explicit_axes(typed, in_sharding=XY)(a))) for m in both])
inside(auto, lambda: jax.jit(explicit_axes(double, in_sharding=P('x', 'y')))(a).sharding)
auto_axes(typed, out_sharding=P())(X), inside(mesh, lambda: auto_axes(typed)(X))
inside(mesh, lambda: auto_axes(typed, axes='z', out_sharding=P())(e))
explicit_axes(typed, in_sharding=P())(X)
laid(jit(lambda x: (x + 1, x.T, x.sum(1), x.sum(0), x.reshape(-1), x[:, 0], x[:4]))(e))
laid(jit(lambda x: (x.reshape(2, 4, 2), jnp.stack([x, x]), jnp.concatenate([x, x])))(e))
laid(jit(lambda x, y: (x * 2, x + y, x.max(0), x.T))(CUT, e))
laid(jit(lambda x, w: jnp.dot(x, w, out_sharding=P('x')))(CUT, W))
laid(jit(lambda x, w: jnp.dot(x, w, out_sharding=P(None, 'x')))(CUT, W))
jit(lambda x, w: x @ w)(CUT, W)
CUT @ W
within(lambda: laid(e @ WHOLE))
within(lambda: laid(jit(jnp.matmul)(e, WHOLE)))
within(lambda: laid(grad(lambda x: (x * x).sum())(CUT)))
within(lambda: laid(jit(grad(lambda x: x.sum()))(CUT)))
within(lambda: laid(jit(grad(lambda x, w: (x @ w).sum(), (0, 1)))(e, WHOLE)))
within(lambda: laid(grad(lambda x, w: jnp.dot(x, w, out_sharding=P('x')).sum(), (0, 1))(CUT, W)))
within(lambda: laid(jit(grad(lambda x, w: jnp.dot(x, w, out_sharding=DOWN).sum(), (0, 1)))(CUT, W)))
laid(jax.vmap(lambda r: r * 2)(CUT)), laid(jit(jax.vmap(jit(lambda r: r.sum())))(CUT))
within(lambda: laid(jax.vmap(grad(lambda r: (r * r).sum()))(e)))
within(lambda: laid(jax.vmap(lambda r: r @ WHOLE)(e)))
laid(lax.scan(lambda c, r: (c + r, c * r), jnp.zeros_like(ROW), reshard(CUT, P(None, 'y'))))
within(lambda: laid(lax.scan(lambda c, r: (c + r, c), ROW, reshard(CUT, P(None, 'y')))))
laid(jit(lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2, x))(CUT))
laid(jit(lambda x: lax.cond(x.sum() > 0, lambda: x * 2, lambda: x))(CUT))
within(lambda: laid(jit(lambda x: (jnp.zeros_like(x), jnp.zeros(8), reshard(x, P())))(CUT)))
within(lambda: laid(jit(lambda x: smap(lambda b: b * 2, out_specs=P('x', 'y'))(x))(CUT)))
within(lambda: laid(jit(smap(lambda b: b + 1, out_specs=P('x'), axis_names={'x'}))(CUT)))
within(lambda: laid(jit(auto_axes(lambda x, w: x @ w, out_sharding=P('x')))(CUT, W)))
within(lambda: laid(jnp.zeros((8, 2)).at[jnp.arange(2)].set(1., out_sharding=P('x'))))
within(lambda: [jax.typeof(x) for x in (CUT, CUT.T, CUT.sum(0), CUT + e, jnp.ones(8))])
jax.make_jaxpr(lambda x: jnp.sin(x).T)(CUT), jax.eval_shape(jnp.sin, CUT), jax.typeof(CUT)
printed(lambda: jit(lambda x: print(jax.typeof(x), jax.typeof(x * 2).sharding.spec))(CUT))
CUT + jax.device_put(X, NamedSharding(mesh, P('y')))
jit(lambda x, y: x + y.reshape(8, 2))(CUT, jax.device_put(X, NamedSharding(mesh, P(('x', 'y')))))
laid(jax.jvp(jnp.negative, (CUT,), (CUT,))), laid(jax.linearize(lambda x: x * 2, CUT)[1](CUT))
laid(jit(lambda x: jax.checkpoint(lambda y: y * y)(x))(CUT))
within(lambda: laid(jit(jax.hessian(lambda x: (x * x).sum()))(ROW)))
within(lambda: rounded(jax.value_and_grad(loss)(WEIGHTS, BATCH)))
within(lambda: rounded(jit(jax.value_and_grad(loss))(WEIGHTS, BATCH)))
within(lambda: rounded(jit(lambda w: lax.scan(descend, w, None, length=3))(WEIGHTS)))
within(lambda: rounded(jit(grad(lambda w: loss(w, BATCH, jax.checkpoint(network))))(WEIGHTS)))
within(lambda: rounded(jit(jax.vmap(grad(loss), (None, 0)))(WEIGHTS, BATCH)))
within(lambda: rounded(jit(attention)(QUERIES, QUERIES)))
within(lambda: rounded(jit(grad(lambda q: attention(q, QUERIES).sum()))(QUERIES)))
within(lambda: rounded(jit(grad(lambda t: (t.at[PLACES].get(out_sharding=XY) ** 3).sum()))(TABLE)))
laid(jax.tree.map(lambda x: x - 1, {'a': CUT, 'b': e})), laid(jnp.where(CUT > 3, CUT, 0))
laid(jnp.square(e).mean(0))
inside(mesh, lambda: smap(lambda x: x, out_specs=P('y'), axis_names={'y'})(ROW).sharding)
""".strip().splitlines()


def namespace(jax, jnp):
    """The names that programs use."""
    from_sharding = {name: getattr(jax.sharding, name) for name in (
        "Mesh", "AbstractMesh", "NamedSharding", "SingleDeviceSharding")}
    layout, mesh_utils = (importlib.import_module(f"{jax.__name__}.experimental.{name}")
                          for name in ("layout", "mesh_utils"))
    mesh = jax.make_mesh((4, 2), ("x", "y"))
    auto = jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
    P, NamedSharding = jax.P, jax.NamedSharding
    X = np.arange(16, dtype=np.float32).reshape(8, 2)
    S = NamedSharding(auto, P("x", "y"))

    def inside(mesh, f):
        with jax.set_mesh(mesh):
            return f()

    def entered(mesh, f):
        with mesh:
            return f()

    def printed(f):
        with contextlib.redirect_stdout(io.StringIO()) as text:
            f()
        return "\n".join(line.rstrip() for line in text.getvalue().strip().splitlines())

    def donated(f):
        x = jnp.ones((8, 2))
        return f(x), x.is_deleted()

    summed = jax.custom_vjp(lambda x: jax.lax.psum(x, "x"))
    summed.defvjp(lambda x: (jax.lax.psum(x, "x"), x),
                  lambda x, g: (g * jnp.cos(x) * jax.lax.axis_size("x"),))

    def thrice(f, *args):
        return [f(*args).sharding for _ in range(3)]

    def network(weights, x):
        hidden = jnp.tanh(x @ weights["in"] + weights["bias"])
        return jnp.dot(hidden, weights["out"], out_sharding=P("x") if x.ndim == 2 else P())

    def loss(weights, x, network=network):
        return -jax.nn.log_softmax(network(weights, x))[..., 0].mean()

    def descend(weights, _):
        value, slope = jax.value_and_grad(loss)(weights, BATCH)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, slope), value

    def attention(q, k):
        scores = jnp.einsum("bthd,bshd->bhts", q, k)
        scores = jnp.where(jnp.tril(jnp.ones((4, 4), bool)), scores, -1e9)
        return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), k)

    def spread(shape, *spec):
        numbers = np.sin(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)
        return jax.device_put(numbers, NamedSharding(mesh, P(*spec)))
    WEIGHTS = {"in": spread((6, 4), None, "y"), "bias": spread((4,), "y"),
               "out": spread((4, 3), "y")}
    BATCH = spread((8, 6), "x")

    class Standing:
        def __jax_array__(self):
            return jax.device_put(X, S)
    return {
        "stands": Standing(), "OF_S": jax.ShapeDtypeStruct(X.shape, "float64", sharding=S),
        **from_sharding, "bare": jax.sharding.AbstractMesh((2,), ("i",)),
        "Format": layout.Format, "Layout": layout.Layout,
        "with_layout_constraint": layout.with_layout_constraint,
        "create_device_mesh": mesh_utils.create_device_mesh,
        "P": P, "jax": jax, "jnp": jnp, "np": np, "lax": jax.lax, "mesh": mesh,
        "auto": auto, "line": jax.make_mesh((4,), ("i",)), "X": X, "S": S, "inside": inside,
        "to_other": lambda x: jax.device_put(x, jax.devices()[1]),
        "make_array": jax.make_array_from_single_device_arrays, "pickle": pickle,
        "auto_axes": jax.sharding.auto_axes, "explicit_axes": jax.sharding.explicit_axes,
        "typed": lambda x: (print(jax.sharding.get_abstract_mesh(), repr(jax.typeof(x))), x)[1],
        "CUT": jax.device_put(X, NamedSharding(mesh, P("x", "y"))),
        "W": jax.device_put(X[:4].T, NamedSharding(mesh, P("y"))), "WHOLE": X[:4].T,
        "jit": jax.jit, "grad": jax.grad, "smap": jax.shard_map, "reshard": jax.reshard,
        "network": network, "loss": loss, "descend": descend, "attention": attention,
        "WEIGHTS": WEIGHTS, "BATCH": BATCH, "QUERIES": spread((4, 4, 2, 3), "x", None, "y"),
        "TABLE": spread((5, 4), None, "y"), "PLACES": jax.device_put(
            np.arange(8) % 5, NamedSharding(mesh, P("x"))),
        "rounded": lambda tree: jax.tree.map(lambda x: (
            np.round(np.asarray(x, float), 4).tolist(), str(jax.typeof(x)), x.sharding.spec), tree),
        "within": lambda f: inside(mesh, f),
        "laid": lambda tree: jax.tree.map(
            lambda x: (np.asarray(x).tolist(), str(jax.typeof(x)), x.sharding.spec), tree),
        "shown": lambda x: (print(x), x)[1], "DOWN": P("x", None),
        "XY": P("x", "y"), "both": (auto, mesh),
        "ROW": jax.device_put(X[0], NamedSharding(mesh, P("y"))),
        "inferred": jax.shard_map(lambda x: jax.lax.psum(x.sum(), "x"), out_specs=P()),
        "summed": summed, "FEW": jax.devices()[:4],
        "PAIR": NamedSharding(jax.sharding.Mesh(jax.devices()[:2], "i"), P("i")),
        "entered": entered, "printed": printed, "donated": donated, "double": lambda x: x * 2,
        "one": jnp.ones(3),
        "OF_MESH": NamedSharding(mesh.abstract_mesh, P("x")),
        "OF_AUTO": NamedSharding(auto.abstract_mesh, P("x")),
        "OF_E": NamedSharding(mesh, P("x")), "thrice": thrice,
        "rows": NamedSharding(auto, P("x")), "columns": NamedSharding(auto, P("y")),
        "a": jax.device_put(X, S), "e": jax.device_put(X, NamedSharding(mesh, P("x"))),
        "shard_map": lambda f, i, o, **options: jax.shard_map(
            f, mesh=auto, in_specs=i, out_specs=o, **options)}


def results(jax, jnp):
    """What each program gives, or raises, as text."""
    names, found = namespace(jax, jnp), []
    for program in PROGRAMS:
        try:
            found.append(repr(eval(program, names)))
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}".partition("\n\nCheck")[0])
    return found


@pytest.fixture(scope="module")
def eight_devices():
    before = config.num_cpu_devices.value
    config.update("num_cpu_devices", 8)
    yield
    config.update("num_cpu_devices", before)


@pytest.fixture(scope="module")
def pairs(eight_devices):
    """The results of all programs: ours, and JAX's from a process of its own."""
    code = ("import json, jax, jax.numpy, tests.test_sharding as t; "
            "print(json.dumps(t.results(jax, jax.numpy)))")
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "XLA_FLAGS": flags})
    ours = results(minijax, minijax.numpy)
    theirs = json.loads(process.communicate(timeout=120)[0].splitlines()[-1])
    return dict(zip(PROGRAMS, zip(ours, theirs, strict=True), strict=True))


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_lies_over_devices_lies_as_in_jax(pairs, program):
    ours, theirs = pairs[program]
    sets = "frozenset({'y', 'x'})", "frozenset({'x', 'y'})"
    assert ours.replace(*sets).splitlines()[:1] == theirs.replace(*sets).splitlines()[:1]
    if "Error" not in theirs.splitlines()[0] or "shard_map applied" in theirs:
        assert ours == theirs


def test_a_result_that_differs_where_it_must_not_is_refused(eight_devices):
    mesh = minijax.make_mesh((4,), ("x",), (minijax.sharding.AxisType.Auto,))
    whole = minijax.shard_map(lambda x: x, mesh=mesh, in_specs=minijax.P("x"),
                              out_specs=minijax.P())
    with pytest.raises(ValueError, match="replicated across mesh axis .x."):
        whole(np.arange(8))


# ── Moves along a named axis ─────────────────────────────────────────────────────────────────

T = np.arange(64, dtype=np.float32).reshape(4, 8, 2)
MOVES = {
    "all_to_all": lambda lax, x: lax.all_to_all(x[:4], "i", 0, 1),
    "all_to_all, tiled": lambda lax, x: lax.all_to_all(x, "i", 0, 1, tiled=True),
    "pswapaxes": lambda lax, x: lax.pswapaxes(x[:4], "i", 0),
    "psum_scatter": lambda lax, x: lax.psum_scatter(x.T[:, :4], "i", scatter_dimension=1),
    "psum_scatter, tiled": lambda lax, x: lax.psum_scatter(x, "i", tiled=True),
    "ppermute": lambda lax, x: lax.ppermute(x, "i", [(0, 2), (2, 1), (1, 3), (3, 0)]),
    "pshuffle": lambda lax, x: lax.pshuffle(x, "i", [3, 0, 2, 1]),
    "pbroadcast": lambda lax, x: lax.pbroadcast(x, "i", 2),
    "all_gather": lambda lax, x: lax.all_gather(x, "i", axis=1, tiled=True),
}


def of_library(lib, move, how):
    f = lambda x: MOVES[move](lib.lax, x)  # noqa: E731
    return {
        "alone": lambda: lib.vmap(f, axis_name="i")(T),
        "compiled": lambda: lib.jit(lib.vmap(f, in_axes=2, axis_name="i"))(np.moveaxis(T, 0, 2)),
        "inside another": lambda: lib.vmap(lib.vmap(f, axis_name="i"), 3, -1)(
            np.stack([T, -T], 3)),
        "around another": lambda: lib.vmap(lib.vmap(f, 2, 1), axis_name="i")(np.stack([T, -T], 3)),
        "backwards": lambda: lib.vjp(lib.vmap(f, axis_name="i"), T)[1](
            np.cos(np.asarray(lib.vmap(f, axis_name="i")(T))))[0],
    }[how]()


@pytest.mark.parametrize("how", ["alone", "compiled", "inside another", "around another",
                                 "backwards"])
@pytest.mark.parametrize("move", MOVES)
def test_moves_along_a_named_axis_are_those_of_jax(move, how):
    if how != "alone" and move == "pbroadcast":
        pytest.skip("JAX has no rule for it")
    ours, theirs = of_library(minijax, move, how), of_library(jax, move, how)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("call", [
    lambda lax, x: lax.all_to_all(x, "i", 0, 0), lambda lax, x: lax.pshuffle(x, "i", [3, 2, 1]),
    lambda lax, x: lax.all_gather(x, "i", axis_index_groups=[[0, 1], [2, 3]]),
    lambda lax, x: lax.psum_scatter(x, "i", axis_index_groups=[[0, 1], [2, 3]])])
def test_what_cannot_move_is_refused_as_in_jax(call):
    def refusal(lib):
        with pytest.raises((ValueError, NotImplementedError)) as caught:
            lib.vmap(lambda x: call(lib.lax, x), axis_name="i")(T)
        return caught.type, str(caught.value).splitlines()[0]
    assert refusal(minijax) == refusal(jax)


def test_ragged_rows_come_where_their_senders_say():
    sizes = np.array([[1, 2], [2, 1]])  # how many rows each sends to each
    rows = np.arange(12.0).reshape(2, 3, 2)
    begin = np.array([[0, 1], [0, 2]])
    to = np.array([[0, 0], [1, 2]])  # where they begin at each receiver
    out = minijax.vmap(lambda x, *given: lax.ragged_all_to_all(
        x, np.full((4, 2), -1.0), *given, axis_name="i"), axis_name="i")(
            rows, begin, sizes, to, sizes.T)
    expected = np.full((2, 4, 2), -1.0)
    for sender in range(2):
        for receiver in range(2):
            first, count = begin[sender, receiver], sizes[sender, receiver]
            place = to[sender, receiver]
            expected[receiver, place:place + count] = rows[sender, first:first + count]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("call", [
    lambda x: lax.psend(x, "i", [(0, 1)]), lambda x: lax.precv(x, x, "i", [(0, 1)])])
def test_messages_without_an_answer_are_refused(call):
    with pytest.raises(NotImplementedError, match="only implemented on GPU: ppermute"):
        minijax.vmap(call, axis_name="i")(np.ones(2))
    with pytest.raises(NameError, match="unbound axis name: i"):
        call(np.ones(2))


def test_calls_of_python_run_beside_arrays_that_are_spread(eight_devices):
    x = minijax.device_put(np.arange(8.), minijax.NamedSharding(
        minijax.make_mesh((8,), ("x",)), minijax.P("x")))
    seen = []

    @minijax.jit
    def f(x):
        minijax.debug.callback(lambda y: seen.append(float(y)), x.sum())
        return minijax.pure_callback(lambda y: np.asarray(y) + 1, x, x)
    assert f(x).tolist() == list(range(1, 9)) and seen == [28.]


ASSEMBLED = {
    "another shape": lambda lib, s, make: make((4,), s, [lib.numpy.ones(3)]),
    "no list": lambda lib, s, make: make((4,), s, lib.numpy.ones(4)),
    "no shard": lambda lib, s, make: make((4,), s, []),
    "another dtype": lambda lib, s, make: make((4,), s, [lib.numpy.ones(4)], dtype=np.int32),
    "too many": lambda lib, s, make: make((4,), s, [lib.numpy.ones(4)] * 2),
    "traced": lambda lib, s, make: lib.jit(lambda x: make((4,), s, [x]))(np.ones(4)),
    "from a callback": lambda lib, s, make: lib.jit(
        lambda x: lib.make_array_from_callback((4,), s, lambda i: x[i]))(np.ones(4)),
}


@pytest.mark.parametrize("name", ASSEMBLED)
def test_shards_that_do_not_fit_are_refused_in_jaxs_words(name):
    def refusal(lib):
        s = lib.sharding.SingleDeviceSharding(lib.devices()[0])
        with pytest.raises((TypeError, ValueError, lib.errors.UnexpectedTracerError)) as caught:
            ASSEMBLED[name](lib, s, lib.make_array_from_single_device_arrays)
        words = str(caught.value).split("\n")[0].split("<class")[0].rstrip("`.")
        return caught.type.__name__, words
    assert refusal(minijax) == refusal(jax)


def test_shards_of_keys_make_an_array_of_keys():
    keys = minijax.random.split(minijax.random.key(0), 4)
    device = minijax.sharding.SingleDeviceSharding(minijax.devices()[0])
    for made in (minijax.make_array_from_callback((4,), device, lambda i: keys[i]),
                 minijax.make_array_from_single_device_arrays((4,), device, [keys])):
        assert made.dtype == keys.dtype and made.unsafe_buffer_pointer()
        assert minijax.random.key_data(made).tolist() == minijax.random.key_data(keys).tolist()


def test_local_data_may_lie_on_a_device():
    device = minijax.devices()[0]
    found = minijax.make_array_from_process_local_data(device, {"a": np.arange(4)}, (4,))["a"]
    assert found.devices() == {device} and found.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="Invalid host data"):
        minijax.make_array_from_process_local_data(device, np.arange(4), (8,))
