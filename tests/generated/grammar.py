"""What a line of a generated program can be, and what can stand around a whole program.

Each row is a function of a `Writer` that gives the text of a line, drawn from the values that the
program has. The public functions come from the tables of `tests/public`.
"""

from collections.abc import Callable

from tests.public import ADAPTED, NAMES, TABLE

from .programs import Named, Rejected, Writer, call_text

Row = Callable[[Writer], str]


def part(d: Writer, n: int) -> str:
    """An index of one axis with `n` elements."""
    k = d.randrange(n) if n else 0
    return d.choice([":", ":", f"{k}:", f":{k + 1}", "::-1", "::2", f"{k}:{k + 1}",
                     *([str(k), str(k - n), f"jnp.array([{k}])", f"np.array([{n - 1}, {k}])",
                        f"{place(d)} % {n}", integer(d, k)] if n else [])])


def integer(d: Writer, k: int) -> str:
    """A number as an index of any type."""
    return d.choice(["jnp.int32({})", "jnp.uint8({})", "np.int64({})", "np.int8({})",
                     "jnp.asarray({})", "jnp.uint32({})", "jnp.array([{}], 'int16')",
                     "jnp.int64({})"]).format(k)


def place(d: Writer) -> str:
    """A whole number that is computed."""
    x = d.pick("iu", lambda x: x.size > 0)
    return f"{x}" if not x.ndim else d.choice([
        f"{x}{[0] * x.ndim}", f"{x}.sum()", f"jnp.argmax({x})"])


def index(d: Writer, x: Named) -> str:
    """What may stand in the brackets after `x`."""
    if not x.ndim or d.random() < 0.1:
        return d.choice(["...", "None", "..., None"])
    parts = [part(d, n) for n in x.shape]
    if d.random() < 0.15:
        parts.insert(d.randrange(len(parts) + 1), "None")
    return ", ".join(parts[:d.randrange(1, len(parts) + 1)])


def axis(d: Writer, x: Named) -> int:
    return d.randrange(x.ndim)


def tall(x: Named) -> bool:
    return x.ndim > 0


def like(d: Writer, x: Named) -> Named:
    """A value of the same dtype and shape."""
    return d.pick(where=lambda y: y.dtype == x.dtype and y.shape == x.shape)


def starts(d: Writer, x: Named) -> str:
    return "".join(f"{d.choice([0, n - 1, 1, integer(d, 0)]) if d.random() < 0.5 else place(d)}, "
                   for n in x.shape)


def sizes(d: Writer, x: Named) -> tuple:
    return tuple(d.choice([1, n, min(2, n), max(n - 1, 1)]) if n else 0 for n in x.shape)


# ── Lines ────────────────────────────────────────────────────────────────────────────────────

NUMBER = "fffffiiiheupw"


def stacked(d: Writer) -> str:
    x = d.pick()
    others = [str(like(d, x)), f"{x} * 2" if x.dtype != bool else f"~{x}", f"{x}"]
    rows = ", ".join([f"{x}", *d.sample(others, d.choice([1, 2, 3]))])
    return f"jnp.stack([{rows}], {d.randrange(-1, x.ndim + 1)})"


def joined(d: Writer) -> str:
    x = d.pick(where=tall)
    at = axis(d, x)
    before = ":, " * at
    others = [f"{like(d, x)}", f"{x}[{before}:1]", f"{x}[{before}::-1]", f"{x}[{before}:0]"]
    return f"jnp.concatenate([{', '.join(d.sample([f'{x}', *others], d.choice([1, 2, 3])))}], {at})"


def arithmetic(d: Writer) -> str:
    x, y = d.pick(NUMBER), d.pick(NUMBER)
    return d.choice(["{0} + {1}", "{0} * {1} - {0}", "{0} - {1} * 2", "jnp.maximum({0}, {1}) * {1}",
                     "jnp.where({0} > 0, {0}, {1})", "{0} / (jnp.abs({1}) + 1)", "{0} * 0.5 + {0}",
                     "jnp.sin({0}) * {1}", "{0} * {0}", "jnp.exp(jnp.sin({0})) + {0}",
                     "jnp.tanh({0}) + jnp.cos({0})"]).format(x, y)


def reduced(d: Writer) -> str:
    x = d.pick(NUMBER)
    axes = d.choice([None, *range(-x.ndim, x.ndim), *([(0, 1), (0, -1)] if x.ndim > 1 else [])])
    keep = d.choice(["", ", keepdims=True"])
    return f"{x}.{d.choice(['sum', 'sum', 'max', 'min', 'mean', 'prod'])}(axis={axes}{keep})"


def normalised(d: Writer) -> str:
    x = d.pick("ffh", tall)
    at = axis(d, x)
    return d.choice([f"nn.softmax({x}, axis={at})", f"{x} - {x}.mean({at}, keepdims=True)",
                     f"{x} / (1 + jnp.abs({x}).sum({at}, keepdims=True))",
                     f"({x} - {x}.max({at}, keepdims=True)) * {x}[:1]"])


def looked_up(d: Writer) -> str:
    x, i = d.pick(where=tall), d.pick("iiu", lambda i: i.size < 50)
    at = axis(d, x)
    return d.choice([f"jnp.take({x}, {i}, axis={at}, mode='clip')", f"{x}[{i} % {x.shape[0]}]",
                     f"{x}[{i}]", f"{x}.at[{i}].get(mode='fill', fill_value=0)",
                     f"jnp.take_along_axis({x}, jnp.argsort({x}, {at}), {at})"])


