"""What every test stands on: the oracle is JAX on the CPU with Threefry's original layout."""

import os

# Read once, when JAX and minijax are imported; both know these names.
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_THREEFRY_PARTITIONABLE"] = "0"
