"""Arrays that are written in place: made, read, written, handed over, frozen, differentiated."""

import jax
import jax.numpy as jnp


def told(f, *args):
    """What a call gives, or the error's kind."""
    try:
        return f(*args)
    except Exception as error:
        return type(error).__name__


def message(f, *args):
    try:
        return f(*args)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def a_compiled_function_writes():
    counts = jax.new_ref(jnp.zeros(4))

    @jax.jit
    def f():
        counts[2] += 1.5
    print(counts)
    f()
    f()
    print(counts)
    return counts[...]


def a_function_that_only_uses_one_inside():
    def f(x):
        ref = jax.new_ref(0.0)
        ref[...] = jnp.cos(x)
        ref[...] *= 2
        return ref[...]
    return f(0.5), jax.jit(f)(0.5), jax.grad(f)(0.5), jax.vmap(f)(jnp.arange(3.0))


def mathematics_is_of_values():
    ref = jax.new_ref(1.0)
    return told(jnp.sin, ref), told(lambda: ref + 1), jnp.sin(ref[...])


def what_it_is():
    ref = jax.new_ref(jnp.ones((2, 3)))
    print(ref.shape, ref.dtype, ref.ndim, ref.size, isinstance(ref, jax.Ref))
    print(isinstance(ref, jax.Array), len(ref))


def frozen():
    ref = jax.new_ref(jnp.arange(3))
    ref[1:] = jnp.array([7, 8])
    return jax.freeze(ref), jax.jit(lambda x: jax.freeze(jax.new_ref(x * 2)))(1.5)


def functions_in_place_of_brackets():
    ref = jax.new_ref(jnp.arange(4.0))
    first = jax.ref.get(ref, 0)
    old = jax.ref.swap(ref, slice(0, 2), jnp.array([5.0, 6.0]))
    jax.ref.set(ref, 3, jnp.float32(-1.0))
    jax.ref.addupdate(ref, 3, jnp.float32(0.5))
    return first, old, ref[...]


def every_kind_of_index():
    ref = jax.new_ref(jnp.arange(12.0).reshape(3, 4))
    ref[1] = ref[0]
    ref[2, 3] = ref[1, 2]
    ref[0, :3] = ref[:, 1]
    gathered = ref[jnp.array([0, 0, 1]), jnp.array([1, 2, 3])]
    ref[jnp.array([1, 2, 1]), jnp.array([0, 0, 1])] = gathered
    return ref[...], gathered, ref[-1], ref[1:, 2], ref[..., 0], ref[jnp.array(2)]


def an_index_that_is_traced():
    ref = jax.new_ref(jnp.zeros(4))

    @jax.jit
    def put(i, x):
        ref[i] = x
        return ref[i - 1]
    return put(2, 3.0), put(3, 4.0), ref[...]


def what_does_not_fit():
    ref = jax.new_ref(jnp.zeros((2, 3)))

    def assign(index, value):
        ref[index] = value
    return (message(assign, 0, jnp.ones(2)).partition("Transforms")[0],
            message(assign, ..., jnp.ones((2, 3), jnp.int32)), message(lambda: ref[5]))


def impure_functions():
    target, source = jax.new_ref(jnp.zeros(())), jax.new_ref(jnp.float32(3.0))

    @jax.jit
    def copy(target, source):
        target[...] = source[...]
    copy(target, source)
    print(target, source)

    @jax.jit
    def remember(x):
        target[...] = x
    remember(8.0)
    print(target)


def they_run_in_the_order_of_the_program():
    log = jax.new_ref(jnp.zeros(4, jnp.int32))
    place = jax.new_ref(0)

    @jax.jit
    def note(x):
        log[place[...]] = x
        place[...] += 1
    for x in (5, 3, 9):
        note(x)
    return log[...], place[...]


def what_may_not_be_done():
    ref = jax.new_ref(jnp.zeros(()))

    def twice(a, b):
        a[...] = b[...]

    def also_closed_over(a):
        a[...] = ref[...]

    def freezes(a):
        return jax.freeze(a)

    def returns(a):
        a[...] = 5.0
        return a
    def returns_in_a_tree(a):
        return {"ref": a, "one": 1.0}
    print(message(jax.jit(twice), ref, ref))
    for f in (also_closed_over, returns, returns_in_a_tree, lambda a: ref):
        print(message(jax.jit(f), ref).splitlines()[0])
    print(message(jax.lax.scan, lambda c, x: (c, ref), 0, jnp.arange(2)).splitlines()[0])
    print(message(jax.lax.cond, True, lambda: ref, lambda: ref).splitlines()[0])
    print(message(jax.vmap(twice), ref, ref).splitlines()[0] != "")
    print(isinstance(told(jax.new_ref, ref), str), isinstance(told(jax.jit(freezes), ref), str))


