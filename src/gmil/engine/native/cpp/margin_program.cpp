// A bounded primal simplex method from shares of zero, which are feasible.
//
// Variables are the shares and the sums of columns. Sums start in the basis; a share that enters drives a sum to its
// bound, so that the basis is k shares and all sums but k, and only a matrix of size k, of these rows and columns, has
// an inverse to keep. Its size is that of the solution: the weights that are not zero.
#include "margin_program.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace gmil {
namespace {

using Index = std::int64_t;
using Vector = std::vector<double>;

constexpr double kProfit = 1e-9;        // less is no gain
constexpr double kOverstep = 1e-9;      // how far a bound may be overstepped for the sake of a large pivot
constexpr double kSmallestPivot = 1e-9;
constexpr double kSingular = 1e-11;
constexpr Index kUpdates = 64;          // of the inverse before it is computed afresh
constexpr Index kSparse = 8;            // with fewer entries than one in so many, zeros are left out

double dot(const double* one, const double* other, Index n) {
  double sum = 0;
  for (Index i = 0; i < n; ++i) sum += one[i] * other[i];
  return sum;
}

void add(double factor, const double* from, Index n, double* to) {
  for (Index i = 0; i < n; ++i) to[i] += factor * from[i];
}

// The rows or the columns of a matrix, to be added up. Leaving out zeros changes no sum.
class Lines {
 public:
  // From entry to entry of a line it is `stride` numbers, from line to line `apart`.
  Lines(const double* matrix, Index n_lines, Index length, Index apart, Index stride) : length_(length) {
    Index n_entries = 0;
    for (Index k = 0; k < n_lines * length; ++k) n_entries += matrix[k] != 0;
    is_sparse_ = n_entries < n_lines * length / kSparse;
    if (!is_sparse_ && stride == 1) {
      lines_ = matrix;
      return;
    }
    values_.reserve(is_sparse_ ? n_entries : n_lines * length);
    if (is_sparse_) at_.reserve(n_entries);
    for (Index i = 0; i < n_lines; ++i) {
      starts_.push_back(static_cast<Index>(values_.size()));
      for (Index j = 0; j < length; ++j) {
        const double value = matrix[i * apart + j * stride];
        if (is_sparse_ && value == 0) continue;
        values_.push_back(value);
        if (is_sparse_) at_.push_back(j);
      }
    }
    starts_.push_back(static_cast<Index>(values_.size()));
    lines_ = values_.data();
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  void add_to(double* to, double factor, Index line) const {
    if (!is_sparse_) return add(factor, lines_ + line * length_, length_, to);
    for (Index e = starts_[line]; e < starts_[line + 1]; ++e) to[at_[e]] += factor * lines_[e];
  }

 private:
  Index length_;
  bool is_sparse_ = false;
  const double* lines_ = nullptr;
  Vector values_;                   // where the matrix does not have the lines like this
  std::vector<Index> starts_, at_;  // of the entries of every line
};

// What enters: a row, or the sum of a column, by its place in the basis that it leaves free; and which way it goes.
struct Entering {
  Index row = -1, place = -1;
  double sign = 1, range = 0;
  bool none() const { return row < 0 && place < 0; }
};

// What leaves: a row, by its place, or the sum of a column; neither where the entering variable meets its own bound.
struct Leaving {
  Index place = -1, column = -1;
  double step = 0;
  bool none() const { return place < 0 && column < 0; }
};

class Simplex {
 public:
  Simplex(const double* rows, const double* most, Index n_rows, Index n_columns)
      : n_(n_rows), m_(n_columns), stride_(std::min(n_rows, n_columns)), rows_(rows), most_(most),
        by_row_(rows, n_rows, n_columns, n_columns, 1), by_column_(rows, n_columns, n_rows, 1, n_columns),
        scale_(n_rows), inverse_(stride_ * stride_), share_(n_rows), sum_(n_columns), margin_(n_rows),
        price_(n_columns), place_of_row_(n_rows, -1), place_of_column_(n_columns, -1),
        by_place_(stride_), image_(stride_), change_(stride_), slope_(n_columns) {
    for (Index i = 0; i < n_; ++i) scale_[i] = 1 / std::sqrt(1 + dot(row(i), row(i), m_));
  }

