// What the Python module calls: the kernels of the active variant, and what they take, made of plain pointers.
#pragma once

#include <Python.h>

#include <exception>
#include <new>

#include "dispatch.hpp"
#include "histograms.hpp"
#include "margin_program.hpp"
#include "threads.hpp"

namespace gmil {

template <class T>
Rows<T> rows(const T* data, std::int64_t n_rows, std::int64_t n_features) {
  return {data, n_rows, n_features};
}

template <class T>
BagRows<T> bag_rows(const T* data, std::int64_t n_rows, std::int64_t n_features, const std::int64_t* offsets,
                    std::int64_t n_bags) {
  return {{data, n_rows, n_features}, offsets, n_bags};
}

inline WeightedBags weighted_bags(const double* points, std::int64_t n_rows, std::int64_t n_features,
                                  const double* weights, const std::int64_t* offsets, std::int64_t n_bags) {
  return {{points, n_rows, n_features}, weights, offsets, n_bags};
}

template <class T>
SparseRows<T> sparse_rows(const T* values, const std::int32_t* columns, const std::int32_t* starts,
                          std::int64_t n_rows) {
  return {values, columns, starts, n_rows};
}

template <class T>
SparseFactors<T> sparse_factors(const T* matrix, const T* terms, std::int64_t n_centers, const T* per_row) {
  return {matrix, terms, terms + n_centers, n_centers, per_row};
}

// The first row whose numbers or columns are not there; -1 where there is none.
inline std::int64_t first_bad_row(const std::int32_t* columns, const std::int32_t* starts, std::int64_t n_rows,
                                  std::int64_t n_values, std::int64_t n_features) {
  if (starts[0] != 0) return 0;
  for (std::int64_t i = 0; i < n_rows; ++i) {
    if (starts[i + 1] < starts[i] || starts[i + 1] > n_values) return i;
    for (std::int64_t p = starts[i]; p < starts[i + 1]; ++p) {
      if (columns[p] < 0 || columns[p] >= n_features) return i;
    }
  }
  return -1;
}

inline GramJobs gram_jobs(const double* gram, std::int64_t n_rows, const std::uint8_t* members, std::int64_t n_jobs,
                          std::int64_t n_clusters) {
  return {gram, n_rows, members, n_jobs, n_clusters};
}

inline SvmProblem svm_problem(const double* kernel, std::int64_t n_rows, const std::uint8_t* positive,
                              const double* costs) {
  return {kernel, n_rows, positive, costs};
}

inline Frames frames_of(const std::uint8_t* before, const std::uint8_t* now, const std::uint8_t* after,
                        std::int64_t height, std::int64_t width) {
  return {before, now, after, height, width};
}

inline Grid grid_of(std::int64_t height, std::int64_t width, const std::int64_t* rows, std::int64_t n_rows,
                    const std::int64_t* columns, std::int64_t n_columns, std::int64_t blocks) {
  return {height, width, rows, n_rows, columns, n_columns, blocks};
}

inline Polyhedron polyhedron_of(const float* normals, std::int64_t n_faces, float neighbour_cosine, bool half) {
  return {normals, n_faces, neighbour_cosine, half};
}

inline Cells cells_of(const float* data, std::int64_t n_layers, std::int64_t n_rows, std::int64_t n_columns,
                      std::int64_t n_faces) {
  return {data, n_layers, n_rows, n_columns, n_faces};
}

// The kernels for numbers of this type.
template <class T>
const Kernels<T>& kernels_for(const T*) {
  return active_kernels<T>();
}

template <class T>
void bag_reduce(int reduction, const BagRows<T>& bags, T* out, int n_threads) {
  active_kernels<T>().bag_reduce[reduction](bags, out, n_threads);
}

// Called where a kernel threw. Of an interruption nothing is to be said: the check has raised what the signal wants.
inline void raise_python_error() {
  try {
    throw;
  } catch (const Interrupted&) {
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

}  // namespace gmil
