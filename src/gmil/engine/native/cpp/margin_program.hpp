// The linear program of a plane with the smallest 1-norm and priced slacks, solved exactly.
#pragma once

#include <cstdint>

namespace gmil {

// Maximises the sum of shares u (n_rows), 0 <= u <= most, so that the weighted sum of rows (n_rows, n_columns) is
// within [-1, 1] in every column and 0 in the last one. Prices (n_columns) are those of the columns: the plane.
// Returns whether the optimum was found within max_steps; without it shares and prices mean nothing.
bool solve_margin_program(const double* rows, const double* most, std::int64_t n_rows, std::int64_t n_columns,
                          std::int64_t max_steps, double* prices, double* shares);

}  // namespace gmil
