// The sums of the parameters' gradients, and the gradients of the stored parameters that are written from them at the end
// of a backward pass.
#pragma once

#include "prepare.h"

namespace {

// The gradient sums of one part of the batch, laid out as the prepared weights.
template <class T>
struct Sums {
  T *state, *input, *o, *g_l, *p, *unit[kUnitLetters], *scale, *shift, *first;
  std::size_t count;

  void lay_out(Arena& arena, Sizes sizes, bool elastic) {
    const std::size_t before = arena.used;
    const index_t rows = sizes.vectors * kPlanes * kLanes<T>, wire = kWirePlanes * kLanes<T>;
    first = state = arena.take<T>(sizes.wired ? sizes.state_wires * wire : sizes.m * rows);
    input = arena.take<T>(sizes.input_wired ? sizes.input_wires * wire : sizes.n * rows);
    o = arena.take<T>(elastic ? sizes.o_rows() * sizes.m_padded : 0);
    g_l = arena.take<T>(sizes.m_padded), p = arena.take<T>(sizes.m_padded);
    for (T*& letter : unit) letter = arena.take<T>(sizes.m_padded);
    scale = arena.take<T>(sizes.n_padded), shift = arena.take<T>(sizes.n_padded);
    count = (arena.used - before) / sizeof(T);
  }

  void add(const Sums& other) const {
    for (std::size_t i = 0; i < count; ++i) first[i] += other.first[i];
  }
};

// Writes the gradients of all letters.
template <class T>
struct GradientWriter {
  static constexpr index_t W = kLanes<T>;
  const Problem& problem;
  const Gradients& gradients;
  const Sizes& sizes;
  const Prepared<T>& weights;
  bool elastic;

  // The gradient of max(v, 0) as the library defines it: it passes if v >= 0, or if a descent step would raise v.
  static T through_constraint(T gradient, T value) { return value >= T(0) || gradient < T(0) ? gradient : T(0); }

  // The gradient of a stored number is its letter's, times the unit.
  static void write_gradient(void* into, const T* from, double unit, const void* constraint, index_t count) {
    if (!into) return;
    const T times = static_cast<T>(unit);
    for (index_t i = 0; i < count; ++i) {
      const T gradient = from[i] * times;
      static_cast<T*>(into)[i] =
          constraint ? through_constraint(gradient, static_cast<const T*>(constraint)[i]) : gradient;
    }
  }

  // Writes a member's share of the `count` rows from `first` on, whose sums lie share after share.
  void write_row_gradients(const T* packed, index_t first, index_t count, const Member& member) const {
    const Share some = member.share(count);
    T *a = static_cast<T*>(gradients.letters.a), *b = static_cast<T*>(gradients.letters.b),
      *g = static_cast<T*>(gradients.letters.g), *k = static_cast<T*>(gradients.letters.k);
    const Letters<double>& units = *problem.units;
    const T a_unit = static_cast<T>(units.a), b_unit = static_cast<T>(units.b), g_unit = static_cast<T>(units.g),
            k_unit = static_cast<T>(units.k);
    for (index_t j = some.first; j < some.end; ++j) {
      Share share{0, 0};
      for (index_t v = 0, number = 0; v < sizes.vectors; ++v) {
        if (v == share.end) share = Share::of(sizes.vectors, number++, member.count);
        const T* from = packed + place_in_share<T>(share, count, j, v);
        const index_t at = (first + j) * sizes.m + v * W, here = sizes.m - v * W;
        const IVec<T> exists = problem.mask ? load_mask<T>(problem.mask + at, here) : ~IVec<T>{};
        store_part(a + at, masked<T>(load(from + kA * W) * a_unit, exists), here);
        store_part(b + at, masked<T>(load(from + kB * W) * b_unit, exists), here);
        store_part(k + at, masked<T>(load(from + kK * W) * k_unit, exists), here);
        // As `through_constraint`.
        const Vec<T> by_g = load(from + kG * W) * g_unit,
                     value = load_part(static_cast<const T*>(problem.letters.g) + at, here);
        const auto passes = (value >= T(0)) | (by_g < T(0));
        store_part(g + at, masked<T>(passes ? by_g : Vec<T>{}, exists), here);
      }
    }
  }