def mapped_as_an_argument():
    def distance(x, y, out):
        out[...] = jnp.abs(x - y).sum()
    points = jnp.arange(6.0).reshape(3, 2) ** 2
    out = jax.new_ref(jnp.zeros((3, 3)))
    jax.vmap(jax.vmap(distance, (0, None, 0)), (None, 0, 0))(points, points, out)
    print(out)
    return out[...]


def mapped_along_another_axis_and_shared():
    out, scale = jax.new_ref(jnp.zeros((2, 3))), jax.new_ref(jnp.float32(10.0))

    @jax.jit
    def f(x, out, scale):
        out[0] = x * scale[...]
        return x + out[1]
    found = jax.vmap(f, (0, 1, None))(jnp.arange(3.0), out, scale)
    return found, out[...], scale[...], jax.jit(jax.vmap(f, (0, 1, None)))(
        jnp.arange(3.0), out, scale)


def not_mapped_where_it_is_closed_over():
    ref = jax.new_ref(jnp.zeros(()))

    def f(x):
        ref[...] = x

    def through_an_argument(x, ref):
        ref[...] = x
    return [message(g, jnp.arange(3.0)).partition(": ")[2] for g in (
        jax.vmap(f), lambda x: jax.vmap(through_an_argument, (0, None))(x, ref))]


def read_where_it_is_closed_over():
    ref = jax.new_ref(2.0)
    return jax.vmap(lambda x: x * ref[...])(jnp.arange(3.0)), jax.grad(
        lambda x: x * ref[...])(1.0)


def read_where_it_is_computed_again():
    ref = jax.new_ref(jnp.float32(2.0))
    f = jax.checkpoint(lambda x: jnp.sin(x * ref[...]))
    return f(0.5), jax.jit(f)(0.5), jax.jit(lambda ref, x: f(x))(jax.new_ref(1.0), 0.25)


def differentiated_inside():
    @jax.jit
    def f(x):
        ref = jax.new_ref(x)
        ref[...] = ref[...] * ref[...]
        ref[...] += 3 * x
        return ref[...]
    return jax.grad(f)(3.0), jax.jvp(f, (3.0,), (1.0,))


def carried_beside_a_derivative():
    seen = jax.new_ref(jnp.zeros(()))

    def noting(x, ref):
        y = x + x
        ref[...] += jax.lax.stop_gradient(y)
        return y * y

    def leaking(x, ref):
        y = x + x
        ref[...] += y
        return y
    print(jax.grad(noting)(3.0, seen), seen)
    print(jax.jit(jax.grad(noting))(1.0, seen), seen)
    return message(jax.grad(leaking), 3.0, seen).partition(": ")[2]


@jax.custom_vjp
def stash(ref, x):
    return x


def stash_fwd(ref, x):
    return x, ref


def stash_bwd(ref, ct):
    ref[...] = ct
    return None, ct


stash.defvjp(stash_fwd, stash_bwd)


def gradients_are_carried_out():
    ref = jax.new_ref(jnp.zeros(()))

    def f(x, ref):
        x = x * 2
        x = stash(ref, x)
        return x * x
    slope = jax.grad(f)(0.5, ref)
    print(ref)
    again = jax.jit(jax.grad(f))(1.0, ref)
    print(ref)
    return slope, again, ref[...]


def in_loops():
    total, trail = jax.new_ref(0.0), jax.new_ref(jnp.zeros(5))

    def body(c, i):
        total[...] += c
        trail[i] = c
        return c + 1.5, trail[i] * 2
    out = jax.lax.scan(body, 1.0, jnp.arange(5))
    jax.lax.fori_loop(0, 3, lambda i, c: (total.__setitem__(..., total[...] + i), c)[1], 0)
    count = jax.new_ref(0)

    def step(x):
        count[...] += 1
        return x * 2
    end = jax.lax.while_loop(lambda x: x < 50, step, 1)
    return out, total[...], trail[...], end, count[...]


def in_branches():
    ref = jax.new_ref(1.0)

    def up(x):
        ref[...] += x
        return ref[...]

    def down(x):
        ref[...] -= x
        return -ref[...]
    f = jax.jit(lambda b, x: jax.lax.cond(b, up, down, x))
    return f(True, 2.0), f(False, 0.5), ref[...], jax.lax.switch(1, [up, down], 1.0), ref[...]


def loops_that_are_written_as_blocks():
    def foreach(*rows):
        return lambda body: jax.lax.scan(lambda _, row: (None, body(*row)), None, rows)[1]
    most = jax.new_ref(jnp.zeros((), jnp.int32))

    @foreach(jnp.array([3, 1, 4, 1, 5]), jnp.arange(5))
    def weighed(x, i):
        most[...] = jnp.maximum(most[...], x)
        return x * i
    print(most)
    return weighed


def a_loop_that_is_differentiated():
    def f(xs):
        ref = jax.new_ref(1.0)

        def body(_, x):
            ref[...] *= jnp.sin(x)
            return None, ref[...]
        return jax.lax.scan(body, None, xs)[1].sum()
    return jax.grad(f)(jnp.array([0.5, 1.0, 1.5]))


