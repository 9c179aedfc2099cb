// Lower bounds on the distance from every row to every centre, kept from the last time the row was compared.
//
// One bound for all centres (Hamerly) falls by the largest step of any centre; these fall each by the steps of their
// own centre, and prove a label about twice as often. Nothing is updated while centres move: a bound is stored with
// the way its centre had gone by then, and what it has gone since is subtracted when the bound is asked for.
#pragma once

#include "tile.hpp"

namespace gmil {
namespace {

// `unit` bounds the rounding of one operation from above; `huge` can be added and squared without overflow.
template <class T>
struct Rounding;
template <>
struct Rounding<float> {
  static constexpr float unit = 6e-8F;
  static constexpr float huge = 1e37F;
};
template <>
struct Rounding<double> {
  static constexpr double unit = 1.2e-16;
  static constexpr double huge = 1e300;
};

template <class T>
inline T square_root(T value) {
  return std::sqrt(value > 0 ? value : T{0});
}

template <class T>
class CenterBounds {
 public:
  // They take at most half the memory of the data, and looking at them must cost much less than comparing a row.
  static bool worthwhile(std::int64_t n_centers, std::int64_t n_features) {
    constexpr std::int64_t kLeastBytes = 1 << 14;
    const std::int64_t bytes_of_centers = n_centers * n_features * static_cast<std::int64_t>(sizeof(T));
    return n_centers > 1 && 2 * n_centers <= n_features && bytes_of_centers >= kLeastBytes;
  }

  CenterBounds(std::int64_t n_rows, std::int64_t n_centers, std::int64_t n_features)
      : used_(worthwhile(n_centers, n_features)),
        k_(n_centers),
        stored_(used_ ? n_rows * n_centers : 0),
        way_(zeros<double>(n_centers)),
        way_up_(zeros<T>(n_centers)) {}

  bool used() const { return used_; }

  // Centre k has moved by `step`.
  void add_step(std::int64_t k, T step) {
    way_[k] += static_cast<double>(step);
    way_up_[k] = static_cast<T>(way_[k]) * (1 + 4 * Rounding<T>::unit);
  }

  // Store bounds for the rows in vector v of a tile; `rows` are their numbers, `slack` the rounding of a square.
  void keep(const Tile<T>& tile, int v, const std::int64_t* rows, T slack) {
    constexpr int L = kLanes<T>;
    if (!used_) return;
    const int n_rows = static_cast<int>(at_most(L, tile.count() - v * L));
    const T* sq_norms = tile.sq_norms() + v * L;
    for (std::int64_t first = 0; first < k_; first += L) {
      const int n_centers = static_cast<int>(at_most(L, k_ - first));
      Vec<T> square[L];
      for (int q = 0; q < L; ++q) {
        const std::int64_t k = first + (q < n_centers ? q : 0);
        square[q] = bounds_of(tile.scores(k) + v * L, sq_norms, slack, way_up_[k]);
      }
      transpose<T>(square);
      for (int i = 0; i < L && i < n_rows; ++i) {
        T* to = stored_.get() + rows[i] * k_ + first;
        if (n_centers == L) {
          store(to, square[i]);
        } else {
          for (int q = 0; q < L && q < n_centers; ++q) to[q] = square[i][q];
        }
      }
    }
  }

  // A lower bound on the distance from a row to every centre but its own.
  T least(std::int64_t row, std::int64_t own) const {
    constexpr int L = kLanes<T>;
    const T* bounds = stored_.get() + row * k_;
    if (k_ < L) return least_of_few(bounds, own);
    Vec<T> lowest = broadcast(Rounding<T>::huge);
    for (std::int64_t k = 0; k < k_; k += L) {
      const std::int64_t first = at_most(k, k_ - L);  // the last vector overlaps the one before
      const Vec<T> bound = load(bounds + first) * broadcast(kDown) - load(way_up_.get() + first);
      lowest = smaller<T>(without_lane<T>(bound, own - first, Rounding<T>::huge), lowest);
    }
    return smallest_lane<T>(lowest);
  }

 private:
  static constexpr T kDown = 1 - 4 * Rounding<T>::unit;

  T least_of_few(const T* bounds, std::int64_t own) const {
    T lowest = Rounding<T>::huge;
    for (std::int64_t k = 0; k < k_; ++k) {
      const T bound = bounds[k] * kDown - way_up_[k];
      lowest = k != own && bound < lowest ? bound : lowest;
    }
    return lowest;
  }

  static Vec<T> bounds_of(const T* scores, const T* sq_norms, T slack, T way) {
    const Vec<T> norms = load(sq_norms);
    const Vec<T> far = load(scores) + norms;
    return square_roots<T>(far - broadcast(slack) * (norms + far)) + broadcast(way);
  }

  bool used_;
  std::int64_t k_;
  Buffer<T> stored_;      // (n_rows, n_centers): bound plus the way of the centre at that time
  Buffer<double> way_;    // how far each centre has gone since the start, all steps added
  Buffer<T> way_up_;      // the same, rounded up
};

}  // namespace
}  // namespace gmil
