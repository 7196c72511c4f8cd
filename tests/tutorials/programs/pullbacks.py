"""What `vjp` returns is a value: handed between compiled functions, looked at, changed."""

import jax
import jax.numpy as jnp


def layer(weights, x):
    return jnp.sin(x @ weights)


FIRST = jnp.array([[0.5, -0.2], [0.1, 0.3]])
SECOND = jnp.array([[0.2, 0.4], [-0.6, 0.1]])
X = jnp.array([[1.0, 2.0], [-1.0, 0.5], [0.3, 0.0]])


def two_layers(first, second, x):
    return layer(second, layer(first, x)).sum()


def forwards_and_backwards_on_a_schedule():
    forward = jax.jit(lambda weights, x: jax.vjp(layer, weights, x))
    backward = jax.jit(lambda pull, ct: pull(ct))
    middle, pull_first = forward(FIRST, X)
    out, pull_second = forward(SECOND, middle)
    d_second, d_middle = backward(pull_second, jnp.ones_like(out))
    d_first, d_x = backward(pull_first, d_middle)
    return d_first, d_second, d_x, jax.grad(two_layers, (0, 1, 2))(FIRST, SECOND, X)


def the_same_in_one_function():
    forward, backward = jax.fwd_and_bwd(layer, argnums=(0, 1))
    y, residuals = forward(FIRST, X)
    alone, back_alone = jax.fwd_and_bwd(layer, argnums=1)
    _, kept = alone(FIRST, X)
    return y, backward(residuals, jnp.ones_like(y)), back_alone(kept, jnp.ones_like(y))


def it_is_a_tree():
    _, pull = jax.vjp(layer, FIRST, X)
    leaves, tree = jax.tree.flatten(pull)
    print(len(leaves), [leaf.shape for leaf in leaves])
    again = jax.tree.unflatten(tree, [2 * leaf for leaf in leaves])
    return pull(jnp.ones((3, 2))), again(jnp.ones((3, 2)))


def what_it_holds():
    for f, args in ((layer, (FIRST, X)), (lambda w, x: jnp.sin(w) + x, (1.0, 2.0)),
                    (lambda d, x: d["a"] * x + d["b"], ({"a": 1.0, "b": 2.0}, 3.0))):
        _, pull = jax.vjp(f, *args)
        print(len(pull.args_res), len(jax.tree.leaves(pull.args_res)), len(pull.opaque_residuals),
              pull.in_tree, pull.out_tree)


def an_argument_is_put_in_later():
    _, pull = jax.vjp(layer, FIRST, X)
    pull.args_res[0] = SECOND
    return pull(jnp.ones((3, 2)))


def one_of_several_pullbacks_is_kept():
    @jax.jit
    def forward(batches):
        return jax.lax.map(lambda x: layer(FIRST, x), batches), [
            jax.vjp(layer, FIRST, x)[1] for x in batches]
    ys, pulls = forward(jnp.stack([X, X + 1, X - 1]))
    return ys, [pull(jnp.ones((3, 2)))[0] for pull in pulls]


def mapped_pullbacks():
    ys, pulls = jax.vmap(lambda x: jax.vjp(lambda x: layer(FIRST, x), x))(X)
    jacobian = jax.vmap(jax.vjp(lambda x: layer(FIRST, x), X[0])[1])(jnp.eye(2))
    return ys, jax.vmap(lambda pull, ct: pull(ct))(pulls, jnp.ones((3, 2))), jacobian


def what_it_refuses():
    _, pull = jax.vjp(layer, FIRST, X)
    found = []
    for args in ((jnp.ones((3, 3)),), ((jnp.ones((3, 2)),),), (jnp.ones((3, 2)),) * 2):
        try:
            pull(*args)
        except Exception as error:
            found.append(f"{type(error).__name__}: {str(error).strip().splitlines()[0]}")
    return found


def a_linearized_function_is_a_tree_too():
    y, push = jax.linearize(lambda x: layer(FIRST, x), X)
    moved = jax.jit(lambda push, t: push(t))(push, jnp.ones_like(X))
    return y, moved, jax.linear_transpose(lambda t: layer(FIRST, X) * t @ FIRST, X)(X)
