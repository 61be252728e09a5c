// One unfolding of one vector of units, given its sums f, u, w: saturation, elastance, solver; and its gradient.
#pragma once

#include "api.h"
#include "math.h"

namespace {

using lrcnet::kAsymmetric;
using lrcnet::kEuler;
using lrcnet::kExponential;
using lrcnet::kHybrid;
using lrcnet::kNone;
using lrcnet::kSlope;
using lrcnet::kSymmetric;
using lrcnet::Letters;

struct Switches {
  bool saturated;
  int elastance, solver;
};

// Calls run(switches). The switches of an LRCU, the most frequent ones, come as constants, so that a compiler which
// inlines `run` leaves the other branches out of its loop.
template <class Run>
LRCNET_INLINE void with_switches(const Switches& switches, const Run& run) {
  if (switches.saturated && switches.elastance == kSymmetric && switches.solver == kEuler)
    run(Switches{true, kSymmetric, kEuler});
  else
    run(switches);
}

// The letters of a unit's own equation, beside its sums f, u, w. The code that copies these letters, sums their
// gradients and writes them runs over this list: a new one needs a member of Letters, a row here, and its place in the
// equations below.
enum { kEl, kKEps, kUnitLetters };

struct UnitLetter {
  const void* Letters<const void*>::* value;
  void* Letters<void*>::* gradient;
  double Letters<double>::* unit;
  bool nonnegative;  // values below 0 count as 0
};

constexpr UnitLetter kUnit[kUnitLetters] = {
    {&Letters<const void*>::e_l, &Letters<void*>::e_l, &Letters<double>::e_l, false},
    {&Letters<const void*>::k_eps, &Letters<void*>::k_eps, &Letters<double>::k_eps, true},
};

// eps(w) and its derivatives by w and by k_eps.
template <class T>
LRCNET_INLINE Vec<T> elastance(const Switches& switches, Vec<T> w, Vec<T> k_eps, Vec<T>& by_w, Vec<T>& by_k) {
  if (switches.elastance == kNone) return splat(T(1));
  if (switches.elastance == kAsymmetric) {
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

// The next state from the gates; c is dt / K times the elastance.
template <class T>
LRCNET_INLINE Vec<T> take_step(const Switches& switches, Vec<T> h, Vec<T> c, Vec<T> f, Vec<T> drive) {
  if (switches.solver == kEuler) return h + c * (drive - f * h);
  if (switches.solver == kHybrid) return (h + c * drive) / (T(1) + c * f);
  if (switches.solver == kSlope) return c * (drive - f * h);
  Vec<T> value, slope;
  phi<T>(-c * f, value, slope);
  return h + c * value * (drive - f * h);
}

// The next state; F and U replace f and u. d is dt / K.
template <class T>
LRCNET_INLINE Vec<T> advance(const Switches& switches, Vec<T> h, T d, Vec<T>& f, Vec<T>& u, Vec<T> w,
                             const Vec<T> (&unit)[kUnitLetters]) {
  Vec<T> eps = splat(T(1));
  if (switches.saturated || switches.elastance != kNone) {
    // All four sigmoids together: each alone would wait for its own results.
    Vec<T> s[4] = {-f, T(2) * absolute<T>(u), -w - unit[kKEps], unit[kKEps] - w};
    sigmoid_of_minus<T, true, 4>(s);
    if (switches.saturated) f = s[0], u = hyperbolic_tangent<T>(u, s[1]);
    if (switches.elastance != kNone) eps = switches.elastance == kSymmetric ? s[2] - s[3] : s[2];
  }
  return take_step<T>(switches, h, d * eps, f, u * unit[kEl]);
}

template <class T>
struct UnitGradient {
  Vec<T> h, f, u, w, d, unit[kUnitLetters];
};

// The elastance with its derivatives by w and by k_eps.
template <class T>
struct Elastic {
  Vec<T> eps, by_w, by_k;
};

// The gradients of one unfolding, given its gates: F and U as advance left them, gh the gradient of the next state.
template <class T>
LRCNET_INLINE UnitGradient<T> differentiate_gates(const Switches& switches, Vec<T> gh, Vec<T> h, T d, Vec<T> F, Vec<T> U,
                                                  const Elastic<T>& elastic, const Vec<T> (&unit)[kUnitLetters]) {
  const Vec<T> eps = elastic.eps, eps_w = elastic.by_w, eps_k = elastic.by_k;
  const Vec<T> c = d * eps, drive = U * unit[kEl];
  Vec<T> gc, gF, g_drive, gh_before;
  if (switches.solver == kEuler || switches.solver == kSlope) {
    gc = gh * (drive - F * h);
    gF = -gh * c * h;
    g_drive = gh * c;
    gh_before = (switches.solver == kEuler ? gh : Vec<T>{}) - gh * c * F;
  } else if (switches.solver == kHybrid) {
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
  g.unit[kKEps] = gc * d * eps_k;
  g.unit[kEl] = g_drive * U;
  g.f = gF;
  g.u = g_drive * unit[kEl];
  if (switches.saturated) {
    g.f *= F - F * F;
    g.u *= T(1) - U * U;
  }
  return g;
}

// The same, with the elastance computed again from w.
template <class T>
LRCNET_INLINE UnitGradient<T> advance_backward(const Switches& switches, Vec<T> gh, Vec<T> h, T d, Vec<T> F, Vec<T> U,
                                               Vec<T> w, const Vec<T> (&unit)[kUnitLetters]) {
  Elastic<T> elastic = {};
  elastic.eps = elastance<T>(switches, w, unit[kKEps], elastic.by_w, elastic.by_k);
  return differentiate_gates<T>(switches, gh, h, d, F, U, elastic, unit);
}

}  // namespace
