// The table of one variant. Included once per variant, with the width and the name defined before.
#pragma once

#include "bags.hpp"
#include "columns.hpp"
#include "gram.hpp"
#include "gram_matrix.hpp"
#include "lloyd.hpp"
#include "rbf.hpp"
#include "seed.hpp"
#include "sparse.hpp"
#include "svm.hpp"
#include "video.hpp"

namespace gmil {
namespace {

template <class T>
constexpr Kernels<T> kernels_of() {
  return {sq_distances<T>,
          sparse_sq_distances<T>,
          l1_distances<T>,
          column_ranks<T>,
          assign<T>,
          seed<T>,
          lloyd<T>,
          gram_matrix<T>,
          {bag_select<T, Smaller>, bag_select<T, Larger>, bag_moment<T, false>, bag_moment<T, true>},
          bag_moments<T>,
          bag_two_min<T>};
}

constexpr Variant kVariant{GMIL_VARIANT_NAME,
                           kernels_of<float>(),
                           kernels_of<double>(),
                           {gram_seed, gram_lloyd},
                           {rbf_sums},
                           {svm_solve},
                           {integrate_gradients, add_directions, cell_boxes}};

}  // namespace
}  // namespace gmil
