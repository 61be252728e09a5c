// One unfolding of one vector of units, given its sums f, u, w: saturation, elastance, solver; and the way back.
#pragma once

#include "api.h"
#include "math.h"

namespace {

using lrcnet::kAsymmetric;
using lrcnet::kEuler;
using lrcnet::kExponential;
using lrcnet::kHybrid;
using lrcnet::kNone;
using lrcnet::kSymmetric;

struct Switches {
  bool saturated;
  int elastance, solver;
};

// eps(w) and its derivatives by w and by k_eps.
template <class T>
LRCNET_INLINE Vec<T> elastance(const Switches& is, Vec<T> w, Vec<T> k_eps, Vec<T>& by_w, Vec<T>& by_k) {
  if (is.elastance == kNone) return splat(T(1));
  if (is.elastance == kAsymmetric) {
    const Vec<T> s = sigmoid<T>(w);
    by_w = s - s * s;
    return s;
  }
  Vec<T> t[2] = {-w - k_eps, k_eps - w};
  sigmoid_of_minus<T, true, 2>(t);
  const Vec<T> plus = t[0] - t[0] * t[0], minus = t[1] - t[1] * t[1];
  by_w = plus - minus;
  by_k = plus + minus;
  return t[0] - t[1];
}

// The next state; F and U replace f and u. d is dt / K.
template <class T>
LRCNET_INLINE Vec<T> advance(const Switches& is, Vec<T> h, T d, Vec<T>& f, Vec<T>& u, Vec<T> w, Vec<T> k_eps, Vec<T> e_l) {
  Vec<T> eps = splat(T(1));
  if (is.saturated || is.elastance != kNone) {
    // All four together: each alone would wait for its own results.
    Vec<T> s[4] = {-f, T(2) * absolute<T>(u), -w - k_eps, k_eps - w};
    sigmoid_of_minus<T, true, 4>(s);
    if (is.saturated) f = s[0], u = hyperbolic_tangent<T>(u, s[1]);
    if (is.elastance != kNone) eps = is.elastance == kSymmetric ? s[2] - s[3] : s[2];
  }
  const Vec<T> c = d * eps, drive = u * e_l;
  if (is.solver == kEuler) return h + c * (drive - f * h);
  if (is.solver == kHybrid) return (h + c * drive) / (T(1) + c * f);
  Vec<T> value, slope;
  phi<T>(-c * f, value, slope);
  return h + c * value * (drive - f * h);
}

template <class T>
struct UnitGradient {
  Vec<T> h, f, u, w, d, e_l, k_eps;
};

// The gradients of one unfolding: F and U as advance left them, gh the gradient of the next state.
template <class T>
LRCNET_INLINE UnitGradient<T> retreat(const Switches& is, Vec<T> gh, Vec<T> h, T d, Vec<T> F, Vec<T> U, Vec<T> w,
                                      Vec<T> k_eps, Vec<T> e_l) {
  Vec<T> eps_w = {}, eps_k = {};
  const Vec<T> eps = elastance<T>(is, w, k_eps, eps_w, eps_k);
  const Vec<T> c = d * eps, drive = U * e_l;
  Vec<T> gc, gF, g_drive, gh_before;
  if (is.solver == kEuler) {
    gc = gh * (drive - F * h);
    gF = -gh * c * h;
    g_drive = gh * c;
    gh_before = gh - gh * c * F;
  } else if (is.solver == kHybrid) {
    const Vec<T> shrink = T(1) / (T(1) + c * F);
    const Vec<T> next = (h + c * drive) * shrink;
    gh_before = gh * shrink;
    gc = gh_before * (drive - next * F);
    gF = -gh_before * next * c;
    g_drive = gh_before * c;
  } else {
    Vec<T> value, slope;
    phi<T>(-c * F, value, slope);
    const Vec<T> rate = drive - F * h;
    const Vec<T> g_rate = gh * c * value, gz = gh * c * rate * slope;
    gc = gh * value * rate - gz * F;
    gF = -g_rate * h - gz * c;
    g_drive = g_rate;
    gh_before = gh - g_rate * F;
  }
  UnitGradient<T> g;
  g.h = gh_before;
  g.d = gc * eps;
  g.w = gc * d * eps_w;
  g.k_eps = gc * d * eps_k;
  g.e_l = g_drive * U;
  g.f = gF;
  g.u = g_drive * e_l;
  if (is.saturated) {
    g.f *= F - F * F;
    g.u *= T(1) - U * U;
  }
  return g;
}

}  // namespace
