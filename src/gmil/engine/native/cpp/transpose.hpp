// Transpose a square of kLanes x kLanes numbers held in registers.
//
// Shuffles within 128 bits come first and whole 128-bit quarters are exchanged last, because that is what one
// instruction can do on every x86 generation; a single generic network would cost twice as much on AVX2.
#pragma once

#include "simd.hpp"

namespace gmil {
namespace {

#ifdef GMIL_GNU_VECTORS

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

#else

template <class T>
inline void transpose(Vec<T> (&square)[kLanes<T>]) {
  for (int i = 0; i < kLanes<T>; ++i) {
    for (int j = 0; j < i; ++j) std::swap(square[i][j], square[j][i]);
  }
}

#endif

}  // namespace
}  // namespace gmil
