// What happens to clusters that lose all their rows.
#pragma once

#include <cstdint>

namespace gmil {

// A row that changes its cluster.
struct Move {
  std::int64_t row;
  std::int32_t from;
  std::int32_t to;
};

// Give every empty cluster the row that is farthest from its own centre, the first of equals; a row that is alone in
// its cluster, or at its centre (nearest == 0), stays. Labels and counts follow. `moves` has room for n_clusters;
// returns how many there are. Only rows with nearest > 0 need a label.
template <class T>
std::int64_t fill_empty_clusters(std::int32_t* labels, const T* nearest, std::int64_t n_rows,
                                 std::int64_t* counts, std::int64_t n_clusters, Move* moves);

namespace {

inline bool any_empty(const std::int64_t* counts, std::int64_t n_clusters) {
  for (std::int64_t k = 0; k < n_clusters; ++k) {
    if (counts[k] == 0) return true;
  }
  return false;
}

}  // namespace
}  // namespace gmil
