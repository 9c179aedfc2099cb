// Sums of the RBF kernel, exp(-gamma d^2), over the pairs of points of two bags, without a matrix of all pairs.
//
// Tiles of left points meet the right points in chunks whose distances stay in the first-level cache. Powers are
// summed by right bag there and then, and a tile is added to the sums of its own bags once for every chunk.
#pragma once

#include "assign.hpp"

namespace gmil {
namespace {

// Groups of right points whose distances are held at once.
constexpr std::int64_t kChunkGroups = divide_up(128, kCenterGroup);

// (2^x - 1) / x for |x| <= 1/2, interpolated at the zeros of a Chebyshev polynomial; the error is below 2e-17.
constexpr double kPowerSeries[] = {
    0.6931471805599453,     0.24022650695910097,    0.0555041086648216,     0.009618129107606888,
    0.0013333558146416936,  0.0001540353044173605,  1.525273382983612e-05,  1.321544258792169e-06,
    1.0178062445845774e-07, 7.072585949269223e-09,  4.4549605981865186e-10,
};
constexpr int kPowerTerms = static_cast<int>(sizeof kPowerSeries / sizeof kPowerSeries[0]);
constexpr double kLeastExponent = -1022;

// 2^(a * b), where a * b is from kLeastExponent to 0.
inline Vec<double> power_of_two(const Vec<double>& a, const Vec<double>& b) {
  // So large a sum is a whole number, and its last bits are those of the exponent of a power.
  const Vec<double> rounding = broadcast(1.5 * 4503599627370496.0 + 1023.0);
  const Vec<double> rounded = add_product<double>(rounding, a, b);
  const Vec<double> rest = add_product<double>(rounding - rounded, a, b);
  Vec<double> sum = broadcast(kPowerSeries[kPowerTerms - 1]);
  GMIL_UNROLL
  for (int i = kPowerTerms - 2; i >= 0; --i) sum = add_product<double>(broadcast(kPowerSeries[i]), sum, rest);
  return add_product<double>(broadcast(1.0), sum, rest) * last_bits_as_exponent(rounded);
}

// One width of the kernel: 2^(scale d^2), with d^2 cut at `limit`, or a small power of the kernel before it.
struct RbfWidth {
  double scale;
  double limit;
  int power;  // 0: of no other
  std::int64_t place;

  RbfWidth() = default;
  RbfWidth(const double* gammas, std::int64_t at, double before)
      : scale(gammas[at] * -1.4426950408889634), limit(kLeastExponent / scale), power(0), place(at) {
    for (int p = 2; p <= 4; ++p) {
      if (before > 0 && std::abs(gammas[at] - p * before) <= 1e-15 * gammas[at]) power = p;
    }
  }
};

// The widths in ascending order of gamma, in which powers are found.
inline Buffer<RbfWidth> ascending_widths(const double* gammas, std::int64_t n_gammas) {
  Buffer<std::int64_t> order(n_gammas);
  for (std::int64_t g = 0; g < n_gammas; ++g) {
    std::int64_t to = g;
    for (; to > 0 && gammas[order[to - 1]] > gammas[g]; --to) order[to] = order[to - 1];
    order[to] = g;
  }
  Buffer<RbfWidth> widths(n_gammas);
  for (std::int64_t g = 0; g < n_gammas; ++g) {
    widths[g] = RbfWidth(gammas, order[g], g > 0 ? gammas[order[g - 1]] : 0);
  }
  return widths;
}

inline Vec<double> small_power(const Vec<double>& v, int power) {
  const Vec<double> square = v * v;
  return power == 2 ? square : square * (power == 3 ? v : square);
}

// Bags of weighted points, and the bag of every point.
struct BagsOfPoints {
  explicit BagsOfPoints(const WeightedBags& bags) : rows(bags), bag_of(bags.points.n_rows) {
    for (std::int64_t b = 0; b < bags.n_bags; ++b) {
      for (std::int64_t i = bags.offsets[b]; i < bags.offsets[b + 1]; ++i) bag_of[i] = b;
    }
  }

  WeightedBags rows;
  Buffer<std::int64_t> bag_of;
};

// Everything that the workers read.
struct RbfProblem {
  RbfProblem(const WeightedBags& left_bags, const WeightedBags& right_bags, const double* gammas,
             std::int64_t n_gammas, bool is_same, double* sums)
      : left(left_bags),
        right(right_bags),
        centers(right_bags.points.data, right_bags.points.n_rows, right_bags.points.n_features),
        widths(ascending_widths(gammas, n_gammas)),
        n_widths(n_gammas),
        same(is_same),
        out(sums) {}

