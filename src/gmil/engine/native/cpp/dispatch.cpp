#include "dispatch.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__) || defined(__i386__) || defined(_M_X64) || defined(_M_IX86)
#define GMIL_X86
#ifdef _MSC_VER
#include <immintrin.h>
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#endif

namespace gmil {
namespace {

// Asked by hand: clones of functions need ifunc, which not every system has, and what a compiler asks at run time lies in
// a library that not every compiler brings.
#ifdef GMIL_X86
bool has_bits(std::uint64_t value, std::uint64_t bits) { return (value & bits) == bits; }

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

// What the processor tells about one leaf; zeros where it does not know the leaf.
Registers cpuid(unsigned leaf) {
  Registers found;
#ifdef _MSC_VER
  int answer[4];
  __cpuid(answer, 0);
  if (static_cast<unsigned>(answer[0]) < leaf) return found;
  __cpuidex(answer, static_cast<int>(leaf), 0);
  found.a = static_cast<unsigned>(answer[0]);
  found.b = static_cast<unsigned>(answer[1]);
  found.c = static_cast<unsigned>(answer[2]);
  found.d = static_cast<unsigned>(answer[3]);
#else
  __get_cpuid_count(leaf, 0, &found.a, &found.b, &found.c, &found.d);
#endif
  return found;
}

// Which registers the system saves when it changes threads; what it does not save must not be used.
std::uint64_t saved_registers() {
  constexpr std::uint64_t kXsaveInUse = 1u << 27;
  if (!has_bits(cpuid(1).c, kXsaveInUse)) return 0;
#ifdef _MSC_VER
  return _xgetbv(0);
#else
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32) | low;
#endif
}

bool has_avx2() {
  constexpr std::uint64_t kVectors = 0x6, kFma = 1u << 12, kAvx2 = 1u << 5;
  return has_bits(saved_registers(), kVectors) && has_bits(cpuid(1).c, kFma) && has_bits(cpuid(7).b, kAvx2);
}

// macOS saves the longest registers of a thread only after it has used them, so that AVX2 runs there.
bool has_avx512() {
  constexpr std::uint64_t kVectors = 0xe6, kF = 1u << 16, kDq = 1u << 17, kBw = 1u << 30, kVl = 1u << 31;
  return has_avx2() && has_bits(saved_registers(), kVectors) && has_bits(cpuid(7).b, kF | kDq | kBw | kVl);
}
#else
bool has_avx2() { return false; }
bool has_avx512() { return false; }
#endif

struct Runnable {
  const Variant* variant[3];
  int size = 0;

  Runnable() {
    variant[size++] = baseline_variant();
    if (has_avx2() && avx2_variant() != nullptr) variant[size++] = avx2_variant();
    if (has_avx512() && avx512_variant() != nullptr) variant[size++] = avx512_variant();
  }
};

const Runnable& runnable() {
  static const Runnable here;
  return here;
}

std::atomic<const Variant*> chosen{nullptr};

}  // namespace

int n_variants() { return runnable().size; }

const char* variant_name(int index) { return runnable().variant[index]->name; }

const Variant& active_variant() {
  const Variant* variant = chosen.load();
  return variant != nullptr ? *variant : *runnable().variant[runnable().size - 1];
}

bool use_variant(const char* name) {
  for (int i = 0; i < n_variants(); ++i) {
    if (std::strcmp(variant_name(i), name) == 0) {
      chosen.store(runnable().variant[i]);
      return true;
    }
  }
  return false;
}

}  // namespace gmil
