// Lloyd's iterations with Hamerly's bounds: the same labels as plain Lloyd, most distances never computed.
//
// Every row keeps an upper bound on the distance to its own centre and a lower bound on the distance to all
// others. Centres move, bounds follow by the triangle inequality, and only rows whose bounds cross, or whose upper
// bound reaches half the way to the next centre, are in doubt. With many centres and features those try the sharper
// bounds of bounds.hpp, and only what remains is compared with all centres again. The bounds include the rounding of
// the distances, so that a row is skipped only where plain Lloyd could not have changed its label.
#pragma once

#include "assign.hpp"
#include "bounds.hpp"
#include "empty.hpp"

namespace gmil {
namespace {

// Squared distance between row - shift and a centre, by differences: exact zero where they are equal.
template <class T>
inline T sq_difference(const T* row, const T* shift, const T* center, std::int64_t n_features) {
  constexpr int L = kLanes<T>;
  constexpr int kStrands = 4;
  Vec<T> sums[kStrands] = {};
  std::int64_t j = 0;
  for (; j + kStrands * L <= n_features; j += kStrands * L) {
    GMIL_UNROLL
    for (int s = 0; s < kStrands; ++s) {
      const Vec<T> difference = load(row + j + s * L) - load(shift + j + s * L) - load(center + j + s * L);
      sums[s] = add_product<T>(sums[s], difference, difference);
    }
  }
  for (; j + L <= n_features; j += L) {
    const Vec<T> difference = load(row + j) - load(shift + j) - load(center + j);
    sums[0] = add_product<T>(sums[0], difference, difference);
  }
  T total = sum_lanes<T>((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; j < n_features; ++j) {
    const T difference = row[j] - shift[j] - center[j];
    total += difference * difference;
  }
  return total;
}

// The point to which data and centres are moved: the mean of the starting centres, or that of some rows where the centres
// are far from all of them. From there the differences between rows would be lost in rounding.
template <class T>
void choose_shift(const Rows<T>& X, const Rows<T>& starts, T* shift) {
  constexpr std::int64_t kRowsToLookAt = 32;
  constexpr double kFar = 100;  // squared distance of the two means, relative to that of a row from its mean
  const std::int64_t d = X.n_features;
  const std::int64_t step = divide_up(X.n_rows, kRowsToLookAt);
  const double n = static_cast<double>(divide_up(X.n_rows, step));
  Buffer<double> mean = zeros<double>(d);
  for (std::int64_t i = 0; i < X.n_rows; i += step) {
    for (std::int64_t j = 0; j < d; ++j) mean[j] += static_cast<double>(X.row(i)[j]) / n;
  }
  mean_of_rows(starts, shift);
  const auto sq_distance_to_mean = [&](const T* point) {
    double square = 0;
    for (std::int64_t j = 0; j < d; ++j) {
      const double difference = static_cast<double>(point[j]) - mean[j];
      square += difference * difference;
    }
    return square;
  };
  double spread = 0;
  for (std::int64_t i = 0; i < X.n_rows; i += step) spread += sq_distance_to_mean(X.row(i)) / n;
  if (sq_distance_to_mean(shift) <= kFar * spread) return;
  for (std::int64_t j = 0; j < d; ++j) shift[j] = static_cast<T>(mean[j]);
}

template <class T>
class Lloyd {
 public:
  Lloyd(const Rows<T>& X, const T* centers, std::int64_t n_clusters, std::int32_t* labels, int n_threads)
      : X_(X),
        k_(n_clusters),
        labels_(labels),
        team_(n_threads, product_flops(X.n_rows, X.n_features, n_clusters)),
        tiles_(team_.size(), n_clusters),
        shift_(X.n_features),
        no_shift_(zeros<T>(X.n_features)),
        centers_(n_clusters * X.n_features),
        packed_(n_clusters, X.n_features),
        sums_(zeros<double>(n_clusters * X.n_features)),
        counts_(zeros<std::int64_t>(n_clusters)),
        upper_(X.n_rows),
        lower_(X.n_rows),
        bounds_(X.n_rows, n_clusters, X.n_features),
        half_gap_(n_clusters),
        travel_(n_clusters),
        rows_(X.n_rows),
        found_(X.n_rows),
        moves_(at_least(X.n_rows, n_clusters)),
        rows_in_block_(n_blocks()) {
    const std::int64_t chain = at_most(X.n_features, kDepth) + X.n_features / kDepth;
    slack_ = static_cast<T>(2 * (chain + 16)) * Rounding<T>::unit;
    choose_shift(X, Rows<T>{centers, n_clusters, X.n_features}, shift_.get());
    for (std::int64_t k = 0; k < k_; ++k) {
      subtract_shift(centers + k * X.n_features, shift_.get(), X.n_features, center(k));
    }
  }

  std::int64_t run(std::int64_t max_iter) {
    assign_all();
    std::int64_t n_iter = 0;
    while (n_iter < max_iter) {
      ++n_iter;
      if (any_empty(counts_.get(), k_)) refill();
      move_centers();
      if (!reassign(collect_doubtful())) break;
    }
    return n_iter;
  }

  void copy_centers(T* out) const {
    for (std::int64_t k = 0; k < k_; ++k) {
      for (std::int64_t j = 0; j < X_.n_features; ++j) {
        const std::int64_t q = k * X_.n_features + j;
        out[q] = static_cast<T>(static_cast<double>(centers_[q]) + static_cast<double>(shift_[j]));
      }
    }
  }

  // Sum of the squared distances to the own centres; parts of fixed size are added in order.
  double inertia() {
    Buffer<double> parts(n_blocks());
    const double flops = product_flops(X_.n_rows, X_.n_features, 1);
    for_each_task(team_, n_blocks(), flops, [&](std::int64_t block, int) {
      double part = 0;
      for (std::int64_t i = block * kBlock; i < block_end(block); ++i) part += static_cast<double>(own_square(i));
      parts[block] = part;
    });
    double total = 0;
    for (std::int64_t block = 0; block < n_blocks(); ++block) total += parts[block];
    return total;
  }

 private:
  static constexpr std::int64_t kBlock = 512;  // rows that a worker takes where work is little per row

  std::int64_t n_blocks() const { return divide_up(X_.n_rows, kBlock); }
  std::int64_t block_end(std::int64_t block) const { return at_most(X_.n_rows, (block + 1) * kBlock); }
  T* center(std::int64_t k) { return centers_.get() + k * X_.n_features; }
  T own_square(std::int64_t i) {
    return sq_difference(X_.row(i), shift_.get(), center(labels_[i]), X_.n_features);
  }

  void assign_all() {
    packed_.pack(centers_.get());
    for (std::int64_t i = 0; i < X_.n_rows; ++i) rows_[i] = i;
    compare_with_centers(X_.n_rows);
    for (std::int64_t i = 0; i < X_.n_rows; ++i) {
      labels_[i] = found_[i];
      ++counts_[found_[i]];
    }
    add_to_sums(team_, X_, 0, X_.n_rows, shift_.get(), labels_, sums_.get());
  }

  void refill() {
    Buffer<T> nearest(X_.n_rows);
    for (std::int64_t i = 0; i < X_.n_rows; ++i) nearest[i] = own_square(i);
    const std::int64_t n_moves =
        fill_empty_clusters(labels_, nearest.get(), X_.n_rows, counts_.get(), k_, moves_.get());
    for (std::int64_t m = 0; m < n_moves; ++m) {  // nothing is known about rows that were moved by hand
      upper_[moves_[m].row] = Rounding<T>::huge;
      lower_[moves_[m].row] = 0;
    }
    move_sums(n_moves);
  }

  // Put every centre at the mean of its rows; an empty cluster keeps its centre.
  void move_centers() {
    const std::int64_t d = X_.n_features;
    for (std::int64_t k = 0; k < k_; ++k) {
      double squares = 0;
      if (counts_[k] > 0) {
        const double n = static_cast<double>(counts_[k]);
        const double* sum = sums_.get() + k * d;
        T* c = center(k);
        for (std::int64_t j = 0; j < d; ++j) {
          const T moved = static_cast<T>(sum[j] / n);
          const double step = static_cast<double>(moved) - static_cast<double>(c[j]);
          squares += step * step;
          c[j] = moved;
        }
      }
      travel_[k] = static_cast<T>(std::sqrt(squares)) * (1 + 4 * Rounding<T>::unit);
      bounds_.add_step(k, travel_[k]);
    }
    packed_.pack(centers_.get());
    measure_gaps();
  }

  // Half the distance from every centre to the next one: no row nearer than that can belong elsewhere.
  void measure_gaps() {
    const Rows<T> centers{centers_.get(), k_, X_.n_features};
    const auto measure = [&](const Tile<T>& tile, std::int64_t first) {
      for (std::int64_t i = 0; i < tile.count(); ++i) {
        T best = Rounding<T>::huge;
        for (std::int64_t k = 0; k < k_; ++k) {
          const T score = tile.scores(k)[i];
          if (k != first + i && score < best) best = score;
        }
        const T norm = tile.sq_norm(i);
        const T square = best + norm;
        half_gap_[first + i] = square_root(square - slack_ * (norm + square)) / 2;
      }
    };
    for_each_tile<T>(team_, tiles_, centers, 0, k_, packed_, no_shift_.get(), measure);
  }

  // Let the bounds follow the centres and list the rows whose label they no longer prove.
  std::int64_t collect_doubtful() {
    std::int64_t farthest = 0;
    for (std::int64_t k = 1; k < k_; ++k) {
      if (travel_[k] > travel_[farthest]) farthest = k;
    }
    T next = 0;
    for (std::int64_t k = 0; k < k_; ++k) {
      if (k != farthest && travel_[k] > next) next = travel_[k];
    }
    for_each_task(team_, n_blocks(), product_flops(X_.n_rows, k_, 5), [&](std::int64_t block, int) {
      rows_in_block_[block] = collect_block(block, farthest, next);
    });
    std::int64_t n = 0;
    for (std::int64_t block = 0; block < n_blocks(); ++block) {
      if (n != block * kBlock) {
        std::memmove(rows_.get() + n, rows_.get() + block * kBlock,
                     static_cast<std::size_t>(rows_in_block_[block]) * sizeof(std::int64_t));
      }
      n += rows_in_block_[block];
    }
    return n;
  }

  std::int64_t collect_block(std::int64_t block, std::int64_t farthest, T next) {
    const std::int64_t first = block * kBlock;
    const std::int64_t size = block_end(block) - first;
    std::uint8_t in_doubt[kBlock];
    move_bounds(first, size, farthest, next, in_doubt);
    std::int64_t* out = rows_.get() + first;
    std::int64_t n = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      out[n] = first + i;
      n += in_doubt[i];
    }
    if (!bounds_.used()) return n;
    std::int64_t n_unproven = 0;
    for (std::int64_t q = 0; q < n; ++q) {
      const std::int64_t row = out[q];
      out[n_unproven] = row;
      n_unproven += prove(row) ? 0 : 1;
    }
    return n_unproven;
  }

  // No branch and no call in here: the compiler makes vectors of it.
  void move_bounds(std::int64_t first, std::int64_t size, std::int64_t farthest, T next, std::uint8_t* in_doubt) {
    constexpr T kUp = 1 + 4 * Rounding<T>::unit;
    constexpr T kDown = 1 - 4 * Rounding<T>::unit;
    const std::int32_t* labels = labels_ + first;
    const T* travel = travel_.get();
    const T* half_gap = half_gap_.get();
    const T most = travel[farthest];
    T* upper = upper_.get() + first;
    T* lower = lower_.get() + first;
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int32_t own = labels[i];
      const T near = (upper[i] + travel[own]) * kUp;
      const T far = (lower[i] - (own == farthest ? next : most)) * kDown;
      const T proof = far > half_gap[own] ? far : half_gap[own];
      upper[i] = near;
      lower[i] = far;
      in_doubt[i] = near < proof ? 0 : 1;
    }
  }

