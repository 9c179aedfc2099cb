// What every processor of the architecture can run: SSE2 on x86-64, NEON on arm64.
#define GMIL_VARIANT_NAME "baseline"
#define GMIL_VECTOR_BYTES 16
#define GMIL_ROW_VECTORS 3
#if defined(__aarch64__)
#define GMIL_CENTER_GROUP 8  // 32 registers
#else
#define GMIL_CENTER_GROUP 4  // 16 registers
#endif
#include "variant.hpp"

namespace gmil {
const Variant* baseline_variant() { return &kVariant; }
}  // namespace gmil
