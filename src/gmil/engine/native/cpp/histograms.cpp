#include "histograms.hpp"

namespace gmil {
namespace {

std::int64_t count_rows(const std::int32_t* labels, std::int64_t begin, std::int64_t end, std::int64_t n_bins,
                        std::int64_t* counts) {
  for (std::int64_t i = begin; i < end; ++i) {
    if (labels[i] < 0 || labels[i] >= n_bins) return i;
    ++counts[labels[i]];
  }
  return -1;
}

}  // namespace

std::int64_t first_bad_bag(const std::int64_t* offsets, std::int64_t n_bags, std::int64_t n_rows) {
  for (std::int64_t b = 0; b < n_bags; ++b) {
    if (offsets[b] < 0 || offsets[b + 1] <= offsets[b] || offsets[b + 1] > n_rows) return b;
  }
  return -1;
}

std::int64_t bag_histograms(const std::int32_t* labels, const std::int64_t* offsets, std::int64_t n_bags,
                            std::int64_t n_bins, std::int64_t* out) {
  for (std::int64_t b = 0; b < n_bags; ++b) {
    const std::int64_t bad = count_rows(labels, offsets[b], offsets[b + 1], n_bins, out + b * n_bins);
    if (bad >= 0) return bad;
  }
  return -1;
}

std::int64_t class_histograms(const std::int32_t* labels, const std::int64_t* offsets, std::int64_t n_bags,
                              const std::int64_t* classes, std::int64_t n_bins, std::int64_t* out) {
  for (std::int64_t b = 0; b < n_bags; ++b) {
    const std::int64_t bad = count_rows(labels, offsets[b], offsets[b + 1], n_bins, out + classes[b] * n_bins);
    if (bad >= 0) return bad;
  }
  return -1;
}

}  // namespace gmil
