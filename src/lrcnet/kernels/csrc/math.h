// Sigmoid, tanh and phi(z) = (exp(z) - 1) / z on vectors, in single and double precision.
#pragma once

#include "simd.h"

namespace {

template <class T>
struct Exp2;

// 2^z = 2^n 2^r, where r = z - n has a polynomial, minimax in relative error. Adding kRound to z rounds it to n and leaves
// n, plus the bias of an exponent, in the low bits, so that a shift makes the number 2^n.
#if defined(LRCNET_WIDE)
// n is a multiple of 1/32, and 2^n comes from a table: |r| <= 1/64, relative error 5.4e-8.
template <>
struct Exp2<float> {
  static constexpr int kDegree = 2;
  static constexpr float kCoefficients[kDegree + 1] = {1.0f, 0.69315733f, 0.2402265f};
  static constexpr float kRound = 393216.0f;
  static constexpr int kShift = 18;
  // For |z| up to this, exp(z) and its reciprocal are normal numbers.
  static constexpr float kLimit = 86.0f;
  // The bits of 2^(i / 32), less those that i itself will add.
  static constexpr std::int32_t kPowers[32] = {
      0x3f800000, 0x3f7ecd87, 0x3f7daac3, 0x3f7c980f, 0x3f7b95c2, 0x3f7aa43a, 0x3f79c3d3, 0x3f78f4f0,
      0x3f7837f0, 0x3f778d3a, 0x3f76f532, 0x3f767043, 0x3f75fed7, 0x3f75a15b, 0x3f75583f, 0x3f7523f6,
      0x3f7504f3, 0x3f74fbaf, 0x3f7508a4, 0x3f752c4d, 0x3f75672a, 0x3f75b9be, 0x3f76248c, 0x3f76a81e,
      0x3f7744fd, 0x3f77fbb8, 0x3f78ccdf, 0x3f79b907, 0x3f7ac0c7, 0x3f7be4ba, 0x3f7d257d, 0x3f7e83b3};
};
#else
// n is an integer: |r| <= 1/2, relative error 7.5e-8.
template <>
struct Exp2<float> {
  static constexpr int kDegree = 5;
  static constexpr float kCoefficients[kDegree + 1] = {1.00000007165471f,   0.693146967065035f,   0.240221197237107f,
                                                       0.0555071327185564f, 0.00967554134312133f, 0.00132764726319509f};
  static constexpr float kRound = 12582912.0f + 127.0f;
  static constexpr int kShift = 23;
  static constexpr float kLimit = 86.0f;
};
#endif

// n is an integer, relative error 3e-18.
template <>
struct Exp2<double> {
  static constexpr int kDegree = 11;
  static constexpr double kCoefficients[kDegree + 1] = {
      0.9999999999999999971,    0.69314718055994533046,   0.24022650695910156204,    0.055504108664819921605,
      0.0096181291075883352443, 0.0013333558146789921722, 0.00015403530462514432062, 0.000015252733489988525649,
      1.321543308967639918e-6,  1.0178198021671930844e-7, 7.0741056135081427963e-9,  4.4352827069572771511e-10};
  static constexpr double kRound = 6755399441055744.0 + 1023.0;
  static constexpr int kShift = 52;
  static constexpr double kLimit = 700.0;
};

template <class T>
constexpr T kLog2E = static_cast<T>(1.4426950408889634074);

// What an argument is the exponent of. The synapses' weights are packed with log2(e) folded into them (see synapses.h).
enum Base { kE, kTwo };

// 2^n, given n + kRound.
template <class T>
LRCNET_INLINE Vec<T> scale_by_power(Vec<T> rounded) {
  return (Vec<T>)((IVec<T>)rounded << Exp2<T>::kShift);
}

#if defined(LRCNET_WIDE)
template <>
LRCNET_INLINE Vec<float> scale_by_power<float>(Vec<float> rounded) {
  typedef std::uint32_t Bits __attribute__((vector_size(LRCNET_VECTOR_BYTES)));
  const IVec<float> bits = (IVec<float>)rounded;
  return (Vec<float>)((Bits)(bits << Exp2<float>::kShift) + (Bits)look_up(Exp2<float>::kPowers, bits));
}
#endif

// exp(unit z), or 2^z, = power * fraction, both positive; needs |unit z| <= kLimit, or NaN, which ends up in fraction.
// The unit is a power of two. z log2(e) is never rounded: it only occurs inside fused operations. Several vectors are
// computed together, because one alone would wait for each of its results.
template <class T, int N, Base base = kE>
LRCNET_INLINE void split_exp(const Vec<T> (&z)[N], Vec<T> (&power)[N], Vec<T> (&fraction)[N], T unit = T(1)) {
  using E = Exp2<T>;
  const T log2e = kLog2E<T> * unit;
  Vec<T> r[N];
  for (int i = 0; i < N; ++i) power[i] = (base == kTwo ? z[i] : z[i] * log2e) + E::kRound;
  for (int i = 0; i < N; ++i) r[i] = power[i] - E::kRound;
  for (int i = 0; i < N; ++i) r[i] = (base == kTwo ? z[i] : z[i] * log2e) - r[i];
  for (int i = 0; i < N; ++i) power[i] = scale_by_power<T>(power[i]);
  for (int i = 0; i < N; ++i) fraction[i] = E::kCoefficients[E::kDegree] * r[i] + E::kCoefficients[E::kDegree - 1];
#pragma GCC unroll 12
  for (int d = E::kDegree - 2; d >= 0; --d)
    for (int i = 0; i < N; ++i) fraction[i] = fraction[i] * r[i] + E::kCoefficients[d];
}

// 1 + exp(unit t), or 1 + 2^t, in place. Without Clamp the caller guarantees that |unit t| <= kLimit, and
// |t| <= kLimit log2(e) for base two.
template <class T, bool Clamp, int N, Base base = kE>
LRCNET_INLINE void one_plus_exp(Vec<T> (&t)[N], T unit = T(1)) {
  const T limit = Exp2<T>::kLimit * (base == kTwo ? kLog2E<T> : T(1) / unit);
  if (Clamp)
    for (int i = 0; i < N; ++i) t[i] = at_least(at_most(t[i], limit), -limit);
  Vec<T> power[N], fraction[N];
  split_exp<T, N, base>(t, power, fraction, unit);
  for (int i = 0; i < N; ++i) t[i] = fraction[i] * power[i] + T(1);
}

// The reciprocal of that, the sigmoid of -unit t, in place.
template <class T, bool Clamp, int N, Base base = kE>
LRCNET_INLINE void sigmoid_of_minus(Vec<T> (&t)[N], T unit = T(1)) {
  one_plus_exp<T, Clamp, N, base>(t, unit);
  for (int i = 0; i < N; ++i) t[i] = reciprocal<T>(t[i]);
}

template <class T>
LRCNET_INLINE Vec<T> sigmoid(Vec<T> z) {
  Vec<T> t[1] = {-z};
  sigmoid_of_minus<T, true, 1>(t);
  return t[0];
}

// exp(z), clamped to the range from exp(-kLimit) to exp(kLimit).
template <class T>
LRCNET_INLINE Vec<T> exponential(Vec<T> z) {
  Vec<T> t[1] = {at_least(at_most(z, Exp2<T>::kLimit), -Exp2<T>::kLimit)}, power[1], fraction[1];
  split_exp<T, 1>(t, power, fraction);
  return power[0] * fraction[0];
}

template <class T>
struct TanhSeries;

// (tanh(x) / x - 1) / x^2 in powers of x^2, minimax for |x| <= 0.6.
template <>
struct TanhSeries<float> {
  static constexpr int kDegree = 4;
  static constexpr float kCoefficients[kDegree + 1] = {-0.333333001333643f, 0.13331977652396f, -0.0537881351628446f,
                                                       0.0208098142915073f, -0.00591062647745452f};
};

template <>
struct TanhSeries<double> {
  static constexpr int kDegree = 12;
  static constexpr double kCoefficients[kDegree + 1] = {
      -0.33333333333333333076,    0.13333333333333272267,    -0.053968253968204840519,    0.021869488534189856937,
      -0.0088632354837964570243,  0.0035921273431372533217,  -0.0014558273412807834917,   0.00058997758562373189615,
      -0.00023887979527950344704, 0.00009603295380842822666, -0.000037094800700685993772, 0.000012248702689415944714,
      -2.4658650871023068799e-6};
};

// All-ones lanes but for the bit of the sign.
template <class T>
LRCNET_INLINE IVec<T> all_but_sign() {
  return (IVec<T>)splat(-T(0)) ^ ~IVec<T>{};
}

template <class T>
LRCNET_INLINE Vec<T> absolute(Vec<T> v) {
  return (Vec<T>)((IVec<T>)v & all_but_sign<T>());
}

// tanh(x), given tail = sigmoid(-2 |x|), which is used unless |x| is small.
template <class T>
LRCNET_INLINE Vec<T> hyperbolic_tangent(Vec<T> x, Vec<T> tail) {
  using S = TanhSeries<T>;
  const Vec<T> square = x * x;
  Vec<T> series = splat(S::kCoefficients[S::kDegree]);
  for (int d = S::kDegree - 1; d >= 0; --d) series = series * square + S::kCoefficients[d];
  const Vec<T> small = x * square * series + x;
  const Vec<T> size = T(1) - T(2) * tail;
  const Vec<T> large = (Vec<T>)((IVec<T>)size ^ ((IVec<T>)x & ~all_but_sign<T>()));  // with the sign of x
  return absolute<T>(x) < T(0.6) ? small : large;
}

// phi(z) = (exp(z) - 1) / z and its derivative; near 0, where the quotient loses digits, by their power series.
template <class T>
struct PhiSeries;

template <>
struct PhiSeries<float> {
  static constexpr int kDegree = 9;
};

template <>
struct PhiSeries<double> {
  static constexpr int kDegree = 15;
};

template <class T>
LRCNET_INLINE void phi(Vec<T> z, Vec<T>& value, Vec<T>& slope) {
  constexpr int degree = PhiSeries<T>::kDegree;
  // phi = sum z^k / (k+1)!, so phi' = sum k z^(k-1) / (k+1)!.
  T inverse_factorial[degree + 1];
  T factorial = 1;
  for (int k = 0; k <= degree; ++k) {
    factorial *= static_cast<T>(k + 1);
    inverse_factorial[k] = T(1) / factorial;
  }
  Vec<T> near = splat(inverse_factorial[degree]), near_slope = {};
  for (int k = degree - 1; k >= 0; --k) {
    near_slope = near_slope * z + near;
    near = near * z + inverse_factorial[k];
  }
  const Vec<T> e = exponential<T>(z);
  const auto close = absolute<T>(z) < T(0.7);
  const Vec<T> divisor = close ? splat(T(1)) : z;
  const Vec<T> far = (e - T(1)) / divisor;
  value = close ? near : far;
  slope = close ? near_slope : (e - far) / divisor;
}

}  // namespace