def updated(d: Writer) -> str:
    x = d.pick()
    at = index(d, x)
    how = d.choice(["set", "set", "add", "multiply", "max", "min"])
    value = d.choice(["1", "2", f"{x}[{at}]", f"{x}[::-1][{at}]" if x.ndim else f"{x}",
                      f"{d.pick()}", f"{x}[{at}] * 2"])
    mode = d.choice(["", "", ", mode='drop'", ", mode='clip'"])
    return f"{x}.at[{at}].{how}({value}{mode})"


def scattered(d: Writer) -> str:
    x, i = d.pick(NUMBER, tall), d.pick("i", lambda i: 0 < i.size < 50)
    how = d.choice(["set", "add", "add", "multiply", "max"])
    values = d.choice(["1", f"{i} * 2", f"{x}.ravel()[0]"])
    if d.random() < 0.5:
        return f"{x}.at[{i}].{how}({values})"
    mode = d.choice(["'drop'", "'clip'", "'fill'", "lax.GatherScatterMode.FILL_OR_DROP", "None"])
    rows = f"jnp.ones(({i.size}, *{x.shape[1:]}), {x}.dtype)"
    numbers = (f"lax.ScatterDimensionNumbers({tuple(range(1, x.ndim))}, (0,), (0,))")
    return d.choice([
        f"{x}.at[{i}].{how}({values}, mode={mode}, wrap_negative_indices={d.random() < 0.5})",
        f"{x}.at[jnp.arange({len(x)})[::2]].{how}({values}, mode={mode}, unique_indices=True)",
        f"{x}.at[{i} % {max(len(x), 1)}].get(mode='promise_in_bounds')",
        f"{x}.at[jnp.sort({i}.ravel())].{how}(1, mode={mode}, indices_are_sorted=True)",
        f"{x}.at[{i}].apply(lambda a: a * 2, mode={mode})",
        f"lax.scatter_{d.choice(['add', 'mul', 'min', 'max'])}({x}, {i}.reshape(-1, 1), "
        f"{rows}, {numbers}, mode={mode})"])


