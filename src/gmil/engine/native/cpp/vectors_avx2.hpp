// Vectors of 32 bytes by the instructions of AVX2 and FMA, for a compiler that has no vector extensions (MSVC).
#pragma once

#include <immintrin.h>

#include "lanes.hpp"

#if GMIL_VECTOR_BYTES != 32
#error "AVX2 has vectors of 32 bytes"
#endif

namespace gmil {
namespace {

// The instructions for one type: `ps` or `pd` for its numbers, `epi32` or `epi64x` for whole numbers as wide.
template <class T>
struct Avx2;

#define GMIL_AVX2(T, RAW, FLOATS, WHOLES, SET)                                                                     \
  template <>                                                                                                      \
  struct Avx2<T> {                                                                                                 \
    using Raw = RAW;                                                                                               \
    static Raw set(T value) { return _mm256_set1_##FLOATS(value); }                                                \
    static Raw load(const T* from) { return _mm256_loadu_##FLOATS(from); }                                         \
    static void store(T* to, Raw v) { _mm256_storeu_##FLOATS(to, v); }                                             \
    static Raw add(Raw a, Raw b) { return _mm256_add_##FLOATS(a, b); }                                             \
    static Raw subtract(Raw a, Raw b) { return _mm256_sub_##FLOATS(a, b); }                                        \
    static Raw multiply(Raw a, Raw b) { return _mm256_mul_##FLOATS(a, b); }                                        \
    static Raw divide(Raw a, Raw b) { return _mm256_div_##FLOATS(a, b); }                                              \
    static Raw add_product(Raw sum, Raw a, Raw b) { return _mm256_fmadd_##FLOATS(a, b, sum); }                     \
    static Raw less(Raw a, Raw b) { return _mm256_cmp_##FLOATS(a, b, _CMP_LT_OQ); }                                \
    static Raw not_number(Raw v) { return _mm256_cmp_##FLOATS(v, v, _CMP_UNORD_Q); }                               \
    static Raw choose(Raw mask, Raw yes, Raw no) { return _mm256_blendv_##FLOATS(no, yes, mask); }                 \
    static Raw either(Raw a, Raw b) { return _mm256_or_##FLOATS(a, b); }                                           \
    static Raw absolute(Raw v) { return _mm256_andnot_##FLOATS(_mm256_set1_##FLOATS(T{-0.0F}), v); }               \
    static Raw root(Raw v) { return _mm256_sqrt_##FLOATS(v); }                                                     \
    static Raw low(Raw a, Raw b) { return _mm256_unpacklo_##FLOATS(a, b); }                                        \
    static Raw high(Raw a, Raw b) { return _mm256_unpackhi_##FLOATS(a, b); }                                       \
    static __m256i whole(Raw v) { return _mm256_cast##FLOATS##_si256(v); }                                         \
    static Raw mask_of(__m256i v) { return _mm256_castsi256_##FLOATS(v); }                                         \
    static __m256i set_index(Index<T> value) { return _mm256_set1_##SET(value); }                                  \
    static __m256i equal(__m256i a, __m256i b) { return _mm256_cmpeq_##WHOLES(a, b); }                             \
  };
GMIL_AVX2(float, __m256, ps, epi32, epi32)
GMIL_AVX2(double, __m256d, pd, epi64, epi64x)
#undef GMIL_AVX2

// Types of their own, because some compilers know the registers as structures without operators.
template <class T>
struct Vec256 {
  typename Avx2<T>::Raw raw;
  T operator[](int i) const {
    T lane[kLanes<T>];
    Avx2<T>::store(lane, raw);
    return lane[i];
  }
};

template <class T>
struct IndexVec256 {
  __m256i raw;
  Index<T> operator[](int i) const {
    Index<T> lane[kLanes<T>];
    std::memcpy(lane, &raw, sizeof lane);
    return lane[i];
  }
};

template <class T>
using Vec = Vec256<T>;
template <class T>
using IndexVec = IndexVec256<T>;
template <class T>
using Mask = Vec256<T>;  // all bits of a lane, or none

template <class T>
inline Vec256<T> operator+(const Vec256<T>& a, const Vec256<T>& b) {
  return {Avx2<T>::add(a.raw, b.raw)};
}
template <class T>
inline Vec256<T> operator-(const Vec256<T>& a, const Vec256<T>& b) {
  return {Avx2<T>::subtract(a.raw, b.raw)};
}
template <class T>
inline Vec256<T> operator*(const Vec256<T>& a, const Vec256<T>& b) {
  return {Avx2<T>::multiply(a.raw, b.raw)};
}
template <class T>
inline Vec256<T> operator/(const Vec256<T>& a, const Vec256<T>& b) {
  return {Avx2<T>::divide(a.raw, b.raw)};
}
template <class T>
inline Vec256<T>& operator+=(Vec256<T>& a, const Vec256<T>& b) {
  return a = a + b;
}

template <class T>
inline Vec<T> broadcast(T value) {
  return {Avx2<T>::set(value)};
}

template <class T>
inline IndexVec<T> broadcast_index(Index<T> value) {
  return {Avx2<T>::set_index(value)};
}

template <class T>
inline Mask<T> is_less(const Vec<T>& a, const Vec<T>& b) {
  return {Avx2<T>::less(a.raw, b.raw)};
}

template <class T>
inline Mask<T> is_not_number(const Vec<T>& v) {
  return {Avx2<T>::not_number(v.raw)};
}

template <class T>
inline Mask<T> is_equal_index(const IndexVec<T>& a, const IndexVec<T>& b) {
  return {Avx2<T>::mask_of(Avx2<T>::equal(a.raw, b.raw))};
}

template <class T>
inline Mask<T> either(const Mask<T>& a, const Mask<T>& b) {
  return {Avx2<T>::either(a.raw, b.raw)};
}

template <class T>
inline Vec<T> choose(const Mask<T>& mask, const Vec<T>& yes, const Vec<T>& no) {
  return {Avx2<T>::choose(mask.raw, yes.raw, no.raw)};
}

template <class T>
inline IndexVec<T> choose_index(const Mask<T>& mask, const IndexVec<T>& yes, const IndexVec<T>& no) {
  return {_mm256_blendv_epi8(no.raw, yes.raw, Avx2<T>::whole(mask.raw))};
}

template <class T>
inline Vec<T> add_product(const Vec<T>& sum, const Vec<T>& a, const Vec<T>& b) {
  return {Avx2<T>::add_product(sum.raw, a.raw, b.raw)};
}

template <class T>
inline Vec<T> absolute(const Vec<T>& v) {
  return {Avx2<T>::absolute(v.raw)};
}

// 2^n of every lane whose last bits are n, with the bias of exponents.
inline Vec<double> last_bits_as_exponent(const Vec<double>& v) {
  return {Avx2<double>::mask_of(_mm256_slli_epi64(Avx2<double>::whole(v.raw), 52))};
}

template <class T>
inline Vec256<T> roots(const Vec256<T>& v) {
  return {Avx2<T>::root(v.raw)};
}

// -------------------------------------------------------------------------------- transposing

inline __m256 low_pairs(__m256 a, __m256 b) {
  return _mm256_castpd_ps(_mm256_unpacklo_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
}
inline __m256 high_pairs(__m256 a, __m256 b) {
  return _mm256_castpd_ps(_mm256_unpackhi_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
}

// Afterwards vector c holds, in either half h, column (numbers per half) * h + c of these rows.
inline void transpose_halves(Vec<float>* row) {
  const __m256 a = Avx2<float>::low(row[0].raw, row[1].raw);
  const __m256 b = Avx2<float>::high(row[0].raw, row[1].raw);
  const __m256 c = Avx2<float>::low(row[2].raw, row[3].raw);
  const __m256 d = Avx2<float>::high(row[2].raw, row[3].raw);
  row[0].raw = low_pairs(a, c);
  row[1].raw = high_pairs(a, c);
  row[2].raw = low_pairs(b, d);
  row[3].raw = high_pairs(b, d);
}

inline void transpose_halves(Vec<double>* row) {
  const __m256d low = Avx2<double>::low(row[0].raw, row[1].raw);
  row[1].raw = Avx2<double>::high(row[0].raw, row[1].raw);
  row[0].raw = low;
}

template <class T>
inline void exchange_halves(Vec<T>& first, Vec<T>& second) {
  const __m256i a = Avx2<T>::whole(first.raw);
  const __m256i b = Avx2<T>::whole(second.raw);
  first.raw = Avx2<T>::mask_of(_mm256_permute2x128_si256(a, b, 0x20));
  second.raw = Avx2<T>::mask_of(_mm256_permute2x128_si256(a, b, 0x31));
}

template <class T>
inline void transpose(Vec<T> (&square)[kLanes<T>]) {
  constexpr int per = kLanes<T> / 2;
  transpose_halves(square);
  transpose_halves(square + per);
  for (int column = 0; column < per; ++column) exchange_halves<T>(square[column], square[column + per]);
}

}  // namespace
}  // namespace gmil
