"""The traps that JAX leaves silent, made loud: one file for each, and a switch for all of them.

Nothing here runs, or is even imported, until the flag of a check is on.  Chapters 12 to 20.
In JAX: `jax/_src/debugging.py` for nans, `jax/_src/core.py` for leaks; the others have no like.
"""

from minijax.sharp_bits.findings import Finding as Finding
from minijax.sharp_bits.findings import checking_sharp_bits as checking_sharp_bits
