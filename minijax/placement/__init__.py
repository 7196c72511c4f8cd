"""Placement of arrays: devices, meshes, shardings, `shard_map`, `pmap`."""
