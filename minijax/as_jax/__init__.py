"""After `import minijax.as_jax`, `import jax` is minijax in this process, for libraries unchanged.

Also `python -m minijax.as_jax script.py` and `pytest -p minijax.as_jax`.  Builds on the whole
package; `names` says which internals there are, and for whom.
"""

from minijax.as_jax import finder

finder.install()