  const BagsOfPoints left;
  const BagsOfPoints right;
  const ShiftedCenters<double> centers;
  const Buffer<RbfWidth> widths;
  const std::int64_t n_widths;
  const bool same;  // left and right are the same bags
  double* const out;  // (n_widths, n_left_bags, n_right_bags)
};

// Right points, and the bags that they belong to.
struct Chunk {
  Chunk(const RbfProblem& problem, std::int64_t group, std::int64_t first_bag)
      : first_group(group), last_group(at_most(group + kChunkGroups, problem.centers.packed().n_groups())) {
    const PackedCenters<double>& packed = problem.centers.packed();
    origin = packed.begin(first_group);
    end = packed.begin(last_group);
    begin = at_least(origin, problem.right.rows.offsets[first_bag]);
    bag = problem.right.bag_of[begin];
    n_bags = problem.right.bag_of[end - 1] + 1 - bag;
  }

  std::int64_t first_group, last_group;
  std::int64_t origin, begin, end;  // points: what the scores begin with, and those that are summed
  std::int64_t bag, n_bags;
};

// One per worker.
class RbfSummation {
 public:
  explicit RbfSummation(const RbfProblem& problem)
      : problem_(problem),
        tile_(kPoints),
        panels_(kTilesPerTask * kTileRows<double> * problem.left.rows.points.n_features),
        norms_(kTilesPerTask * kTileRows<double>),
        values_(kPoints * kLanes<double>),
        sums_(kPoints * kTileRows<double>) {}

  // All sums of the left bags first..last.
  void run(std::int64_t first, std::int64_t last) {
    const std::int64_t* offsets = problem_.left.rows.offsets;
    const std::int64_t stop = offsets[last];
    const PackedCenters<double>& packed = problem_.centers.packed();
    const std::int64_t first_right = problem_.same ? first : 0;
    std::int64_t first_group = 0;
    while (packed.begin(first_group + kChunkGroups) <= problem_.right.rows.offsets[first_right]) {
      first_group += kChunkGroups;
    }
    constexpr std::int64_t kRows = kTilesPerTask * kTileRows<double>;
    for (std::int64_t i = offsets[first]; i < stop; i += kRows) {
      const std::int64_t end = at_most(stop, i + kRows);
      pack(i, end);
      for (std::int64_t g = first_group; g < packed.n_groups(); g += kChunkGroups) {
        meet(i, end, Chunk(problem_, g, first_right));
      }
    }
  }

 private:
  static constexpr std::int64_t kPoints = kChunkGroups * kCenterGroup;

  double* panel(std::int64_t row) { return panels_.get() + row * problem_.left.rows.points.n_features; }

  void start_tile(std::int64_t row, std::int64_t end) { tile_.begin(at_most(kTileRows<double>, end - row)); }

  void pack(std::int64_t first, std::int64_t end) {
    const Rows<double>& points = problem_.left.rows.points;
    for (std::int64_t i = first; i < end; i += kTileRows<double>) {
      start_tile(i, end);
      tile_.set_rows(points, i);
      tile_.pack_whole(points.n_features, problem_.centers.shift(), panel(i - first));
      for (std::int64_t r = 0; r < tile_.width(); ++r) norms_[i - first + r] = tile_.sq_norm(r);
    }
  }

  void meet(std::int64_t first, std::int64_t end, const Chunk& chunk) {
    const PackedCenters<double>& packed = problem_.centers.packed();
    for (std::int64_t i = first; i < end; i += kTileRows<double>) {
      start_tile(i, end);
      tile_.compute_groups(packed, chunk.first_group, chunk.last_group, panel(i - first));
      for (int v = 0; v < tile_.n_vectors(); ++v) {
        const std::int64_t row = i + v * kLanes<double>;
        const Vec<double> norms = load(norms_.get() + (row - first));
        for (std::int64_t g = 0; g < problem_.n_widths; ++g) {
          sum_by_bag(problem_.widths[g], v, norms, chunk);
          add_rows(row, at_most(kLanes<double>, end - row), chunk, problem_.widths[g].place);
        }
      }
    }
  }

  // The sums of one width over every bag of the chunk, for one vector of left points.
  void sum_by_bag(const RbfWidth& width, int v, const Vec<double>& norms, const Chunk& chunk) {
    const std::int64_t* offsets = problem_.right.rows.offsets;
    std::int64_t begin = chunk.begin;
    for (std::int64_t b = 0; b < chunk.n_bags; ++b) {
      const std::int64_t end = at_most(chunk.end, offsets[chunk.bag + b + 1]);
      const Vec<double> sum = width.power > 0 ? sum_of_powers(width.power, begin, end, chunk.origin)
                                              : sum_of_kernels(width, v, norms, begin, end, chunk.origin);
      store(sums_.get() + b * kLanes<double>, sum);
      begin = end;
    }
  }