  // Writes the gradients of the synapses that exist; the caller has cleared the others.
  void write_wire_gradients(const Wires<T>& wires, const T* from, index_t start) const {
    const Letters<void*>& to = gradients.letters;
    const Letters<double>& units = *problem.units;
    const auto write = [](void* into, index_t at, const T* lanes, double unit) {
      return static_cast<T*>(into)[at] = sum_lanes<T>(load(lanes)) * static_cast<T>(unit);
    };
    for (index_t i = 0; i < sizes.m; ++i)
      for (index_t s = wires.first[i]; s < wires.first[i + 1]; ++s) {
        const index_t at = (start + wires.source[s]) * sizes.m + i;
        const T* sum = from + s * kWirePlanes * W;
        write(to.a, at, sum + kA * W, units.a), write(to.b, at, sum + kB * W, units.b);
        write(to.k, at, sum + kK * W, units.k);
        const T g = write(to.g, at, sum + kG * W, units.g);
        static_cast<T*>(to.g)[at] = through_constraint(g, static_cast<const T*>(problem.letters.g)[at]);
        if (to.o && elastic) write(to.o, at, sum + kO * W, units.o);
      }
  }

  // Clears the gradients of a, b, g, k, o in `rows` rows from `first` on.
  void clear_rows(index_t first, index_t rows) const {
    const Letters<void*>& to = gradients.letters;
    for (void* letter : {to.a, to.b, to.g, to.k, to.o})
      if (letter)
        std::memset(static_cast<T*>(letter) + first * sizes.m, 0, static_cast<std::size_t>(rows * sizes.m) * sizeof(T));
  }

  // Writes the gradients of o for the rows that are not in a list; zeros without an elastance.
  void write_o_gradients(const T* from, Share rows) const {
    const T unit = static_cast<T>(problem.units->o);
    for (index_t j = rows.first; gradients.letters.o && j < rows.end; ++j)
      for (index_t i = 0; i < sizes.m; i += W) {
        const index_t at = j * sizes.m + i, here = sizes.m - i;
        Vec<T> by_o = elastic ? load(from + j * sizes.m_padded + i) * unit : Vec<T>{};
        if (problem.mask) by_o = masked<T>(by_o, load_mask<T>(problem.mask + at, here));
        store_part(static_cast<T*>(gradients.letters.o) + at, by_o, here);
      }
  }

  // Writes one member's share of the rows.
  void write(const Sums<T>& all, const Member& member) const {
    write_o_gradients(all.o, member.share(sizes.o_rows()));
    if (sizes.wired) {
      clear_rows(0, sizes.m);
      write_wire_gradients(weights.state_wires, all.state, 0);
    } else {
      write_row_gradients(all.state, 0, sizes.m, member);
    }
    if (sizes.input_wired) {
      clear_rows(sizes.m, sizes.n);
      write_wire_gradients(weights.input_wires, all.input, sizes.m);
    } else {
      write_row_gradients(all.input, sizes.m, sizes.n, member);
    }
    if (member.number == 0) write_unit_gradients(all);
  }

  void write_unit_gradients(const Sums<T>& all) const {
    const Letters<void*>& to = gradients.letters;
    const Letters<double>& units = *problem.units;
    write_gradient(to.g_l, all.g_l, units.g_l, problem.letters.g_l, sizes.m);
    write_gradient(to.p, all.p, units.p, nullptr, sizes.m);
    for (int letter = 0; letter < kUnitLetters; ++letter) {
      const void* constraint = kUnit[letter].nonnegative ? problem.letters.*kUnit[letter].value : nullptr;
      write_gradient(to.*kUnit[letter].gradient, all.unit[letter], units.*kUnit[letter].unit, constraint, sizes.m);
    }
    write_gradient(to.input_scale, all.scale, units.input_scale, nullptr, sizes.n);
    write_gradient(to.input_shift, all.shift, units.input_shift, nullptr, sizes.n);
  }
};

}  // namespace
