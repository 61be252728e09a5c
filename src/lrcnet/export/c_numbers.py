"""The two arithmetics of generated C: float32, and int16 weights with 32-bit fixed-point numbers.

Cells and solvers are written once, in terms of the macros of these preambles: `num` is a number, `CONST(x)` a positive
constant, `LOAD(w, i)` an entry of a weight array, `TIMES(w, i, x)` the product of an entry and a number; MUL, DIV and
ADD work on two numbers. A `wide` holds sums of many numbers, and `SUM(x)` makes it a number again: fixed-point numbers
end at a limit and never overflow, whatever readings a sensor delivers.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lrcnet.export.network import Array

FRACTION_BITS = 16
_LARGEST = 32767


@dataclass(frozen=True)
class Arithmetic:
    """One arithmetic.

    Attributes:
        preamble: C code before the cells: types, macros and elementary functions.
        own_exp: C code of an exponential of its own, in place of expf.
        weight: C type of a stored weight.
        bytes_per_weight, bytes_per_number: storage in flash, and in memory.
        literal: a number as C source.
        store: an array as integers or floats, and the number of its fractional bits.
        tolerance: largest error of the self-test, as a share of the largest answer.
        resolution: an error that the numbers allow whatever the size of the answers.
    """

    preamble: str
    own_exp: str
    weight: str
    bytes_per_weight: int
    bytes_per_number: int
    literal: Callable[[float], str]
    store: Callable[[Array], tuple[list[str], int]]
    tolerance: float
    resolution: float = 0.0


def float_literal(value: float) -> str:
    """Return a number as C source of a float32."""
    if not np.isfinite(value):
        raise ValueError(f"C source needs finite weights, but one is {value}; train the network again")
    # Nine digits determine a float32.
    text = f"{np.float32(value):.9g}"
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


def _fixed_literal(value: float) -> str:
    return str(round(float(value) * 2**FRACTION_BITS))


def _store_floats(values: Array) -> tuple[list[str], int]:
    return [float_literal(value) for value in values.ravel()], 0


def _store_int16(values: Array) -> tuple[list[str], int]:
    """Return an array as 16-bit integers v with value = v / 2^shift, with the largest shift that fits."""
    largest = float(np.abs(values).max(initial=0.0))
    if not np.isfinite(largest) or largest >= 2**14:
        raise ValueError(
            f"int16 weights must be finite and below 16384, but one is {largest:g}; standardise the data, or use "
            "float32"
        )
    shift = 15 if largest == 0 else min(30, int(np.floor(np.log2(_LARGEST / largest))))
    return [str(int(value)) for value in np.rint(values.ravel() * 2.0**shift)], shift


_FLOAT = """\
typedef float num;
typedef struct { const float *v; } array;
#define LOAD(w, i) ((w).v[i])
#define TIMES(w, i, x) ((w).v[i] * (x))
#define MUL(x, y) ((x) * (y))
#define DIV(x, y) ((x) / (y))
typedef float wide;
#define SUM(x) (x)
#define ADD(x, y) ((x) + (y))
#define ONE 1.0f
#define CONST(x) x##f
#define FROM_FLOAT(x) (x)
#define TO_FLOAT(x) (x)

