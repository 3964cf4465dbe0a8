// What the planner knows of depthwise convolutions by rectangles (gopt_channel_tiles.cuh), and, as this file goes out
// with the model, these.
#pragma once

namespace gopt_runtime {

// What a block makes: a rectangle of the result, so many bytes of channels at each of its positions, of which a thread
// makes two channels at some neighbouring positions of a line.
struct ChannelRectangle {
  int lines, columns, along, bytes;
};

// Bytes of shared memory for what the rectangle's windows see of one plane and for all weights: windows of `planes` by
// `height` by `width` in steps of `step` both ways. Neighbouring lines of the result begin in different banks. Of
// several planes the next one comes while one is used.
struct ChannelTileMemory {
  int line, seen, weights, all;
};
constexpr ChannelTileMemory memory_of(const ChannelRectangle& r, int planes, int height, int width, int step) {
  constexpr int kOfBanks = 128;
  const int lines = (r.lines - 1) * step + height, line = ((r.columns - 1) * step + width) * r.bytes,
            apart = r.bytes % kOfBanks / step, padded = line + (kOfBanks + apart - line % kOfBanks) % kOfBanks;
  const int seen = lines * padded, weights = r.bytes * planes * height * width;
  return {padded, seen, weights, (planes > 1 ? 2 : 1) * seen + weights};
}

}  // namespace gopt_runtime
