"""The tables of `numpy.linalg` and `numpy.fft`."""

import numpy as np

from .draw import KEEP, RICH, Draw, Maker, along_axis, binary, call, either, named, reduction

SQUARE = [(3, 3), (2, 2), (1, 1), (2, 3, 3), (0, 0), (0, 2, 2)]
WIDE = [(2, 3), (3, 2), (3, 3), (2, 2, 3), (1, 4)]


def square(kinds: str = "ffc", positive: bool = False, **options: list) -> Maker:
    """`f(a, …)` of square matrices; these options have the values that are listed."""
    return lambda d: call(d.matrix(kinds, d.choice(SQUARE), positive), **chosen(d, options))


def wide(kinds: str = "ffc", **options: list) -> Maker:
    """`f(a, …)` of any matrices."""
    return lambda d: call(d.array(kinds, d.choice(WIDE), "unit"), **chosen(d, options))


def chosen(d: Draw, options: dict[str, list]) -> dict:
    return {name: d.choice(values) for name, values in options.items() if d.random() < 0.5}


LINALG: dict[str, Maker] = {
    "cholesky": square(positive=True, upper=[True, False], symmetrize_input=[True, False]),
    "cond": square("f", p=[None, 1, -1, 2, -2, "fro", np.inf]),
    "cross": lambda d: call(d.array("fi", (2, 3), "finite"), d.array("fi", (3,), "finite")),
    **named("det slogdet inv", square("ffic")),
    "diagonal": lambda d: call(d.array("fib", d.choice([(2, 3), (4, 2, 2)])), **d.some(
        offset=lambda: d.choice([0, 1, -1]))),
    **named("eig eigvals", square("fc")),
    **named("eigh eigvalsh", square(positive=True, UPLO=["L", "U"])),
    "lstsq": lambda d: call(d.array("f", (4, 2), "unit"), d.array("f", d.choice([(4,), (4, 3)]))),
    "matmul": lambda d: call(d.array("fih", (2, 3), "finite"), d.array("fi", d.choice(
        [(3,), (3, 2), (2, 3, 1)]), "finite")),
    "matrix_norm": wide("ff", ord=["fro", "nuc", 1, -1, 2, -2, np.inf], **KEEP),
    "matrix_power": lambda d: call(d.matrix("fi", (2, 2)), static=(d.choice([0, 1, 2, 3, 5, -1]),)),
    "matrix_rank": wide("fi", rtol=[0.5]),
    "matrix_transpose": wide("fib"),
    "multi_dot": lambda d: call([d.array("fi", s, "finite") for s in d.choice(
        [((2, 3), (3, 2)), ((3,), (3, 2), (2,)), ((2, 3), (3, 1), (1, 4), (4, 2))])]),
    "norm": either(reduction("fffic", several=False, where=False, shapes=RICH, ord=[
        None, 1, 2, 3, 0.5, np.inf, -np.inf], **KEEP), wide(
            "f", ord=["fro", "nuc", 1, 2], axis=[(0, 1), (-2, -1)])),
    "outer": lambda d: call(d.array("fi", (3,), "finite"), d.array("fi", (2,), "finite")),
    "pinv": wide("f", rtol=[1e-4]),
    "qr": wide(mode=["reduced", "complete", "r"]),
    "solve": lambda d: call(d.matrix("ffic", s := d.choice(SQUARE)), d.array("ffi", d.choice(
        [s, (*s[:-2], s[-1], 2), s[-1:]]))),
    "svd": wide(full_matrices=[True, False], compute_uv=[False]),
    "svdvals": wide(),
    "tensordot": lambda d: call(d.array("fi", (2, 3), "finite"), d.array(
        "fi", (3, 2), "finite"), **d.some(axes=lambda: d.choice([1, ((0,), (1,)), 0]))),
    "tensorinv": lambda d: call(d.matrix("f", (4, 4)).reshape(2, 2, 4), ind=2),
    "tensorsolve": lambda d: call(d.matrix("f", (4, 4)).reshape(2, 2, 4), d.array("f", (2, 2))),
    "trace": wide("fib", offset=[0, 1, -1], dtype=[np.float32]),
    "vecdot": binary("fi", "finite", same=True),
    "vector_norm": reduction("fffc", where=False, ord=[0, 1, 2, 3, np.inf, -np.inf], **KEEP),
}

NORM = {"norm": [None, "ortho", "forward", "backward", "x"]}


def planes(kinds: str = "ffic") -> Maker:
    """`f(x, s, axes)` of several axes."""
    return lambda d: call(d.array(kinds, d.choice([(2, 3), (4, 2, 3), (1, 5)]), "finite"), **d.some(
        s=lambda: d.choice([(4, 4), (2, 2), (5, 1)]), axes=lambda: d.choice(
            [(0, 1), (-1, 0), (1, 0)]), norm=lambda: d.choice(NORM["norm"])))


FFT: dict[str, Maker] = {
    **named("fft ifft", along_axis("ffic", n=[1, 4, 7], **NORM)),
    **named("rfft ihfft", along_axis("ffi", n=[1, 4, 7], **NORM)),
    **named("irfft hfft", along_axis("ffc", n=[1, 4, 7], **NORM)),
    **named("fft2 ifft2 fftn ifftn", planes()),
    **named("rfft2 rfftn", planes("ffi")),
    **named("irfft2 irfftn", planes("ffc")),
    **named("fftfreq rfftfreq", lambda d: call(first=(d.choice([1, 4, 5]),), **d.some(
        d=0.5, dtype=np.float16))),
    **named("fftshift ifftshift", lambda d: call(d.array("fib", d.choice(RICH)), **d.some(
        axes=lambda: d.choice([0, -1, (0,)])))),
}
