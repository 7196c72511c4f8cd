"""Lengths that a Fourier transform takes in one piece: products of small primes.

Builds on nothing; `fft` chooses a form by them, and its loops a plan.
"""

LARGEST_FACTOR = 19     # the loops have a step for every prime up to this one
LONGEST = 8192          # contiguous numbers transformed in one piece, which stay in a cache
LONGEST_COLUMNS = 2048  # the same, for columns side by side


def prime_factors(n: int) -> list[int]:
    """The prime factors of n, the smallest first.

    >>> prime_factors(360)
    [2, 2, 2, 3, 3, 5]
    """
    factors: list[int] = []
    p = 2
    while p * p <= n:
        while n % p == 0:
            factors, n = [*factors, p], n // p
        p += 1
    return [*factors, n] if n > 1 else factors


def is_smooth(n: int, longest: int | None = None) -> bool:
    """Whether all prime factors of a length are small, and it is not too long.

    >>> is_smooth(1000), is_smooth(997), is_smooth(4096, LONGEST_COLUMNS)
    (True, False, False)
    """
    return (n > 0 and (longest is None or n <= longest)
            and max(prime_factors(n), default=1) <= LARGEST_FACTOR)
