#include "share_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <thread>

#include "buffers.h"
#include "gopt/buffer_root.h"
#include "gopt/interpreter.h"
#include "gopt/parallel.h"
#include "gopt/runtime/gopt_quantized_chunk.h"

namespace gopt::codegen {
namespace {

// The elements, of a fixed size, in a layout that exchanges two groups of axes: matrices, transposed. Precondition: it
// is one of those.
std::vector<char> rearranged(const Tensor& tensor, const Layout& layout) {
  GOPT_CHECK(layout.is_transposed() || layout.is_channels_last(), "a weight's layout");
  const std::vector<int64_t>& dims = tensor.dims();
  const int64_t rows = layout.is_transposed() ? dims[dims.size() - 2] : dims[1],
                columns = layout.is_transposed() ? dims.back() : element_count(std::span(dims).subspan(2)),
                count = rows * columns == 0 ? 0 : tensor.count() / (rows * columns);
  const size_t size = size_bytes(tensor.type());
  std::vector<char> result(tensor.bytes().size());
  const char* from = reinterpret_cast<const char*>(tensor.bytes().data());
  constexpr int64_t kBlock = 32;  // square blocks stay in the cache
  for (int64_t matrix = 0; matrix < count; matrix++) {
    const int64_t start = matrix * rows * columns;
    for (int64_t r0 = 0; r0 < rows; r0 += kBlock)
      for (int64_t c0 = 0; c0 < columns; c0 += kBlock)
        for (int64_t c = c0; c < std::min(c0 + kBlock, columns); c++)
          for (int64_t r = r0; r < std::min(r0 + kBlock, rows); r++)
            std::memcpy(&result[static_cast<size_t>(start + c * rows + r) * size],
                        from + static_cast<size_t>(start + r * columns + c) * size, size);
  }
  return result;
}

// In blocks of channels, the last filled with zeros.
std::vector<char> in_blocks(const Tensor& tensor, int64_t lanes) {
  const std::vector<int64_t>& dims = tensor.dims();
  const int64_t channels = dims[1], blocks = (channels + lanes - 1) / lanes,
                positions = element_count(std::span(dims).subspan(2));
  const size_t size = size_bytes(tensor.type());
  std::vector<char> result(static_cast<size_t>(dims[0] * blocks * positions * lanes) * size);
  const char* from = reinterpret_cast<const char*>(tensor.bytes().data());
  for (int64_t image = 0; image < dims[0]; image++)
    for (int64_t c = 0; c < channels; c++)
      for (int64_t p = 0; p < positions; p++, from += size) {
        const int64_t block = image * blocks + c / lanes;
        std::memcpy(&result[static_cast<size_t>((block * positions + p) * lanes + c % lanes) * size], from, size);
      }
  return result;
}

// Numbers of so many bits, the lower ones of each byte, as Layout::in_chunks says. Of a chunk's words the four that a
// lane takes lie side by side, which are four apart among the numbers. Those with signs are counted from the least on.
std::vector<char> in_chunks(std::span<const char> bytes, int bits, bool is_signed) {
  constexpr size_t kWords = gopt_runtime::kWordsOfChunk, kGroups = gopt_runtime::kGroupsOfChunk;
  constexpr size_t kLanes = kWords / kGroups;
  const auto width = static_cast<size_t>(bits), of_word = static_cast<size_t>(gopt_runtime::numbers_of_word(bits));
  const bool is_by_pairs = bits < 8;  // even numbers in the lower half, odd ones in the upper
  const uint32_t sign = is_signed ? 1U << (width - 1) : 0;
  std::vector<uint32_t> words(bytes.size() / of_word);
  for (size_t i = 0; i < words.size(); i++) {
    const size_t of_chunk = i % kWords, from = i - of_chunk + of_chunk % kGroups * kLanes + of_chunk / kGroups;
    for (size_t k = 0; k < of_word; k++) {
      const uint32_t own = static_cast<unsigned char>(bytes[from * of_word + k]) ^ sign,
                     number = own & ((1U << width) - 1);
      words[i] |= number << width * (is_by_pairs ? k / 2 + k % 2 * (of_word / 2) : k);
    }
  }
  std::vector<char> result(words.size() * sizeof(uint32_t));
  std::memcpy(result.data(), words.data(), result.size());
  return result;
}

// Rounded to the nearest; what is finite stays finite.
Tensor narrowed(const Tensor& tensor, ElementType type) {
  constexpr double kLargestHalf = 65504;
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.count()) * size_bytes(type));
  constexpr int64_t kPiece = 1 << 16;  // a thread's
  const int64_t pieces = (tensor.count() + kPiece - 1) / kPiece;
  const int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  parallel_for(threads, static_cast<size_t>(pieces), [&](int, size_t piece) {
    const auto begin = static_cast<int64_t>(piece) * kPiece, end = std::min(begin + kPiece, tensor.count());
    for (int64_t i = begin; i < end; i++) {
      double value = load_double(tensor.bytes().data(), tensor.type(), i);
      if (type == ElementType::Float16 && std::isfinite(value)) value = std::clamp(value, -kLargestHalf, kLargestHalf);
      store_double(bytes.data(), type, i, value);
    }
  });
  return Tensor::from_bytes(type, tensor.dims(), std::move(bytes));
}

}  // namespace

Status with_weight(const Buffer& buffer, const std::function<void(std::span<const char>)>& use) {
  GOPT_ASSIGN_OR_RETURN(Tensor tensor,
                        evaluate_constant(buffer.value).with_context("weight `" + buffer.value.node->name + "`"));
  if (tensor.type() != buffer.element) tensor = narrowed(tensor, buffer.element);
  std::vector<char> chunks;
  const auto give = [&](std::span<const char> bytes) {
    if (const int bits = buffer.layout.chunk_bits())
      bytes = chunks = in_chunks(bytes, bits, buffer.element == ElementType::Int8);
    GOPT_CHECK(static_cast<int64_t>(bytes.size()) == buffer.size_bytes, "a weight's size is its buffer's");
    use(bytes);
  };
  if (buffer.layout.is_plain())
    give({reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size()});
  else if (buffer.layout.is_blocked())
    give(in_blocks(tensor, buffer.layout.lanes()));
  else
    give(rearranged(tensor, buffer.layout));
  return Unit{};
}

Status share_weights(SizedPlans& plans) {
  std::map<std::pair<Hash128, int64_t>, int64_t> places;  // by content
  int64_t end = 0;
  std::vector<Plan*> all;
  for (SizedPlans::Size& size : plans.sizes) all.push_back(&size.plan);
  if (plans.general) all.push_back(&*plans.general);
  for (Plan* plan : all) {
    std::map<int64_t, int64_t> moved;  // from the plan's own offset; several buffers may share one
    for (const BufferId id : weight_buffers(*plan)) {
      const Buffer& buffer = plan->buffer(id);
      Hash128 content{};
      GOPT_RETURN_IF_ERROR(with_weight(buffer, [&](std::span<const char> bytes) {
        content = hash_bytes({bytes.data(), bytes.size()});
      }));
      const auto [place, is_new] = places.try_emplace({content, buffer.size_bytes}, end);
      if (is_new) end += place_of_weight(buffer.size_bytes);
      moved[buffer.offset] = place->second;
    }
    for (Buffer& buffer : plan->buffers)
      if (buffer.place == BufferPlace::Weight && !buffer.is_view) buffer.offset = moved.at(buffer.offset);
  }
  return Unit{};
}

}  // namespace gopt::codegen
