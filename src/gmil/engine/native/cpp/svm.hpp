// The soft-margin machine on kernel values, by sequential minimal optimisation.
//
// Coefficients carry the sign of their class, so that row i lies between `lower` and `upper`, one of which is zero, and all
// sum to zero. A step raises one coefficient and lowers another as much. Which pair: the row that gains most by rising,
// and the row that, with it, promises the largest decrease by second-order information (Fan, Chen and Lin 2005).
#pragma once

#include "memory.hpp"
#include "simd.hpp"
#include "threads.hpp"

namespace gmil {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class SvmSolver {
 public:
  // `dual` and `products` are of an earlier machine, or zero; `first` is where to begin, whatever it is.
  SvmSolver(const SvmProblem& problem, const double* first, double* dual, double* products)
      : kernel_(problem.kernel),
        n_(problem.n_rows),
        dual_(dual),
        products_(products),
        lower_(n_),
        upper_(n_),
        by_rising_(n_),
        by_falling_(n_),
        diagonal_(n_) {
    for (std::int64_t i = 0; i < n_; ++i) {
      const double cost = problem.costs[i] > 0 ? problem.costs[i] : 0;
      lower_[i] = problem.positive[i] ? 0 : -cost;
      upper_[i] = problem.positive[i] ? cost : 0;
      diagonal_[i] = row(i)[i];
      rounding_ += kRounding * cost;
    }
    move_to(first);
    for (std::int64_t i = 0; i < n_; ++i) mark(i);
    find_ends();
    balance();
  }

  // Take at most `n_steps` steps; returns how many. Fewer: the largest violation is below the tolerance.
  std::int64_t run(std::int64_t n_steps, double tolerance) {
    for (std::int64_t step = 0; step < n_steps; ++step) {
      if (!(top_ - bottom_ >= tolerance)) return step;
      const std::int64_t partner = best_partner();
      if (partner < 0) return step;
      move_pair(rising_, partner);
    }
    return n_steps;
  }

  // The mean over rows between their bounds, on which every one agrees at the optimum; without any, the middle of what is
  // allowed. Where the classes cost the same, rounding alone can keep a row from its bound: it has no say, or the
  // intercept would be any that is allowed.
  double intercept() const {
    double sum = 0, top = -kInfinity, bottom = kInfinity;
    std::int64_t n_free = 0;
    for (std::int64_t i = 0; i < n_; ++i) {
      const bool rises = upper_[i] - dual_[i] > rounding_, falls = dual_[i] - lower_[i] > rounding_;
      const double left = label(i) - products_[i];
      if (rises && falls) {
        sum += left;
        ++n_free;
      }
      if (rises && left > top) top = left;
      if (falls && left < bottom) bottom = left;
    }
    return n_free > 0 ? sum / static_cast<double>(n_free) : (top + bottom) / 2;
  }

 private:
  static constexpr int kWide = kLanes<double>;
  static constexpr double kLeastCurvature = 1e-12;
  static constexpr double kRounding = 1e-13;

  const double* row(std::int64_t i) const { return kernel_ + i * n_; }

  double label(std::int64_t i) const { return upper_[i] > 0 ? 1 : -1; }

  // Note which ways row i may go.
  void mark(std::int64_t i) {
    by_rising_[i] = dual_[i] < upper_[i] ? label(i) : -kInfinity;
    by_falling_[i] = dual_[i] > lower_[i] ? label(i) : kInfinity;
  }

  // Put the coefficients where they are wanted, as far as bounds allow. Products follow, or are made anew if that is less.
  void move_to(const double* first) {
    std::int64_t n_changed = 0, n_support = 0;
    for (std::int64_t i = 0; i < n_; ++i) {
      const double wanted = within(i, first[i]);
      n_changed += wanted != dual_[i];
      n_support += wanted != 0;
    }
    if (n_changed > n_support) {
      fill(dual_, n_, 0.0);
      fill(products_, n_, 0.0);
    }
    for (std::int64_t i = 0; i < n_; ++i) {
      const double wanted = within(i, first[i]);
      if (wanted == dual_[i]) continue;
      add_row(i, wanted - dual_[i]);
      dual_[i] = wanted;
    }
  }

  double within(std::int64_t i, double value) const {
    if (!(value > lower_[i])) return lower_[i];
    return value < upper_[i] ? value : upper_[i];
  }

  void add_row(std::int64_t i, double factor) {
    const double* values = row(i);
    const Vec<double> factors = broadcast(factor);
    std::int64_t k = 0;
    for (; k + kWide <= n_; k += kWide) {
      store(products_ + k, add_product<double>(load(products_ + k), factors, load(values + k)));
    }
    for (; k < n_; ++k) products_[k] += factor * values[k];
  }

  // Raise or lower single coefficients, those that gain most by it, until the sum is zero.
  void balance() {
    double sum = 0;
    for (std::int64_t i = 0; i < n_; ++i) sum += dual_[i];
    while (sum < -rounding_ && top_ > -kInfinity) sum += move_one(rising_, -sum);
    while (sum > rounding_ && bottom_ < kInfinity) sum += move_one(falling_, -sum);
  }

  // Returns by how much the coefficient changed.
  double move_one(std::int64_t i, double wanted) {
    const double before = dual_[i];
    dual_[i] = within(i, before + wanted);
    mark(i);
    add_row(i, dual_[i] - before);
    find_ends();
    const bool arrived = lower_[i] < dual_[i] && dual_[i] < upper_[i];
    return arrived ? wanted : dual_[i] - before;
  }

  void find_ends() { step_and_find_ends(row(0), row(0), 0); }

