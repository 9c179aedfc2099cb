// k-means in Gram space: everything follows from G = X X^T, whatever the number of features.
//
// A centre is the mean of its rows, so its product with row j is A[k][j] / n, where A[k] is the sum of the rows of G in
// cluster k, and |x_j - c_k|^2 = G[j][j] - 2 A[k][j] / n + s[k] / n^2 with s[k] the sum of A[k] over the cluster.
// When a label changes, one row of G moves from one A[k] to another. All of G is there, so the distances of the
// rows that do not train (the test fold) come for free.
#pragma once

#include "assign.hpp"
#include "empty.hpp"
#include "seed.hpp"

namespace gmil {
namespace {

// The rows of G, with their diagonal at hand.
class Gram {
 public:
  explicit Gram(const GramJobs& jobs) : values_(jobs.gram), n_(jobs.n_rows), diagonal_(jobs.n_rows) {
    for (std::int64_t i = 0; i < n_; ++i) diagonal_[i] = values_[i * n_ + i];
  }

  std::int64_t size() const { return n_; }
  const double* row(std::int64_t i) const { return values_ + i * n_; }
  double diagonal(std::int64_t i) const { return diagonal_[i]; }
  const double* diagonal() const { return diagonal_.get(); }

 private:
  const double* values_;
  std::int64_t n_;
  Buffer<double> diagonal_;
};

// Greedy k-means++ among the members of one job.
class GramSeeding {
 public:
  GramSeeding(const Gram& gram, std::int64_t n_trials)
      : gram_(gram),
        nearest_(gram.size()),
        with_candidate_(n_trials * gram.size()),
        totals_(gram.size()),
        sums_(n_trials),
        candidates_(n_trials) {}

  void run(const std::uint8_t* members, std::int64_t n_clusters, const double* uniforms, std::int64_t n_trials,
           std::int64_t* chosen) {
    const std::int64_t n = gram_.size();
    std::int64_t n_members = 0;
    std::int64_t last_member = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      nearest_[j] = members[j] != 0 ? 1e300 : 0.0;  // zero: never drawn, and nothing to win
      n_members += members[j] != 0 ? 1 : 0;
      last_member = members[j] != 0 ? j : last_member;
    }
    candidates_[0] = nth_member(members, first_choice(uniforms[0], n_members));
    chosen[0] = choose(1);
    for (std::int64_t k = 1; k < n_clusters; ++k) {
      const double total = running_totals(nearest_.get(), n, totals_.get());
      for (std::int64_t t = 0; t < n_trials; ++t) {
        const double target = uniforms[k * n_trials + t] * total;
        candidates_[t] = at_most(first_above(totals_.get(), n, target), last_member);
      }
      chosen[k] = choose(n_trials);
    }
  }

 private:
  static std::int64_t nth_member(const std::uint8_t* members, std::int64_t n) {
    std::int64_t j = 0;
    while (members[j] == 0 || n-- > 0) ++j;
    return j;
  }

  std::int64_t choose(std::int64_t n_trials) {
    const std::int64_t n = gram_.size();
    for (std::int64_t t = 0; t < n_trials; ++t) {
      const std::int64_t c = candidates_[t];
      sums_[t] = compare(gram_.row(c), gram_.diagonal(c), c, with_candidate_.get() + t * n);
    }
    const std::int64_t best = first_smallest<double>(sums_.get(), n_trials);
    std::memcpy(nearest_.get(), with_candidate_.get() + best * n, static_cast<std::size_t>(n) * sizeof(double));
    return candidates_[best];
  }

  double compare(const double* products, double norm, std::int64_t own, double* left) const {
    constexpr int L = kLanes<double>;
    const std::int64_t n = gram_.size();
    for (std::int64_t j = 0; j < n; ++j) {
      const double square = gram_.diagonal()[j] + norm - 2 * products[j];
      const double positive = square > 0 ? square : 0;
      left[j] = positive < nearest_[j] ? positive : nearest_[j];
    }
    left[own] = 0;
    Vec<double> sums = {};
    std::int64_t j = 0;
    for (; j + L <= n; j += L) sums += load(left + j);
    double sum = sum_lanes<double>(sums);
    for (; j < n; ++j) sum += left[j];
    return sum;
  }