  bool run(Index max_steps) {
    for (Index step = 0; step < max_steps; ++step) {
      if (updates_ >= kUpdates && !refactor()) return false;
      set_prices();
      const Entering entering = choose_entering();
      if (entering.none()) {
        if (updates_ == 0) return true;
        if (!refactor()) return false;  // optimal up to the errors of the updates: look again without them
        continue;
      }
      set_direction(entering);
      Leaving leaving;
      if (!choose_leaving(entering.range, leaving)) return false;
      move(entering, leaving);
      if (!leaving.none()) exchange(entering, leaving);
    }
    return false;
  }

  const Vector& prices() const { return price_; }
  const Vector& shares() const { return share_; }

 private:
  const double* row(Index i) const { return rows_ + i * m_; }
  double* inverse(Index x) { return &inverse_[x * stride_]; }
  double entry(Index x, Index column) const { return row(basic_rows_[x])[column]; }
  double high(Index column) const { return column == m_ - 1 ? 0 : 1; }  // the lowest sum is as far below zero

  // Prices make the margin of every basic row 1.
  void set_prices() {
    std::fill(margin_.begin(), margin_.end(), 0.0);
    std::fill(price_.begin(), price_.end(), 0.0);
    std::fill(by_place_.begin(), by_place_.begin() + k_, 0.0);
    for (Index x = 0; x < k_; ++x) add(1, inverse(x), k_, by_place_.data());
    for (Index b = 0; b < k_; ++b) {
      price_[bound_columns_[b]] = by_place_[b];
      by_column_.add_to(margin_.data(), by_place_[b], bound_columns_[b]);
    }
  }

  // The most profitable row for its length, or sum.
  Entering choose_entering() const {
    Entering best;
    double most = 0;
    for (Index i = 0; i < n_; ++i) {
      if (place_of_row_[i] >= 0 || most_[i] <= 0) continue;
      const double profit = share_[i] > 0 ? margin_[i] - 1 : 1 - margin_[i];
      if (profit > kProfit && profit * scale_[i] > most) {
        most = profit * scale_[i];
        best.row = i;
      }
    }
    for (Index b = 0; b < k_; ++b) {
      const Index j = bound_columns_[b];
      const double profit = sum_[j] > 0 ? -price_[j] : price_[j];
      if (j != m_ - 1 && profit > kProfit && profit > most) {
        most = profit;
        best.place = b;
      }
    }
    if (best.place >= 0) {
      best.row = -1;
      best.sign = sum_[bound_columns_[best.place]] > 0 ? -1 : 1;
      best.range = 2;
    } else if (best.row >= 0) {
      best.sign = share_[best.row] > 0 ? -1 : 1;
      best.range = most_[best.row];
    }
    return best;
  }

  // How basic shares and sums change with the entering variable.
  void set_direction(const Entering& entering) {
    if (entering.row < 0) {
      std::fill(slope_.begin(), slope_.end(), 0.0);
      for (Index x = 0; x < k_; ++x) change_[x] = entering.sign * inverse(x)[entering.place];
    } else {
      const double* entered = row(entering.row);
      for (Index b = 0; b < k_; ++b) by_place_[b] = entered[bound_columns_[b]];
      for (Index x = 0; x < k_; ++x) image_[x] = dot(inverse(x), by_place_.data(), k_);
      for (Index x = 0; x < k_; ++x) change_[x] = -entering.sign * image_[x];
      for (Index j = 0; j < m_; ++j) slope_[j] = entering.sign * entered[j];
    }
    for (Index x = 0; x < k_; ++x) by_row_.add_to(slope_.data(), change_[x], basic_rows_[x]);
  }

  double room_of_row(Index x) const {
    const Index i = basic_rows_[x];
    return change_[x] > 0 ? most_[i] - share_[i] : share_[i];
  }
  double room_of_sum(Index j) const { return high(j) + (slope_[j] > 0 ? -sum_[j] : sum_[j]); }
  bool moves_row(Index x) const { return std::fabs(change_[x]) >= kSmallestPivot; }
  bool moves_sum(Index j) const { return place_of_column_[j] < 0 && std::fabs(slope_[j]) >= kSmallestPivot; }

