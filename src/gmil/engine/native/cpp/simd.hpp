// Vectors of GMIL_VECTOR_BYTES bytes, and the few operations on them that the kernels need.
//
// Every variant includes this file with its own width. All names live in an unnamed namespace: code that was
// compiled for AVX-512 must never be merged by the linker with the baseline's copy of the same function.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#ifndef GMIL_VECTOR_BYTES
#error "simd.hpp is included by a variant that defines GMIL_VECTOR_BYTES"
#endif

#if (defined(__GNUC__) || defined(__clang__)) && !defined(GMIL_PLAIN_VECTORS)
#define GMIL_GNU_VECTORS 1
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

template <class T>
struct Traits;

#ifdef GMIL_GNU_VECTORS

template <>
struct Traits<float> {
  using Index = std::int32_t;
  typedef float Vec __attribute__((vector_size(GMIL_VECTOR_BYTES)));
  typedef Index IndexVec __attribute__((vector_size(GMIL_VECTOR_BYTES)));
};

template <>
struct Traits<double> {
  using Index = std::int64_t;
  typedef double Vec __attribute__((vector_size(GMIL_VECTOR_BYTES)));
  typedef Index IndexVec __attribute__((vector_size(GMIL_VECTOR_BYTES)));
};

#else

// The same operations lane by lane, for compilers without vector extensions.
template <class T>
struct PlainVec {
  T lane[GMIL_VECTOR_BYTES / sizeof(T)];
  T& operator[](int i) { return lane[i]; }
  const T& operator[](int i) const { return lane[i]; }
};

#define GMIL_LANEWISE(expression)                                  \
  PlainVec<T> out;                                                 \
  for (int i = 0; i < kLanes<T>; ++i) out.lane[i] = (expression);  \
  return out;
template <class T>
inline PlainVec<T> operator+(PlainVec<T> a, PlainVec<T> b) { GMIL_LANEWISE(a.lane[i] + b.lane[i]) }
template <class T>
inline PlainVec<T> operator-(PlainVec<T> a, PlainVec<T> b) { GMIL_LANEWISE(a.lane[i] - b.lane[i]) }
template <class T>
inline PlainVec<T> operator*(PlainVec<T> a, PlainVec<T> b) { GMIL_LANEWISE(a.lane[i] * b.lane[i]) }
#undef GMIL_LANEWISE
template <class T>
inline PlainVec<T>& operator+=(PlainVec<T>& a, PlainVec<T> b) { return a = a + b; }
template <class T>
inline PlainVec<T>& operator-=(PlainVec<T>& a, PlainVec<T> b) { return a = a - b; }

template <>
struct Traits<float> {
  using Index = std::int32_t;
  using Vec = PlainVec<float>;
  using IndexVec = PlainVec<Index>;
};

template <>
struct Traits<double> {
  using Index = std::int64_t;
  using Vec = PlainVec<double>;
  using IndexVec = PlainVec<Index>;
};

#endif

template <class T>
using Vec = typename Traits<T>::Vec;
template <class T>
using Index = typename Traits<T>::Index;
template <class T>
using IndexVec = typename Traits<T>::IndexVec;