static num sigmoid(num x) {
  num e = EXP(x < 0.0f ? x : -x);
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

static num tangent(num x) {
  num size = x < 0.0f ? -x : x, t, z;
  if (size < 1.0f) { /* near 0 the quotient below would lose digits; tanh(2 y) is a quotient of tanh(y) */
    t = size < 0.5f ? size : 0.5f * size;
    z = t * t;
    t += t * z * (-0.333333333f + z * (0.133333333f + z * (-0.0539682540f + z * (0.0218694885f
        + z * (-0.00886323553f + z * (0.00359212803f + z * -0.00145583438f))))));
    if (size >= 0.5f) t = 2.0f * t / (1.0f + t * t);
  } else {
    z = EXP(-2.0f * size);
    t = 1.0f - 2.0f * z / (1.0f + z);
  }
  return x < 0.0f ? -t : t;
}

/* (exp(z) - 1) / z for z <= 0 */
static num phi(num z) {
  if (z > -0.5f)
    return 1.0f + z * (0.5f + z * (0.166666667f + z * (0.0416666667f + z * (0.00833333333f
        + z * (0.00138888889f + z * (0.000198412698f + z * 0.0000248015873f))))));
  return (EXP(z) - 1.0f) / z;
}

static num power(num x) {
  return x > 0.0f ? 1.0f / EXP(-x) : EXP(x);
}

/* x times the normal distribution function, by polynomials fitted to it */
static num gelu(num x) {
  num size = x < 0.0f ? -x : x, t, tail;
  if (size < 1.5f) {
    t = x * x;
    return x * (0.5f + x * (0.398942279f + t * (-0.0664903391f + t * (0.00997326192f + t * (-0.00118652687f
        + t * (0.000114388827f + t * (-8.73097606e-6f + t * 4.13416316e-7f)))))));
  }
  t = 1.0f / (1.0f + 0.3f * size);
  tail = EXP(-0.5f * size * size) * t * (0.119696263f + t * (0.119477341f + t * (0.10995984f + t * (0.0862219964f
      + t * (0.0496923408f + t * (0.0597994536f + t * -0.0452168691f))))));
  return x < 0.0f ? x * tail : x - x * tail;
}

/* sqrt(mean of squares + 1e-5) by Newton's rule; the loops run fewer than 70 times */
static num deviation(const num *x, int n) {
  num square = 0.0f, scale = 1.0f, root;
  int i;
  for (i = 0; i < n; i++) square += x[i] * x[i];
  square = square / (num)n + 1e-5f;
  if (!(square < 3e38f)) return square; /* infinite or NaN */
  for (; square >= 4.0f; square *= 0.25f) scale *= 2.0f;
  for (; square < 1.0f; square *= 4.0f) scale *= 0.5f;
  root = 0.5f + 0.4f * square;
  for (i = 0; i < 4; i++) root = 0.5f * (root + square / root);
  return root * scale;
}
"""

_FLOAT_EXP = """\
/* exp(x) for x <= 0, to about one unit in the last place; no library is needed */
static float own_exp(float x) {
  float n, r, p, scale = 1.0f;
  int k;
  if (!(x >= -87.0f)) return x < 0.0f ? 0.0f : x; /* NaN stays NaN */
  k = (int)(x * 1.44269504f - 0.5f);
  n = (float)k;
  r = (x - n * 0.693359375f) + n * 0.000212194440f;
  p = 1.0f + r * (1.0f + r * (0.5f + r * (0.166666667f + r * (0.0416666667f + r * (0.00833333333f
      + r * (0.00138888889f + r * 0.000198412698f))))));
  k = -k;
  {
    float half = 0.5f;
    for (; k; k >>= 1, half *= half) if (k & 1) scale *= half;
  }
  return p * scale;
}
#define EXP own_exp
"""

_FIXED = """\
/* A number is an integer with 16 fractional bits. */
typedef int32_t num;
typedef struct { const int16_t *v; int shift; } array;
#define ONE 65536
#define CONST(x) ((num)((x) * 65536))
#define LOAD(w, i) scaled((w).v[i], ONE, (w).shift)
#define TIMES(w, i, x) scaled((w).v[i], (x), (w).shift)
#define MUL(x, y) scaled((x), (y), 16)
#define DIV(x, y) quotient((x), (y))
typedef int64_t wide;
#define SUM(x) limited(x)
#define ADD(x, y) limited((int64_t)(x) + (y))
#define FROM_FLOAT(x) from_float(x)
#define TO_FLOAT(x) ((float)(x) / 65536.0f)

static num limited(int64_t x) {
  return x > INT32_MAX ? INT32_MAX : x < -INT32_MAX ? -INT32_MAX : (num)x;
}

/* x * y / 2^shift, rounded */
static num scaled(int32_t x, int32_t y, int shift) {
  int64_t product = (int64_t)x * y, half = shift ? (int64_t)1 << (shift - 1) : 0;
  return limited(product < 0 ? -((-product + half) >> shift) : (product + half) >> shift);
}

static num quotient(num x, num y) {
  return y ? limited((int64_t)x * ONE / y) : 0;
}

static num from_float(float x) {
  float y = x * 65536.0f;
  if (y != y) return 0;
  if (y > 2147483520.0f) return INT32_MAX;
  if (y < -2147483520.0f) return -INT32_MAX;
  return (num)(y < 0.0f ? y - 0.5f : y + 0.5f);
}

/* exp(x) for x <= 0, with 30 fractional bits: 2^-n times a polynomial of the rest */
static int64_t exponential(num x) {
  int64_t t = (int64_t)(-(int64_t)x) * 94548, r; /* 94548 / 2^16 = log2(e) */
  int n = (int)(t >> 32);
  if (n > 30) return 0;
  r = (t & 0xffffffff) >> 2;
  t = 1419; /* the Taylor coefficients of 2^-r times 2^30, from the eighth down */
  t = 16377 - ((t * r) >> 30);
  t = 165394 - ((t * r) >> 30);
  t = 1431680 - ((t * r) >> 30);
  t = 10327387 - ((t * r) >> 30);
  t = 59597083 - ((t * r) >> 30);
  t = 257941248 - ((t * r) >> 30);
  t = 744261118 - ((t * r) >> 30);
  t = 1073741824 - ((t * r) >> 30);
  return t >> n;
}

static num sigmoid(num x) {
  int64_t one = (int64_t)1 << 30, e = exponential(x < 0 ? x : -x);
  return (num)(((x < 0 ? e : one) << 16) / (one + e));
}

static num tangent(num x) {
  int64_t one = (int64_t)1 << 30, e;
  num size = x < 0 ? -x : x;
  e = exponential(size > 1048576 ? -2097152 : -2 * size);
  e = ((one - e) << 16) / (one + e);
  return (num)(x < 0 ? -e : e);
}

/* (exp(z) - 1) / z for z <= 0 */
static num phi(num z) {
  if (z > -8192) return ONE + z / 2 + MUL(z, z) / 6 + MUL(z, MUL(z, z)) / 24;
  return (num)((exponential(z) - ((int64_t)1 << 30)) * 4 / z);
}

static num power(num x) {
  int64_t e = exponential(x > 0 ? -x : x);
  return x > 0 ? limited(((int64_t)1 << 46) / (e ? e : 1)) : (num)(e >> 14);
}

/* x times the normal distribution function; beyond 6 the tail is smaller than a number's last bit */
static num gelu(num x) {
  num size = x < 0 ? -x : x, t, tail;
  if (size > 6 * ONE) return x < 0 ? 0 : x;
  t = quotient(ONE, ONE + MUL(CONST(0.3), size));
  tail = MUL(t, CONST(0.120327) + MUL(t, CONST(0.111159) + MUL(t, CONST(0.154106) + MUL(t, -CONST(0.0348859)
      + MUL(t, CONST(0.231452) - MUL(t, CONST(0.0821583)))))));
  tail = (num)(((int64_t)tail * exponential(-(MUL(size, size) / 2))) >> 30);
  return x < 0 ? MUL(x, tail) : x - MUL(x, tail);
}

/* sqrt(mean of squares + 1e-5); the mean has 32 fractional bits, its root 16 */
static num deviation(const num *x, int n) {
  int64_t square = 42950, root = 0, bit;
  int i;
  for (i = 0; i < n; i++) square += (int64_t)x[i] * x[i] / n;
  for (bit = (int64_t)1 << 31; bit; bit >>= 1) {
    int64_t next = root + bit;
    if (next <= INT32_MAX && next * next <= square) root = next;
  }
  return (num)root;
}
"""

ARITHMETICS: dict[str, Arithmetic] = {
    "float32": Arithmetic(_FLOAT, _FLOAT_EXP, "float", 4, 4, float_literal, _store_floats, 1e-5),
    "int16": Arithmetic(_FIXED, "", "int16_t", 2, 4, _fixed_literal, _store_int16, 5e-3, 8 / 2**FRACTION_BITS),
}
"""Every arithmetic by name."""
