#include "dispatch.hpp"

#include <atomic>
#include <cstring>

#if defined(_MSC_VER) && (defined(_M_X64) || defined(_M_IX86))
#include <immintrin.h>
#include <intrin.h>
#endif

namespace gmil {
namespace {

// Asked by hand: compiler clones of functions need ifunc, which not every system has.
#if defined(_MSC_VER) && (defined(_M_X64) || defined(_M_IX86))
bool has_bit(int value, int bit) { return ((value >> bit) & 1) != 0; }

// Both the processor and the system, which has to save the longer registers, must know them.
bool has_avx2() {
  int found[4];
  __cpuid(found, 0);
  if (found[0] < 7) return false;
  __cpuid(found, 1);
  const bool system_saves = has_bit(found[2], 27) && (_xgetbv(0) & 6) == 6;
  const bool has_fma = has_bit(found[2], 12);
  __cpuidex(found, 7, 0);
  return system_saves && has_fma && has_bit(found[1], 5);
}
bool has_avx512() { return false; }
#elif (defined(__x86_64__) || defined(__i386__)) && (defined(__GNUC__) || defined(__clang__))
bool has_avx2() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
bool has_avx512() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") && has_avx2();
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