  const Gram& gram_;
  Buffer<double> nearest_;
  Buffer<double> with_candidate_;
  Buffer<double> totals_;
  Buffer<double> sums_;
  Buffer<std::int64_t> candidates_;
};

// Lloyd for one job after another; one per worker.
class GramLloyd {
 public:
  GramLloyd(const Gram& gram, std::int64_t n_clusters)
      : gram_(gram),
        n_(gram.size()),
        k_(n_clusters),
        stride_(divide_up(gram.size(), kLine) * kLine),
        sums_(n_clusters * stride_),
        weight_(n_clusters),
        self_(n_clusters),
        counts_(n_clusters),
        held_(n_clusters),
        begin_(n_clusters + 1),
        best_(gram.size()),
        nearest_(gram.size()),
        found_(gram.size()),
        in_sums_(gram.size()),
        rows_(gram.size()),
        by_cluster_(gram.size()),
        moves_(n_clusters) {}

  std::int64_t run(const std::uint8_t* members, const std::int64_t* starts, std::int64_t max_iter,
                   std::int32_t* labels) {
    list_members(members);
    start_at_rows(starts);
    fill(labels, n_, std::int32_t{-1});
    find_nearest();
    take_found(labels);
    std::int64_t n_iter = 0;
    while (n_iter < max_iter) {
      ++n_iter;
      count(labels);
      if (any_empty(counts_.get(), k_)) refill(labels);
      follow(labels);
      find_nearest();
      if (!take_found(labels)) break;
    }
    for (std::int64_t j = 0; j < n_; ++j) labels[j] = found_[j];
    return n_iter;
  }

  double inertia() const {
    double total = 0;
    for (std::int64_t m = 0; m < n_members_; ++m) total += nearest_square(rows_[m]);
    return total;
  }

  // Squared distances of all rows to all centres, (n_rows, n_clusters).
  void squares(double* out) const {
    for (std::int64_t k = 0; k < k_; ++k) {
      const double constant = self_[k] / (weight_[k] * weight_[k]);
      const double factor = 2 / weight_[k];
      const double* products = sum(k);
      for (std::int64_t j = 0; j < n_; ++j) {
        const double square = gram_.diagonal(j) + (constant - factor * products[j]);
        out[j * k_ + k] = square > 0 ? square : 0;
      }
    }
  }

 private:
  void list_members(const std::uint8_t* members) {
    n_members_ = 0;
    for (std::int64_t j = 0; j < n_; ++j) {
      if (members[j] != 0) rows_[n_members_++] = j;
    }
  }

  // A centre at a row is the sum of that one row, held by nobody.
  void start_at_rows(const std::int64_t* starts) {
    for (std::int64_t k = 0; k < k_; ++k) {
      std::memcpy(sum(k), gram_.row(starts[k]), static_cast<std::size_t>(n_) * sizeof(double));
      self_[k] = gram_.diagonal(starts[k]);
      weight_[k] = 1;
      held_[k] = 0;
    }
    fill(in_sums_.get(), n_, std::int32_t{-1});
  }

  double nearest_square(std::int64_t j) const {
    const double square = gram_.diagonal(j) + best_[j];
    return square > 0 ? square : 0;
  }

  // The nearest centre of all rows, members or not.
  void find_nearest() {
    constexpr int L = kLanes<double>;
    std::int64_t j = 0;
    for (; j + 2 * L <= n_; j += 2 * L) find_nearest_of<2>(j);
    for (; j + L <= n_; j += L) find_nearest_of<1>(j);
    for (; j < n_; ++j) {
      best_[j] = score(0, sum(0)[j]);
      found_[j] = 0;
      for (std::int64_t k = 1; k < k_; ++k) {
        const double value = score(k, sum(k)[j]);
        if (value < best_[j]) {
          best_[j] = value;
          found_[j] = static_cast<std::int32_t>(k);
        }
      }
    }
  }

  double score(std::int64_t k, double product) const {
    return self_[k] / (weight_[k] * weight_[k]) - 2 / weight_[k] * product;
  }

