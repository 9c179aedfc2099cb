// What every variant offers: a table of functions for float and for double.
#pragma once

#include <cstdint>

namespace gmil {

// Instances, one a row, without gaps between the rows.
template <class T>
struct Rows {
  const T* data;
  std::int64_t n_rows;
  std::int64_t n_features;

  const T* row(std::int64_t i) const { return data + i * n_features; }
};

// Values in bags: rows offsets[b] to offsets[b + 1] belong to bag b. No bag is empty.
template <class T>
struct BagRows {
  Rows<T> values;
  const std::int64_t* offsets;
  std::int64_t n_bags;
};

// Points in bags, each with a weight.
struct WeightedBags {
  Rows<double> points;
  const double* weights;  // (n_rows)
  const std::int64_t* offsets;
  std::int64_t n_bags;
};

// Rows by the numbers that are not zero: those of row i, and their columns, are starts[i] to starts[i + 1].
template <class T>
struct SparseRows {
  const T* values;
  const std::int32_t* columns;
  const std::int32_t* starts;  // (n_rows + 1)
  std::int64_t n_rows;
};

// What makes squared distances of products: max(scale * (product + inner) + length + outer, 0).
template <class T>
struct SparseFactors {
  const T* matrix;  // (n_features, n_centers)
  const T* inner;   // (n_centers)
  const T* outer;   // (n_centers)
  std::int64_t n_centers;
  const T* per_row;  // (n_rows, 2): scale and length
};

// k-means from one Gram matrix for several jobs, each with its own training rows.
struct GramJobs {
  const double* gram;           // (n_rows, n_rows)
  std::int64_t n_rows;
  const std::uint8_t* members;  // (n_jobs, n_rows): 1 where a row trains the job
  std::int64_t n_jobs;
  std::int64_t n_clusters;
};

// What may be made of the rows of a bag, column by column.
enum Reduction { kMin, kMax, kMean, kDeviation, kReductions };

template <class T>
struct Kernels {
  void (*sq_distances)(const Rows<T>&, const T* centers, std::int64_t n_centers, T* out, int n_threads);

  void (*sparse_sq_distances)(const SparseRows<T>&, const SparseFactors<T>&, T* out, int n_threads);

  // Sums of absolute differences between the rows and the `n_other` rows of another matrix, (n_rows, n_other).
  void (*l1_distances)(const Rows<T>&, const T* other, std::int64_t n_other, T* out, int n_threads);

  // The share of the sorted knots (n_features, n_knots) below every value, (n_rows, n_features).
  void (*column_ranks)(const Rows<T>&, const T* knots, std::int64_t n_knots, T* out, int n_threads);

  // `sums` (n_centers, n_features) and `counts` (n_centers) may be null.
  void (*assign)(const Rows<T>&, const T* centers, std::int64_t n_centers, std::int32_t* labels, T* nearest,
                 double* sums, std::int64_t* counts, int n_threads);

  void (*seed)(const Rows<T>&, std::int64_t n_clusters, const double* uniforms, std::int64_t n_trials,
               std::int64_t* chosen, int n_threads);

  // Returns the number of iterations; `centers` holds the start and then the end.
  std::int64_t (*lloyd)(const Rows<T>&, T* centers, std::int64_t n_clusters, std::int64_t max_iter,
                        std::int32_t* labels, double* inertia, int n_threads);

  // Products of all rows moved to their mean, (n_rows, n_rows).
  void (*gram_matrix)(const Rows<T>&, double* out, int n_threads);

  // One row for every bag, (n_bags, n_features), by `Reduction`.
  void (*bag_reduce[kReductions])(const BagRows<T>&, T* out, int n_threads);
  void (*bag_moments)(const BagRows<T>&, double* out, int n_threads);
  void (*bag_two_min)(const BagRows<T>&, T* smallest, std::int64_t* where, T* second, int n_threads);
};

struct GramKernels {
  // uniforms (n_jobs, n_clusters, n_trials) -> chosen (n_jobs, n_clusters)
  void (*seed)(const GramJobs&, const double* uniforms, std::int64_t n_trials, std::int64_t* chosen,
               int n_threads);

  // starts (n_jobs, n_clusters); labels (n_jobs, n_rows); squares (n_jobs, n_rows, n_clusters)
  void (*lloyd)(const GramJobs&, const std::int64_t* starts, std::int64_t max_iter, std::int32_t* labels,
                double* squares, double* inertia, std::int64_t* n_iter, int n_threads);
};

struct RbfKernels {
  // Weighted sums of exp(-gamma d^2) over the points of two bags, (n_gammas, n_left_bags, n_right_bags).
  void (*sums)(const WeightedBags& left, const WeightedBags& right, const double* gammas, std::int64_t n_gammas,
               bool same, double* out, int n_threads);
};

// What a soft-margin machine is trained on.
struct SvmProblem {
  const double* kernel;          // (n_rows, n_rows), symmetric
  std::int64_t n_rows;
  const std::uint8_t* positive;  // (n_rows)
  const double* costs;           // (n_rows), of a unit of slack; rows that cost nothing take no part
};

struct SvmKernels {
  // Returns the number of steps. `dual` and `products` (n_rows) are those of an earlier machine, or zero, and then of this
  // one; `first` (n_rows) are the coefficients to begin with, as far as the costs allow them.
  std::int64_t (*solve)(const SvmProblem&, double tolerance, std::int64_t max_iter, const double* first, double* dual,
                        double* products, double* intercept);
};

// Three frames of a video, (height, width) each; the gradient in time of the one in the middle needs the others.
struct Frames {
  const std::uint8_t* before;
  const std::uint8_t* now;
  const std::uint8_t* after;
  std::int64_t height;
  std::int64_t width;
};

// Blocks over sums of gradients (3, height, width): their edges, one more than blocks each way. A cell has
// blocks x blocks of them.
struct Grid {
  std::int64_t height;
  std::int64_t width;
  const std::int64_t* rows;
  std::int64_t n_rows;
  const std::int64_t* columns;
  std::int64_t n_columns;
  std::int64_t blocks;
};

struct Polyhedron {
  const float* normals;  // (n_faces, 3)
  std::int64_t n_faces;
  float neighbour_cosine;
  bool half;
};

// Histograms of cells, (n_layers, n_rows, n_columns, n_faces).
struct Cells {
  const float* data;
  std::int64_t n_layers;
  std::int64_t n_rows;
  std::int64_t n_columns;
  std::int64_t n_faces;
};

// The most faces of a polyhedron: five vectors of the narrowest variant.
constexpr std::int64_t kMostFaces = 20;

struct VideoKernels {
  void (*integrate_gradients)(const Frames&, std::int32_t* sums);
  void (*add_directions)(const Grid&, const std::int32_t* sums, double frames, const Polyhedron&,
                         std::int32_t* corners, float* histograms, float* lengths);
  void (*cell_boxes)(const Cells&, std::int64_t first, const std::int64_t* places, std::int64_t n_boxes,
                     std::int64_t side, float clip, float* out);
};

struct Variant {
  const char* name;
  Kernels<float> f32;
  Kernels<double> f64;
  GramKernels gram;
  RbfKernels rbf;
  SvmKernels svm;
  VideoKernels video;
};

// Each is null where it was compiled without the instructions it is named after.
const Variant* baseline_variant();
const Variant* avx2_variant();
const Variant* avx512_variant();

}  // namespace gmil
