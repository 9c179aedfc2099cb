// AVX2 with fused multiply-add; the build adds the flags to this file alone. MSVC has both or neither.
#if defined(__AVX2__) && (defined(__FMA__) || defined(_MSC_VER))
#define GMIL_VARIANT_NAME "avx2"
#define GMIL_VECTOR_BYTES 32
#define GMIL_ROW_VECTORS 2
#define GMIL_CENTER_GROUP 5  // 10 of 16 registers: with 12, one of the usual compilers spills
#include "variant.hpp"

namespace gmil {
const Variant* avx2_variant() { return &kVariant; }
}  // namespace gmil
#else
#include "kernels.hpp"

namespace gmil {
const Variant* avx2_variant() { return nullptr; }
}  // namespace gmil
#endif
