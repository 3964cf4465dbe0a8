// What an emitted model holds: the mapped weights file and one aligned block for everything between kernels.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace gopt_runtime {

class Weights {
 public:
  Weights(const char* path, size_t expected) {
    if (expected == 0) return;
    const int file = open(path, O_RDONLY);
    if (file < 0) throw std::runtime_error(std::string("cannot open the weights file ") + path);
    struct stat status;
    const bool fits = fstat(file, &status) == 0 && static_cast<size_t>(status.st_size) == expected;
    void* at = fits ? mmap(nullptr, expected, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    close(file);
    if (!fits)
      throw std::runtime_error(std::string("the weights file ") + path + " is not this model's: its size differs");
    if (at == MAP_FAILED) throw std::runtime_error(std::string("cannot map the weights file ") + path);
    data_ = static_cast<const char*>(at);
    size_ = expected;
  }
  ~Weights() {
    if (data_) munmap(const_cast<char*>(data_), size_);
  }
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;
  const char* data() const { return data_; }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

// Of a core, as far as the system knows it.
inline int64_t second_cache_bytes() {
#if defined(_SC_LEVEL2_CACHE_SIZE)
  static const int64_t known = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (known > 0) return known;
#endif
  return 1 << 20;
}

inline size_t memory_bytes() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
}

constexpr size_t kPage = 4096, kHugePage = size_t{2} << 20;

// Whole pages, of the large kind where little is added: kernels that stream through weights would else wait for
// addresses to be translated, once for each small page.
inline size_t rounded_to_pages(size_t size) {
  const size_t large = (size + kHugePage - 1) / kHugePage * kHugePage;
  return large - size <= size / 4 ? large : (size + kPage - 1) / kPage * kPage;
}

// Of whole pages, and not yet written.
class Reserved {
 public:
  explicit Reserved(size_t size) : size_(rounded_to_pages(size)) {
    if (size_ == 0) return;
    // More than the machine has would be promised, and taken back while it is cleared.
    const bool is_large = size_ >= kHugePage;
    const size_t page = is_large ? kHugePage : kPage, reserved = (size_ + page - 1) / page * page;
    if (size_ <= memory_bytes()) data_ = static_cast<char*>(std::aligned_alloc(page, reserved));
    if (!data_) throw std::runtime_error("out of memory: " + std::to_string(size) + " bytes are needed");
#if defined(MADV_HUGEPAGE)
    if (is_large) madvise(data_, size_, MADV_HUGEPAGE);  // where the system has them
#endif
  }
  ~Reserved() { std::free(data_); }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;
  char* data() const { return data_; }
  size_t size() const { return size_; }

 protected:
  void swap(Reserved& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
};

// Zeroed, so that what no kernel writes is read as zero.
class Block : public Reserved {
 public:
  explicit Block(size_t size) : Reserved(size) {
    if (data()) std::memset(data(), 0, this->size());
  }
  // Makes room for so much; what it held is lost where it was smaller.
  void grow(size_t size) {
    if (size <= this->size()) return;
    Block larger(size);
    swap(larger);
  }
};

// Writes back what caches have of it, and leaves it in none; nothing where the processor has no instruction for that.
#if defined(__x86_64__)
__attribute__((target("clflushopt"))) inline void flush_lines(const char* data, size_t size) {
  constexpr unsigned kFlushes = 1u << 23;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!data || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & kFlushes) == 0) return;
  for (size_t i = 0; i < size; i += 64) __builtin_ia32_clflushopt(data + i);
  __builtin_ia32_mfence();
}
#else
inline void flush_lines(const char*, size_t) {}
#endif

// Of this thread on a processor.
inline double thread_ms() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

inline double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace gopt_runtime
