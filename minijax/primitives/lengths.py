"""Which lengths a Fourier transform takes in one piece, factor by factor.

Stands on nothing; the primitives ask when they choose a form, the loops when they make a plan.
"""

LARGEST = 19    # the largest factor that is a step
LONGEST = 8192  # numbers in a row that is transformed in one piece: they stay in a cache
BESIDE = 2048   # the same, for columns side by side


def prime_factors(n: int) -> list[int]:
    """The primes of which n is the product, the smallest first.

    >>> prime_factors(360)
    [2, 2, 2, 3, 3, 5]
    """
    found: list[int] = []
    p = 2
    while p * p <= n:
        while n % p == 0:
            found, n = [*found, p], n // p
        p += 1
    return [*found, n] if n > 1 else found


def goes_in_steps(n: int, longest: int | None = None) -> bool:
    """Whether all factors of a length are small, and it is not too long.

    >>> goes_in_steps(1000), goes_in_steps(997), goes_in_steps(4096, BESIDE)
    (True, False, False)
    """
    return (n > 0 and (longest is None or n <= longest)
            and max(prime_factors(n), default=1) <= LARGEST)
