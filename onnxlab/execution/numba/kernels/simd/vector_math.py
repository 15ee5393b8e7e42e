"""Functions of float32 vectors: range reduction and polynomials, right to a few units in the last place.

Coefficients are those of Cephes (single precision) for exp and log; tanh and erf are minimax rational functions.
Infinities and NaN come out as NumPy has them.
"""

from __future__ import annotations

from math import inf, nan

import numpy as np

from onnxlab.execution.numba.kernels.simd.lanes import (
    copy_sign,
    equal,
    exponent,
    fma,
    greater,
    less,
    mantissa,
    not_equal,
    power_of_two,
    select,
    splat,
    vabs,
    vfloor,
    vmax,
    vmin,
    vround,
)
from onnxlab.execution.numba.machine.object_cache import helper

f = np.float32
_INF, _NAN = f(inf), f(nan)


@helper
def exp(x):
    """2**n * e**r with n whole and |r| <= log(2) / 2; the power in two factors, so that small results do not vanish.

    Where the result is 0 nothing is computed that would be subnormal: processors take a hundred times as long for that.
    """
    low = less(x, splat(f(-103.97)))
    kept = vmin(select(low, splat(f(0.0)), x), splat(f(88.8)))
    n = vfloor(fma(kept, splat(f(1.4426950408889634)), splat(f(0.5))))
    r = fma(n, splat(f(-0.693359375)), kept)
    r = fma(n, splat(f(2.12194440e-4)), r)
    p = fma(splat(f(1.9875691500e-4)), r, splat(f(1.3981999507e-3)))
    p = fma(p, r, splat(f(8.3334519073e-3)))
    p = fma(p, r, splat(f(4.1665795894e-2)))
    p = fma(p, r, splat(f(1.6666665459e-1)))
    p = fma(p, r, splat(f(5.0000001201e-1)))
    p = fma(p * r, r, r) + splat(f(1.0))
    half = vfloor(n * splat(f(0.5)))
    made = p * power_of_two(half) * power_of_two(n - half)
    made = select(greater(x, splat(f(88.722839))), splat(_INF), made)
    made = select(low, splat(f(0.0)), made)
    return select(not_equal(x, x), x, made)


@helper
def exp_below(x):
    """exp of numbers that are not above 0, or NaN: half the work of `exp`; 0 below -87.3, where floats lose digits."""
    low = less(x, splat(f(-87.3365)))
    kept = select(low, splat(f(-87.3365)), x)
    n = vround(kept * splat(f(1.4426950408889634)))
    r = fma(n, splat(f(-0.693359375)), kept)
    r = fma(n, splat(f(2.12194440e-4)), r)
    p = fma(splat(f(1.9875691500e-4)), r, splat(f(1.3981999507e-3)))
    p = fma(p, r, splat(f(8.3334519073e-3)))
    p = fma(p, r, splat(f(4.1665795894e-2)))
    p = fma(p, r, splat(f(1.6666665459e-1)))
    p = fma(p, r, splat(f(5.0000001201e-1)))
    p = fma(p * r, r, r) + splat(f(1.0))
    return select(low, splat(f(0.0)), p * power_of_two(n))


@helper
def log(x):
    """log of mantissa and exponent; subnormal numbers are scaled first."""
    tiny = less(x, splat(f(1.1754944e-38)))
    scaled = select(tiny, x * splat(f(8388608.0)), x)
    e = exponent(scaled) - select(tiny, splat(f(23.0)), splat(f(0.0)))
    m = mantissa(scaled)
    low = less(m, splat(f(0.707106781186547524)))
    e = select(low, e - splat(f(1.0)), e)
    m = select(low, m + m, m) - splat(f(1.0))
    z = m * m
    p = fma(splat(f(7.0376836292e-2)), m, splat(f(-1.1514610310e-1)))
    p = fma(p, m, splat(f(1.1676998740e-1)))
    p = fma(p, m, splat(f(-1.2420140846e-1)))
    p = fma(p, m, splat(f(1.4249322787e-1)))
    p = fma(p, m, splat(f(-1.6668057665e-1)))
    p = fma(p, m, splat(f(2.0000714765e-1)))
    p = fma(p, m, splat(f(-2.4999993993e-1)))
    p = fma(p, m, splat(f(3.3333331174e-1)))
    p = p * m * z
    p = fma(e, splat(f(-2.12194440e-4)), p)
    p = fma(z, splat(f(-0.5)), p)
    made = fma(e, splat(f(0.693359375)), m + p)
    made = select(equal(x, splat(_INF)), x, made)
    made = select(equal(x, splat(f(0.0))), splat(-_INF), made)
    made = select(less(x, splat(f(0.0))), splat(_NAN), made)
    return select(not_equal(x, x), x, made)