  template <int NV>
  void find_nearest_of(std::int64_t j) {
    constexpr int L = kLanes<double>;
    Vec<double> best[NV];
    IndexVec<double> where[NV];
    for (int v = 0; v < NV; ++v) {
      best[v] = broadcast(1e300);
      where[v] = broadcast_index<double>(0);
    }
    for (std::int64_t k = 0; k < k_; ++k) {
      const Vec<double> constant = broadcast(self_[k] / (weight_[k] * weight_[k]));
      const Vec<double> factor = broadcast(2 / weight_[k]);
      const double* products = sum(k) + j;
      for (int v = 0; v < NV; ++v) {
        keep_smaller<double>(constant - factor * load(products + v * L), k, best[v], where[v]);
      }
    }
    for (int v = 0; v < NV; ++v) {
      store(best_.get() + j + v * L, best[v]);
      for (int i = 0; i < L; ++i) found_[j + v * L + i] = static_cast<std::int32_t>(where[v][i]);
    }
  }

  // Returns whether a label of a member changed.
  bool take_found(std::int32_t* labels) const {
    std::int64_t changed = 0;
    for (std::int64_t m = 0; m < n_members_; ++m) {
      const std::int64_t j = rows_[m];
      changed += labels[j] != found_[j] ? 1 : 0;
      labels[j] = found_[j];
    }
    return changed > 0;
  }

  void count(const std::int32_t* labels) {
    fill(counts_.get(), k_, std::int64_t{0});
    for (std::int64_t m = 0; m < n_members_; ++m) ++counts_[labels[rows_[m]]];
  }

  void refill(std::int32_t* labels) {
    fill(nearest_.get(), n_, 0.0);  // who is not a member is never moved
    for (std::int64_t m = 0; m < n_members_; ++m) nearest_[rows_[m]] = nearest_square(rows_[m]);
    fill_empty_clusters(labels, nearest_.get(), n_, counts_.get(), k_, moves_.get());
  }

  // Bring the sums from the labels they were made of to the new ones. A centre that nobody will hold stays where it is;
  // one that nobody held, as at the start, is summed from nothing.
  void follow(const std::int32_t* labels) {
    bool from_nothing = false;
    for (std::int64_t m = 0; m < n_members_; ++m) {
      const std::int64_t j = rows_[m];
      const std::int32_t from = in_sums_[j];
      const std::int32_t to = labels[j];
      if (from == to) continue;
      const bool leaves = from >= 0 && counts_[from] > 0;
      const bool arrives = held_[to] > 0;
      move_row(gram_.row(j), leaves ? sum(from) : nullptr, arrives ? sum(to) : nullptr);
      from_nothing |= !arrives;
      in_sums_[j] = to;
    }
    if (from_nothing) sum_new_clusters(labels);
    for (std::int64_t k = 0; k < k_; ++k) {
      held_[k] = counts_[k];
      if (counts_[k] == 0) continue;
      weight_[k] = static_cast<double>(counts_[k]);
      self_[k] = 0;
    }
    for (std::int64_t m = 0; m < n_members_; ++m) {
      const std::int64_t k = labels[rows_[m]];
      self_[k] += sum(k)[rows_[m]];
    }
  }

  void move_row(const double* row, double* from, double* to) const {
    if (from != nullptr && to != nullptr) {
      for (std::int64_t j = 0; j < n_; ++j) {
        const double value = row[j];
        from[j] -= value;
        to[j] += value;
      }
    } else if (from != nullptr) {
      for (std::int64_t j = 0; j < n_; ++j) from[j] -= row[j];
    } else if (to != nullptr) {
      for (std::int64_t j = 0; j < n_; ++j) to[j] += row[j];
    }
  }

  void sum_new_clusters(const std::int32_t* labels) {
    begin_[0] = 0;
    for (std::int64_t k = 0; k < k_; ++k) begin_[k + 1] = begin_[k] + counts_[k];
    for (std::int64_t m = 0; m < n_members_; ++m) by_cluster_[begin_[labels[rows_[m]]]++] = rows_[m];
    for (std::int64_t k = 0; k < k_; ++k) {  // begin_[k] is now where cluster k ends
      if (held_[k] == 0 && counts_[k] > 0) sum_rows(by_cluster_.get() + begin_[k] - counts_[k], counts_[k], sum(k));
    }
  }

