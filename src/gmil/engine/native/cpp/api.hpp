// The kernels of the active variant, as plain functions for the Python module.
#pragma once

#include "dispatch.hpp"
#include "histograms.hpp"

namespace gmil {

template <class T>
void run_sq_distances(const T* X, std::int64_t n, std::int64_t d, const T* centers, std::int64_t k, T* out,
                      int n_threads) {
  active_kernels<T>().sq_distances({X, n, d}, centers, k, out, n_threads);
}

template <class T>
void run_l1_distances(const T* X, std::int64_t n, std::int64_t d, const T* other, std::int64_t k, T* out,
                      int n_threads) {
  active_kernels<T>().l1_distances({X, n, d}, other, k, out, n_threads);
}

template <class T>
void run_column_ranks(const T* X, std::int64_t n, std::int64_t d, const T* knots, std::int64_t n_knots, T* out,
                      int n_threads) {
  active_kernels<T>().column_ranks({X, n, d}, knots, n_knots, out, n_threads);
}

template <class T>
void run_assign(const T* X, std::int64_t n, std::int64_t d, const T* centers, std::int64_t k,
                std::int32_t* labels, T* nearest, double* sums, std::int64_t* counts, int n_threads) {
  active_kernels<T>().assign({X, n, d}, centers, k, labels, nearest, sums, counts, n_threads);
}

template <class T>
void run_seed(const T* X, std::int64_t n, std::int64_t d, std::int64_t k, const double* uniforms,
              std::int64_t n_trials, std::int64_t* chosen, int n_threads) {
  active_kernels<T>().seed({X, n, d}, k, uniforms, n_trials, chosen, n_threads);
}

template <class T>
std::int64_t run_lloyd(const T* X, std::int64_t n, std::int64_t d, T* centers, std::int64_t k,
                       std::int64_t max_iter, std::int32_t* labels, double* inertia, int n_threads) {
  return active_kernels<T>().lloyd({X, n, d}, centers, k, max_iter, labels, inertia, n_threads);
}

template <class T>
void run_gram_matrix(const T* X, std::int64_t n, std::int64_t d, double* out, int n_threads) {
  active_kernels<T>().gram({X, n, d}, out, n_threads);
}

template <class T>
void run_bag_min(const T* values, std::int64_t n, std::int64_t d, const std::int64_t* offsets,
                 std::int64_t n_bags, T* out, int n_threads) {
  active_kernels<T>().bag_min({{values, n, d}, offsets, n_bags}, out, n_threads);
}

template <class T>
void run_bag_max(const T* values, std::int64_t n, std::int64_t d, const std::int64_t* offsets,
                 std::int64_t n_bags, T* out, int n_threads) {
  active_kernels<T>().bag_max({{values, n, d}, offsets, n_bags}, out, n_threads);
}

template <class T>
void run_bag_mean(const T* values, std::int64_t n, std::int64_t d, const std::int64_t* offsets,
                  std::int64_t n_bags, T* out, int n_threads) {
  active_kernels<T>().bag_mean({{values, n, d}, offsets, n_bags}, out, n_threads);
}

template <class T>
void run_bag_deviation(const T* values, std::int64_t n, std::int64_t d, const std::int64_t* offsets,
                       std::int64_t n_bags, T* out, int n_threads) {
  active_kernels<T>().bag_deviation({{values, n, d}, offsets, n_bags}, out, n_threads);
}

template <class T>
void run_bag_two_min(const T* values, std::int64_t n, std::int64_t d, const std::int64_t* offsets,
                     std::int64_t n_bags, T* smallest, std::int64_t* where, T* second, int n_threads) {
  active_kernels<T>().bag_two_min({{values, n, d}, offsets, n_bags}, smallest, where, second, n_threads);
}

inline void run_gram_seed(const double* gram, std::int64_t n, const std::uint8_t* members, std::int64_t n_jobs,
                          std::int64_t k, const double* uniforms, std::int64_t n_trials, std::int64_t* chosen,
                          int n_threads) {
  active_variant().gram.seed({gram, n, members, n_jobs, k}, uniforms, n_trials, chosen, n_threads);
}

inline void run_gram_lloyd(const double* gram, std::int64_t n, const std::uint8_t* members, std::int64_t n_jobs,
                           std::int64_t k, const std::int64_t* starts, std::int64_t max_iter,
                           std::int32_t* labels, double* squares, double* inertia, std::int64_t* n_iter,
                           int n_threads) {
  active_variant().gram.lloyd({gram, n, members, n_jobs, k}, starts, max_iter, labels, squares, inertia, n_iter,
                              n_threads);
}

}  // namespace gmil
