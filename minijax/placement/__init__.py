"""Where arrays lie: devices, meshes, shardings, `shard_map`, `pmap`."""