template <class T>
inline Vec<T> load(const T* from) {
  Vec<T> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <class T>
inline void store(T* to, const Vec<T>& v) {
  std::memcpy(to, &v, sizeof v);
}

template <class T>
inline Vec<T> broadcast(T value) {
#ifdef GMIL_GNU_VECTORS
  return Vec<T>{} + value;  // adding to zero keeps the value of every number but -0.0
#else
  Vec<T> v;
  for (int i = 0; i < kLanes<T>; ++i) v[i] = value;
  return v;
#endif
}

template <class T>
inline IndexVec<T> broadcast_index(Index<T> value) {
#ifdef GMIL_GNU_VECTORS
  return IndexVec<T>{} + value;
#else
  IndexVec<T> v;
  for (int i = 0; i < kLanes<T>; ++i) v[i] = value;
  return v;
#endif
}

template <class T>
inline Vec<T> smaller(const Vec<T>& a, const Vec<T>& b) {
#ifdef GMIL_GNU_VECTORS
  return a < b ? a : b;
#else
  Vec<T> v;
  for (int i = 0; i < kLanes<T>; ++i) v[i] = a[i] < b[i] ? a[i] : b[i];
  return v;
#endif
}

template <class T>
inline Vec<T> absolute(const Vec<T>& v) {
#ifdef GMIL_GNU_VECTORS
  // All bits but the sign.
  IndexVec<T> bits;
  std::memcpy(&bits, &v, sizeof bits);
  bits &= broadcast_index<T>(std::numeric_limits<Index<T>>::max());
  Vec<T> out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
#else
  Vec<T> out;
  for (int i = 0; i < kLanes<T>; ++i) out[i] = std::abs(v[i]);
  return out;
#endif
}

// Put `value` with its index where it is strictly below `best`: the first of equals stays.
template <class T>
inline void keep_smaller(const Vec<T>& value, Index<T> index, Vec<T>& best, IndexVec<T>& where) {
#ifdef GMIL_GNU_VECTORS
  const auto lower = value < best;
  best = lower ? value : best;
  where = lower ? broadcast_index<T>(index) : where;
#else
  for (int i = 0; i < kLanes<T>; ++i) {
    if (value[i] < best[i]) {
      best[i] = value[i];
      where[i] = index;
    }
  }
#endif
}

// The same, and what was best before, or `value` itself, competes for `second`.
template <class T>
inline void keep_two_smaller(const Vec<T>& value, Index<T> index, Vec<T>& best, Vec<T>& second,
                             IndexVec<T>& where) {
#ifdef GMIL_GNU_VECTORS
  const auto lower = value < best;
  const Vec<T> loser = lower ? best : value;
  second = loser < second ? loser : second;
  best = lower ? value : best;
  where = lower ? broadcast_index<T>(index) : where;
#else
  for (int i = 0; i < kLanes<T>; ++i) {
    const bool lower = value[i] < best[i];
    const T loser = lower ? best[i] : value[i];
    if (loser < second[i]) second[i] = loser;
    if (lower) {
      best[i] = value[i];
      where[i] = index;
    }
  }
#endif
}

template <class T>
struct LaneNumbers {
  Index<T> lane[kLanes<T>] = {};
  constexpr LaneNumbers() {
    for (int i = 0; i < kLanes<T>; ++i) lane[i] = static_cast<Index<T>>(i);
  }
};

// Halves are folded onto each other: a chain over all lanes would wait for every addition.
template <class T>
inline T sum_lanes(const Vec<T>& v) {
  T lane[kLanes<T>];
  store(lane, v);
  GMIL_UNROLL
  for (int half = kLanes<T> / 2; half > 0; half /= 2) {
    GMIL_UNROLL
    for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
  }
  return lane[0];
}

template <class T>
inline T smallest_lane(const Vec<T>& v) {
  T lane[kLanes<T>];
  store(lane, v);
  GMIL_UNROLL
  for (int half = kLanes<T> / 2; half > 0; half /= 2) {
    GMIL_UNROLL
    for (int i = 0; i < half; ++i) lane[i] = lane[i + half] < lane[i] ? lane[i + half] : lane[i];
  }
  return lane[0];
}

// Put `value` into one lane; a number that is no lane changes nothing.
template <class T>
inline Vec<T> without_lane(const Vec<T>& v, std::int64_t lane, T value) {
  static constexpr LaneNumbers<T> kNumbers{};
#ifdef GMIL_GNU_VECTORS
  IndexVec<T> numbers;
  std::memcpy(&numbers, kNumbers.lane, sizeof numbers);
  return numbers == broadcast_index<T>(static_cast<Index<T>>(lane)) ? broadcast(value) : v;
#else
  Vec<T> out = v;
  for (int i = 0; i < kLanes<T>; ++i) out[i] = kNumbers.lane[i] == lane ? value : v[i];
  return out;
#endif
}

// The square root of every lane, of zero where a lane is negative. Vector extensions have no square root, and compilers
// do not reliably see one in a loop over the lanes.
#if defined(GMIL_GNU_VECTORS) && defined(__SSE2__)
inline Vec<float> square_roots(const Vec<float>& v) {
  const Vec<float> positive = v > 0 ? v : Vec<float>{};
#if GMIL_VECTOR_BYTES == 64
  return _mm512_maskz_sqrt_ps(static_cast<__mmask16>(-1), positive);
#elif GMIL_VECTOR_BYTES == 32
  return _mm256_sqrt_ps(positive);
#else
  return _mm_sqrt_ps(positive);
#endif
}

inline Vec<double> square_roots(const Vec<double>& v) {
  const Vec<double> positive = v > 0 ? v : Vec<double>{};
#if GMIL_VECTOR_BYTES == 64
  return _mm512_maskz_sqrt_pd(static_cast<__mmask8>(-1), positive);
#elif GMIL_VECTOR_BYTES == 32
  return _mm256_sqrt_pd(positive);
#else
  return _mm_sqrt_pd(positive);
#endif
}
#else
template <class V>
inline V square_roots(const V& v) {
  V roots = v;
  for (unsigned i = 0; i < sizeof(V) / sizeof(v[0]); ++i) roots[i] = std::sqrt(v[i] > 0 ? v[i] : 0);
  return roots;
}
#endif

inline void prefetch(const char* address) {
#if defined(__GNUC__) || defined(__clang__)
  __builtin_prefetch(address, 0, 2);
#else
  (void)address;
#endif
}

}  // namespace
}  // namespace gmil
