// Greedy k-means++ from draws made beforehand.
#pragma once

#include "assign.hpp"

namespace gmil {
namespace {

// The first position whose running total is above `target`, or the last one.
inline std::int64_t first_above(const double* totals, std::int64_t size, double target) {
  std::int64_t low = 0;
  std::int64_t high = size - 1;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (totals[middle] > target) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

template <class T>
inline double running_totals(const T* values, std::int64_t size, double* totals) {
  double total = 0;
  for (std::int64_t i = 0; i < size; ++i) totals[i] = total += static_cast<double>(values[i]);
  return total;
}

// How far apart, relative to themselves, two totals may be and still count as equal; as in the reference.
template <class T>
constexpr double kTie = sizeof(T) == 4 ? 2e-5 : 4e-11;

// The first of the smallest totals.
template <class T>
inline std::int64_t first_smallest(const double* totals, std::int64_t size) {
  double least = totals[0];
  for (std::int64_t i = 1; i < size; ++i) least = totals[i] < least ? totals[i] : least;
  for (std::int64_t i = 0; i < size; ++i) {
    if (totals[i] <= least * (1 + kTie<T>)) return i;
  }
  return 0;  // nothing but values that are not numbers
}

inline std::int64_t first_choice(double uniform, std::int64_t n_rows) {
  return at_most(static_cast<std::int64_t>(uniform * static_cast<double>(n_rows)), n_rows - 1);
}

// Every round compares all rows with a handful of candidates, so the rows are transposed once for all rounds.
template <class T>
class Seeding {
 public:
  Seeding(const Rows<T>& X, std::int64_t n_trials, int n_threads)
      : X_(X),
        n_tasks_(divide_up(X.n_rows, kTileRows<T>)),
        team_(n_threads, product_flops(X.n_rows, X.n_features, n_trials)),
        tiles_(team_.size(), n_trials),
        shift_(X.n_features),
        panels_(n_tasks_ * kTileRows<T> * X.n_features),
        sq_norms_(n_tasks_ * kTileRows<T>),
        nearest_(X.n_rows),
        with_candidate_(n_trials * X.n_rows),
        totals_(X.n_rows),
        partial_(n_tasks_ * n_trials),
        candidates_(n_trials),
        candidate_rows_(n_trials * X.n_features) {
    mean_of_rows(X, shift_.get());
    pack_all();
  }

  void run(std::int64_t n_clusters, const double* uniforms, std::int64_t n_trials, std::int64_t* chosen) {
    fill(nearest_.get(), X_.n_rows, largest());
    candidates_[0] = first_choice(uniforms[0], X_.n_rows);
    chosen[0] = choose(1);
    for (std::int64_t k = 1; k < n_clusters; ++k) {
      const double total = running_totals(nearest_.get(), X_.n_rows, totals_.get());
      for (std::int64_t t = 0; t < n_trials; ++t) {
        candidates_[t] = first_above(totals_.get(), X_.n_rows, uniforms[k * n_trials + t] * total);
      }
      chosen[k] = choose(n_trials);
    }
  }

 private:
  static constexpr T largest() { return sizeof(T) == 4 ? static_cast<T>(3e38) : static_cast<T>(1e308); }

  void pack_all() {
    for_each_task(team_, n_tasks_, product_flops(X_.n_rows, X_.n_features, 1), [&](std::int64_t t, int worker) {
      Tile<T>& tile = tiles_[worker];
      begin_tile(tile, t);
      tile.set_rows(X_, t * kTileRows<T>);
      tile.pack_whole(X_.n_features, shift_.get(), panel(t));
      for (std::int64_t i = 0; i < kTileRows<T>; ++i) sq_norms_[t * kTileRows<T> + i] = tile.sq_norm(i);
    });
  }

  void begin_tile(Tile<T>& tile, std::int64_t t) const {
    tile.begin(at_most(kTileRows<T>, X_.n_rows - t * kTileRows<T>));
  }
  T* panel(std::int64_t t) { return panels_.get() + t * kTileRows<T> * X_.n_features; }

  // Keep the candidate that leaves the least total distance, and return its row.
  std::int64_t choose(std::int64_t n_trials) {
    PackedCenters<T> packed(n_trials, X_.n_features);
    for (std::int64_t t = 0; t < n_trials; ++t) {
      subtract_shift(X_.row(candidates_[t]), shift_.get(), X_.n_features,
                     candidate_rows_.get() + t * X_.n_features);
    }
    packed.pack(candidate_rows_.get());
    const double flops = product_flops(X_.n_rows, X_.n_features, n_trials);
    for_each_task(team_, n_tasks_, flops, [&](std::int64_t t, int worker) {
      Tile<T>& tile = tiles_[worker];
      begin_tile(tile, t);
      tile.compute_packed(packed, panel(t));
      for (std::int64_t c = 0; c < n_trials; ++c) partial_[t * n_trials + c] = compare(tile, t, c);
    });
    const std::int64_t best = best_candidate(n_trials);
    std::memcpy(nearest_.get(), with_candidate_.get() + best * X_.n_rows,
                static_cast<std::size_t>(X_.n_rows) * sizeof(T));
    return candidates_[best];
  }

  // The distances that candidate c would leave in tile t; returns their sum.
  double compare(const Tile<T>& tile, std::int64_t t, std::int64_t c) {
    const std::int64_t first = t * kTileRows<T>;
    const T* scores = tile.scores(c);
    const T* sq_norms = sq_norms_.get() + first;
    const T* nearest = nearest_.get() + first;
    T* left = with_candidate_.get() + c * X_.n_rows + first;
    for (std::int64_t i = 0; i < tile.count(); ++i) {
      const T square = scores[i] + sq_norms[i];
      const T positive = square > 0 ? square : 0;
      left[i] = positive < nearest[i] ? positive : nearest[i];
    }
    // A row is at distance zero from itself, whatever rounding says.
    const std::int64_t own = candidates_[c] - first;
    if (own >= 0 && own < tile.count()) left[own] = 0;
    double sum = 0;
    for (std::int64_t i = 0; i < tile.count(); ++i) sum += static_cast<double>(left[i]);
    return sum;
  }

  std::int64_t best_candidate(std::int64_t n_trials) {
    Buffer<double> sums = zeros<double>(n_trials);
    for (std::int64_t t = 0; t < n_tasks_; ++t) {
      for (std::int64_t c = 0; c < n_trials; ++c) sums[c] += partial_[t * n_trials + c];
    }
    return first_smallest<T>(sums.get(), n_trials);
  }

  Rows<T> X_;
  std::int64_t n_tasks_;  // one tile each
  Team team_;
  PerWorker<Tile<T>> tiles_;
  Buffer<T> shift_;
  Buffer<T> panels_;
  Buffer<T> sq_norms_;
  Buffer<T> nearest_;
  Buffer<T> with_candidate_;  // (n_trials, n_rows): the distances that each candidate would leave
  Buffer<double> totals_;
  Buffer<double> partial_;  // (n_tasks, n_trials), added in order whoever computed them
  Buffer<std::int64_t> candidates_;
  Buffer<T> candidate_rows_;
};

template <class T>
void seed(const Rows<T>& X, std::int64_t n_clusters, const double* uniforms, std::int64_t n_trials,
          std::int64_t* chosen, int n_threads) {
  Seeding<T>(X, n_trials, n_threads).run(n_clusters, uniforms, n_trials, chosen);
}

}  // namespace
}  // namespace gmil
