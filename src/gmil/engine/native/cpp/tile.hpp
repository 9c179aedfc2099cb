// Squared distances from a tile of rows to all centres, without an (n_rows, n_centers) matrix.
//
// A tile is a few vectors of rows, transposed so that every lane of a vector is one row. Each centre value is then
// broadcast against whole vectors of rows: nothing is padded to the number of centres, and whatever follows
// (the minimum, the second, the bounds) is done for all lanes at once.
//
// The distance is expanded as x.x + (c.c - 2 x.c), with data and centres moved by a common shift that keeps
// the cancellation relative to the spread of the data. The part in brackets is the *score* of a centre.
#pragma once

#include "kernels.hpp"
#include "memory.hpp"
#include "simd.hpp"

namespace gmil {
namespace {

// Accumulators of the micro-kernel: kRowVectors x kCenterGroup registers. As run-time values they would spill.
constexpr int kRowVectors = GMIL_ROW_VECTORS;
constexpr int kCenterGroup = GMIL_CENTER_GROUP;

// Features per pass over a tile: the transposed rows stay in the second-level cache, and sums of this many
// products are added to each other, which rounds less than one long chain.
constexpr std::int64_t kDepth = 512;

template <class T>
constexpr int kTileRows = kRowVectors * kLanes<T>;

inline std::int64_t at_most(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
inline std::int64_t at_least(std::int64_t a, std::int64_t b) { return a > b ? a : b; }
constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Summed in double precision, in eight strands that the compiler can keep in vectors.
template <class T>
inline T sq_norm(const T* values, std::int64_t size) {
  constexpr int kStrands = 8;
  double squares[kStrands] = {};
  std::int64_t j = 0;
  for (; j + kStrands <= size; j += kStrands) {
    GMIL_UNROLL
    for (int q = 0; q < kStrands; ++q) {
      squares[q] += static_cast<double>(values[j + q]) * static_cast<double>(values[j + q]);
    }
  }
  for (int q = 0; j < size; ++j, ++q) squares[q] += static_cast<double>(values[j]) * static_cast<double>(values[j]);
  double total = 0;
  for (int q = 0; q < kStrands; ++q) total += squares[q];
  return static_cast<T>(total);
}

// Centres, already moved by the shift, in groups that one call of the micro-kernel takes.
template <class T>
class PackedCenters {
 public:
  PackedCenters(std::int64_t n_centers, std::int64_t n_features)
      : n_centers_(n_centers),
        n_features_(n_features),
        n_groups_(divide_up(n_centers, kCenterGroup)),
        values_(n_centers * n_features),
        sq_norms_(n_centers) {}

  void pack(const T* centers) {
    for (std::int64_t g = 0; g < n_groups_; ++g) pack_group(centers, begin(g), begin(g + 1));
  }

  std::int64_t n_centers() const { return n_centers_; }
  std::int64_t n_features() const { return n_features_; }
  std::int64_t n_groups() const { return n_groups_; }
  // Groups differ by one centre at most, so that no call is left with a lonely one.
  std::int64_t begin(std::int64_t g) const { return g * n_centers_ / n_groups_; }
  // (n_features, size of the group): -2 times the values.
  const T* group(std::int64_t g) const { return values_.get() + begin(g) * n_features_; }
  const T* sq_norms() const { return sq_norms_.get(); }

 private:
  void pack_group(const T* centers, std::int64_t first, std::int64_t last) {
    const std::int64_t size = last - first;
    const T* center[kCenterGroup];
    for (std::int64_t k = 0; k < size; ++k) {
      center[k] = centers + (first + k) * n_features_;
      sq_norms_[first + k] = sq_norm(center[k], n_features_);
    }
    T* out = values_.get() + first * n_features_;
    for (std::int64_t j = 0; j < n_features_; ++j) {
      for (std::int64_t k = 0; k < size; ++k) out[j * size + k] = -2 * center[k][j];
    }
  }

  std::int64_t n_centers_;
  std::int64_t n_features_;
  std::int64_t n_groups_;
  Buffer<T> values_;
  Buffer<T> sq_norms_;
};

// Cache lines to ask for while the micro-kernel runs: the next tile arrives while this one is computed. Where there is
// nothing to ask for, it asks for a line of `kIdle`, which is always there: an address that is not mapped costs time.
alignas(64) constexpr char kIdle[64] = {};

struct Ahead {
  const char* address = kIdle;
  std::int64_t step = 0;
};

// Add to scores (G, rows) the products of the transposed rows with one group of centres.
template <class T, int NV, int G>
void add_products(const T* panel, const T* group, std::int64_t depth, T* scores, Ahead& ahead) {
  constexpr int L = kLanes<T>;
  Vec<T> sum[G][NV] = {};
  const char* wanted = ahead.address;
  for (std::int64_t j = 0; j < depth; ++j) {
    prefetch(wanted);
    wanted += ahead.step;
    Vec<T> x[NV];
    GMIL_UNROLL
    for (int v = 0; v < NV; ++v) x[v] = load(panel + v * L);
    GMIL_UNROLL
    for (int g = 0; g < G; ++g) {
      const Vec<T> c = broadcast(group[g]);
      GMIL_UNROLL
      for (int v = 0; v < NV; ++v) sum[g][v] = add_product<T>(sum[g][v], x[v], c);
    }
    panel += NV * L;
    group += G;
  }
  ahead.address = wanted;
  GMIL_UNROLL
  for (int g = 0; g < G; ++g) {
    GMIL_UNROLL
    for (int v = 0; v < NV; ++v) {
      T* to = scores + (g * NV + v) * L;
      store(to, load(to) + sum[g][v]);
    }
  }
}

// Pick the micro-kernel for a group of `size` centres.
template <class T, int NV, int G = kCenterGroup>
void add_group(std::int64_t size, const T* panel, const T* group, std::int64_t depth, T* scores, Ahead& ahead) {
  if constexpr (G > 1) {
    if (size < G) return add_group<T, NV, G - 1>(size, panel, group, depth, scores, ahead);
  }
  add_products<T, NV, G>(panel, group, depth, scores, ahead);
}

// Up to kTileRows rows on their way through the kernels; one per worker.
template <class T>
class Tile {
 public:
  explicit Tile(std::int64_t n_centers) : panel_(kTileRows<T> * kDepth), scores_(kTileRows<T> * n_centers) {}

  // Which rows come next: `count` in all, at most kTileRows.
  void begin(std::int64_t count) {
    count_ = count;
    n_vectors_ = static_cast<int>(divide_up(count, kLanes<T>));
  }
  void set_row(std::int64_t i, const T* row) { rows_[i] = row; }
  void set_rows(const Rows<T>& X, std::int64_t first) {
    for (std::int64_t i = 0; i < count_; ++i) rows_[i] = X.row(first + i);
  }

  // Fill the scores of all centres and the squared norms of the rows.
  void compute(const PackedCenters<T>& centers, const T* shift, Ahead ahead = {}) {
    repeat_last_row();
    start_scores(centers, 0, centers.n_centers());
    fill(sq_norms_, kTileRows<T>, T{0});
    for (std::int64_t j = 0; j < centers.n_features(); j += kDepth) {
      const std::int64_t depth = at_most(kDepth, centers.n_features() - j);
      pack_rows(j, depth, shift, panel_.get());
      add_groups(centers, 0, centers.n_groups(), 0, panel_.get(), j, depth, ahead);
    }
  }

  // The same for rows that were packed before, by pack_whole.
  void compute_packed(const PackedCenters<T>& centers, const T* panel) {
    compute_groups(centers, 0, centers.n_groups(), panel);
  }

  // The same for the centres of some groups alone; the scores begin with the first of them.
  void compute_groups(const PackedCenters<T>& centers, std::int64_t first_group, std::int64_t last_group,
                      const T* panel) {
    const std::int64_t first = centers.begin(first_group);
    start_scores(centers, first, centers.begin(last_group));
    Ahead ahead;
    for (std::int64_t j = 0; j < centers.n_features(); j += kDepth) {
      const std::int64_t depth = at_most(kDepth, centers.n_features() - j);
      add_groups(centers, first_group, last_group, first, panel + j * width(), j, depth, ahead);
    }
  }

  // Only -2 x.c, and only for the centres from `first_group` on.
  void compute_products(const PackedCenters<T>& centers, std::int64_t first_group, const T* shift) {
    repeat_last_row();
    fill(scores_.get() + centers.begin(first_group) * width(),
         (centers.n_centers() - centers.begin(first_group)) * width(), T{0});
    Ahead ahead;
    for (std::int64_t j = 0; j < centers.n_features(); j += kDepth) {
      const std::int64_t depth = at_most(kDepth, centers.n_features() - j);
      pack_rows(j, depth, shift, panel_.get());
      add_groups(centers, first_group, centers.n_groups(), 0, panel_.get(), j, depth, ahead);
    }
  }

  // Transpose the rows, all features, into `panel`, and fill the squared norms.
  void pack_whole(std::int64_t n_features, const T* shift, T* panel) {
    repeat_last_row();
    fill(sq_norms_, kTileRows<T>, T{0});
    for (std::int64_t j = 0; j < n_features; j += kDepth) {
      pack_rows(j, at_most(kDepth, n_features - j), shift, panel + j * width());
    }
  }

  std::int64_t count() const { return count_; }
  int n_vectors() const { return n_vectors_; }
  std::int64_t width() const { return n_vectors_ * kLanes<T>; }
  const T* scores(std::int64_t center) const { return scores_.get() + center * width(); }
  const T* sq_norms() const { return sq_norms_; }
  T sq_norm(std::int64_t i) const { return sq_norms_[i]; }

 private:
  // Lanes without a row compute the last one again; nobody reads their results.
  void repeat_last_row() {
    for (std::int64_t i = count_; i < width(); ++i) rows_[i] = rows_[count_ - 1];
  }

  void start_scores(const PackedCenters<T>& centers, std::int64_t first, std::int64_t last) {
    T* to = scores_.get();
    for (std::int64_t k = first; k < last; ++k) {
      const Vec<T> value = broadcast(centers.sq_norms()[k]);
      for (int v = 0; v < n_vectors_; ++v, to += kLanes<T>) store(to, value);
    }
  }

  // At most kDepth features at a time: the squared norms are added up like the products.
  void pack_rows(std::int64_t begin, std::int64_t depth, const T* shift, T* panel) {
    for (int v = 0; v < n_vectors_; ++v) pack_vector(v, begin, depth, shift, panel + v * kLanes<T>);
  }

  void pack_vector(int v, std::int64_t begin, std::int64_t depth, const T* shift, T* panel) {
    constexpr int L = kLanes<T>;
    const T* const* row = rows_ + v * L;
    const std::int64_t stride = width();
    Vec<T> squares = {};
    std::int64_t j = 0;
    for (; j + L <= depth; j += L) {
      const Vec<T> moved_by = load(shift + begin + j);
      Vec<T> square[L];
      GMIL_UNROLL
      for (int i = 0; i < L; ++i) square[i] = load(row[i] + begin + j) - moved_by;
      transpose<T>(square);
      GMIL_UNROLL
      for (int i = 0; i < L; ++i) {
        store(panel + (j + i) * stride, square[i]);
        squares = add_product<T>(squares, square[i], square[i]);
      }
    }
    for (; j < depth; ++j) {
      T* to = panel + j * stride;
      for (int i = 0; i < L; ++i) to[i] = row[i][begin + j] - shift[begin + j];
      const Vec<T> column = load(to);
      squares = add_product<T>(squares, column, column);
    }
    store(sq_norms_ + v * L, load(sq_norms_ + v * L) + squares);
  }

  // `origin` is the centre that the scores begin with.
  void add_groups(const PackedCenters<T>& centers, std::int64_t first_group, std::int64_t last_group,
                  std::int64_t origin, const T* panel, std::int64_t begin, std::int64_t depth, Ahead& ahead) {
    for (std::int64_t g = first_group; g < last_group; ++g) {
      const std::int64_t size = centers.begin(g + 1) - centers.begin(g);
      const T* group = centers.group(g) + begin * size;
      T* scores = scores_.get() + (centers.begin(g) - origin) * width();
      if constexpr (kRowVectors > 2) {
        if (n_vectors_ > 2) {
          add_group<T, kRowVectors>(size, panel, group, depth, scores, ahead);
          continue;
        }
      }
      if (n_vectors_ == 2) {
        add_group<T, 2>(size, panel, group, depth, scores, ahead);
      } else {
        add_group<T, 1>(size, panel, group, depth, scores, ahead);
      }
    }
  }

  static_assert(kRowVectors == 2 || kRowVectors == 3, "add_groups knows one, two and three vectors");

  std::int64_t count_ = 0;
  int n_vectors_ = 0;
  const T* rows_[kTileRows<T>];
  alignas(64) T sq_norms_[kTileRows<T>];
  Buffer<T> panel_;
  Buffer<T> scores_;
};

// How fast the lines of the next `kTileRows` rows should be asked for, so that they have come in one tile's time.
// Never faster than line after line: a step that leaves lines out is worse than none.
template <class T>
inline Ahead next_tile(const Rows<T>& X, std::int64_t first, std::int64_t n_groups) {
  const std::int64_t next = first + kTileRows<T>;
  if (next >= X.n_rows) return {};
  const std::int64_t bytes_per_feature = kTileRows<T> * static_cast<std::int64_t>(sizeof(T));
  return {reinterpret_cast<const char*>(X.row(next)), at_most(64, bytes_per_feature / n_groups)};
}

// A point amid the rows, to which data and centres are moved.
template <class T>
inline void mean_of_rows(const Rows<T>& X, T* mean) {
  Buffer<double> sums = zeros<double>(X.n_features);
  for (std::int64_t i = 0; i < X.n_rows; ++i) {
    const T* row = X.row(i);
    for (std::int64_t j = 0; j < X.n_features; ++j) sums[j] += static_cast<double>(row[j]);
  }
  const double n = static_cast<double>(X.n_rows);
  for (std::int64_t j = 0; j < X.n_features; ++j) mean[j] = static_cast<T>(sums[j] / n);
}

template <class T>
inline void subtract_shift(const T* row, const T* shift, std::int64_t n_features, T* out) {
  for (std::int64_t j = 0; j < n_features; ++j) out[j] = row[j] - shift[j];
}

}  // namespace
}  // namespace gmil
