// Nearest centre of every row; squared distances to every centre; sums of the rows of every cluster.
#pragma once

#include "threads.hpp"
#include "tile.hpp"

namespace gmil {
namespace {

// Tiles that a worker takes at a time.
constexpr std::int64_t kTilesPerTask = 8;

// Rows between two synchronisations when sums are wanted: they are still in the cache when they are summed.
constexpr std::int64_t kBytesPerStretch = 1 << 20;

inline double product_flops(std::int64_t n_rows, std::int64_t n_features, std::int64_t n_centers) {
  return 2.0 * static_cast<double>(n_rows) * static_cast<double>(n_features) * static_cast<double>(n_centers);
}

// Centres moved to their own mean, and packed.
template <class T>
class ShiftedCenters {
 public:
  ShiftedCenters(const T* centers, std::int64_t n_centers, std::int64_t n_features)
      : shift_(n_features), packed_(n_centers, n_features) {
    mean_of_rows(Rows<T>{centers, n_centers, n_features}, shift_.get());
    Buffer<T> moved(n_centers * n_features);
    for (std::int64_t k = 0; k < n_centers; ++k) {
      subtract_shift(centers + k * n_features, shift_.get(), n_features, moved.get() + k * n_features);
    }
    packed_.pack(moved.get());
  }

  const T* shift() const { return shift_.get(); }
  const PackedCenters<T>& packed() const { return packed_; }

 private:
  Buffer<T> shift_;
  PackedCenters<T> packed_;
};

// Call use(tile, first row) for every tile of the rows first..last, spread over the team.
template <class T, class Use>
void for_each_tile(Team& team, PerWorker<Tile<T>>& tiles, const Rows<T>& X, std::int64_t first, std::int64_t last,
                   const PackedCenters<T>& centers, const T* shift, const Use& use) {
  const std::int64_t rows_per_task = kTilesPerTask * kTileRows<T>;
  const double flops = product_flops(last - first, X.n_features, centers.n_centers());
  for_each_task(team, divide_up(last - first, rows_per_task), flops, [&](std::int64_t task, int worker) {
    Tile<T>& tile = tiles[worker];
    const std::int64_t stop = at_most(last, first + (task + 1) * rows_per_task);
    for (std::int64_t i = first + task * rows_per_task; i < stop; i += kTileRows<T>) {
      tile.begin(at_most(kTileRows<T>, stop - i));
      tile.set_rows(X, i);
      tile.compute(centers, shift, next_tile(X, i, centers.n_groups()));
      use(tile, i);
    }
  });
}

template <class T>
void store_nearest(const Tile<T>& tile, std::int64_t n_centers, std::int32_t* labels, T* nearest) {
  constexpr int L = kLanes<T>;
  for (int v = 0; v < tile.n_vectors(); ++v) {
    Vec<T> best = load(tile.scores(0) + v * L);
    IndexVec<T> where = broadcast_index<T>(0);
    for (std::int64_t k = 1; k < n_centers; ++k) {
      keep_smaller<T>(load(tile.scores(k) + v * L), static_cast<Index<T>>(k), best, where);
    }
    const int used = static_cast<int>(at_most(L, tile.count() - v * L));
    for (int i = 0; i < used; ++i) {
      const T square = best[i] + tile.sq_norm(v * L + i);
      labels[v * L + i] = static_cast<std::int32_t>(where[i]);
      nearest[v * L + i] = square > 0 ? square : 0;
    }
  }
}

// Give every worker some of the columns: call use(begin, end) for each slice. A worker that goes through all rows,
// in order, for its own columns makes sums that never depend on the number of workers.
template <class Use>
void for_each_slice(Team& team, std::int64_t n_rows, std::int64_t n_features, const Use& use) {
  constexpr std::int64_t kLine = 64 / sizeof(double);
  const std::int64_t n_slices = at_most(team.size(), divide_up(n_features, 4 * kLine));
  const std::int64_t slice = divide_up(divide_up(n_features, n_slices), kLine) * kLine;
  const double flops = 2.0 * static_cast<double>(n_rows) * static_cast<double>(n_features);
  for_each_task(team, n_slices, flops, [&](std::int64_t task, int) {
    use(at_most(n_features, task * slice), at_most(n_features, (task + 1) * slice));
  });
}

// Add the rows first..last, moved by the shift, to the sums of their clusters.
template <class T>
void add_to_sums(Team& team, const Rows<T>& X, std::int64_t first, std::int64_t last, const T* shift,
                 const std::int32_t* labels, double* sums) {
  for_each_slice(team, last - first, X.n_features, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = first; i < last; ++i) {
      const T* row = X.row(i);
      double* sum = sums + labels[i] * X.n_features;
      for (std::int64_t j = begin; j < end; ++j) sum[j] += static_cast<double>(row[j] - shift[j]);
    }
  });
}

template <class T>
void assign(const Rows<T>& X, const T* centers, std::int64_t n_centers, std::int32_t* labels, T* nearest,
            double* sums, std::int64_t* counts, int n_threads) {
  const ShiftedCenters<T> shifted(centers, n_centers, X.n_features);
  Team team(n_threads, product_flops(X.n_rows, X.n_features, n_centers));
  PerWorker<Tile<T>> tiles(team.size(), n_centers);
  const auto keep = [&](const Tile<T>& tile, std::int64_t i) {
    store_nearest(tile, n_centers, labels + i, nearest + i);
  };
  if (sums == nullptr) {
    for_each_tile<T>(team, tiles, X, 0, X.n_rows, shifted.packed(), shifted.shift(), keep);
    return;
  }
  fill(sums, n_centers * X.n_features, 0.0);
  fill(counts, n_centers, std::int64_t{0});
  const Buffer<T> no_shift = zeros<T>(X.n_features);
  const std::int64_t bytes_per_row = X.n_features * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t stretch =
      at_least(kBytesPerStretch / bytes_per_row, kTilesPerTask * kTileRows<T>) * team.size();
  for (std::int64_t i = 0; i < X.n_rows; i += stretch) {
    const std::int64_t stop = at_most(X.n_rows, i + stretch);
    for_each_tile<T>(team, tiles, X, i, stop, shifted.packed(), shifted.shift(), keep);
    add_to_sums(team, X, i, stop, no_shift.get(), labels, sums);
    for (std::int64_t r = i; r < stop; ++r) ++counts[labels[r]];
  }
}

template <class T>
void sq_distances(const Rows<T>& X, const T* centers, std::int64_t n_centers, T* out, int n_threads) {
  const ShiftedCenters<T> shifted(centers, n_centers, X.n_features);
  Team team(n_threads, product_flops(X.n_rows, X.n_features, n_centers));
  PerWorker<Tile<T>> tiles(team.size(), n_centers);
  const auto write = [&](const Tile<T>& tile, std::int64_t first) {
    for (std::int64_t i = 0; i < tile.count(); ++i) {
      T* row = out + (first + i) * n_centers;
      for (std::int64_t k = 0; k < n_centers; ++k) {
        const T square = tile.scores(k)[i] + tile.sq_norm(i);
        row[k] = square > 0 ? square : 0;
      }
    }
  };
  for_each_tile<T>(team, tiles, X, 0, X.n_rows, shifted.packed(), shifted.shift(), write);
}

}  // namespace
}  // namespace gmil
