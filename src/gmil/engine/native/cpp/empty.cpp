#include "empty.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace gmil {

namespace {

// Rows by their distance, the farthest first, the first of equals before the others; what is no number comes last.
template <class T>
std::vector<std::int64_t> farthest_first(const T* nearest, std::int64_t n_rows) {
  const auto positive = [&](std::int64_t i) { return nearest[i] > 0 ? nearest[i] : T{0}; };
  std::vector<std::int64_t> order(static_cast<std::size_t>(n_rows));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return positive(a) > positive(b); });
  return order;
}

}  // namespace

template <class T>
std::int64_t fill_empty_clusters(std::int32_t* labels, const T* nearest, std::int64_t n_rows,
                                 std::int64_t* counts, std::int64_t n_clusters, Move* moves) {
  const std::vector<std::int64_t> order = farthest_first(nearest, n_rows);
  std::int64_t n_moves = 0;
  auto candidate = order.begin();
  for (std::int64_t cluster = 0; cluster < n_clusters; ++cluster) {
    if (counts[cluster] > 0) continue;
    // A row at distance zero may have no label at all, so the distance is looked at first.
    while (candidate != order.end() && nearest[*candidate] > 0 && counts[labels[*candidate]] < 2) ++candidate;
    if (candidate == order.end() || !(nearest[*candidate] > 0)) break;
    const std::int64_t row = *candidate++;
    moves[n_moves++] = {row, labels[row], static_cast<std::int32_t>(cluster)};
    --counts[labels[row]];
    ++counts[cluster];
    labels[row] = static_cast<std::int32_t>(cluster);
  }
  return n_moves;
}

template std::int64_t fill_empty_clusters(std::int32_t*, const float*, std::int64_t, std::int64_t*,
                                          std::int64_t, Move*);
template std::int64_t fill_empty_clusters(std::int32_t*, const double*, std::int64_t, std::int64_t*,
                                          std::int64_t, Move*);

}  // namespace gmil
