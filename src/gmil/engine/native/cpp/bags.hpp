// Reductions over bags: a plain walk through the rows, with the columns in vector registers.
#pragma once

#include <cmath>

#include "assign.hpp"

namespace gmil {
namespace {

// A value that is not a number wins, as it does in NumPy.
struct Smaller {
  template <class T>
  static Vec<T> pick(const Vec<T>& value, const Vec<T>& best) {
    return choose<T>(either<T>(is_less<T>(value, best), is_not_number<T>(value)), value, best);
  }
};

struct Larger {
  template <class T>
  static Vec<T> pick(const Vec<T>& value, const Vec<T>& best) {
    return choose<T>(either<T>(is_less<T>(best, value), is_not_number<T>(value)), value, best);
  }
};

// Call use(bag) for every bag; workers take bags with about as many rows.
template <class T, class Use>
void for_each_bag(const BagRows<T>& bags, int n_threads, const Use& use) {
  constexpr double kFlopsPerValue = 4;  // a value costs a read from memory, which is slower than a product
  constexpr std::int64_t kBytesPerTask = 1 << 18;
  const double flops = kFlopsPerValue * static_cast<double>(bags.values.n_rows) *
                       static_cast<double>(bags.values.n_features);
  const std::int64_t n_bytes = bags.values.n_rows * bags.values.n_features * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t per_task = at_least(1, divide_up(bags.n_bags * kBytesPerTask, at_least(1, n_bytes)));
  Team team(n_threads, flops);
  for_each_task(team, divide_up(bags.n_bags, per_task), flops, [&](std::int64_t task, int) {
    const std::int64_t stop = at_most(bags.n_bags, (task + 1) * per_task);
    for (std::int64_t b = task * per_task; b < stop; ++b) use(b);
  });
}

// The winner of NV vectors of columns over the rows first..last.
template <class T, class Order, int NV>
inline void reduce_columns(const T* first, std::int64_t n_rows, std::int64_t stride, T* out) {
  constexpr int L = kLanes<T>;
  Vec<T> best[NV];
  GMIL_UNROLL
  for (int v = 0; v < NV; ++v) best[v] = load(first + v * L);
  for (std::int64_t i = 1; i < n_rows; ++i) {
    const T* row = first + i * stride;
    GMIL_UNROLL
    for (int v = 0; v < NV; ++v) best[v] = Order::template pick<T>(load(row + v * L), best[v]);
  }
  GMIL_UNROLL
  for (int v = 0; v < NV; ++v) store(out + v * L, best[v]);
}

// Rows that are shorter than a vector: every load takes the beginning of the next rows with it, and only the lanes of
// the row itself are kept. `end` is the end of all values, where there is nothing to take.
template <class T, class Order>
inline void reduce_short_rows(const T* first, std::int64_t n_rows, std::int64_t d, const T* end, T* out) {
  constexpr int L = kLanes<T>;
  const auto load_row = [&](std::int64_t i) {
    const T* row = first + i * d;
    if (end - row >= L) return load(row);
    T padded[L] = {};
    for (std::int64_t j = 0; j < d; ++j) padded[j] = row[j];
    return load(padded);
  };
  Vec<T> best = load_row(0);
  for (std::int64_t i = 1; i < n_rows; ++i) best = Order::template pick<T>(load_row(i), best);
  T lanes[L];
  store(lanes, best);
  for (std::int64_t j = 0; j < d; ++j) out[j] = lanes[j];
}

template <class T, class Order>
void reduce_bag(const T* first, std::int64_t n_rows, std::int64_t d, const T* end, T* out) {
  constexpr int L = kLanes<T>;
  if (d < L) return reduce_short_rows<T, Order>(first, n_rows, d, end, out);
  std::int64_t j = 0;
  for (; j + 4 * L <= d; j += 4 * L) reduce_columns<T, Order, 4>(first + j, n_rows, d, out + j);
  for (; j + L <= d; j += L) reduce_columns<T, Order, 1>(first + j, n_rows, d, out + j);
  // The last vector overlaps the one before: a column computed twice is the same.
  if (j < d) reduce_columns<T, Order, 1>(first + d - L, n_rows, d, out + d - L);
}

template <class T, class Order>
void bag_select(const BagRows<T>& bags, T* out, int n_threads) {
  const std::int64_t d = bags.values.n_features;
  const T* end = bags.values.row(bags.values.n_rows);
  for_each_bag(bags, n_threads, [&](std::int64_t b) {
    const std::int64_t n_rows = bags.offsets[b + 1] - bags.offsets[b];
    reduce_bag<T, Order>(bags.values.row(bags.offsets[b]), n_rows, d, end, out + b * d);
  });
}

// Columns whose sums stay on the stack, in double precision.
constexpr std::int64_t kSummedColumns = 64;

// Sum term(value, column) over the rows of a bag, for `width` columns.
template <class T, class Term>
inline void sum_columns(const T* first, std::int64_t n_rows, std::int64_t stride, std::int64_t width, double* sums,
                        const Term& term) {
  fill(sums, width, 0.0);
  for (std::int64_t i = 0; i < n_rows; ++i) {
    const T* row = first + i * stride;
    for (std::int64_t j = 0; j < width; ++j) sums[j] += term(static_cast<double>(row[j]), j);
  }
}

// Means, and root mean squared deviations from them where `deviations` are wanted.
template <class T, bool deviations>
void bag_moment(const BagRows<T>& bags, T* out, int n_threads) {
  const std::int64_t d = bags.values.n_features;
  for_each_bag(bags, n_threads, [&](std::int64_t b) {
    const std::int64_t n_rows = bags.offsets[b + 1] - bags.offsets[b];
    const double n = static_cast<double>(n_rows);
    for (std::int64_t begin = 0; begin < d; begin += kSummedColumns) {
      const T* first = bags.values.row(bags.offsets[b]) + begin;
      T* to = out + b * d + begin;
      const std::int64_t width = at_most(kSummedColumns, d - begin);
      double means[kSummedColumns];
      sum_columns(first, n_rows, d, width, means, [](double value, std::int64_t) { return value; });
      for (std::int64_t j = 0; j < width; ++j) means[j] /= n;
      if constexpr (deviations) {
        double squares[kSummedColumns];
        sum_columns(first, n_rows, d, width, squares, [&](double value, std::int64_t j) {
          return (value - means[j]) * (value - means[j]);
        });
        for (std::int64_t j = 0; j < width; ++j) to[j] = static_cast<T>(std::sqrt(squares[j] / n));
      } else {
        for (std::int64_t j = 0; j < width; ++j) to[j] = static_cast<T>(means[j]);
      }
    }
  });
}

// Size, mean and sum of squared deviations of every bag, (n_bags, 3, n_features), measured from its first row: they
// lose no digits far from zero, and the deviations of equal rows are zero, exactly.
template <class T>
void bag_moments(const BagRows<T>& bags, double* out, int n_threads) {
  const std::int64_t d = bags.values.n_features;
  for_each_bag(bags, n_threads, [&](std::int64_t b) {
    const std::int64_t n_rows = bags.offsets[b + 1] - bags.offsets[b];
    const double n = static_cast<double>(n_rows);
    double* to = out + 3 * b * d;
    fill(to, d, n);
    for (std::int64_t begin = 0; begin < d; begin += kSummedColumns) {
      const T* first = bags.values.row(bags.offsets[b]) + begin;
      const std::int64_t width = at_most(kSummedColumns, d - begin);
      double start[kSummedColumns], moved[kSummedColumns];
      for (std::int64_t j = 0; j < width; ++j) start[j] = static_cast<double>(first[j]);
      sum_columns(first, n_rows, d, width, moved, [&](double value, std::int64_t j) { return value - start[j]; });
      for (std::int64_t j = 0; j < width; ++j) moved[j] /= n;
      sum_columns(first, n_rows, d, width, to + 2 * d + begin, [&](double value, std::int64_t j) {
        const double away = value - start[j] - moved[j];
        return away * away;
      });
      for (std::int64_t j = 0; j < width; ++j) to[d + begin + j] = start[j] + moved[j];
    }
  });
}

// The smallest value, the first row that has it, and the smallest of the others (infinity in a bag of one).
template <class T>
void bag_two_min(const BagRows<T>& bags, T* smallest, std::int64_t* where, T* second, int n_threads) {
  const T kInfinity = static_cast<T>(HUGE_VAL);
  const std::int64_t d = bags.values.n_features;
  for_each_bag(bags, n_threads, [&](std::int64_t b) {
    const std::int64_t begin = bags.offsets[b];
    T* best = smallest + b * d;
    std::int64_t* at = where + b * d;
    T* other = second + b * d;
    std::memcpy(best, bags.values.row(begin), static_cast<std::size_t>(d) * sizeof(T));
    fill(at, d, begin);
    fill(other, d, kInfinity);
    for (std::int64_t i = begin + 1; i < bags.offsets[b + 1]; ++i) {
      const T* row = bags.values.row(i);
      for (std::int64_t j = 0; j < d; ++j) {
        const bool lower = row[j] < best[j];
        const T loser = lower ? best[j] : row[j];
        other[j] = loser < other[j] ? loser : other[j];
        at[j] = lower ? i : at[j];
        best[j] = lower ? row[j] : best[j];
      }
    }
  });
}

}  // namespace
}  // namespace gmil
