"""Sigmoid, hyperbolic tangent and phi, made of exp alone, which Triton's interpreter has too; safe at both ends."""

import triton
import triton.language as tl

# Below this size of z, phi(z) = expm1(z) / z and its slope are power series of ten terms, which leave out less than
# 1e-13 of them; above it, the difference from 1 loses two bits.
_SERIES_BELOW = tl.constexpr(0.25)


@triton.jit
def sigmoid(z):
    """Return 1 / (1 + exp(-z)): exp overflows to infinity for z << 0, whose reciprocal is 0."""
    return 1.0 / (1.0 + tl.exp(-z))


@triton.jit
def _phi_series(z):
    """Return the sum of z^i / (i + 1)! for i < 10."""
    high = z * (1 / 720 + z * (1 / 5040 + z * (1 / 40320 + z * (1 / 362880 + z * (1 / 3628800)))))
    return 1.0 + z * (1 / 2 + z * (1 / 6 + z * (1 / 24 + z * (1 / 120 + high))))


@triton.jit
def _slope_series(z):
    """Return the derivative of the series, the sum of (i + 1) z^i / (i + 2)! for i < 10."""
    high = z * (6 / 5040 + z * (7 / 40320 + z * (8 / 362880 + z * (9 / 3628800 + z * (10 / 39916800)))))
    return 1 / 2 + z * (2 / 6 + z * (3 / 24 + z * (4 / 120 + z * (5 / 720 + high))))


@triton.jit
def phi(z):
    """Return expm1(z) / z, which is 1 at 0."""
    small = tl.abs(z) < _SERIES_BELOW
    return tl.where(small, _phi_series(tl.where(small, z, 0.0)), (tl.exp(z) - 1.0) / tl.where(small, 1.0, z))


@triton.jit
def phi_slope(z, value):
    """Return the derivative of phi at z, where phi(z) is `value`."""
    small = tl.abs(z) < _SERIES_BELOW
    return tl.where(small, _slope_series(tl.where(small, z, 0.0)), (tl.exp(z) - value) / tl.where(small, 1.0, z))


@triton.jit
def hyperbolic_tangent(u):
    """Return tanh(u) = -expm1(-2 |u|) / (2 + expm1(-2 |u|)) with the sign of u."""
    z = -2.0 * tl.abs(u)
    negative = z * phi(z)
    size = -negative / (2.0 + negative)
    return tl.where(u < 0, -size, size)
