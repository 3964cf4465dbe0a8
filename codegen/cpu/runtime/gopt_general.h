// Code for any size of a model's open extents, made ready for one size after another.
#pragma once

#include <numeric>

#include "gopt_arena.h"
#include "gopt_variant.h"

namespace gopt_runtime {

// What gopt_input_now and gopt_output_now say.
struct Tensors {
  std::vector<gopt_tensor_info> inputs, outputs;
  std::vector<std::vector<int64_t>> dims;  // of these
};

class AnySize {
 public:
  AnySize(const General& general, const char* weights, int threads, PackedWeights& packed, const Operators& operators)
      : general_(general), prepared_(weights, threads, std::make_shared<Block>(0), packed, operators) {
    for (const Life* life = general.lives; life->buffer >= 0; life++)
      pieces_.push_back({0, life->first, life->last, 0});
    prepared_.at.resize(static_cast<size_t>(general.buffer_count));
    // What is allocated is there from the start.
    if (has_all_maxima() && !general.why_refused(general.maxima)) set(general.maxima);
  }

  Prepared& prepared() { return prepared_; }

  // Makes the kernels for these extents, which are allowed. Where that fails, those before stay.
  void set(const int64_t* extents) {
    const std::vector<int64_t> wanted(extents, extents + description.extent_count), before = prepared_.extents;
    if (wanted == before) return;
    tensors_at(wanted);  // which have so many bytes
    try {
      make(wanted);
    } catch (...) {
      prepared_.extents.clear();
      if (!before.empty()) make(before);
      throw;
    }
  }

  // Of the extents that are set.
  Tensors tensors() const { return tensors_at(prepared_.extents); }

 private:
  Tensors tensors_at(const std::vector<int64_t>& extents) const {
    Tensors now;
    const auto rank_of_all = [](const gopt_tensor_info* infos, int count) {
      return std::accumulate(infos, infos + count, size_t{0}, [](size_t sum, const gopt_tensor_info& info) {
        return sum + static_cast<size_t>(info.rank);
      });
    };
    std::vector<int64_t> dims(rank_of_all(description.inputs, description.input_count) +
                              rank_of_all(description.outputs, description.output_count) + 1);
    general_.dims_at(extents.data(), dims.data());
    const int64_t* next = dims.data();
    const auto add = [&](const gopt_tensor_info& declared, std::vector<gopt_tensor_info>& infos) {
      now.dims.emplace_back(next, next + declared.rank);
      next += declared.rank;
      gopt_tensor_info info = declared;
      info.extents = nullptr;
      int64_t bytes = static_cast<int64_t>(element_bytes(declared.element));
      for (const int64_t extent : now.dims.back())
        if (__builtin_mul_overflow(bytes, extent, &bytes))
          throw std::runtime_error(std::string(declared.name) + " would have more bytes than there are numbers for");
      info.size_bytes = static_cast<size_t>(bytes);
      infos.push_back(info);
    };
    for (int i = 0; i < description.input_count; i++) add(description.inputs[i], now.inputs);
    for (int i = 0; i < description.output_count; i++) add(description.outputs[i], now.outputs);
    size_t number = 0;
    for (auto* infos : {&now.inputs, &now.outputs})
      for (gopt_tensor_info& info : *infos) info.dims = now.dims[number++].data();
    return now;
  }

  bool has_all_maxima() const {
    return std::all_of(general_.maxima, general_.maxima + description.extent_count, [](int64_t m) { return m > 0; });
  }

  void make(const std::vector<int64_t>& extents) {
    omp_set_num_threads(prepared_.threads);  // for which oneDNN makes its primitives
    prepared_.library.clear();
    lay_out(extents);
    prepared_.extents = extents;
    general_.code.create(prepared_);
  }

  // Pieces keep the largest size that they have had, so that sizes no larger than those before are laid out as they
  // were.
  void lay_out(const std::vector<int64_t>& extents) {
    std::vector<int64_t> bytes(pieces_.size());
    general_.bytes_at(extents.data(), bytes.data());
    std::vector<Piece> pieces = pieces_;
    bool grows = false;
    for (size_t i = 0; i < pieces.size(); i++) {
      constexpr int64_t kLine = 64, kMost = int64_t{1} << 56;
      if (bytes[i] < 0 || bytes[i] > kMost) throw std::runtime_error("out of memory");
      const int64_t size = (bytes[i] + kLine - 1) / kLine * kLine;
      grows |= size > pieces[i].size;
      pieces[i].size = std::max(pieces[i].size, size);
    }
    if (grows) {
      prepared_.arena.grow(static_cast<size_t>(place_pieces(pieces)));  // where that fails, all is as it was
      pieces_ = std::move(pieces);
      for (size_t i = 0; i < pieces_.size(); i++)
        prepared_.at[static_cast<size_t>(general_.lives[i].buffer)] = pieces_[i].offset;
    }
    // What no kernel writes is read as zero, and lies elsewhere at each size.
    for (size_t i = 0; i < pieces_.size(); i++)
      std::memset(prepared_.arena.data() + pieces_[i].offset, 0, static_cast<size_t>(bytes[i]));
  }

  // As ONNX numbers element types.
  static size_t element_bytes(int element) {
    static constexpr size_t kBytes[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 8, 16, 2};
    return kBytes[element];
  }

  const General& general_;
  Prepared prepared_;
  std::vector<Piece> pieces_;  // parallel to the lives
};

}  // namespace gopt_runtime
