// How many numbers a vector of GMIL_VECTOR_BYTES bytes has, and what counts them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#ifndef GMIL_VECTOR_BYTES
#error "the variant that includes this defines GMIL_VECTOR_BYTES"
#endif

#if defined(__clang__)
#define GMIL_UNROLL _Pragma("unroll")
#elif defined(__GNUC__)
#define GMIL_UNROLL _Pragma("GCC unroll 32")
#else
#define GMIL_UNROLL
#endif

namespace gmil {
namespace {

template <class T>
constexpr int kLanes = GMIL_VECTOR_BYTES / static_cast<int>(sizeof(T));

// A whole number as wide as T.
template <class T>
using Index = typename std::conditional<sizeof(T) == 4, std::int32_t, std::int64_t>::type;

}  // namespace
}  // namespace gmil