  // Look at the sharper lower bounds of a row in doubt; returns whether they prove its label. (The exact distance to
  // the own centre would prove some more, but fetching the row for that costs more than it saves.)
  bool prove(std::int64_t i) {
    const T least = bounds_.least(i, labels_[i]);
    lower_[i] = least > lower_[i] ? least : lower_[i];
    return upper_[i] < least;
  }

  // Compare the listed rows with all centres; returns whether a label changed.
  bool reassign(std::int64_t n_listed) {
    compare_with_centers(n_listed);
    std::int64_t n_moves = 0;
    for (std::int64_t q = 0; q < n_listed; ++q) {
      const std::int64_t i = rows_[q];
      if (found_[q] == labels_[i]) continue;
      moves_[n_moves++] = {i, labels_[i], found_[q]};
      --counts_[labels_[i]];
      ++counts_[found_[q]];
      labels_[i] = found_[q];
    }
    move_sums(n_moves);
    return n_moves > 0;
  }

  void move_sums(std::int64_t n_moves) {
    const std::int64_t d = X_.n_features;
    for_each_slice(team_, 2 * n_moves, d, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t m = 0; m < n_moves; ++m) {
        const Move move = moves_[m];
        const T* row = X_.row(move.row);
        double* from = sums_.get() + move.from * d;
        double* to = sums_.get() + move.to * d;
        for (std::int64_t j = begin; j < end; ++j) {
          const double value = static_cast<double>(row[j] - shift_[j]);
          from[j] -= value;
          to[j] += value;
        }
      }
    });
  }

  // Nearest centre and fresh bounds for the first n rows of the list.
  void compare_with_centers(std::int64_t n) {
    // Small tasks: the list is often short, and every worker should have a part of it.
    const std::int64_t rows_per_task = 2 * kTileRows<T>;
    const double flops = product_flops(n, X_.n_features, k_);
    for_each_task(team_, divide_up(n, rows_per_task), flops, [&](std::int64_t task, int worker) {
      Tile<T>& tile = tiles_[worker];
      const std::int64_t stop = at_most(n, (task + 1) * rows_per_task);
      for (std::int64_t q = task * rows_per_task; q < stop; q += kTileRows<T>) {
        tile.begin(at_most(kTileRows<T>, stop - q));
        for (std::int64_t i = 0; i < tile.count(); ++i) tile.set_row(i, X_.row(rows_[q + i]));
        tile.compute(packed_, shift_.get(), next_listed(q, n));
        for (int v = 0; v < tile.n_vectors(); ++v) {
          keep_bounds(tile, v, q);
          bounds_.keep(tile, v, rows_.get() + q + v * kLanes<T>, slack_);
        }
      }
    });
  }

  // Rows that are listed without gaps can be asked for in advance.
  Ahead next_listed(std::int64_t q, std::int64_t n) const {
    const std::int64_t next = q + kTileRows<T>;
    if (next >= n || rows_[next] - rows_[q] != kTileRows<T>) return {};
    return next_tile(X_, rows_[q], packed_.n_groups());
  }

  void keep_bounds(const Tile<T>& tile, int v, std::int64_t q) {
    constexpr int L = kLanes<T>;
    Vec<T> best = load(tile.scores(0) + v * L);
    Vec<T> second = broadcast(Rounding<T>::huge);
    IndexVec<T> where = broadcast_index<T>(0);
    for (std::int64_t k = 1; k < k_; ++k) {
      keep_two_smaller<T>(load(tile.scores(k) + v * L), static_cast<Index<T>>(k), best, second, where);
    }
    const Vec<T> norms = load(tile.sq_norms() + v * L);
    const Vec<T> slack = broadcast(slack_);
    const Vec<T> near = best + norms;
    const Vec<T> far = second + norms;
    const Vec<T> upper = square_roots<T>(near + slack * (norms + norms + near));  // near may round below zero
    const Vec<T> lower = square_roots<T>(far - slack * (norms + far));
    const std::int64_t first = q + v * L;
    const int used = static_cast<int>(at_most(L, tile.count() - v * L));
    for (int i = 0; i < used; ++i) {
      const std::int64_t row = rows_[first + i];
      upper_[row] = upper[i];
      lower_[row] = lower[i];
      found_[first + i] = static_cast<std::int32_t>(where[i]);
    }
  }

  Rows<T> X_;
  std::int64_t k_;
  std::int32_t* labels_;
  Team team_;
  PerWorker<Tile<T>> tiles_;
  T slack_;  // rounding of a computed square, relative to |x|^2 + square, on the safe side
  Buffer<T> shift_;
  Buffer<T> no_shift_;
  Buffer<T> centers_;  // moved by the shift, like everything below
  PackedCenters<T> packed_;
  Buffer<double> sums_;
  Buffer<std::int64_t> counts_;
  Buffer<T> upper_;
  Buffer<T> lower_;
  CenterBounds<T> bounds_;
  Buffer<T> half_gap_;
  Buffer<T> travel_;             // how far each centre moved
  Buffer<std::int64_t> rows_;    // the list of rows to compare again
  Buffer<std::int32_t> found_;   // the nearest centre of each listed row
  Buffer<Move> moves_;
  Buffer<std::int64_t> rows_in_block_;
};

template <class T>
std::int64_t lloyd(const Rows<T>& X, T* centers, std::int64_t n_clusters, std::int64_t max_iter,
                   std::int32_t* labels, double* inertia, int n_threads) {
  Lloyd<T> run(X, centers, n_clusters, labels, n_threads);
  const std::int64_t n_iter = run.run(max_iter);
  run.copy_centers(centers);
  *inertia = run.inertia();
  return n_iter;
}

}  // namespace
}  // namespace gmil
