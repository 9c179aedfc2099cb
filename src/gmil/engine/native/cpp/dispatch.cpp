#include "dispatch.hpp"

#include <atomic>
#include <cstring>

namespace gmil {
namespace {

// Asked by hand: compiler clones of functions need ifunc, which not every system has.
#if (defined(__x86_64__) || defined(__i386__)) && (defined(__GNUC__) || defined(__clang__))
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
