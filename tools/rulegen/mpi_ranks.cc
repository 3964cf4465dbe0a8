#include "mpi_ranks.h"

#include <fmt/core.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "gopt/parallel.h"

namespace gopt::cli {
namespace {

constexpr int kResult = 1, kItem = 2;  // tags
constexpr uint64_t kNone = ~uint64_t{0};
constexpr size_t kMaxMessage = size_t{1} << 30;  // bytes: MPI counts in int

void pause() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

// Until all ranks are there. MPI's own waiting would take a core.
void meet() {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int is_done = 0; !is_done;) {
    MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
    if (!is_done) pause();
  }
}

std::string packed(const std::vector<std::string>& parts) {
  std::string bytes;
  for (const std::string& part : parts) {
    const uint64_t size = part.size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes += part;
  }
  return bytes;
}

std::vector<std::string> unpacked(const std::string& bytes) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t size = 0;
    std::memcpy(&size, bytes.data() + at, sizeof size);
    parts.push_back(bytes.substr(at + sizeof size, size));
    at += sizeof size + size;
  }
  return parts;
}

// A message that has come, if one has.
struct Message {
  int from;
  std::string bytes;
};
std::optional<Message> received(int from, int tag) {
  int is_there = 0;
  MPI_Status status;
  MPI_Iprobe(from, tag, MPI_COMM_WORLD, &is_there, &status);
  if (!is_there) return std::nullopt;
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  Message message{status.MPI_SOURCE, std::string(static_cast<size_t>(size), '\0')};
  MPI_Recv(message.bytes.data(), size, MPI_BYTE, status.MPI_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return message;
}
void send(int to, int tag, const std::string& bytes) {
  MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, tag, MPI_COMM_WORLD);
}

std::string bytes_of(uint64_t number) { return {reinterpret_cast<const char*>(&number), sizeof number}; }
uint64_t number_in(const std::string& bytes) {
  uint64_t number = kNone;
  if (bytes.size() >= sizeof number) std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

}  // namespace

MpiRanks::MpiRanks() {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &count_);
}

void MpiRanks::broadcast(std::string& bytes, int from) const {
  for (size_t at = 0; at < bytes.size(); at += kMaxMessage)
    MPI_Bcast(bytes.data() + at, static_cast<int>(std::min(kMaxMessage, bytes.size() - at)), MPI_BYTE, from,
              MPI_COMM_WORLD);
}

std::vector<std::string> MpiRanks::gather(std::string own) {
  meet();
  std::vector<uint64_t> sizes(static_cast<size_t>(count_));
  const uint64_t size = own.size();
  MPI_Allgather(&size, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, MPI_COMM_WORLD);
  std::vector<std::string> parts(sizes.size());
  parts[static_cast<size_t>(rank_)] = std::move(own);
  for (int from = 0; from < count_; from++) {
    std::string& part = parts[static_cast<size_t>(from)];
    part.resize(sizes[static_cast<size_t>(from)]);
    broadcast(part, from);
  }
  return parts;
}

std::vector<std::string> MpiRanks::share(size_t count, int threads, const std::function<std::string(size_t)>& work,
                                         const std::function<void(size_t, const std::string&)>& arrived) {
  if (count == 0) return {};
  std::string all;
  if (rank_ == 0)
    all = packed(hand_out(count, threads, work, arrived));
  else
    take_items(threads, work);
  return unpacked(gather(std::move(all)).front());
}

// Rank 0: items go to its own threads and to other ranks' as they ask. Asking is answering the item before.
std::vector<std::string> MpiRanks::hand_out(size_t count, int threads, const std::function<std::string(size_t)>& work,
                                            const std::function<void(size_t, const std::string&)>& arrived) const {
  std::vector<std::string> results(count);
  std::mutex mutex;
  size_t next = 0;
  const auto take = [&]() -> std::optional<size_t> {
    const std::lock_guard lock(mutex);
    return next < count ? std::optional(next++) : std::nullopt;
  };
  const auto keep = [&](size_t item, std::string result) {
    const std::lock_guard lock(mutex);
    results[item] = std::move(result);
    arrived(item, results[item]);
  };
  BackgroundTasks own(threads);
  for (int thread = 0; thread < threads; thread++)
    own.run([&] {
      while (const auto item = take()) keep(*item, work(*item));
    });
  for (int open = (count_ - 1) * threads; open > 0 && !own.has_failed();) {
    const auto message = received(MPI_ANY_SOURCE, kResult);
    if (!message) {
      pause();
      continue;
    }
    if (const uint64_t item = number_in(message->bytes); item != kNone) keep(item, message->bytes.substr(sizeof item));
    const auto item = take();
    if (!item) open--;
    send(message->from, kItem, bytes_of(item.value_or(kNone)));
  }
  if (own.has_failed()) {
    const std::lock_guard lock(mutex);
    next = count;
  }
  own.wait();
  return results;
}

// Other ranks: this thread asks for as many items as are worked on at a time, and passes results on.
void MpiRanks::take_items(int threads, const std::function<std::string(size_t)>& work) const {
  std::mutex mutex;
  std::deque<std::string> results(static_cast<size_t>(threads), bytes_of(kNone));
  BackgroundTasks tasks(threads);
  for (int open = threads; open > 0 && !tasks.has_failed();) {
    std::deque<std::string> finished;
    {
      const std::lock_guard lock(mutex);
      finished.swap(results);
    }
    for (const std::string& result : finished) send(0, kResult, result);
    const auto message = received(0, kItem);
    if (message) {
      const uint64_t item = number_in(message->bytes);
      if (item == kNone) {
        open--;
        continue;
      }
      tasks.run([&, item] {
        std::string result = bytes_of(item) + work(item);
        const std::lock_guard lock(mutex);
        results.push_back(std::move(result));
      });
    } else if (finished.empty()) {
      pause();
    }
  }
  tasks.wait();
}

void MpiRanks::fail(const std::string& message) {
  fmt::print(stderr, "rulegen: rank {}: {}\n", rank_, message);
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

}  // namespace gopt::cli
