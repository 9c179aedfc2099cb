// AVX-512 (F, DQ, VL, BW); the build adds the flags to this file alone. Only GCC and Clang have vectors that wide here.
#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && defined(__AVX512BW__)
#define GMIL_VARIANT_NAME "avx512"
#define GMIL_VECTOR_BYTES 64
#define GMIL_ROW_VECTORS 3
#define GMIL_CENTER_GROUP 8  // 24 of 32 registers
#include "variant.hpp"

namespace gmil {
const Variant* avx512_variant() { return &kVariant; }
}  // namespace gmil
#else
#include "kernels.hpp"

namespace gmil {
const Variant* avx512_variant() { return nullptr; }
}  // namespace gmil
#endif
