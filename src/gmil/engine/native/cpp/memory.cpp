#include "memory.hpp"

#include <new>

namespace gmil {

namespace {
constexpr std::align_val_t kCacheLine{64};
}

void* allocate_aligned(std::size_t n_bytes) { return ::operator new(n_bytes, kCacheLine); }

void free_aligned(void* memory) noexcept { ::operator delete(memory, kCacheLine); }

}  // namespace gmil
