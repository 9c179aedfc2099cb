// Distances of rows most of whose numbers are zero, of which only the others are stored.
#pragma once

#include "assign.hpp"

namespace gmil {
namespace {

// Distances of row i to NV vectors of centres, from centre k on. The sums stay in registers.
template <class T, int NV>
inline void sparse_row_distances(const SparseRows<T>& X, const SparseFactors<T>& to, std::int64_t i, std::int64_t k,
                                 T* out) {
  constexpr int L = kLanes<T>;
  Vec<T> sum[NV] = {};
  for (std::int64_t p = X.starts[i]; p < X.starts[i + 1]; ++p) {
    const T* row = to.matrix + static_cast<std::int64_t>(X.columns[p]) * to.n_centers + k;
    const Vec<T> value = broadcast(X.values[p]);
    GMIL_UNROLL
    for (int v = 0; v < NV; ++v) sum[v] += value * load(row + v * L);
  }
  const Vec<T> scale = broadcast(to.per_row[2 * i]), length = broadcast(to.per_row[2 * i + 1]), zero = broadcast(T{0});
  GMIL_UNROLL
  for (int v = 0; v < NV; ++v) {
    const std::int64_t at = k + v * L;
    const Vec<T> square = scale * (sum[v] + load(to.inner + at)) + (length + load(to.outer + at));
    store(out + at, choose<T>(is_less<T>(square, zero), zero, square));
  }
}

// The same for one centre.
template <class T>
inline T sparse_distance(const SparseRows<T>& X, const SparseFactors<T>& to, std::int64_t i, std::int64_t k) {
  T sum{0};
  for (std::int64_t p = X.starts[i]; p < X.starts[i + 1]; ++p) {
    sum += X.values[p] * to.matrix[static_cast<std::int64_t>(X.columns[p]) * to.n_centers + k];
  }
  const T square = to.per_row[2 * i] * (sum + to.inner[k]) + (to.per_row[2 * i + 1] + to.outer[k]);
  return square < 0 ? T{0} : square;
}

template <class T>
void sparse_sq_distances(const SparseRows<T>& X, const SparseFactors<T>& to, T* out, int n_threads) {
  constexpr int L = kLanes<T>;
  constexpr std::int64_t kMany = 12 * L, kSome = 4 * L, kRowsPerTask = 64;
  const std::int64_t n_centers = to.n_centers;
  const double flops = 2.0 * static_cast<double>(X.starts[X.n_rows]) * static_cast<double>(n_centers);
  Team team(n_threads, flops);
  for_each_task(team, divide_up(X.n_rows, kRowsPerTask), flops, [&](std::int64_t task, int) {
    const std::int64_t last = at_most(X.n_rows, (task + 1) * kRowsPerTask);
    for (std::int64_t i = task * kRowsPerTask; i < last; ++i) {
      T* row = out + i * n_centers;
      std::int64_t k = 0;
      for (; k + kMany <= n_centers; k += kMany) sparse_row_distances<T, 12>(X, to, i, k, row);
      for (; k + kSome <= n_centers; k += kSome) sparse_row_distances<T, 4>(X, to, i, k, row);
      for (; k + L <= n_centers; k += L) sparse_row_distances<T, 1>(X, to, i, k, row);
      // The last vector overlaps the one before it, and writes the same numbers once more.
      if (k < n_centers && n_centers >= L) {
        sparse_row_distances<T, 1>(X, to, i, n_centers - L, row);
        k = n_centers;
      }
      for (; k < n_centers; ++k) row[k] = sparse_distance(X, to, i, k);
    }
  });
}

}  // namespace
}  // namespace gmil
