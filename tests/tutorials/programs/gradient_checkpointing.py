"""Checkpointing: which values the forward pass keeps for the backward pass, and who decides."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name, print_saved_residuals

POLICIES = jax.checkpoint_policies
A = jnp.linspace(-1.0, 1.0, 12).reshape(4, 3)
B = jnp.linspace(0.5, -0.5, 20).reshape(5, 4)
C = jnp.linspace(-0.3, 0.9, 30).reshape(6, 5)
V = jnp.array([0.2, -0.4, 0.7])


def bend(weights, v):
    mixed = jnp.dot(weights, v)
    return jnp.sin(mixed)


def three_bends(first, second, third, v):
    v = bend(first, v)
    v = bend(second, v)
    return bend(third, v)


def what_is_kept_without_checkpoint():
    print_saved_residuals(three_bends, A, B, C, V)


def each_bend_is_checkpointed():
    def f(first, second, third, v):
        for weights in (first, second, third):
            v = jax.checkpoint(bend)(weights, v)
        return v
    print_saved_residuals(f, A, B, C, V)


def products_are_kept_by_a_policy():
    f = jax.checkpoint(three_bends, policy=POLICIES.dots_with_no_batch_dims_saveable)
    print_saved_residuals(f, A, B, C, V)


def each_policy_keeps_its_own():
    for name in ("everything_saveable", "nothing_saveable", "dots_saveable", "checkpoint_dots",
                 "checkpoint_dots_with_no_batch_dims"):
        print(name)
        print_saved_residuals(
            jax.checkpoint(three_bends, policy=getattr(POLICIES, name)), A, B, C, V)


def named_bends(first, second, third, v):
    v = checkpoint_name(bend(first, v), name="low")
    v = checkpoint_name(bend(second, v), name="middle")
    return checkpoint_name(bend(third, v), name="high")


def only_one_name_is_kept():
    policy = POLICIES.save_only_these_names("low")
    print_saved_residuals(jax.checkpoint(named_bends, policy=policy), A, B, C, V)


def names_are_kept_and_left_out():
    for policy in (POLICIES.save_any_names_but_these("low"),
                   POLICIES.save_anything_except_these_names("high"),
                   POLICIES.save_from_both_policies(
                       POLICIES.save_only_these_names("middle"), POLICIES.dots_saveable)):
        print_saved_residuals(jax.checkpoint(named_bends, policy=policy), A, B, C, V)
        print()


def operations(f, *args):
    """What a forward and a backward pass compute, in their order."""
    out, pull = jax.vjp(f, *args)
    held, tree = jax.tree.flatten(pull)
    forward = jax.make_jaxpr(lambda *args: jax.vjp(f, *args))(*args)
    backward = jax.make_jaxpr(lambda held, ct: jax.tree.unflatten(tree, held)(ct))(held, out)
    return forward.jaxpr, backward.jaxpr


def count(jaxpr, name):
    """How often an operation stands in a program, and in the programs inside it."""
    inner = [getattr(x, "jaxpr", x) for eqn in jaxpr.eqns for x in eqn.params.values()
             if hasattr(getattr(x, "jaxpr", x), "eqns")]
    return sum(eqn.primitive.name == name for eqn in jaxpr.eqns) + sum(
        count(each, name) for each in inner)


def the_backward_pass_computes_sines_again():
    found = []
    for f in (three_bends, jax.checkpoint(three_bends),
              jax.checkpoint(three_bends, policy=POLICIES.dots_with_no_batch_dims_saveable)):
        forward, backward = operations(f, A, B, C, V)
        found.append([count(backward, "sin"), count(backward, "cos")])
    return jnp.array(found)


def two_rules_for_one_sine():
    def keeping(x):
        slope = jnp.cos(x)
        return jnp.sin(x), lambda ct: slope * ct

    def computing_again(x):
        return jnp.sin(x), lambda ct: jnp.cos(x) * ct
    return [rule(0.7)[1](2.0) for rule in (keeping, computing_again)]


def inner(x):
    return jnp.tanh(x) * x


def outer(x):
    return jnp.exp(-x ** 2)


def a_composition_differentiated_by_hand():
    def keeping(x):
        y, pull_inner = jax.vjp(inner, x)
        z, pull_outer = jax.vjp(outer, y)
        return z, lambda ct: pull_inner(*pull_outer(ct))[0]

    def computing_again(x):
        y = inner(x)
        z, pull_outer = jax.vjp(outer, y)

        def pull(ct):
            between, = pull_outer(ct)
            _, pull_inner = jax.vjp(inner, x)
            return pull_inner(between)[0]
        return z, pull

    def by_checkpoint(x):
        return outer(jax.checkpoint(inner)(x))
    first, second = keeping(0.3), computing_again(0.3)
    return first[0], first[1](1.0), second[1](1.0), jax.value_and_grad(by_checkpoint)(0.3)


def where_checkpoint_saves_nothing():
    print_saved_residuals(lambda x: outer(inner(x)), 0.3)
    print("first")
    print_saved_residuals(lambda x: outer(jax.checkpoint(inner)(x)), 0.3)
    print("last")
    print_saved_residuals(lambda x: jax.checkpoint(outer)(inner(x)), 0.3)
    print("whole")
    print_saved_residuals(jax.checkpoint(lambda x: outer(inner(x))), 0.3)


def squared_error(layers, given, wanted):
    return jnp.sum((guess(layers, given) - wanted) ** 2)


def guess(layers, v):
    *hidden, last = layers
    for weights in hidden:
        v = bend(weights, v)
    return jnp.dot(last, v)


def named_squared_error(layers, given, wanted):
    *hidden, last = layers
    for place, weights in enumerate(hidden):
        given = checkpoint_name(bend(weights, given), name=f"hidden {place}")
    return jnp.sum((jnp.dot(last, given) - wanted) ** 2)


SQUARE = jnp.eye(3) * 0.5 + 0.1
LAYERS = [SQUARE, SQUARE + 0.2, SQUARE - 0.3]
WANTED = jnp.array([1.0, 0.0, -1.0])


def a_loss_and_what_it_keeps():
    print_saved_residuals(squared_error, LAYERS, V, WANTED)


def a_loss_that_keeps_products():
    policy = POLICIES.dots_with_no_batch_dims_saveable
    print_saved_residuals(jax.checkpoint(squared_error, policy=policy), LAYERS, V, WANTED)


def a_name_alone_changes_nothing():
    print_saved_residuals(named_squared_error, LAYERS, V, WANTED)


def a_loss_that_keeps_names():
    policy = POLICIES.save_any_names_but_these("hidden 1")
    print_saved_residuals(jax.checkpoint(named_squared_error, policy=policy), LAYERS, V, WANTED)


def gradients_do_not_depend_on_policies():
    plain = jax.grad(squared_error)(LAYERS, V, WANTED)
    return plain, [jax.grad(jax.checkpoint(named_squared_error, policy=policy))(LAYERS, V, WANTED)
                   for policy in (None, POLICIES.dots_saveable,
                                  POLICIES.save_only_these_names("hidden 0"))]


def chain(functions):
    def f(x):
        for function in functions:
            x = function(x)
        return x
    return f


def halved(functions):
    if len(functions) <= 2:
        return chain(functions[::-1])
    first = halved(functions[:len(functions) // 2])
    rest = halved(functions[len(functions) // 2:])
    return lambda x: first(jax.checkpoint(rest)(x))


def a_chain_keeps_as_many_as_it_is_long():
    print_saved_residuals(chain([jnp.sin] * 8), 3.0)
    print_saved_residuals(chain([jnp.sin] * 16), 3.0)


def a_chain_that_is_halved_keeps_few():
    print_saved_residuals(halved([jnp.sin] * 8), 3.0)
    print_saved_residuals(halved([jnp.sin] * 16), 3.0)


def what_halving_recomputes():
    found = []
    for f in (chain([jnp.sin] * 8), halved([jnp.sin] * 8)):
        forward, backward = operations(f, 3.0)
        found.append([count(forward, "sin"), count(backward, "sin"), count(backward, "cos")])
    return jnp.array(found), jax.grad(chain([jnp.sin] * 8))(3.0), jax.grad(
        halved([jnp.sin] * 8))(3.0)


MATRICES = jnp.stack([SQUARE, SQUARE * 0.3, SQUARE - 0.1])
SHIFTS = jnp.stack([V, V * 0.5, -V]) + 0.5


def relu_layer(v, layer):
    weights, shift = layer
    return jnp.maximum(jnp.dot(v, weights) + shift, 0.0), None


def a_loop_over_layers():
    def unrolled(layers, v):
        for weights, shift in layers:
            v = jnp.maximum(jnp.dot(v, weights) + shift, 0.0)
        return v

    def scanned(weights, shifts, v):
        return jax.lax.scan(relu_layer, v, (weights, shifts))[0]
    return (unrolled(list(zip(MATRICES, SHIFTS, strict=True)), V), scanned(MATRICES, SHIFTS, V),
            jax.grad(lambda *args: scanned(*args).sum(), (0, 1, 2))(MATRICES, SHIFTS, V))


def a_loop_whose_body_is_checkpointed():
    layer = partial(jax.checkpoint, policy=POLICIES.dots_with_no_batch_dims_saveable)(relu_layer)

    def scanned(weights, shifts, v):
        return jax.lax.scan(layer, v, (weights, shifts))[0].sum()
    return jax.jit(jax.value_and_grad(scanned, (0, 1, 2)))(MATRICES, SHIFTS, V)


def a_body_of_a_loop_without_barrier():
    layer = partial(jax.checkpoint, prevent_cse=False)(relu_layer)
    return jax.grad(lambda v: jax.lax.scan(layer, v, (MATRICES, SHIFTS))[0].sum())(V)


def told(f, *args, **kwargs):
    try:
        return f(*args, **kwargs)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def an_argument_that_is_static():
    def f(x, doubled):
        return jnp.sin(2 * x) if doubled else jnp.sin(x)
    print(told(jax.grad(jax.checkpoint(f)), 0.5, True).partition(":")[0])
    return (jax.grad(jax.checkpoint(f, static_argnums=(1,)))(0.5, True),
            jax.grad(jax.remat(f, static_argnums=1))(0.5, False),
            jax.grad(partial(jax.checkpoint, static_argnums=(-1,))(f))(0.5, True))


def mistakes_with_static_arguments():
    return (told(jax.checkpoint(jnp.sin, static_argnums=(3,)), 1.0),
            told(lambda: jax.checkpoint(jnp.sin, static_argnums=[0])(1.0)),
            told(lambda: jax.checkpoint(jnp.sin, concrete=True)),
            told(lambda: jax.checkpoint(jnp.sin, prevent_cse=3)))
