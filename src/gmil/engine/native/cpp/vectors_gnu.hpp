// Vectors by the extensions of GCC and Clang, which know them for every instruction set.
#pragma once

#include "lanes.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace gmil {
namespace {

template <class T>
struct Traits {
  typedef T Vec __attribute__((vector_size(GMIL_VECTOR_BYTES)));
  typedef Index<T> IndexVec __attribute__((vector_size(GMIL_VECTOR_BYTES)));
};

template <class T>
using Vec = typename Traits<T>::Vec;
template <class T>
using IndexVec = typename Traits<T>::IndexVec;
template <class T>
using Mask = IndexVec<T>;

template <class T>
inline Vec<T> broadcast(T value) {
  return value - Vec<T>{};  // x - 0 is x, -0.0 too, so that compilers load it without a sum; 0 + x is not
}

template <class T>
inline IndexVec<T> broadcast_index(Index<T> value) {
  return IndexVec<T>{} + value;
}

template <class T>
inline Mask<T> is_less(const Vec<T>& a, const Vec<T>& b) {
  return a < b;
}

template <class T>
inline Mask<T> is_not_number(const Vec<T>& v) {
  return v != v;
}

template <class T>
inline Mask<T> is_equal_index(const IndexVec<T>& a, const IndexVec<T>& b) {
  return a == b;
}

template <class T>
inline Mask<T> either(const Mask<T>& a, const Mask<T>& b) {
  return a | b;
}

template <class T>
inline Vec<T> choose(const Mask<T>& mask, const Vec<T>& yes, const Vec<T>& no) {
  return mask ? yes : no;
}

template <class T>
inline IndexVec<T> choose_index(const Mask<T>& mask, const IndexVec<T>& yes, const IndexVec<T>& no) {
  return mask ? yes : no;
}

// sum + a * b; the build lets the compiler make one instruction of it.
template <class T>
inline Vec<T> add_product(const Vec<T>& sum, const Vec<T>& a, const Vec<T>& b) {
  return sum + a * b;
}

template <class T>
inline Vec<T> absolute(const Vec<T>& v) {
  // All bits but the sign.
  IndexVec<T> bits;
  std::memcpy(&bits, &v, sizeof bits);
  bits &= broadcast_index<T>(std::numeric_limits<Index<T>>::max());
  Vec<T> out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

// 2^n of every lane whose last bits are n, with the bias of exponents.
inline Vec<double> last_bits_as_exponent(const Vec<double>& v) {
  typedef std::uint64_t Bits __attribute__((vector_size(GMIL_VECTOR_BYTES)));
  Bits bits;
  std::memcpy(&bits, &v, sizeof bits);
  bits <<= 52;
  Vec<double> out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

// The square root of every lane, none of them negative. Vector extensions have no square root, and compilers do not
// reliably see one in a loop over the lanes.
#if defined(__SSE2__)
inline Vec<float> roots(const Vec<float>& v) {
#if GMIL_VECTOR_BYTES == 64
  return _mm512_maskz_sqrt_ps(static_cast<__mmask16>(-1), v);
#elif GMIL_VECTOR_BYTES == 32
  return _mm256_sqrt_ps(v);
#else
  return _mm_sqrt_ps(v);
#endif
}

inline Vec<double> roots(const Vec<double>& v) {
#if GMIL_VECTOR_BYTES == 64
  return _mm512_maskz_sqrt_pd(static_cast<__mmask8>(-1), v);
#elif GMIL_VECTOR_BYTES == 32
  return _mm256_sqrt_pd(v);
#else
  return _mm_sqrt_pd(v);
#endif
}
#else
template <class V>
inline V roots(const V& v) {
  V out = v;
  for (unsigned i = 0; i < sizeof(V) / sizeof(v[0]); ++i) out[i] = std::sqrt(v[i]);
  return out;
}
#endif

// -------------------------------------------------------------------------------- transposing
//
// Shuffles within 128 bits come first and whole 128-bit quarters are exchanged last, because that is what one
// instruction can do on every x86 generation; a single generic network would cost twice as much on AVX2.

template <class T>
constexpr int kPerQuarter = 16 / static_cast<int>(sizeof(T));  // numbers in 128 bits
template <class T>
constexpr int kQuarters = GMIL_VECTOR_BYTES / 16;

// A pattern says, for every lane of the result, which lane of (a, b) goes there; b starts at kLanes.

// Within every quarter: runs of `Width` numbers from a and b alternate, from the low or the high half.
template <class T, int Width, bool High>
struct Interleave {
  static constexpr int from(int lane) {
    constexpr int per = kPerQuarter<T>;
    const int quarter = lane / per;
    const int run = lane % per / Width;
    const int taken = run / 2 + (High ? per / (2 * Width) : 0);
    return (run % 2) * kLanes<T> + quarter * per + taken * Width + lane % Width;
  }
};

// The even (or odd) quarters of a, then those of b.
template <class T, bool Odd>
struct EveryOtherQuarter {
  static constexpr int from(int lane) {
    constexpr int per = kPerQuarter<T>;
    constexpr int half = kQuarters<T> / 2 > 0 ? kQuarters<T> / 2 : 1;
    const int quarter = lane / per;
    const int taken = 2 * (quarter % half) + (Odd ? 1 : 0);
    return (quarter / half) * kLanes<T> + taken * per + lane % per;
  }
};

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define GMIL_HAS_SHUFFLEVECTOR 1
#endif
#endif

template <class T, class Pattern, std::size_t... I>
inline Vec<T> shuffle_lanes(const Vec<T>& a, const Vec<T>& b, std::index_sequence<I...>) {
#ifdef GMIL_HAS_SHUFFLEVECTOR
  return __builtin_shufflevector(a, b, Pattern::from(static_cast<int>(I))...);
#else
  return __builtin_shuffle(a, b, IndexVec<T>{Pattern::from(static_cast<int>(I))...});
#endif
}

template <class T, class Pattern>
inline Vec<T> shuffle(const Vec<T>& a, const Vec<T>& b) {
  return shuffle_lanes<T, Pattern>(a, b, std::make_index_sequence<kLanes<T>>{});
}

// Rows first..first+3 (float) or first..first+1 (double): afterwards vector c holds, in every quarter q, column
// (numbers per quarter) * q + c of those rows.
inline void transpose_quarters(Vec<float>* row) {
  using Low1 = Interleave<float, 1, false>;
  using High1 = Interleave<float, 1, true>;
  using Low2 = Interleave<float, 2, false>;
  using High2 = Interleave<float, 2, true>;
  const Vec<float> a = shuffle<float, Low1>(row[0], row[1]);
  const Vec<float> b = shuffle<float, High1>(row[0], row[1]);
  const Vec<float> c = shuffle<float, Low1>(row[2], row[3]);
  const Vec<float> d = shuffle<float, High1>(row[2], row[3]);
  row[0] = shuffle<float, Low2>(a, c);
  row[1] = shuffle<float, High2>(a, c);
  row[2] = shuffle<float, Low2>(b, d);
  row[3] = shuffle<float, High2>(b, d);
}

inline void transpose_quarters(Vec<double>* row) {
  const Vec<double> low = shuffle<double, Interleave<double, 1, false>>(row[0], row[1]);
  const Vec<double> high = shuffle<double, Interleave<double, 1, true>>(row[0], row[1]);
  row[0] = low;
  row[1] = high;
}

// Exchange quarters between the vectors first, first + stride, ... (one for every quarter).
template <class T>
inline void exchange_quarters(Vec<T>* first, int stride) {
  using Even = EveryOtherQuarter<T, false>;
  using Odd = EveryOtherQuarter<T, true>;
  if constexpr (kQuarters<T> == 2) {
    const Vec<T> a = first[0];
    const Vec<T> b = first[stride];
    first[0] = shuffle<T, Even>(a, b);
    first[stride] = shuffle<T, Odd>(a, b);
  } else if constexpr (kQuarters<T> == 4) {
    const Vec<T> even01 = shuffle<T, Even>(first[0], first[stride]);
    const Vec<T> odd01 = shuffle<T, Odd>(first[0], first[stride]);
    const Vec<T> even23 = shuffle<T, Even>(first[2 * stride], first[3 * stride]);
    const Vec<T> odd23 = shuffle<T, Odd>(first[2 * stride], first[3 * stride]);
    first[0] = shuffle<T, Even>(even01, even23);
    first[stride] = shuffle<T, Even>(odd01, odd23);
    first[2 * stride] = shuffle<T, Odd>(even01, even23);
    first[3 * stride] = shuffle<T, Odd>(odd01, odd23);
  }
}

template <class T>
inline void transpose(Vec<T> (&square)[kLanes<T>]) {
  constexpr int per = kPerQuarter<T>;
  GMIL_UNROLL
  for (int first = 0; first < kLanes<T>; first += per) transpose_quarters(square + first);
  GMIL_UNROLL
  for (int column = 0; column < per; ++column) exchange_quarters<T>(square + column, per);
}

}  // namespace
}  // namespace gmil
