// Scratch memory that starts on a cache line.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gmil {

// Defined once, outside the variants. Throws std::bad_alloc.
void* allocate_aligned(std::size_t n_bytes);
void free_aligned(void* memory) noexcept;

namespace {

// An uninitialised array of plain numbers. (std::vector would be a template shared between the variants.)
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::int64_t size)
      : data_(static_cast<T*>(allocate_aligned(static_cast<std::size_t>(size) * sizeof(T)))) {}
  Buffer(Buffer&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { free_aligned(data_); }

  T* get() { return data_; }
  const T* get() const { return data_; }
  T& operator[](std::int64_t i) { return data_[i]; }
  const T& operator[](std::int64_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
};

template <class T>
inline void fill(T* values, std::int64_t size, T value) {
  for (std::int64_t i = 0; i < size; ++i) values[i] = value;
}

template <class T>
inline Buffer<T> zeros(std::int64_t size) {
  Buffer<T> buffer(size);
  fill(buffer.get(), size, T{0});
  return buffer;
}

}  // namespace
}  // namespace gmil
