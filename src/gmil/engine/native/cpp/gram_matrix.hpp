// The Gram matrix: products of all rows with each other, moved to their mean, in double precision.
#pragma once

#include "assign.hpp"

namespace gmil {
namespace {

// Write one tile of products to both triangles: its rows from the diagonal on, and the same values as columns.
class GramWriter {
 public:
  GramWriter(double* out, std::int64_t n) : out_(out), n_(n) {}

  void write(const Tile<double>& tile, std::int64_t first) const {
    constexpr int L = kLanes<double>;
    for (int v = 0; v < tile.n_vectors(); ++v) {
      const std::int64_t row = first + v * L;
      std::int64_t k = first;  // what lies before belongs to earlier tiles, and maybe to other threads
      if (row + L <= n_) {
        for (; k + L <= n_; k += L) write_square(tile, v, row, k);
      }
      const std::int64_t last_row = at_most(n_, row + L);
      for (; k < n_; ++k) {
        for (std::int64_t i = row; i < last_row; ++i) {
          const double product = -tile.scores(k)[v * L + (i - row)] / 2;
          out_[i * n_ + k] = product;
          out_[k * n_ + i] = product;
        }
      }
    }
  }

 private:
  void write_square(const Tile<double>& tile, int v, std::int64_t row, std::int64_t k) const {
    constexpr int L = kLanes<double>;
    const Vec<double> minus_half = broadcast(-0.5);
    Vec<double> square[L];
    GMIL_UNROLL
    for (int q = 0; q < L; ++q) {
      square[q] = load(tile.scores(k + q) + v * L) * minus_half;
      store(out_ + (k + q) * n_ + row, square[q]);
    }
    transpose<double>(square);
    GMIL_UNROLL
    for (int i = 0; i < L; ++i) store(out_ + (row + i) * n_ + k, square[i]);
  }

  double* out_;
  std::int64_t n_;
};

template <class T>
Buffer<double> moved_to_mean(const Rows<T>& X) {
  const std::int64_t d = X.n_features;
  Buffer<double> mean = zeros<double>(d);
  for (std::int64_t i = 0; i < X.n_rows; ++i) {
    for (std::int64_t j = 0; j < d; ++j) mean[j] += static_cast<double>(X.row(i)[j]);
  }
  for (std::int64_t j = 0; j < d; ++j) mean[j] /= static_cast<double>(X.n_rows);
  Buffer<double> moved(X.n_rows * d);
  for (std::int64_t i = 0; i < X.n_rows; ++i) {
    for (std::int64_t j = 0; j < d; ++j) moved[i * d + j] = static_cast<double>(X.row(i)[j]) - mean[j];
  }
  return moved;
}

// Each tile meets the groups of rows from its own on.
template <class T>
void gram_matrix(const Rows<T>& X, double* out, int n_threads) {
  const std::int64_t n = X.n_rows;
  const std::int64_t d = X.n_features;
  const Buffer<double> moved = moved_to_mean(X);
  const Buffer<double> no_shift = zeros<double>(d);
  const Rows<double> rows{moved.get(), n, d};
  PackedCenters<double> packed(n, d);
  packed.pack(moved.get());
  const double flops = product_flops(n, d, n) / 2;
  Team team(n_threads, flops);
  PerWorker<Tile<double>> tiles(team.size(), n);
  const GramWriter writer(out, n);
  constexpr std::int64_t kRows = kTileRows<double>;
  for_each_task(team, divide_up(n, kRows), flops, [&](std::int64_t task, int worker) {
    Tile<double>& tile = tiles[worker];
    const std::int64_t first = task * kRows;
    std::int64_t group = 0;
    while (packed.begin(group + 1) <= first) ++group;
    tile.begin(at_most(kRows, n - first));
    tile.set_rows(rows, first);
    tile.compute_products(packed, group, no_shift.get());
    writer.write(tile, first);
  });
}

}  // namespace
}  // namespace gmil
