"""After `import minijax.as_jax`, `import jax` is minijax in this process, for unchanged libraries.

Also `python -m minijax.as_jax script.py` and `pytest -p minijax.as_jax`.  Builds on the whole
package; `names` lists the internals and the libraries that use them.
"""

from minijax.as_jax import finder

finder.install()