  // Of all variables that meet a bound within the longest step, overstepping allowed, the one with the largest pivot.
  bool choose_leaving(double range, Leaving& best) const {
    double reach = range, pivot = 0;
    for (Index x = 0; x < k_; ++x)
      if (moves_row(x)) reach = std::min(reach, (room_of_row(x) + kOverstep) / std::fabs(change_[x]));
    for (Index j = 0; j < m_; ++j)
      if (moves_sum(j)) reach = std::min(reach, (room_of_sum(j) + kOverstep) / std::fabs(slope_[j]));
    best.step = range;
    if (reach >= range) return true;
    for (Index x = 0; x < k_; ++x) {
      const double size = std::fabs(change_[x]);
      if (!moves_row(x) || size <= pivot || room_of_row(x) > reach * size) continue;
      pivot = size;
      best = {x, -1, room_of_row(x) / size};
    }
    for (Index j = 0; j < m_; ++j) {
      const double size = std::fabs(slope_[j]);
      if (!moves_sum(j) || size <= pivot || room_of_sum(j) > reach * size) continue;
      pivot = size;
      best = {-1, j, room_of_sum(j) / size};
    }
    best.step = std::max(0.0, best.step);
    return !best.none();
  }

  void move(const Entering& entering, const Leaving& leaving) {
    for (Index x = 0; x < k_; ++x) share_[basic_rows_[x]] += leaving.step * change_[x];
    for (Index j = 0; j < m_; ++j)
      if (place_of_column_[j] < 0) sum_[j] += leaving.step * slope_[j];
    if (leaving.none()) {  // what is at a bound is so exactly
      if (entering.row < 0) sum_[bound_columns_[entering.place]] *= -1;
      else share_[entering.row] = entering.sign > 0 ? most_[entering.row] : 0;
      return;
    }
    if (entering.row < 0) sum_[bound_columns_[entering.place]] += entering.sign * leaving.step;
    else share_[entering.row] += entering.sign * leaving.step;
    if (leaving.column >= 0) {
      sum_[leaving.column] = std::copysign(high(leaving.column), slope_[leaving.column]);
    } else {
      const Index left = basic_rows_[leaving.place];
      share_[left] = change_[leaving.place] > 0 ? most_[left] : 0;
    }
  }

  void exchange(const Entering& entering, const Leaving& leaving) {
    ++updates_;
    if (entering.row >= 0 && leaving.place >= 0) replace_row(leaving.place, entering.row);
    else if (entering.row >= 0) grow(entering.row, leaving.column);
    else if (leaving.place >= 0) shrink(leaving.place, entering.place);
    else replace_column(entering.place, leaving.column);
  }

  void replace_row(Index place, Index entered) {
    double* own = inverse(place);
    for (Index b = 0; b < k_; ++b) own[b] /= image_[place];
    for (Index x = 0; x < k_; ++x)
      if (x != place) add(-image_[x], own, k_, inverse(x));
    place_of_row_[basic_rows_[place]] = -1;
    basic_rows_[place] = entered;
    place_of_row_[entered] = place;
  }

  // The entries of a column in basic rows, times the inverse.
  void set_column_image(Index column) {
    std::fill(by_place_.begin(), by_place_.begin() + k_, 0.0);
    for (Index x = 0; x < k_; ++x) add(entry(x, column), inverse(x), k_, by_place_.data());
  }

  void grow(Index entered, Index column) {
    set_column_image(column);
    double corner = row(entered)[column];
    for (Index x = 0; x < k_; ++x) corner -= entry(x, column) * image_[x];
    for (Index x = 0; x < k_; ++x) {
      add(image_[x] / corner, by_place_.data(), k_, inverse(x));
      inverse(x)[k_] = -image_[x] / corner;
    }
    for (Index b = 0; b < k_; ++b) inverse(k_)[b] = -by_place_[b] / corner;
    inverse(k_)[k_] = 1 / corner;
    place_of_row_[entered] = place_of_column_[column] = k_++;
    basic_rows_.push_back(entered);
    bound_columns_.push_back(column);
  }

