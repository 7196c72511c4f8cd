"""The table of `scipy.special`."""

import numpy as np

from .draw import KEEP, Draw, Maker, call, named, reduction, unary

SOFT = "fffhes"


def several(count: int, kinds: str = "fffhis", domain: str = "positive") -> Maker:
    """Of numbers that broadcast."""
    def make(d: Draw) -> tuple:
        shapes = [*d.pair(), d.choice([(), (3,)]), ()][:count]
        kind = d.choice(kinds)
        others = [kind, kind, *kinds]
        return call(*[d.array(d.choice(others), s, domain) for s in shapes])
    return make


SPECIAL: dict[str, Maker] = {
    **named("erf erfc erfcx expit ndtr log_ndtr i0 i0e i1 i1e dawsn gammasgn", unary(
        SOFT + "i", "finite")),
    **named("gamma gammaln loggamma digamma factorial entr exp1 expi", unary(
        SOFT + "i", "positive")),
    **named("sici fresnel", unary("ffh", "finite")),
    "spence": unary("ffh", "positive"),
    **named("erfinv logit ndtri", unary(SOFT, "unit")),
    **named("beta betaln boxcox boxcox1p kl_div rel_entr xlogy xlog1py poch", several(2)),
    **named("gammainc gammaincc", several(2, "fffh")),
    "owens_t": several(2, "ffs", "unit"),
    "zeta": lambda d: call(d.array("f", (3,), "above one") + 1, d.array("f", (3,), "above one")),
    "polygamma": lambda d: call(d.choice([0, 1, 2]), d.array("ffs", domain="positive")),
    "betainc": lambda d: call(d.array("f", (3,), "positive"), d.array("f", (3,), "positive"),
                              d.array("f", (3,), "unit") ** 2),
    "comb": lambda d: call(d.array("fi", (3,), "positive"), d.array("fi", (3,), "unit"),
                           **d.some(repetition=True)),
    "expn": lambda d: call(np.int32(d.choice([0, 1, 2, 5])), d.array("f", domain="positive")),
    "hyp1f1": several(3, "f"),
    "hyp2f1": lambda d: call(*[d.array("f", (3,), "positive") for _ in range(3)],
                             d.array("f", (3,), "unit") * np.float32(0.5)),
    "multigammaln": lambda d: call(d.array("f", (3,), "above one") + 2, static=(d.choice([1, 3]),)),
    "wofz": unary("fcc", "finite"),
    "bernoulli": lambda d: call(first=(d.choice([0, 1, 5]),)),
    "bessel_jn": lambda d: call(d.array("f", (3,), "positive"), v=d.choice([0, 2, 3])),
    "sph_harm_y": lambda d: call(np.int32([1, 2]), np.int32([0, 1]), np.float32([.5, 1]),
                                 np.float32([.3, 2]), n_max=2),
    **named("softmax log_softmax", reduction("fffh", where=False, domain="finite")),
    "logsumexp": reduction("fffhi", domain="finite", return_sign=[True], **KEEP),
}
