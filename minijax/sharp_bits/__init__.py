"""The traps that JAX leaves silent, made loud: one file for each, and a switch for all of them.

No check is imported until its flag is on; `findings` says where a finding goes.
Chapters 12 to 20.  In JAX: each file names its counterpart, where there is one.
"""

from minijax.sharp_bits.findings import Finding as Finding
from minijax.sharp_bits.findings import checking_sharp_bits as checking_sharp_bits