@helper
def tanh(x):
    """Hyperbolic tangent by a rational approximation, clamped where it is ±1 in float32."""
    kept = vmin(vmax(x, splat(f(-7.90531110763549805))), splat(f(7.90531110763549805)))
    z = kept * kept
    p = fma(splat(f(-2.76076847742355e-16)), z, splat(f(2.00018790482477e-13)))
    p = fma(p, z, splat(f(-8.60467152213735e-11)))
    p = fma(p, z, splat(f(5.12229709037114e-08)))
    p = fma(p, z, splat(f(1.48572235717979e-05)))
    p = fma(p, z, splat(f(6.37261928875436e-04)))
    p = fma(p, z, splat(f(4.89352455891786e-03)))
    q = fma(splat(f(1.19825839466702e-06)), z, splat(f(1.18534705686654e-04)))
    q = fma(q, z, splat(f(2.26843463243900e-03)))
    q = fma(q, z, splat(f(4.89352518554385e-03)))
    made = select(greater(vabs(x), splat(f(9.01))), copy_sign(splat(f(1.0)), x), kept * p / q)
    return select(less(vabs(x), splat(f(0.0004))), x, made)


@helper
def sigmoid(x):
    """By the exponential of minus the size, which cannot overflow and keeps small results exact."""
    e = exp_below(splat(f(0.0)) - vabs(x))
    d = splat(f(1.0)) / (splat(f(1.0)) + e)
    return select(less(x, splat(f(0.0))), e * d, d)


@helper
def erf(x):
    """Error function by a rational approximation, clamped where it is ±1 in float32."""
    kept = vmin(vmax(x, splat(f(-4.0))), splat(f(4.0)))
    z = kept * kept
    p = fma(splat(f(-2.72614225801306e-10)), z, splat(f(2.77068142495902e-08)))
    p = fma(p, z, splat(f(-2.10102402082508e-06)))
    p = fma(p, z, splat(f(-5.69250639462346e-05)))
    p = fma(p, z, splat(f(-7.34990630326855e-04)))
    p = fma(p, z, splat(f(-2.95459980854025e-03)))
    p = fma(p, z, splat(f(-1.60960333262415e-02)))
    q = fma(splat(f(-1.45660718464996e-05)), z, splat(f(-2.13374055278905e-04)))
    q = fma(q, z, splat(f(-1.68282697438203e-03)))
    q = fma(q, z, splat(f(-7.37332916720468e-03)))
    q = fma(q, z, splat(f(-1.42647390514189e-02)))
    return select(greater(vabs(x), splat(f(3.93))), copy_sign(splat(f(1.0)), x), kept * p / q)


@helper
def softplus(x):
    """max(x, 0) + log(1 + exp(-|x|)), with log1p where the exponential is small."""
    e = exp(splat(f(0.0)) - vabs(x))
    u = splat(f(1.0)) + e
    near = equal(u, splat(f(1.0)))
    scaled = log(u) * (e / select(near, splat(f(1.0)), u - splat(f(1.0))))
    return vmax(x, splat(f(0.0))) + select(near, e, scaled)


@helper
def expm1(x):
    """exp(x) - 1 without cancellation near zero."""
    u = exp(x)
    safe = log(u)
    small = less(vabs(x), splat(f(1.0)))
    near = equal(u, splat(f(1.0)))
    fixed = (u - splat(f(1.0))) * (x / select(near, splat(f(1.0)), safe))
    return select(small, select(near, x, fixed), u - splat(f(1.0)))


@helper
def round_away(x):
    """Halves away from zero."""
    return copy_sign(vfloor(vabs(x) + splat(f(0.5))), x)
