"""Calls of functions that have no table of arguments in `tests/public`, for both promotion flags.

For each module: calls without spaces, `lambda_x` for `lambda x`, of the arrays below.
"""

import inspect
from typing import Any

ARRAYS = ("v = jnp.cos(jnp.arange(3.)) * .4 + .5; n = jnp.arange(3); "
          "w = jnp.cos(jnp.arange(6.)).reshape(2, 3) * .4 + .5; "
          "a = jnp.cos(jnp.arange(9.)).reshape(3, 3); s = a @ a.T + 3 * jnp.eye(3); "
          "b = jnp.stack([s, s]); i = jnp.arange(9).reshape(3, 3) + 5 * jnp.eye(3, dtype=int); "
          "key = jax.random.key(0)")
DISTRIBUTIONS = ("bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom "
                 "gumbel_l gumbel_r laplace logistic multinomial multivariate_normal nbinom norm "
                 "pareto poisson t truncnorm uniform vonmises wrapcauchy").split()
# How the arguments of a distribution can be given; what promises no promotion is refused.
OF_NUMBERS = [("v", "v"), ("v", ".7"), ("n", ".7"), ("n", "2"), ("w", "v"), ("v", "w"),
              ("n", "v")]

OTHERS = {
    "lax.linalg": """cholesky(s) cholesky(b) eigh(s) eigh(b) eig(a) lu(a) lu(b) qr(a) qr(b) svd(a)
        svd(b) schur(a) hessenberg(a) tridiagonal(s) qdwh(a) triangular_solve(s,a,left_side=True)
        householder_product(a,v) ormqr(a,v,a) symmetric_product(a,s) cholesky_update(s,v)
        tridiagonal_solve(v,v+3,v,a) lu_pivots_to_permutation(n,3) triangular_solve(b,a)
        symmetric_product(b,s) householder_product(i,v) tridiagonal_solve(v,v,v,i)""",
    "nn.initializers": " ".join(
        f"{name}()(key,(4,3))" for name in (
            "delta_orthogonal glorot_normal glorot_uniform he_normal he_uniform kaiming_normal "
            "kaiming_uniform lecun_normal lecun_uniform normal orthogonal truncated_normal "
            "uniform "
            "xavier_normal xavier_uniform").split()) + """ zeros(key,(2,)) ones(key,(2,))
        constant(2)(key,(2,)) constant(v)(key,(2,3)) delta_orthogonal()(key,(3,2,3))
        variance_scaling(1.,'fan_avg','uniform')(key,(4,3)) normal()(key,(2,),'bfloat16')
        variance_scaling(2,'fan_in','truncated_normal',batch_axis=0)(key,(2,4,3))
        orthogonal(2)(key,(2,5)) uniform(v)(key,(3,)) uniform(v)(key,(2,3))""",
    "image": " ".join(
        f"resize({x},{shape},'{how}')" for x, shape in (("w", "(4,2)"), ("i", "(2,3)"))
        for how in ("nearest", "linear", "cubic", "lanczos3", "lanczos5")) + """
        scale_and_translate(w,(4,2),(0,1),v[:2],v[:2],'linear')
        scale_and_translate(w,(4,2),(0,1),n[:2]+1,v[:2],'cubic')
        resize(w,(4,2),'linear',antialias=False)""",
    "scipy.linalg": """block_diag(v,a) block_diag(n,a) cho_factor(s) cho_solve((s,True),v)
        cho_solve((s,True),a) cholesky(s) cholesky(i) circulant(v) companion(v)
        convolution_matrix(v,4) det(a) det(i) dft(3) eigh(s) eigh_tridiagonal(v,v[1:],True)
        expm(a)
        expm(i) expm(b) expm_frechet(a,s) fiedler(v) fiedler_companion(v) funm(s,jnp.exp)
        hadamard(4)
        hankel(v) hankel(v,n) helmert(3) hessenberg(a) hilbert(3) inv(s) inv(i) invhilbert(3)
        invpascal(3) leslie(v,v[1:]) leslie(v,n[1:]) lu(a) lu_factor(a) lu_solve((s,n),v)
        pascal(3)
        polar(a) qr(a) qr_multiply(a,v) rsf2csf(a,s) schur(a) solve(s,v) solve(s,n) solve(b,v)
        solve(s,a,assume_a='pos') solve_triangular(s,v) solve_triangular(i,v)
        solve_sylvester(a,s,a) sqrtm(s) svd(a) toeplitz(v) toeplitz(v,n) toeplitz(w,w)""",
    "scipy.signal": """convolve(v,v) convolve(v,n) convolve2d(a,w) correlate(v,v,'same')
        correlate2d(a,a) csd(v,v,nperseg=2) detrend(a) detrend(v,type='constant') fftconvolve(a,w)
        fftconvolve(v,n) istft(a) stft(v,nperseg=2) welch(v,nperseg=2) welch(a,nperseg=2)
        convolve(a,w,method='fft') detrend(n) istft(a,nperseg=4)""",
    "scipy.integrate": "trapezoid(v) trapezoid(w,v) trapezoid(n,v) trapezoid(w,dx=.5)",
    "scipy.optimize": "minimize(lambda_x:jnp.sum((x-1)**2),v,method='BFGS')",
    "scipy.fft": "dct(v) dct(n) dct(a,axis=0) idct(v) dctn(a) idctn(a) dctn(i)",
    "scipy.ndimage": """map_coordinates(a,[v,v],1) map_coordinates(i,[v,v],1)
        map_coordinates(a,[v,n],0) map_coordinates(a,jnp.stack([v,v]),1,mode='reflect')""",
    "scipy.interpolate": """RegularGridInterpolator((v,v),a)(w.T[:,:2])
        RegularGridInterpolator((n,v),a)(w.T[:,:2],'nearest')
        RegularGridInterpolator((v,v),i,fill_value=1.)(w.T[:,:2])""",
    "scipy.cluster.vq": "vq(a,w) vq(i,w) vq(a[:,:1],v[:,None])",
    "scipy.stats": """mode(v) mode(i) rankdata(v) rankdata(n) sem(a) sem(i) sem(v,ddof=0)
        gaussian_kde(v)(v) gaussian_kde(v)(n) gaussian_kde(w)(w) gaussian_kde(v).logpdf(v)
        gaussian_kde(v,weights=v).integrate_box_1d(0,1)
        gaussian_kde(w).integrate_kde(gaussian_kde(w))
        gaussian_kde(v).resample(key,(3,)) gaussian_kde(v,bw_method=.3).pdf(v)""",
    "scipy.sparse.linalg": "cg(s,v) cg(s,n) gmres(s,v) bicgstab(s,v) gmres(s,v,M=a) cg(s,w[0],v)",
    "ops": " ".join(
        f"segment_{name}({x},n,3{more})" for name in ("sum", "prod", "max", "min")
        for x in "van" for more in ("", ",mode='clip'")),
    # the first are of two dtypes, which some functions promote, and some convert
    "numpy": """place(v,v>.5,n,inplace=False) interp(v,v,n) interp(v,n,v)
        interp(v,v,v.astype(complex)) histogram(v,3,weights=n)
        piecewise(v,[v>.5],[lambda_x:x,lambda_x:x.astype(int)])
        array_equal(v,n) corrcoef(v,n) cov(v,n) cov(v,aweights=n)
        quantile(v,v,weights=n,method='inverted_cdf') r_[v,n] linspace(v[0],n[1],3)
        arange(v[0],n[2]) logspace(v[0],n[1],3) cov(w) cov(i) cov(v,v) cov(w,fweights=n+1)
        cov(w,aweights=v) corrcoef(w) corrcoef(i) cov(v,n) bartlett(4) blackman(4) hamming(4)
        hanning(4) kaiser(4,1.) kaiser(4,v[0]) i0(v) i0(n) ix_(n,n) spacing(v) trim_zeros(n)
        mask_indices(3,jnp.triu) fromfunction(lambda_x,y:x+y,(2,3)) piecewise(v,[v>.5],[1.,2.])
        select([v>1,v>.5],[v,n]) frompyfunc(lambda_x,y:x+y,nin=2,nout=1)(v,v)
        vectorize(lambda_x,y:x+y)(w,v) apply_along_axis(jnp.sum,0,a) unwrap(w) nanmedian(w,1)""",
    "lax": """associative_scan(jnp.add,v)
        custom_root(lambda_x:x**2-v,v,lambda_f,x:x,lambda_g,y:y/g(v))
        random_gamma_grad(v,v) random_gamma_grad(v,w) composite(lambda_x:x+1,'c')(v) stage(v)
        rng_uniform(0.,1.,(3,))
        rng_bit_generator(jnp.arange(4,dtype='uint32'),(3,))
        conv_transpose(b[None],b[None],(1,1),'SAME')
        custom_linear_solve(lambda_x:x*2,v,lambda_f,b:b/2,symmetric=True) betainc(v,v,v)
        igamma(v,w)
        map(lambda_x:x+v,w) fori_loop(0,3,lambda_i,c:c+v,v) scan(lambda_c,x:(c+x,c),v,a)""",
    "experimental.ode": "odeint(lambda_y,t:-y,v,v) odeint(lambda_y,t:-y*t,v,n)",
    "nn": """leaky_relu(v,n[0]) elu(v,n[1]) celu(v,n[1]+1) standardize(v,mean=n[0])
        scaled_matmul(jnp.ones((1,2,64)),jnp.ones((1,2,64)),jnp.ones((1,2,2)),jnp.ones((1,2,2)))
        dot_product_attention(*[jnp.ones((1,3,2,4))]*3,is_causal=True) standardize(w)
        standardize(i)
        softmax(w,where=v>.5) logsumexp(w,b=v) one_hot(n,3) glu(jnp.ones((2,4)))
        logmeanexp(w,where=v>.5)""",
}


def arguments(count: int, style: tuple[str, str]) -> str:
    first, rest = style
    return ",".join([first, *[rest] * (count - 1)])


def expressions(lib: Any, module: str) -> list[str]:
    """The calls of a module's functions."""
    if module not in OTHERS:
        distribution = getattr(lib.scipy.stats, module)
        out = []
        for name in ("cdf", "entropy", "isf", "logcdf", "logpdf", "logpmf", "logsf", "pdf", "pmf",
                     "ppf", "sf"):
            if hasattr(distribution, name):
                needed = [p for p in inspect.signature(
                    getattr(distribution, name)).parameters.values() if p.default is p.empty]
                out += [f"{name}({arguments(len(needed), style)})" for style in OF_NUMBERS]
        return out
    return [x.replace("lambda_", "lambda ") for x in OTHERS[module].split()]


MODULES = [*DISTRIBUTIONS, *OTHERS]
