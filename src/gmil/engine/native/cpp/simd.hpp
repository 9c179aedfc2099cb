// Vectors of GMIL_VECTOR_BYTES bytes, and the few operations on them that the kernels need.
//
// Every variant includes this file with its own width. All names live in an unnamed namespace: code that was
// compiled for AVX-512 must never be merged by the linker with the baseline's copy of the same function.
//
// What differs between compilers is in vectors_*.hpp, one of which is chosen here. GMIL_AVX2_INTRINSICS and
// GMIL_PLAIN_VECTORS choose those of other compilers, for tests.
#pragma once

#if defined(GMIL_AVX2_INTRINSICS) && defined(__AVX2__) && GMIL_VECTOR_BYTES == 32
#include "vectors_avx2.hpp"
#elif (defined(__GNUC__) || defined(__clang__)) && !defined(GMIL_PLAIN_VECTORS)
#include "vectors_gnu.hpp"
#elif defined(_MSC_VER) && defined(__AVX2__) && GMIL_VECTOR_BYTES == 32
#include "vectors_avx2.hpp"
#else
#include "vectors_plain.hpp"
#endif

#if defined(_MSC_VER) && (defined(_M_X64) || defined(_M_IX86))
#include <xmmintrin.h>
#endif

namespace gmil {
namespace {

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
inline Vec<T> smaller(const Vec<T>& a, const Vec<T>& b) {
  return choose<T>(is_less<T>(a, b), a, b);
}

// Put `value` with its index where it is strictly below `best`: the first of equals stays.
template <class T>
inline void keep_smaller(const Vec<T>& value, Index<T> index, Vec<T>& best, IndexVec<T>& where) {
  const Mask<T> lower = is_less<T>(value, best);
  best = choose<T>(lower, value, best);
  where = choose_index<T>(lower, broadcast_index<T>(index), where);
}

// The same, and what was best before, or `value` itself, competes for `second`.
template <class T>
inline void keep_two_smaller(const Vec<T>& value, Index<T> index, Vec<T>& best, Vec<T>& second,
                             IndexVec<T>& where) {
  const Mask<T> lower = is_less<T>(value, best);
  second = smaller<T>(choose<T>(lower, best, value), second);
  best = choose<T>(lower, value, best);
  where = choose_index<T>(lower, broadcast_index<T>(index), where);
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
  IndexVec<T> numbers;
  std::memcpy(&numbers, kNumbers.lane, sizeof numbers);
  return choose<T>(is_equal_index<T>(numbers, broadcast_index<T>(static_cast<Index<T>>(lane))), broadcast(value), v);
}

// The square root of every lane, of zero where a lane is negative or no number.
template <class T>
inline Vec<T> square_roots(const Vec<T>& v) {
  const Vec<T> zero = broadcast(T{0});
  return roots(choose<T>(is_less<T>(zero, v), v, zero));
}

inline void prefetch(const char* address) {
#if defined(__GNUC__) || defined(__clang__)
  __builtin_prefetch(address, 0, 2);
#elif defined(_MSC_VER) && (defined(_M_X64) || defined(_M_IX86))
  _mm_prefetch(address, _MM_HINT_T1);
#else
  (void)address;
#endif
}

}  // namespace
}  // namespace gmil
