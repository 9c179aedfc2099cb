// Counts of bins per bag and per class; whole numbers, the same on every processor.
#pragma once

#include <cstdint>

namespace gmil {

// The first bag whose offsets do not follow each other (an empty bag, or rows outside 0..n_rows), or -1.
std::int64_t first_bad_bag(const std::int64_t* offsets, std::int64_t n_bags, std::int64_t n_rows);

// out (n_bags, n_bins), zero at the start. Returns the first row whose label is not a bin, or -1.
std::int64_t bag_histograms(const std::int32_t* labels, const std::int64_t* offsets, std::int64_t n_bags,
                            std::int64_t n_bins, std::int64_t* out);

// out (n_classes, n_bins), zero at the start: rows by the class of their bag. Classes are below n_classes.
// Returns the first row whose label is not a bin, or -1.
std::int64_t class_histograms(const std::int32_t* labels, const std::int64_t* offsets, std::int64_t n_bags,
                              const std::int64_t* classes, std::int64_t n_bins, std::int64_t* out);

}  // namespace gmil
