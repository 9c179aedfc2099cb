#include "empty.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace gmil {

template <class T>
std::int64_t fill_empty_clusters(std::int32_t* labels, const T* nearest, std::int64_t n_rows,
                                 std::int64_t* counts, std::int64_t n_clusters, Move* moves) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n_rows));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return nearest[a] > nearest[b]; });

  std::int64_t n_moves = 0;
  std::size_t candidate = 0;
  for (std::int64_t cluster = 0; cluster < n_clusters; ++cluster) {
    if (counts[cluster] > 0) continue;
    // A row at distance zero comes last and may be none of the job's, without a label: its count is not looked at.
    while (candidate < order.size() && nearest[order[candidate]] > 0 && counts[labels[order[candidate]]] < 2) {
      ++candidate;
    }
    if (candidate == order.size() || !(nearest[order[candidate]] > 0)) break;
    const std::int64_t row = order[candidate++];
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