  void shrink(Index place, Index freed) {
    const double* own = inverse(place);
    for (Index x = 0; x < k_; ++x) {
      if (x == place) continue;
      const double kept = inverse(x)[freed];
      add(-kept / own[freed], own, k_, inverse(x));
    }
    const Index last = k_ - 1;
    if (place != last) std::copy_n(inverse(last), k_, inverse(place));
    for (Index x = 0; x < last; ++x) inverse(x)[freed] = inverse(x)[last];
    remove(basic_rows_, place_of_row_, place);
    remove(bound_columns_, place_of_column_, freed);
    k_ = last;
  }

  void replace_column(Index place, Index column) {
    set_column_image(column);
    for (Index x = 0; x < k_; ++x) {
      const double factor = inverse(x)[place] / by_place_[place];
      add(-factor, by_place_.data(), k_, inverse(x));
      inverse(x)[place] = factor;
    }
    place_of_column_[bound_columns_[place]] = -1;
    bound_columns_[place] = column;
    place_of_column_[column] = place;
  }

  // The last one takes the place of the one that goes.
  static void remove(std::vector<Index>& members, std::vector<Index>& places, Index place) {
    places[members.back()] = place;
    places[members[place]] = -1;
    members[place] = members.back();
    members.pop_back();
  }

  // Computes the inverse, and then shares and sums, from the basis alone; false where that has none.
  bool refactor() {
    updates_ = 0;
    if (!invert()) return false;
    set_values();
    return true;
  }

  bool invert() {
    const Index width = 2 * k_;
    Vector work(k_ * width);
    for (Index b = 0; b < k_; ++b) {
      for (Index x = 0; x < k_; ++x) work[b * width + x] = entry(x, bound_columns_[b]);
      work[b * width + k_ + b] = 1;
    }
    for (Index c = 0; c < k_; ++c) {
      Index largest = c;
      for (Index b = c + 1; b < k_; ++b)
        if (std::fabs(work[b * width + c]) > std::fabs(work[largest * width + c])) largest = b;
      double* own = &work[c * width];
      if (std::fabs(work[largest * width + c]) < kSingular) return false;
      if (largest != c) std::swap_ranges(own, own + width, &work[largest * width]);
      const double pivot = own[c];
      for (Index x = c; x < width; ++x) own[x] /= pivot;
      for (Index b = 0; b < k_; ++b)
        if (b != c) add(-work[b * width + c], own + c, width - c, &work[b * width + c]);
    }
    for (Index x = 0; x < k_; ++x) std::copy_n(&work[x * width + k_], k_, inverse(x));
    return true;
  }

  void set_values() {
    Vector sums(m_);
    for (Index i = 0; i < n_; ++i)
      if (place_of_row_[i] < 0 && share_[i] > 0) by_row_.add_to(sums.data(), share_[i], i);
    for (Index b = 0; b < k_; ++b) by_place_[b] = sum_[bound_columns_[b]] - sums[bound_columns_[b]];
    for (Index x = 0; x < k_; ++x) {
      share_[basic_rows_[x]] = dot(inverse(x), by_place_.data(), k_);
      by_row_.add_to(sums.data(), share_[basic_rows_[x]], basic_rows_[x]);
    }
    for (Index j = 0; j < m_; ++j)
      if (place_of_column_[j] < 0) sum_[j] = sums[j];
  }

  const Index n_, m_, stride_;
  const double* rows_;
  const double* most_;
  const Lines by_row_, by_column_;
  Vector scale_;                     // one over the lengths of the rows
  Vector inverse_;                   // (k, k), by basic rows and bound columns
  Vector share_, sum_, margin_, price_;
  std::vector<Index> basic_rows_, bound_columns_, place_of_row_, place_of_column_;
  Vector by_place_, image_, change_, slope_;
  Index k_ = 0, updates_ = 0;
};

}  // namespace

bool solve_margin_program(const double* rows, const double* most, std::int64_t n_rows, std::int64_t n_columns,
                          std::int64_t max_steps, double* prices, double* shares) {
  Simplex simplex(rows, most, n_rows, n_columns);
  const bool solved = simplex.run(max_steps);
  std::copy(simplex.prices().begin(), simplex.prices().end(), prices);
  std::copy(simplex.shares().begin(), simplex.shares().end(), shares);
  return solved;
}

}  // namespace gmil
