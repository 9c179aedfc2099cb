// Vectors lane by lane, for compilers without vector extensions on processors without AVX2.
#pragma once

#include "lanes.hpp"

namespace gmil {
namespace {

template <class T>
struct Lanes {
  T lane[kLanes<T>];
  T& operator[](int i) { return lane[i]; }
  const T& operator[](int i) const { return lane[i]; }
};

template <class T>
using Vec = Lanes<T>;
template <class T>
using IndexVec = Lanes<Index<T>>;
template <class T>
using Mask = IndexVec<T>;

// Make a vector of function(lane number).
template <class T, class Function>
inline Lanes<T> each_lane(const Function& function) {
  Lanes<T> out;
  for (int i = 0; i < kLanes<T>; ++i) out.lane[i] = static_cast<T>(function(i));
  return out;
}

template <class T>
inline Lanes<T> operator+(const Lanes<T>& a, const Lanes<T>& b) {
  return each_lane<T>([&](int i) { return a[i] + b[i]; });
}
template <class T>
inline Lanes<T> operator-(const Lanes<T>& a, const Lanes<T>& b) {
  return each_lane<T>([&](int i) { return a[i] - b[i]; });
}
template <class T>
inline Lanes<T> operator*(const Lanes<T>& a, const Lanes<T>& b) {
  return each_lane<T>([&](int i) { return a[i] * b[i]; });
}
template <class T>
inline Lanes<T> operator/(const Lanes<T>& a, const Lanes<T>& b) {
  return each_lane<T>([&](int i) { return a[i] / b[i]; });
}
template <class T>
inline Lanes<T>& operator+=(Lanes<T>& a, const Lanes<T>& b) {
  return a = a + b;
}

template <class T>
inline Vec<T> broadcast(T value) {
  return each_lane<T>([&](int) { return value; });
}

template <class T>
inline IndexVec<T> broadcast_index(Index<T> value) {
  return each_lane<Index<T>>([&](int) { return value; });
}

template <class T>
inline Mask<T> is_less(const Vec<T>& a, const Vec<T>& b) {
  return each_lane<Index<T>>([&](int i) { return a[i] < b[i]; });
}

template <class T>
inline Mask<T> is_not_number(const Vec<T>& v) {
  return each_lane<Index<T>>([&](int i) { return v[i] != v[i]; });
}

template <class T>
inline Mask<T> is_equal_index(const IndexVec<T>& a, const IndexVec<T>& b) {
  return each_lane<Index<T>>([&](int i) { return a[i] == b[i]; });
}

template <class T>
inline Mask<T> either(const Mask<T>& a, const Mask<T>& b) {
  return each_lane<Index<T>>([&](int i) { return a[i] | b[i]; });
}

template <class T>
inline Vec<T> choose(const Mask<T>& mask, const Vec<T>& yes, const Vec<T>& no) {
  return each_lane<T>([&](int i) { return mask[i] != 0 ? yes[i] : no[i]; });
}

template <class T>
inline IndexVec<T> choose_index(const Mask<T>& mask, const IndexVec<T>& yes, const IndexVec<T>& no) {
  return each_lane<Index<T>>([&](int i) { return mask[i] != 0 ? yes[i] : no[i]; });
}

// One rounding where the other vectors have one: of a product and a sum the compiler makes one in some loops only.
template <class T>
inline Vec<T> add_product(const Vec<T>& sum, const Vec<T>& a, const Vec<T>& b) {
#if defined(__FMA__)
  return each_lane<T>([&](int i) { return std::fma(a[i], b[i], sum[i]); });
#else
  return sum + a * b;
#endif
}

template <class T>
inline Vec<T> absolute(const Vec<T>& v) {
  return each_lane<T>([&](int i) { return std::abs(v[i]); });
}

// 2^n of every lane whose last bits are n, with the bias of exponents.
inline Vec<double> last_bits_as_exponent(const Vec<double>& v) {
  return each_lane<double>([&](int i) {
    std::uint64_t bits;
    std::memcpy(&bits, &v[i], sizeof bits);
    bits <<= 52;
    double power;
    std::memcpy(&power, &bits, sizeof power);
    return power;
  });
}

template <class T>
inline Lanes<T> roots(const Lanes<T>& v) {
  return each_lane<T>([&](int i) { return std::sqrt(v[i]); });
}

template <class T>
inline void transpose(Vec<T> (&square)[kLanes<T>]) {
  for (int i = 0; i < kLanes<T>; ++i) {
    for (int j = 0; j < i; ++j) {
      const T value = square[i][j];
      square[i][j] = square[j][i];
      square[j][i] = value;
    }
  }
}

}  // namespace
}  // namespace gmil