  // Add factor * (up - down) to the products, and find the row to raise and the ends of the violation. Equal rows keep equal
  // products: they decide which of two instances is the better one.
  void step_and_find_ends(const double* up, const double* down, double factor) {
    const Vec<double> factors = broadcast(factor);
    Vec<double> highest = broadcast(kInfinity), lowest = broadcast(kInfinity);  // the first with the other sign
    IndexVec<double> high_at = broadcast_index<double>(0), low_at = broadcast_index<double>(0);
    std::int64_t k = 0;
    for (; k + kWide <= n_; k += kWide) {
      const Vec<double> now = add_product<double>(load(products_ + k), factors, load(up + k) - load(down + k));
      store(products_ + k, now);
      keep_smaller<double>(now - load(by_rising_.get() + k), k, highest, high_at);
      keep_smaller<double>(load(by_falling_.get() + k) - now, k, lowest, low_at);
    }
    First high = first_smallest(highest, high_at), low = first_smallest(lowest, low_at);
    for (; k < n_; ++k) {
      products_[k] += factor * (up[k] - down[k]);
      high.keep(products_[k] - by_rising_[k], k);
      low.keep(by_falling_[k] - products_[k], k);
    }
    top_ = -high.value;
    rising_ = high.at;
    bottom_ = low.value;
    falling_ = low.at;
  }

  struct First {
    double value;
    std::int64_t at;
    void keep(double other, std::int64_t where) {
      if (other < value) {
        value = other;
        at = where;
      }
    }
  };

  // The smallest lane, of equal ones the first row; `starts` are the rows of lane 0.
  static First first_smallest(const Vec<double>& values, const IndexVec<double>& starts) {
    First found{values[0], starts[0]};
    for (int lane = 1; lane < kWide; ++lane) {
      const std::int64_t at = starts[lane] + lane;
      if (values[lane] < found.value || (values[lane] == found.value && at < found.at)) found = {values[lane], at};
    }
    return found;
  }

  double curvature(std::int64_t i, std::int64_t j) const {
    const double found = diagonal_[i] + diagonal_[j] - 2 * row(i)[j];
    return found > kLeastCurvature ? found : kLeastCurvature;
  }

  // The row to lower while the rising one is raised; -1 where none violates.
  std::int64_t best_partner() const {
    const double* values = row(rising_);
    const Vec<double> top = broadcast(top_), own = broadcast(diagonal_[rising_]), two = broadcast(-2.0);
    const Vec<double> least = broadcast(kLeastCurvature), zero = broadcast(0.0);
    Vec<double> best = zero;
    IndexVec<double> where = broadcast_index<double>(0);
    std::int64_t k = 0;
    for (; k + kWide <= n_; k += kWide) {
      const Vec<double> violation = (top - load(by_falling_.get() + k)) + load(products_ + k);
      const Vec<double> bend = add_product<double>(own + load(diagonal_.get() + k), two, load(values + k));
      const Vec<double> curved = choose<double>(is_less<double>(least, bend), bend, least);
      const Vec<double> gain = (zero - violation * violation) / curved;
      keep_smaller<double>(choose<double>(is_less<double>(zero, violation), gain, zero), k, best, where);
    }
    First found = first_smallest(best, where);
    for (; k < n_; ++k) {
      const double violation = (top_ - by_falling_[k]) + products_[k];
      if (violation > 0) found.keep(-violation * violation / curvature(rising_, k), k);
    }
    return found.value < 0 ? found.at : -1;
  }

  void move_pair(std::int64_t i, std::int64_t j) {
    const double room_i = upper_[i] - dual_[i], room_j = dual_[j] - lower_[j];
    double step = (top_ - label(j) + products_[j]) / curvature(i, j);
    step = step < room_i ? step : room_i;
    step = step < room_j ? step : room_j;
    dual_[i] = step < room_i ? dual_[i] + step : upper_[i];
    dual_[j] = step < room_j ? dual_[j] - step : lower_[j];
    mark(i);
    mark(j);
    step_and_find_ends(row(i), row(j), step);
  }

  const double* kernel_;
  std::int64_t n_;
  double* dual_;
  double* products_;
  Buffer<double> lower_;
  Buffer<double> upper_;
  Buffer<double> by_rising_;   // the label where a coefficient may rise, else minus infinity
  Buffer<double> by_falling_;  // the label where it may fall, else infinity
  Buffer<double> diagonal_;
  double rounding_ = 0;        // what a sum of coefficients may be off
  // Label less product is the intercept that puts a row on its margin.
  double top_ = 0;     // the largest among rows that may rise
  double bottom_ = 0;  // the smallest among those that may fall
  std::int64_t rising_ = 0;
  std::int64_t falling_ = 0;
};

std::int64_t svm_solve(const SvmProblem& problem, double tolerance, std::int64_t max_iter, const double* first,
                       double* dual, double* products, double* intercept) {
  constexpr std::int64_t kStepsPerTask = 64;
  SvmSolver solver(problem, first, dual, products);
  Team team(1, 0);
  std::int64_t n_iter = 0;
  bool ended = false;
  while (!ended && n_iter < max_iter) {
    for_each_task(team, 1, 0, [&](std::int64_t, int) {
      const std::int64_t wanted = max_iter - n_iter < kStepsPerTask ? max_iter - n_iter : kStepsPerTask;
      const std::int64_t taken = solver.run(wanted, tolerance);
      n_iter += taken;
      ended = taken < wanted;
    });
  }
  *intercept = solver.intercept();
  return n_iter;
}

}  // namespace
}  // namespace gmil