def at_its_place():
    @jax.jit
    def sines(ref):
        ref[...] = jnp.sin(ref[...])
    ref = jax.new_ref(jnp.arange(3.0))
    sines(ref)
    sines(ref)
    print(ref)


def uninitialised():
    @jax.jit
    def f():
        ref = jax.empty_ref(jax.ShapeDtypeStruct((2,), jnp.float32))
        ref[...] = jnp.array([1.0, 2.0])
        return ref[...]
    return f()


def handed_to_branches():
    ref = jax.new_ref(jnp.float32(4.0))

    def halve(ref, x):
        ref[...] /= 2
        return ref[...] + x
    return jax.lax.cond(True, halve, lambda ref, x: x, ref, 1.0), jax.lax.switch(
        1, [lambda ref, x: x, halve], ref, 2.0), ref[...]


def with_refs_of_a_pullback():
    def f(x):
        return (x ** 3).sum()
    x = jnp.array([1.0, 2.0])
    _, pull = jax.vjp(f, x)
    grad = jax.new_ref(jnp.ones(2))
    pull.with_refs(grad)(1.0)
    print(grad)
    pull.with_refs(grad)(2.0)
    return grad[...]


def with_refs_of_some_arguments():
    def f(w, x, y):
        return jnp.dot(w, x) * y
    w, x = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])
    _, pull = jax.vjp(f, w, x, 2.0)
    grad = jax.new_ref(jnp.zeros(2))
    results = pull.with_refs(jax.ad.GradValue(), grad, jax.ad.DontWant())(1.0)
    print([type(r).__name__ for r in results[1:]], grad)
    return results[0], grad[...]


def what_goes_where():
    total = jax.new_ref(jnp.float32(1.0))
    _, pull = jax.vjp(lambda d: d["a"] * d["b"], {"a": 2.0, "b": 3.0})
    result = pull.with_refs({"a": total, "b": jax.ad.GradValue()})(1.0)
    print(result[0]["a"], total)
    wide = jax.new_ref(jnp.zeros(2))
    _, pull = jax.vjp(lambda x, y: 2 * x, jnp.float32(1.0), 2)
    print(message(pull.with_refs(wide, jax.ad.GradValue()), jnp.float32(1.0)).partition(
        "Transforms")[0])
    print(pull.with_refs(total, jax.ad.DontWant())(jnp.float32(1.0)), total)
    return result[0]["b"], told(lambda: pull.with_refs(total)) == "done"


def unwanted_gradients_are_not_computed():
    _, pull = jax.vjp(lambda w, x: w @ x, jnp.ones((3, 3)), jnp.ones(3))
    both = jax.make_jaxpr(lambda: pull(jnp.ones(3)))()
    one = jax.make_jaxpr(
        lambda: pull.with_refs(jax.ad.GradValue(), jax.ad.DontWant())(jnp.ones(3)))()
    names = [[eqn.primitive.name for eqn in closed.eqns] for closed in (both, one)]
    return [each.count("dot_general") for each in names]


def a_pullback_holds_what_it_needs():
    w, x = jnp.eye(2) + 1, jnp.array([1.0, 2.0])
    _, pull = jax.vjp(lambda w, x: jnp.sin(w @ x), w, x)
    print([type(each).__name__ != "NotNeeded" for each in pull.args_res],
          len(pull.opaque_residuals), len(jax.tree.leaves(pull)))
    pull.args_res[0] = 2 * w
    print(pull.in_tree, pull.out_tree)
    return pull(jnp.ones(2)), told(pull, 1.0, 2.0)


def a_reference_inside_of_a_compiled_function():
    total = jax.new_ref(jnp.float32(2.0))

    @jax.jit
    def f(x, total):
        y, pull = jax.vjp(jnp.sin, x)
        pull.with_refs(total)(1.0)
        return y
    return f(1.0, total), total[...]


def sparse_reads_add_up():
    @jax.jit
    def take(x, i):
        return x[i]
    x, grad = jnp.arange(6.0), jax.new_ref(jnp.zeros(6))
    for i in (3, 5, 3):
        _, pull = jax.vjp(take, x, i)
        pull.with_refs(grad, jax.ad.GradValue())(1.0)
    return grad[...]


def gradients_of_small_batches_add_up():
    def loss(weights, xs):
        return jnp.mean(jax.lax.scan(lambda x, w: (jnp.dot(x, w), None), xs, weights)[0])

    def whole(weights, xs):
        total = jax.new_ref(jnp.zeros_like(weights))

        def part(_, xs):
            value, pull = jax.vjp(lambda weights: loss(weights, xs), weights)
            pull.with_refs(total)(jnp.ones_like(value))
            return (), value
        (), losses = jax.lax.scan(part, (), xs.reshape(5, 2, -1))
        return jax.freeze(total), losses
    weights = jnp.stack([jnp.eye(3) * k for k in (0.5, 1.0, 1.5)]) + 0.1
    return whole(weights, jnp.arange(30.0).reshape(10, 3) / 10)
