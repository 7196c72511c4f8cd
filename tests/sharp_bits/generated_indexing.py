"""Programs made by chance: one access or cast, deep inside of nested transformations.

Every program is three: with the access out of bounds, with it inside, and with the bad access
guarded by a branch that is not taken.
"""

import linecache
import random
import textwrap

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.errors import OutOfBoundsError, UnsafeCastError

SIZE = 5

# What is computed of `x: float32[5]` at `i`; the last line is the one with the access.
ACCESSES = [
    "y = x[i]",
    "y = jnp.outer(x, x)[1, i]",
    "y = x[jnp.stack([0, i])].sum()",
    "y = jnp.outer(x, x)[:, jnp.stack([i, 1])].sum()",
    "y = x.at[i].set(3.0).sum()",
    "y = (x.at[jnp.stack([1, i])].add(2.0) * x).sum()",
    "y = x.at[i].multiply(2.0, unique_indices=True).sum()",
    "y = x.at[i].get()",
    "y = x.at[i].get(mode='promise_in_bounds')",
    "y = jnp.take(x, i)",
    "y = jnp.take(jnp.outer(x, x), jnp.stack([i, 2]), axis=1).sum()",
    "y = jnp.take_along_axis(x, jnp.stack([2, i]), 0).sum()",
    "y = lax.dynamic_slice(x, (i,), (1,)).sum()",
    "y = lax.dynamic_slice_in_dim(jnp.outer(x, x), i, 1, axis=1).sum()",
    "y = lax.dynamic_update_slice(x, x[:1] * 2, (i,)).sum()",
    "y = lax.dynamic_index_in_dim(x, i, keepdims=False)",
    "y = lax.dynamic_update_index_in_dim(x, 1.0, i, 0).sum()",
]

# The same with a cast that does not fit in place of the access.
CASTS = [
    "y = ((2 * i + 1) ** 2 * 1.5).astype('int8') * x[1]",
    "y = lax.convert_element_type((2 * i + 1) ** 2 + 7, 'int8') * x.sum()",
    "y = (x * 2.0 ** jnp.minimum((2 * i + 1) ** 2 - 100, 99)).astype('float16').sum() + 0 * x[0]",
    "y = jnp.uint8(jnp.array([3, 101 - (2 * i + 1) ** 2])).sum() * x[0]",
]

# How a function of (x, i) is made from another, `f`; and what it cannot be inside of.
LAYERS = {
    "jit": ("jit(f)(x, i)", ""),
    "vmap of the index": ("vmap(f, (None, 0))(x, jnp.stack([0, i, 1])).sum()", ""),
    "vmap of the array": ("vmap(f, (0, None))(jnp.stack([x, x + 1]), i).sum()", ""),
    "grad": ("(grad(f)(x, i) * x).sum()", ""),
    "jvp": ("jax.jvp(lambda x: f(x, i), (x,), (x,))[1]", ""),
    "vjp": ("jax.vjp(lambda x: f(x, i), x)[1](1.0)[0].sum()", ""),
    "linearize": ("jax.linearize(lambda x: f(x, i), x)[1](x)", ""),
    "scan": ("lax.scan(lambda c, j: (c + f(x, j), None), 0.0, jnp.stack([2, i, 0]))[0]", ""),
    "fori_loop": ("lax.fori_loop(0, 3, lambda k, c: c + f(x, jnp.where(k == 2, i, k)), 0.0)", ""),
    "while_loop": ("lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1] + "
                   "f(x, jnp.where(s[0] == 1, i, 0))), (0, 0.0))[1]", "reverse"),
    "while_loop of a batch": (
        "vmap(lambda n: lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] + f(x, "
        "jnp.where(s[0] == 1, i, 0))), (0, 0.0))[1])(jnp.array([1, 2])).sum()", "reverse"),
    "cond": ("lax.cond(i > -99, lambda x, i: f(x, i), lambda x, i: 0.0, x, i)", ""),
    "cond of a batch": ("vmap(lambda j: lax.cond(j == i, lambda: f(x, j), lambda: x[0]))("
                        "jnp.stack([0, i])).sum()", ""),
    "switch": ("lax.switch(1 + 0 * i, [lambda: 0.0, lambda: f(x, i), lambda: 1.0])", ""),
    "map": ("lax.map(lambda j: f(x, j), jnp.stack([i, 1])).sum()", ""),
    "checkpoint": ("jax.checkpoint(f)(x, i)", ""),
    "custom_jvp": ("own_forward_rule(f)(x, i)", ""),
    "custom_vjp": ("own_reverse_rule(f)(x, i)", "forward"),
    "closure": ("(lambda y: f(y, i) + y[-1])(x * 2)", ""),
}
GUARDED = "lax.cond((i >= -5) & (i < 5), lambda: f(x, i), lambda: 0.0)"
FORWARD = {"jvp", "linearize"}
REVERSE = {"grad", "vjp"}


def own_forward_rule(f):
    @jax.custom_jvp
    def g(x, i):
        return f(x, i)

    @g.defjvp
    def rule(primals, tangents):
        x, i = primals
        return g(x, i), tangents[0].sum()
    return g


def own_reverse_rule(f):
    @jax.custom_vjp
    def g(x, i):
        return f(x, i)
    g.defvjp(lambda x, i: (f(x, i), x), lambda x, ct: (ct * x, None))
    return g


class Generated:
    """A program with its place in a file that does not exist."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.layers = self._layers(self.chance.randint(1, 4))
        self.access = self.chance.choice(ACCESSES + CASTS)
        self.error = UnsafeCastError if self.access in CASTS else OutOfBoundsError
        self.bad = self.chance.choice([SIZE, SIZE + 7, -SIZE - 1])
        self.good = self.chance.choice([0, SIZE - 1, -1, -SIZE])
        self.file = f"generated_{seed}.py"
        self.plain, self.guarded = self.function([]), self.function([GUARDED])

    def _layers(self, count):
        """Layers from the inside out, none around what it cannot differentiate."""
        refused, found = set(), []
        while len(found) < count:
            name = self.chance.choice(list(LAYERS))
            kinds = {"forward"} & refused and FORWARD, {"reverse"} & refused and REVERSE
            if any(name in kind for kind in kinds if kind):
                continue
            # an outer grad differentiates an inner one forwards
            if name in REVERSE and "forward" in refused and REVERSE & set(found):
                continue
            found.append(name)
            refused.add(LAYERS[name][1])
        return found

    def function(self, around):
        lines = ["def innermost(x, i):", "    x = jnp.sin(x) + x[0]", f"    {self.access}",
                 "    return y * 1.5", ""]
        inner = "innermost"
        layers = [*around, *(LAYERS[name][0] for name in self.layers)]
        for n, layer in enumerate(layers):
            lines += [f"def layer{n}(x, i, f={inner}):", f"    return {layer}", ""]
            inner = f"layer{n}"
        source = "\n".join(lines)
        file = self.file.replace(".py", f"_{len(around)}.py")
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        names = dict(vars(jax), jax=jax, jnp=jnp, lax=lax, own_forward_rule=own_forward_rule,
                     own_reverse_rule=own_reverse_rule)
        exec(compile(source, file, "exec"), names)
        return names[inner]

    @property
    def line(self):
        """Where the access is, in the program without the guard."""
        return self.file.replace(".py", "_0.py"), 3

    def __repr__(self):
        return textwrap.dedent(f"""
            {' of '.join(reversed(self.layers))} of {self.access} at {self.bad}""")