NARROW = ["int4", "uint4", "int2", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz"]


def narrowed(d: Writer) -> str:
    """Numbers of a few bits, and what is computed of them."""
    x, y = d.pick("fffhip"), d.pick("fffhip")
    few = d.choice(NARROW)
    text = d.choice(["{0}", "{0}", "{0} + {0}", "{0} * {1}", "jnp.maximum({0}, {1})", "-{0}",
                     "{0}.sum()", "{0}.T", "{0} == {1}", "jnp.sort({0}.ravel())",
                     "jnp.where({0} > {1}, {0}, {1})", "jnp.stack([{0}, {0}])"])
    text = text.format(*(f"{z}.astype({few!r})" for z in (x, y)))
    return f"({text}).astype({'float32' if 'float' in few else 'int32'!r})"


def at_infinity(d: Writer) -> str:
    """A function of complex numbers where its parts are infinite, nan or zero of either sign."""
    parts = ["inf", "-inf", "nan", "0.", "-0.", "1.", "-2."]
    pairs = ", ".join(f"complex({d.choice(parts)}, {d.choice(parts)})" for _ in range(4))
    z = f"jnp.array([{pairs}], 'complex64')"
    f = d.choice("exp expm1 sqrt tanh tan sin cos sinh cosh log log1p abs sign square conj arcsin "
                 "arccos arctan arcsinh arccosh arctanh reciprocal exp2 log2 log10".split())
    part = d.choice(["real", "imag"])
    return (f"jnp.clip(jnp.nan_to_num(jnp.{f}({z}).{part}, nan=7, "
            "posinf=5, neginf=-5), -9, 9)")


def product(d: Writer) -> str:
    x = d.pick("fffih", lambda x: x.ndim == 2)
    y = d.choice([f"{x}.T", f"{d.pick('fffih', lambda y: y.ndim in (1, 2))}"])
    return d.choice([f"{x} @ {y}", f"{y} @ {x}", f"{x}.T @ {x}", f"({x} @ {y}).T",
                     f"jnp.einsum('ij,kj->ki', {x}, {y})", f"jnp.einsum('ij,ij->j', {x}, {x})",
                     f"lax.dot_general({x}, {y}, (((0,), (0,)), ((), ())))",
                     f"lax.dot_general({x}, {x}, (((1,), (1,)), ((0,), (0,))))",
                     f"jnp.tensordot({x}, {y}, 1) + 1", f"jnp.outer({x}, {y})",
                     f"jnp.dot({x}, {x}.T)[:1] * 2"])


def batched_product(d: Writer) -> str:
    x = d.pick("fffi", lambda x: x.ndim == 3)
    turned = d.sample(range(3), 3)
    return d.choice([f"jnp.einsum('bij,bkj->{''.join(d.sample('bik', 3))}', {x}, {x})",
                     f"{x} @ {x}.swapaxes(1, 2)", f"jnp.einsum('bij,bij->b', {x}, {x})",
                     f"jnp.einsum('bij->{''.join(d.sample('bij', 2))}', {x})",
                     f"jnp.matmul({x}.mT, {x})",
                     f"jnp.tensordot({x}.transpose({turned}), {x}, ((2,), ({turned[2]},)))",
                     f"jnp.tensordot({x}, {x}.transpose({turned}), (({turned[0]},), (0,)))"])


def part_of_matrices(d: Writer) -> str:
    """What reads or writes a part of each matrix of a stack."""
    x = d.pick("ffci", lambda x: x.ndim == 3 and 0 not in x.shape)
    i, j = (d.randrange(n) for n in x.shape[1:])
    k, at = d.choice([0, 1, -1]), d.choice([1, 2])
    return d.choice([
        f"jnp.diagonal({x}, {k}, -2, -1)", f"jnp.diagonal({x}, 0, 1, 2) * 2",
        f"jnp.trace({x}, {k}, 1, 2)", f"{x}[:, {i}]", f"{x}[:, :, {j}]", f"{x}[:, ::-1, {j}:]",
        f"{x}.mT", f"jnp.tril({x}, {k})", f"{x}.at[:, {i}, {j}].set(1)", f"{x}.sum({at})",
        f"{x}.at[:, {i}].add({x}[:, 0])", f"{x}.at[:, :, {j}].multiply(2)",
        f"jnp.cumsum({x}, {at})", f"{x} - {x}.sum({at}, keepdims=True)", f"({x} @ {x}.mT)[:, {i}]",
        f"jnp.concatenate([{x}, {x}[:, :, :1] * 2], -1)", f"jnp.where({x}.real > 0, {x}, 0)",
        f"jnp.stack([{x}[:, {i}], {x}[:, 0, ::-1]], 1)", f"jax.vmap(jnp.diag)({x}[:, {i}])",
        f"jax.vmap(lambda a: a.at[{i}].set(a[0] * 2).ravel())({x})",
        f"lax.fori_loop(0, 3, lambda k, a: a.at[:, {i}].multiply(k), {x})"])


def matrix_function(d: Writer) -> str:
    """Of a matrix that is far from singular, whatever the numbers."""
    x = d.pick("ff", lambda x: x.ndim >= 2 and 0 not in x.shape[-2:] and x.size < 200)
    a = f"jnp.tanh({x})"
    a = f"({a} @ {a}.mT + 2 * jnp.eye({x.shape[-2]}, dtype={a}.dtype))"
    return d.choice([f"jnp.linalg.inv({a})", f"jnp.linalg.cholesky({a})",
                     f"jnp.linalg.solve({a}, {x})", f"jnp.linalg.det({a})",
                     f"jnp.linalg.slogdet({a})[1]", f"jnp.linalg.eigvalsh({a})",
                     f"jnp.abs(jnp.linalg.qr({a})[1])", f"jnp.linalg.norm({x}, axis=-1)",
                     f"lax.linalg.triangular_solve({a}, {x}, left_side=True, lower=True)",
                     f"jnp.linalg.svd({a}, compute_uv=False)"])


def shaped(d: Writer) -> str:
    x = d.pick()
    if not x.ndim:
        return d.choice([f"{x}[None]", f"{x}.reshape(1, 1)", f"jnp.broadcast_to({x}, (3,))"])
    order = list(range(x.ndim))
    d.shuffle(order)
    n = x.shape[-1]
    return d.choice([f"{x}.ravel()", f"{x}.reshape({x.shape[::-1]})", f"{x}.reshape(1, -1)",
                     f"jnp.transpose({x}, {tuple(order)})", f"{x}[:, None]", f"{x}.T",
                     f"jnp.broadcast_to({x}, {(d.choice([1, 2, 3]), *x.shape)})",
                     f"{x}.reshape({(*x.shape[:-1], n // 2, 2)})" if n % 2 == 0 else f"{x}[None]",
                     f"jnp.flip({x}, {axis(d, x)})", f"jnp.roll({x}, 1, {axis(d, x)})",
                     f"jnp.repeat({x}, 2, axis={axis(d, x)})", f"jnp.expand_dims({x}, (0, -1))"])


def padded(d: Writer) -> str:
    x = d.pick(NUMBER, tall)
    widths = tuple((d.choice([0, 1, 2, -1]), d.choice([0, 1, -1]), d.choice([0, 0, 1]))
                   for _ in x.shape)
    return f"lax.pad({x}, {x}.ravel()[0], {widths})" if x.size and d.random() < 0.5 else (
        f"lax.pad({x}, jnp.array(1, {x.dtype.name!r}), {widths})")


def along_axis(d: Writer) -> str:
    x = d.pick(NUMBER, tall)
    at = axis(d, x)
    return d.choice([f"jnp.cumsum({x}, {at})", f"jnp.sort({x}, {at})", f"jnp.argsort({x}, {at})",
                     f"jnp.argmax({x}, {at}, keepdims=True)", f"jnp.diff({x}, axis={at})",
                     f"lax.cummax({x}, {at}, reverse=True)", f"lax.rev({x}, ({at},))",
                     f"lax.cumsum({x}, {at}, reverse=True)",
                     f"lax.top_k({x}, {min(2, x.shape[-1])})"])


def sparse(d: Writer) -> str:
    """What is computed of the elements that are not zero."""
    x = d.pick("fffi", lambda x: x.ndim == 2 and 0 < x.size < 100)
    mask = f"jnp.where({x} > 0, {x}, jnp.zeros_like({x}))"
    m = d.choice([f"sparse.BCOO.fromdense({mask}, nse={x.size})",
                  f"sparse.bcoo_fromdense({mask}, nse={x.size}, n_batch=1)",
                  f"sparse.bcoo_fromdense({mask}, nse={x.size}, n_dense=1)",
                  f"sparse.BCOO(({x}[:, 0], jnp.stack([jnp.arange({len(x)})] * 2, 1)), "
                  f"shape=({len(x)}, {len(x)}))"])
    return d.choice([f"{m}.todense()", f"{m}.T.todense()", f"{m} @ {x}.T", f"{x}.T @ {m}",
                     f"({m} * 2).todense()", f"({m} * {x}[:, :1]).todense()",
                     f"{m}.sum(0).todense()", f"{m}.sum_duplicates(nse={x.size}).todense()",
                     f"sparse.sparsify(lambda a: (a.T * 3 + a.T).sum(1))({m}).todense()",
                     f"{m}.reshape(({x.size},)).todense()", f"({m} + {m}).todense()",
                     f"sparse.bcoo_extract({m}, {x}).data", f"{m}.update_layout(n_batch=0).data",
                     f"sparse.grad(lambda m: (m @ {x}.T).sum())({m}).data"])


def slid(d: Writer) -> str:
    """Windows, convolutions, Fourier transforms, and what runs along an axis."""
    x = d.pick("fff", lambda x: x.ndim > 0 and 0 < x.size < 200)
    at = axis(d, x)
    window, step = [tuple(d.choice([1, 2, 3]) for _ in x.shape) for _ in "ab"]
    pairs = tuple(d.choice([(0, 1), (1, 0), (1, 1)]) for _ in x.shape)
    how = d.choice(["'SAME'", "'VALID'", f"{pairs}"])
    lines = [f"lax.reduce_window({x}, -inf, lax.max, {window}, {step}, {how})",
             f"lax.reduce_window({x}, 0., lax.add, {window}, {step}, {how})",
             f"lax.associative_scan(jnp.{d.choice(['add', 'maximum'])}, {x}, axis={at})",
             f"lax.associative_scan(jnp.add, jnp.sin({x}), reverse=True, axis={at})",
             f"jnp.convolve({x}.ravel(), {x}.ravel()[:3], {d.choice(['same', 'full', 'valid'])!r})",
             f"jnp.fft.fft({x}, axis={at}).real", f"jnp.fft.rfft({x}, axis={at}).imag",
             f"jnp.fft.irfft(jnp.fft.rfft({x}), {x.shape[-1]})",
             f"jnp.cov(jnp.sin({x}).ravel(), jnp.cos({x}).ravel())"]
    if x.ndim == 2 and x.shape[1] > 1:
        kernel = f"jnp.stack([{x}[:, :2], {x}[:, :-3:-1] * 2])"
        pads = d.choice(["'SAME'", "'VALID'", "[(1, 2)]"])
        wide = d.choice(["", ", lhs_dilation=(2,)", ", rhs_dilation=(2,)"])
        lines += [f"lax.conv_general_dilated({x}[None], {kernel}, "
                  f"({d.choice([1, 2])},), {pads}{wide})"] * 5
    return d.choice(lines)


def converted(d: Writer) -> str:
    x = d.pick()
    return f"{x}.astype({d.choice(['float32', 'int32', 'bool', 'int8', 'bfloat16', 'float16'])!r})"


def made(d: Writer) -> str:
    n = d.choice([1, 2, 3, 4])
    big = d.choice([4097, 5000]) if d.large else n
    return d.choice([f"jnp.arange({big})", f"jnp.ones(({n}, 2))", f"jnp.eye({n})",
                     f"jnp.zeros(({n},), 'int32')", f"jnp.linspace(0, 1, {n})",
                     f"lax.iota('float32', {n})", f"jnp.full(({n}, 1), {d.array('n')})"])


LINES: dict[str, tuple[int, Row]] = {
    "index": (6, lambda d: f"{(x := d.pick())}[{index(d, x)}]"),
    "dynamic_slice": (3, lambda d: (
        f"lax.dynamic_slice({(x := d.pick(where=tall))}, ({starts(d, x)}), {sizes(d, x)})")),
    "dynamic_update_slice": (3, lambda d: (
        f"lax.dynamic_update_slice({(x := d.pick(where=tall))}, {like(d, x)}"
        f"[{', '.join(f':{n}' for n in sizes(d, x))}], ({starts(d, x)}))")),
    "stack": (4, stacked), "concatenate": (4, joined), "arithmetic": (10, arithmetic),
    "reduction": (5, reduced), "normalise": (2, normalised), "gather": (3, looked_up),
    "update": (4, updated), "scatter": (2, scattered), "product": (4, product),
    "batched product": (3, batched_product), "matrix": (1, matrix_function),
    "matrices": (3, part_of_matrices), "masked": (1, lambda d: (
        f"{d.pick('ffhc')} * ({d.pick(NUMBER)} > 0){d.choice(['', '', '.astype(float)'])}")),
    "shape": (6, shaped), "pad": (2, padded),
    "few bits": (2, narrowed), "infinity": (1, at_infinity), "sparse": (2, sparse),
    "axis": (4, along_axis), "window": (3, slid), "convert": (1, converted), "create": (1, made),
    "where": (2, lambda d: f"jnp.where({d.pick('b')}, {d.pick()}, {d.pick()})"),
    "compare": (2, lambda d: f"{d.pick(NUMBER)} {d.choice(['<', '>=', '=='])} {d.pick(NUMBER)}"),
    "mask": (1, lambda d: f"{d.pick('b')} {d.choice('&|^')} ~{d.pick('b')}"),
    "tree": (1, lambda d: (
        f"jax.tree.leaves(jax.tree.map(lambda a, b: a - b, {{'p': {d.pick('fi')}, "
        f"'q': ({(y := d.pick('fi'))},)}}, {{'p': {y}, 'q': (1,)}}))")),
}


# ── Lines with a function ────────────────────────────────────────────────────────────────────

def rows(d: Writer) -> Named:
    """A value to loop over; what is left of it without a compiler is a loop in Python."""
    return d.pick(where=lambda x: x.ndim > 0 and 0 < x.shape[0] <= 12)


def values(d: Writer, count: int = 1, kinds: str = "") -> list[Named]:
    return [d.pick(kinds, lambda x: x.size < 300) for _ in range(count)]


def with_jit(d: Writer) -> str:
    xs = values(d, d.choice([1, 2]))
    around = d.choice(["jax.jit({})", "jax.jit({})", "jax.checkpoint({})", "{}", "own_jvp({})",
                       "own_vjp({})"])
    g = d.function(xs, outs=d.choice([1, 2]), closed="own" in around)
    return f"{around.format(g)}({', '.join(map(str, xs))})"


def with_depth(d: Writer) -> str:
    """Functions in functions, and trees in trees."""
    xs = values(d, d.choice([1, 2]))
    args = ", ".join(map(str, xs))
    if d.random() < 0.5:
        around = d.choice(["jax.jit", "jax.jit", "jax.checkpoint", "jax.named_call"])
        return f"nested({d.function(xs)}, {d.choice([2, 7, 20])}, {around})({args})"
    tree = f"boxed({xs[0]}, {d.choice([3, 60, 300])})"
    return d.choice([f"jax.tree.leaves(jax.jit(lambda t: t)({tree}))[0]",
                     f"jax.tree.leaves(jax.tree.map(lambda a, b: (a, b), {tree}, {tree}))[1]",
                     f"jax.tree.leaves(lax.cond(True, lambda t: t, lambda t: t, {tree}))[0]"])


def with_donation(d: Writer) -> str:
    """Arguments that are donated: new ones, what is read later, one that is given twice."""
    if not d.beside_jax:
        raise Rejected  # without a compiler nothing is donated
    x = d.pick(where=lambda x: x.size < 300)
    y = d.choice([f"{x}", f"{x}", f"{like(d, x)}", f"{x} * 1" if x.dtype != bool else f"~{x}"])
    g = d.function([x, x])
    given = d.choice(["0", "0", "(0, 1)"])
    return f"jax.jit({g}, donate_argnums={given})(jnp.array({x}), {y})"


COLLECTIVES = [*[f"lax.{name}(a, 'k')" for name in ("psum", "pmax", "pmin", "pmean", "all_gather")],
               "a * lax.axis_index('k')", "lax.all_gather(a, 'k', axis=-1, tiled=True)",
               "lax.ppermute(a, 'k', [(i, (i + 1) % {n}) for i in range({n})])",
               "lax.ppermute(a, 'k', [(0, {n} - 1)])", "lax.psum_scatter(a, 'k')",
               "lax.all_to_all(a, 'k', 0, 0)", "lax.psum_scatter(a, 'k', tiled=True)"]


def with_vmap(d: Writer) -> str:
    x = d.pick(where=tall)
    at, out = d.randrange(x.ndim), d.choice([0, 0, -1])
    if not x.shape[at]:
        raise Rejected
    (y,) = values(d)
    row = d.run(f"jnp.take({x}, 0, {at})")
    n = x.shape[at]
    across = d.choice(["", "", *COLLECTIVES])
    if across:
        like = d.run(f"jax.vmap(lambda a: {across.format(n=n)}, in_axes={at}, axis_name='k')({x})"
                     "[0]")
        g = d.function([row, like])
        return (f"jax.vmap(lambda a: {g}(a, {across.format(n=n)}), in_axes={at}, out_axes={out}, "
                f"axis_name='k')({x})")
    g = d.function([row, y], outs=d.choice([1, 2]))
    inner = f"lambda a, b: {{'p': [{g}(a, b)], 'q': (a, b)}}"
    axes = d.choice(["0", "-1", "{'p': -1, 'q': 0}", "{'p': 0, 'q': (-1, None)}",
                     "{'p': [0], 'q': (0, None)}"])
    return d.choice([
        f"jax.vmap({g}, in_axes=({at}, None), out_axes={out})({x}, {y})",
        f"jax.tree.leaves(jax.vmap({inner}, ({at}, None), {axes})({x}, {y}))",
        f"jax.vmap(lambda t: {g}(t['a'], t['b']), ({{'a': {at}, 'b': None}},), {out})"
        f"({{'a': {x}, 'b': {y}}})"])


def carry(d: Writer) -> Named:
    """Mostly an array: where its next value is stored is the question."""
    return d.pick(where=lambda x: x.size < 300 and (x.ndim > 0 or d.random() < 0.2))


def with_scan(d: Writer) -> str:
    c, xs = carry(d), rows(d)
    g = d.function([c, d.run(f"{xs}[0]")], like=[c, d.pick(where=lambda x: x.size < 60)])
    how = d.choice(["", "", ", reverse=True", ", unroll=2"])
    return f"lax.scan({g}, {c}, {xs}{how})"


def with_two_carries(d: Writer) -> str:
    xs = rows(d)
    a = carry(d)
    b = d.choice([carry(d), like(d, a)])
    g = d.function([a, b, d.run(f"{xs}[0]")], like=[a, b], lines=d.choice([1, 2, 3, 4]))
    return f"jax.tree.leaves(lax.scan(lambda c, r: ({g}(*c, r), c[1]), ({a}, {b}), {xs}))"


def with_changed_carry(d: Writer) -> str:
    """A state that is read before and after one place of it is written."""
    c, xs = d.pick("fffiih", where=lambda x: 0 < x.size < 300 and x.ndim), rows(d)
    here, there, seen = (index(d, c) for _ in range(3))
    how = d.choice(["set", "add", "multiply"])
    out = d.choice([f"[b[{here}], a[{seen}]]", f"[a[{here}], b[{here}] * 2]", f"b[{there}]"])
    return (f"lax.scan(lambda a, r: (lambda b: (b, {out}))(a.at[{here}].{how}(a[{there}].sum())), "
            f"{c}, {xs}{d.choice(['', ', reverse=True'])})")


def with_fori(d: Writer) -> str:
    c = carry(d)
    g = d.function([d.run("jnp.int32(1)"), c], like=[c])
    stop = d.choice(["3", "1", f"{place(d)} % 3"])
    return f"lax.fori_loop(0, {stop}, lambda i, c: {g}(i, c)[0], {c})"


def with_while(d: Writer) -> str:
    c = carry(d)
    g = d.function([c], like=[c])
    return (f"lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, {g}(s[1])[0]), "
            f"({d.choice(['0', '1', f'{place(d)}'])}, {c}))[1]")


def with_cond(d: Writer) -> str:
    xs = values(d, 2)
    g = d.function(xs, outs=1)
    result = d.run(f"{g}({xs[0]}, {xs[1]})")
    h = d.function(xs, like=[result])
    test = d.choice([f"{place(d)} > 0", f"{d.pick('b')}.any()", f"{xs[0]}.sum() > 1"])
    return f"lax.cond({test}, {g}, lambda *a: {h}(*a)[0], {xs[0]}, {xs[1]})"


def with_switch(d: Writer) -> str:
    (x,) = values(d)
    g, h = d.function([x], like=[x]), d.function([x], like=[x])
    return f"lax.switch({place(d)}, [{g}, {h}, lambda a: (a,)], {x})"


def with_map(d: Writer) -> str:
    xs = rows(d)
    g = d.function([d.run(f"{xs}[0]")], outs=d.choice([1, 2]))
    return f"lax.map({g}, {xs}{d.choice(['', '', ', batch_size=2'])})"


def with_derivative(d: Writer) -> str:
    x = d.pick("fff", lambda x: x.size < 40)
    (y,) = values(d)
    g = d.function([x, y], lines=2)
    h = f"lambda a: floats({g}(a, {y}))"
    return d.choice([f"jax.grad(lambda a: total({g}(a, {y})))({x})",
                     f"jax.jvp({h}, ({x},), (jnp.cos({x}),))[1]",
                     f"jax.linearize({h}, {x})[1](jnp.sin({x}))",
                     f"(lambda out, back: back(along(out)))(*jax.vjp({h}, {x}))",
                     f"jax.value_and_grad(lambda a: total({g}(a, {y})))({x})",
                     f"jax.jacfwd(lambda a: total({g}(a, {y})))({x})"])


def with_rule(d: Writer) -> str:
    """Rules of one's own, and what is remembered for them."""
    x = d.pick("fff", lambda x: x.size < 300)
    if d.random() < 0.5:
        return d.choice([
            f"jax.custom_gradient(lambda a: (jnp.sin(a), lambda ct: ct * 2))({x})",
            f"jax.checkpoint(lambda a: jnp.sin(named(jnp.cos(a) * a)), "
            f"policy=jax.checkpoint_policies.save_only_these_names('kept'))({x})",
            f"jax.custom_derivatives.linear_call(lambda r, v: v * jnp.cos(r), "
            f"lambda r, ct: ct * jnp.cos(r), {x}, {x} * 2)",
            f"lax.custom_root(lambda y: y + 0.5 * jnp.sin(y) - {x}, {x}, lambda f, y: "
            f"lax.fori_loop(0, 25, lambda _, y: y - f(y), y), "
            f"lambda g, y: y / g(jnp.ones_like(y)))",
            f"lax.custom_linear_solve(lambda v: v * 2.5, {x}, lambda f, b: "
            f"b / f(jnp.ones_like(b)), symmetric=True)"])
    xs = values(d, d.choice([1, 2]))
    g, args = d.function(xs, closed=True), ", ".join(map(str, xs))
    return d.choice([f"own_vmap({g})({args})", f"jax.custom_batching.sequential_vmap({g})({args})",
                     f"(lambda h, more: h({args}, *more))(*jax.closure_convert({g}, {args}))"])


def without_tangent(d: Writer) -> str:
    """Derivatives of functions of integers, whose tangents have the dtype float0."""
    x, n = d.pick("fff", lambda x: x.size < 100), d.pick("iub", lambda n: n.size < 100)
    f = f"lambda a, i: jnp.sin(a) * jnp.sum(i).astype({x.dtype.name!r})"
    zero = f"np.zeros({n.shape}, jax.dtypes.float0)"
    slope = f"jax.grad(lambda a, i: total([({f})(a, i)]), (0, 1), allow_int=True)"
    around = d.choice(["{}", "jax.jit({})"])
    return d.choice([
        f"{around.format(f'lambda a, i: jax.jvp({f}, (a, i), (jnp.cos(a), {zero}))[1]')}({x}, {n})",
        f"jax.vjp({f}, {x}, {n})[1](jnp.cos({x}))[0]",
        f"(lambda a, i: [a, jnp.zeros(i.shape), jnp.array(i.dtype == jax.dtypes.float0)])"
        f"(*{around.format(slope)}({x}, {n}))",
        f"jnp.reshape({around.format(slope)}({x}, {n})[1], -1).shape[0] + {x}",
        f"jax.linearize({f}, {x}, {n})[1](jnp.cos({x}), {zero})",
        f"jax.vmap({slope}, (None, 0))({x}, jnp.stack([{n}, {n}]))[0]",
        f"own_vjp({f})({x}, {n})", f"jax.grad(lambda a: total([own_vjp({f})(a, {n})]))({x})",
        f"jax.grad(lambda a: total([own_jvp({f})(a, {n})]))({x})"])


def with_two_references(d: Writer) -> str:
    x = d.pick("ffi", tall)
    y = d.pick(where=lambda y: y.dtype == x.dtype)
    return d.choice([
        f"both({x}, {d.pick('b')}, lambda r, s: s.__setitem__(..., s[...] & (r[...] > 0).any()))",
        f"both({x}, {y}, jax.jit(lambda r, s: r.__setitem__(0, (s[...] * 2).sum())))",
        f"both({x}, {x}, lambda r, s: r.__setitem__(0, jax.ref.swap(s, 0, r[0])))",
        f"both({x}, {y}, lambda r, s: lax.scan(lambda c, i: (jax.ref.addupdate(r, 0, s[...].sum()"
        f"), r[0]), None, jnp.arange(2)))",
        f"both({x}, {x}, lambda r, s: lax.cond(r[...].sum() > 0, lambda: jax.ref.set(r, 0, r[-1]), "
        f"lambda: jax.ref.set(s, 0, s[-1])))",
        f"jax.vmap(lambda a: kept(a, lambda r: r.__setitem__(..., r[...] * 2)))({x})",
        f"jax.grad(lambda a: total([kept(a, lambda r: r.__setitem__(0, r[0] * r[-1]))]))({x})"])


def with_reference(d: Writer) -> str:
    """A place in memory that is written and read."""
    x = d.pick("ffi", tall)
    here, there = index(d, x), index(d, x)
    change = d.choice(["r.__setitem__((...,), r[...] * 2)", f"r.__setitem__({n_th(x, here)}, 1)",
                       f"jax.ref.addupdate(r, {n_th(x, here)}, r[{there}].sum())"])
    again = d.choice(["", f", lax.fori_loop(0, 3, lambda i, c: (c, {change})[0], 0)"])
    return f"kept({x}, lambda r: ({change}, {change}{again}))"


def n_th(x: Named, at: str) -> str:
    """An index as an argument."""
    if ":" in at or "None" in at:
        raise Rejected
    return f"({at},)"


def with_callback(d: Writer) -> str:
    x = d.pick(NUMBER, tall)
    how = d.choice(["sequential", "expand_dims", "broadcast_all"])
    return (f"jax.pure_callback(lambda a: np.flip(np.asarray(a), -1), jax.ShapeDtypeStruct("
            f"{x.shape}, {x.dtype.name!r}), lax.stop_gradient({x}), vmap_method={how!r})")


def with_combining(d: Writer) -> str:
    """Reductions, windows and running results by a function."""
    x = d.pick("fff", lambda x: x.ndim > 0 and x.size < 200)
    at = axis(d, x)
    window = tuple(d.choice([1, 2, 3]) for _ in x.shape)
    small = f"jnp.sin({x}).astype('float32')"
    return d.choice([
        f"lax.reduce({small}, jnp.float32(0), lambda a, b: a + b, ({at},))",
        f"lax.reduce({small}, jnp.float32(1), lambda a, b: a * b, ({at},))",
        f"lax.reduce(({small}, {small} * 2), (jnp.float32(0), jnp.float32(9)), lambda a, b: "
        f"(a[0] + b[0], jnp.minimum(a[1], b[1])), ({at},))",
        f"lax.reduce_window({small}, jnp.float32(1), lambda a, b: a * b, {window}, {window}, "
        f"'SAME')",
        f"lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), "
        f"(jnp.cos({x}), {x}), axis={at}{d.choice(['', ', reverse=True'])})"])


def with_key(d: Writer) -> str:
    """Random numbers of keys that are arrays."""
    i, shape = place(d), d.pick(where=lambda x: x.size < 100).shape
    key = d.choice([f"jax.random.key({d.choice([0, 1, 7])})", f"jax.random.key(({i}) % 5)"])
    key = d.choice([key, f"jax.random.fold_in({key}, {i})", f"jax.random.split({key}, 3)[1]"])
    drawn = d.choice(["normal({}, {})", "uniform({}, {})", "randint({}, {}, 0, 9)", "bits({}, {})",
                      "bernoulli({}, 0.3, {})", "exponential({}, {})", "gumbel({}, {})"])
    if d.beside_jax and d.random() < 0.4:  # a key that is traced is printed in another way
        batch = d.choice(["", f"jax.vmap(lambda k: printed(k))(jax.random.split({key}, 2))[0]"])
        key = batch or f"printed({d.choice([key, f'jax.random.split({key}, (2, 1))[1, 0]'])})"
    return d.choice([
        f"jax.random.{drawn.format(key, shape)}",
        f"jax.vmap(lambda k: jax.random.{drawn.format('k', shape)})(jax.random.split({key}, 2))",
        f"jax.random.permutation({key}, {d.pick(where=tall)})",
        f"lax.scan(lambda k, _: (jax.random.split(k)[0], jax.random.normal(k, {shape})), "
        f"{key}, length=2)[1]"])


FUNCTIONS: dict[str, tuple[int, Row]] = {
    "jit": (3, with_jit), "vmap": (3, with_vmap), "scan": (3, with_scan),
    "carries": (5, with_two_carries), "changed": (3, with_changed_carry),
    "fori": (3, with_fori), "while": (2, with_while),
    "cond": (3, with_cond), "switch": (1, with_switch), "map": (3, with_map),
    "derivative": (3, with_derivative), "rule": (2, with_rule), "combining": (2, with_combining),
    "reference": (2, with_reference), "references": (1, with_two_references),
    "float0": (2, without_tangent), "callback": (1, with_callback), "key": (3, with_key),
    "depth": (2, with_depth), "donation": (2, with_donation),
}


# ── Choosing ─────────────────────────────────────────────────────────────────────────────────

SHORT = {"numpy": "jnp", "lax": "lax", "nn": "nn", "numpy.linalg": "jnp.linalg",
         "numpy.fft": "jnp.fft", "scipy.special": "jax.scipy.special", "random": "jax.random"}
PUBLIC = [(module, name) for module, name in NAMES
          if f"{module}.{name}" not in ADAPTED and not name.startswith("empty")]


def public(d: Writer) -> str:
    """A call of a public function, with arguments as its own test makes them."""
    module, name = d.choice(PUBLIC)
    return call_text(f"{SHORT[module]}.{name}", TABLE[module][name](d))


def choose(d: Writer, rows: dict[str, tuple[int, Row]]) -> str:
    [row] = d.choices([row for _, row in rows.values()], [weight for weight, _ in rows.values()])
    return row(d)


def write_line(d: Writer) -> None:
    """One more line: of the table here, of the public functions, or with a function."""
    chance = d.random()
    d.write(choose(d, LINES) if chance < 0.65 else public(d) if chance < 0.83 else
            choose(d, FUNCTIONS))


# ── Around a program ─────────────────────────────────────────────────────────────────────────

# From a function `f(x, n)` of a list of floats and a list of others to another such function.
LAYERS = {
    "jit": "jax.jit(f)(x, n)",
    "vmap": "jax.vmap(f, (0, None))(batch(x), n)",
    "vmap of the last axis": "jax.vmap(f, (-1, None), 0)(batch(x, -1), n)",
    "vmap of both": "jax.vmap(f, axis_name='rows')(batch(x), batch(n))",
    "vmap of the others": "jax.vmap(f, (None, 0))(x, batch(n)) if n else f(x, n)",
    "grad": "jax.grad(lambda x: total(f(x, n)))(x)",
    "value_and_grad": "jax.value_and_grad(lambda x: total(f(x, n)))(x)",
    "jvp": "jax.jvp(lambda x: floats(f(x, n)), (x,), (along(x),))",
    "linearize": "jax.linearize(lambda x: floats(f(x, n)), x)[1](along(x))",
    "vjp": "(lambda out, back: back(along(out)))(*jax.vjp(lambda x: floats(f(x, n)), x))",
    "hessian": "jax.hessian(lambda x: total(f(x, n)))(x) if sum(map(jnp.size, x)) < 40 else "
               "f(x, n)",
    "jacfwd": "jax.jacfwd(lambda x: total(f(x, n)))(x) if sum(map(jnp.size, x)) < 3000 else "
              "f(x, n)",
    "jacrev": "jax.jacrev(lambda x: total(f(x, n)))(x) if x else f(x, n)",
    "checkpoint": "jax.checkpoint(f)(x, n)",
    "checkpoint that keeps products": "jax.checkpoint(f, policy="
                                      "jax.checkpoint_policies.dots_saveable)(x, n)",
    "checkpoint that keeps all": "jax.checkpoint(f, policy="
                                 "jax.checkpoint_policies.everything_saveable)(x, n)",
    "scan": "lax.scan(lambda c, k: (c, f([c[0] + k, *c[1:]] if c else c, n)), x, "
            "jnp.arange(2.).astype(x[0].dtype) if x else jnp.arange(2.))",
    "map": "lax.map(lambda x: f(x, n), batch(x), batch_size=2) if x else f(x, n)",
    "cond": "lax.cond(sum([jnp.sum(y) for y in floats(x)]) > -1, f, lambda x, n: jax.tree.map("
            "lambda y: y | True if y.dtype == bool else y + 1, f(x, n)), x, n)",
}
