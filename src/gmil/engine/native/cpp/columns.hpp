// Sums of absolute differences between rows, and ranks of values among sorted knots.
#pragma once

#include "assign.hpp"

namespace gmil {
namespace {

// Rows of the other matrix that one pass over a row is compared with.
constexpr int kComparedRows = 4;

template <class T, int R>
inline void l1_to_rows(const T* row, const T* const* others, std::int64_t n_features, T* out) {
  constexpr int L = kLanes<T>;
  Vec<T> sum[R] = {};
  std::int64_t j = 0;
  for (; j + L <= n_features; j += L) {
    const Vec<T> x = load(row + j);
    GMIL_UNROLL
    for (int r = 0; r < R; ++r) sum[r] += absolute<T>(x - load(others[r] + j));
  }
  for (int r = 0; r < R; ++r) {
    T total = sum_lanes<T>(sum[r]);
    for (std::int64_t k = j; k < n_features; ++k) total += std::abs(row[k] - others[r][k]);
    out[r] = total;
  }
}

// A matrix compared with itself is computed below the diagonal and mirrored.
template <class T>
void l1_distances(const Rows<T>& X, const T* other, std::int64_t n_other, T* out, int n_threads) {
  const Rows<T> Y{other, n_other, X.n_features};
  const bool symmetric = X.data == other && X.n_rows == n_other;
  const double flops = 1.5 * static_cast<double>(X.n_rows) * static_cast<double>(n_other) *
                       static_cast<double>(X.n_features);
  Team team(n_threads, flops);
  constexpr std::int64_t kRowsPerTask = 16;
  for_each_task(team, divide_up(X.n_rows, kRowsPerTask), flops, [&](std::int64_t task, int) {
    const std::int64_t last = at_most(X.n_rows, (task + 1) * kRowsPerTask);
    for (std::int64_t i = task * kRowsPerTask; i < last; ++i) {
      const std::int64_t stop = symmetric ? i : n_other;
      T* to = out + i * n_other;
      std::int64_t k = 0;
      for (; k + kComparedRows <= stop; k += kComparedRows) {
        const T* rows[kComparedRows];
        for (int r = 0; r < kComparedRows; ++r) rows[r] = Y.row(k + r);
        l1_to_rows<T, kComparedRows>(X.row(i), rows, X.n_features, to + k);
      }
      for (; k < stop; ++k) {
        const T* row = Y.row(k);
        l1_to_rows<T, 1>(X.row(i), &row, X.n_features, to + k);
      }
    }
  });
  if (!symmetric) return;
  for (std::int64_t i = 0; i < n_other; ++i) {
    out[i * n_other + i] = 0;
    for (std::int64_t k = 0; k < i; ++k) out[k * n_other + i] = out[i * n_other + k];
  }
}

// Values that are looked up in step: the search has no branch to be guessed wrong, so one alone would wait for memory.
constexpr int kLookedUp = 8;

// Add to each count how many of the sorted knots come before the value: those below it, and the equal ones if `equal`.
template <class T, bool equal>
inline void add_counts_before(const T* knots, std::int64_t n_knots, const T* values, std::int64_t* counts) {
  const auto before = [](T knot, T value) { return static_cast<std::int64_t>(equal ? knot <= value : knot < value); };
  std::int64_t from[kLookedUp] = {};
  for (std::int64_t left = n_knots; left > 1;) {
    const std::int64_t half = left / 2;
    GMIL_UNROLL
    for (int v = 0; v < kLookedUp; ++v) from[v] += half & -before(knots[from[v] + half - 1], values[v]);
    left -= half;
  }
  GMIL_UNROLL
  for (int v = 0; v < kLookedUp; ++v) counts[v] += from[v] + before(knots[from[v]], values[v]);
}

// The share of the knots of its column that lie below every value; equal ones count half. Knots are (n_features, n_knots).
template <class T>
void column_ranks(const Rows<T>& X, const T* knots, std::int64_t n_knots, T* out, int n_threads) {
  constexpr std::int64_t kColumns = 64 / static_cast<std::int64_t>(sizeof(T));  // a cache line of every row
  constexpr std::int64_t kRowsAtOnce = 256;
  const T unit = static_cast<T>(2 * n_knots);
  const double flops = 32.0 * static_cast<double>(X.n_rows) * static_cast<double>(X.n_features);
  Team team(n_threads, flops);
  for_each_task(team, divide_up(X.n_features, kColumns), flops, [&](std::int64_t task, int) {
    const std::int64_t last = at_most(X.n_features, (task + 1) * kColumns);
    for (std::int64_t first = 0; first < X.n_rows; first += kRowsAtOnce) {
      const std::int64_t stop = at_most(X.n_rows, first + kRowsAtOnce);
      for (std::int64_t j = task * kColumns; j < last; ++j) {
        const T* column = knots + j * n_knots;
        for (std::int64_t i = first; i < stop; i += kLookedUp) {
          const std::int64_t n_values = at_most(kLookedUp, stop - i);
          T values[kLookedUp];
          for (std::int64_t v = 0; v < kLookedUp; ++v) values[v] = X.row(i + at_most(v, n_values - 1))[j];
          std::int64_t counts[kLookedUp] = {};
          add_counts_before<T, false>(column, n_knots, values, counts);
          add_counts_before<T, true>(column, n_knots, values, counts);
          for (std::int64_t v = 0; v < n_values; ++v) {
            out[(i + v) * X.n_features + j] = static_cast<T>(counts[v]) / unit;
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace gmil
