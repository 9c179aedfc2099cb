// Which variant runs: chosen by what the processor can do, or by name.
#pragma once

#include "kernels.hpp"

namespace gmil {

// Variants that can run here, the fastest last.
int n_variants();
const char* variant_name(int index);

// The variant in use: the fastest, until another is chosen.
const Variant& active_variant();

// Returns false where no variant of that name can run here.
bool use_variant(const char* name);

template <class T>
const Kernels<T>& active_kernels();
template <>
inline const Kernels<float>& active_kernels<float>() { return active_variant().f32; }
template <>
inline const Kernels<double>& active_kernels<double>() { return active_variant().f64; }

}  // namespace gmil