  Vec<double> sum_of_kernels(const RbfWidth& width, int v, const Vec<double>& norms, std::int64_t begin,
                             std::int64_t end, std::int64_t origin) {
    const Vec<double> zero = broadcast(0.0), limit = broadcast(width.limit), scale = broadcast(width.scale);
    Vec<double> sum = zero;
    for (std::int64_t k = begin; k < end; ++k) {
      const Vec<double> expanded = norms + load(tile_.scores(k - origin) + v * kLanes<double>);
      const Vec<double> square = choose<double>(is_less<double>(expanded, zero), zero, expanded);
      const Vec<double> cut = choose<double>(is_less<double>(limit, square), limit, square);
      const Vec<double> value = power_of_two(cut, scale);
      store(value_of(k - origin), value);
      sum = add_product<double>(sum, value, broadcast(problem_.right.rows.weights[k]));
    }
    return sum;
  }

  // Of the values that the width before left.
  Vec<double> sum_of_powers(int power, std::int64_t begin, std::int64_t end, std::int64_t origin) {
    Vec<double> sum = broadcast(0.0);
    for (std::int64_t k = begin; k < end; ++k) {
      const Vec<double> value = small_power(load(value_of(k - origin)), power);
      store(value_of(k - origin), value);
      sum = add_product<double>(sum, value, broadcast(problem_.right.rows.weights[k]));
    }
    return sum;
  }

  double* value_of(std::int64_t point) { return values_.get() + point * kLanes<double>; }

  // Add the sums of one vector of left points to those of their bags.
  void add_rows(std::int64_t row, std::int64_t count, const Chunk& chunk, std::int64_t place) const {
    constexpr int L = kLanes<double>;
    const std::int64_t n_right = problem_.right.rows.n_bags;
    double* out = problem_.out + place * problem_.left.rows.n_bags * n_right + chunk.bag;
    const double* weights = problem_.left.rows.weights + row;
    const std::int64_t* bag_of = problem_.left.bag_of.get() + row;
    std::int64_t b = 0;
    for (; b + L <= chunk.n_bags; b += L) {
      Vec<double> square[L];
      GMIL_UNROLL
      for (int q = 0; q < L; ++q) square[q] = load(sums_.get() + (b + q) * L);
      transpose<double>(square);
      for (std::int64_t i = 0; i < count; ++i) {
        double* to = out + bag_of[i] * n_right + b;
        store(to, add_product<double>(load(to), square[i], broadcast(weights[i])));
      }
    }
    for (; b < chunk.n_bags; ++b) {
      const double* sums = sums_.get() + b * L;
      for (std::int64_t i = 0; i < count; ++i) out[bag_of[i] * n_right + b] += weights[i] * sums[i];
    }
  }

  const RbfProblem& problem_;
  Tile<double> tile_;
  Buffer<double> panels_;  // the left points of a task, tile after tile
  Buffer<double> norms_;
  Buffer<double> values_;  // (points of a chunk, lanes): kernel values of the last width
  Buffer<double> sums_;    // (bags of a chunk, lanes)
};

// Whole bags, so that no two tasks add to the same sums. Returns the number of tasks; task t has the bags
// starts[t]..starts[t + 1].
inline std::int64_t tasks_of_bags(const WeightedBags& bags, std::int64_t* starts) {
  std::int64_t n_tasks = 0;
  starts[0] = 0;
  for (std::int64_t b = 1; b <= bags.n_bags; ++b) {
    const std::int64_t n_rows = bags.offsets[b] - bags.offsets[starts[n_tasks]];
    if (n_rows >= kTilesPerTask * kTileRows<double> || b == bags.n_bags) starts[++n_tasks] = b;
  }
  return n_tasks;
}

inline void mirror(double* square, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t k = 0; k < i; ++k) square[i * n + k] = square[k * n + i];
  }
}

// Of the same bags on both sides, every pair is computed once.
inline void rbf_sums(const WeightedBags& left, const WeightedBags& right, const double* gammas, std::int64_t n_gammas,
                     bool same, double* out, int n_threads) {
  constexpr double kPowerFlops = 32;
  const RbfProblem problem(left, right, gammas, n_gammas, same, out);
  fill(out, n_gammas * left.n_bags * right.n_bags, 0.0);
  const double pairs = static_cast<double>(left.points.n_rows) * static_cast<double>(right.points.n_rows);
  const double per_pair = 2.0 * static_cast<double>(left.points.n_features) + kPowerFlops * static_cast<double>(n_gammas);
  const double flops = (same ? 0.5 : 1.0) * pairs * per_pair;
  Buffer<std::int64_t> starts(left.n_bags + 1);
  const std::int64_t n_tasks = tasks_of_bags(left, starts.get());
  Team team(n_threads, flops);
  PerWorker<RbfSummation> summations(team.size(), problem);
  for_each_task(team, n_tasks, flops,
                [&](std::int64_t task, int worker) { summations[worker].run(starts[task], starts[task + 1]); });
  for (std::int64_t g = 0; same && g < n_gammas; ++g) mirror(out + g * left.n_bags * left.n_bags, left.n_bags);
}

}  // namespace
}  // namespace gmil