  // Some columns at a time, so that their sums stay in registers while all the rows pass.
  void sum_rows(const std::int64_t* rows, std::int64_t size, double* out) const {
    constexpr int L = kLanes<double>;
    std::int64_t j = 0;
    for (; j + 8 * L <= n_; j += 8 * L) sum_columns<8>(rows, size, j, out);
    for (; j + L <= n_; j += L) sum_columns<1>(rows, size, j, out);
    for (; j < n_; ++j) {
      out[j] = 0;
      for (std::int64_t m = 0; m < size; ++m) out[j] += gram_.row(rows[m])[j];
    }
  }

  template <int NV>
  void sum_columns(const std::int64_t* rows, std::int64_t size, std::int64_t j, double* out) const {
    constexpr int L = kLanes<double>;
    Vec<double> sums[NV] = {};
    for (std::int64_t m = 0; m < size; ++m) {
      const double* row = gram_.row(rows[m]) + j;
      GMIL_UNROLL
      for (int v = 0; v < NV; ++v) sums[v] += load(row + v * L);
    }
    GMIL_UNROLL
    for (int v = 0; v < NV; ++v) store(out + j + v * L, sums[v]);
  }

  static constexpr std::int64_t kLine = 8;  // doubles in a cache line

  double* sum(std::int64_t k) { return sums_.get() + k * stride_; }
  const double* sum(std::int64_t k) const { return sums_.get() + k * stride_; }

  const Gram& gram_;
  std::int64_t n_;
  std::int64_t k_;
  std::int64_t stride_;
  std::int64_t n_members_ = 0;
  Buffer<double> sums_;            // (n_clusters, stride): A, every row on its own cache lines
  Buffer<double> weight_;          // how many rows each sum is made of
  Buffer<double> self_;            // s
  Buffer<std::int64_t> counts_;    // rows by the current labels
  Buffer<std::int64_t> held_;      // rows by the labels that the sums are made of
  Buffer<std::int64_t> begin_;     // where each cluster begins in by_cluster_
  Buffer<double> best_;            // the score of the nearest centre
  Buffer<double> nearest_;
  Buffer<std::int32_t> found_;     // the nearest centre
  Buffer<std::int32_t> in_sums_;   // the cluster whose sum holds the row, or -1
  Buffer<std::int64_t> rows_;      // the members
  Buffer<std::int64_t> by_cluster_;  // the members, one cluster after the other
  Buffer<Move> moves_;
};

inline double gram_flops(const GramJobs& jobs, std::int64_t n_passes) {
  return product_flops(jobs.n_rows, jobs.n_jobs * n_passes, jobs.n_clusters);
}

inline void gram_seed(const GramJobs& jobs, const double* uniforms, std::int64_t n_trials, std::int64_t* chosen,
                      int n_threads) {
  const Gram gram(jobs);
  const double flops = gram_flops(jobs, 2 * n_trials);
  Team team(n_threads, flops);
  PerWorker<GramSeeding> seedings(team.size(), gram, n_trials);
  for_each_task(team, jobs.n_jobs, flops, [&](std::int64_t job, int worker) {
    seedings[worker].run(jobs.members + job * jobs.n_rows, jobs.n_clusters,
                         uniforms + job * jobs.n_clusters * n_trials, n_trials, chosen + job * jobs.n_clusters);
  });
}

inline void gram_lloyd(const GramJobs& jobs, const std::int64_t* starts, std::int64_t max_iter,
                       std::int32_t* labels, double* squares, double* inertia, std::int64_t* n_iter,
                       int n_threads) {
  const Gram gram(jobs);
  const double flops = gram_flops(jobs, 10) + product_flops(jobs.n_rows, jobs.n_rows, jobs.n_jobs);
  Team team(n_threads, flops);
  PerWorker<GramLloyd> runs(team.size(), gram, jobs.n_clusters);
  for_each_task(team, jobs.n_jobs, flops, [&](std::int64_t job, int worker) {
    GramLloyd& run = runs[worker];
    n_iter[job] = run.run(jobs.members + job * jobs.n_rows, starts + job * jobs.n_clusters, max_iter,
                          labels + job * jobs.n_rows);
    inertia[job] = run.inertia();
    run.squares(squares + job * jobs.n_rows * jobs.n_clusters);
  });
}

}  // namespace
}  // namespace gmil
