#include "inference_process.h"

#include <onnx/checker.h>
#include <onnx/shape_inference/implementation.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <unordered_map>

namespace gopt::ir {
namespace {

constexpr int kMilliseconds = 2000;                  // for one node
constexpr auto kMostLost = std::chrono::seconds(3);  // for what came to nothing
constexpr uint32_t kMostBytes = 64U << 20;           // of a message
#ifdef __SANITIZE_ADDRESS__
constexpr rlim_t kMostMemory = RLIM_INFINITY;  // of addresses: a sanitizer takes terabytes of them
#else
constexpr rlim_t kMostMemory = 8ULL << 30;  // of the process
#endif

bool send_all(int socket, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t sent = send(socket, data, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    data += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

bool send_message(int socket, const std::string& text) {
  const auto size = static_cast<uint32_t>(text.size());
  return send_all(socket, reinterpret_cast<const char*>(&size), sizeof size) &&
         send_all(socket, text.data(), text.size());
}

using Clock = std::chrono::steady_clock;

// False at the end of the other side, or at the deadline.
bool receive_all(int socket, char* data, size_t size, std::optional<Clock::time_point> deadline) {
  while (size > 0) {
    if (deadline) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*deadline - Clock::now()).count();
      pollfd waiting{socket, POLLIN, 0};
      if (left <= 0 || poll(&waiting, 1, static_cast<int>(left)) == 0) return false;
    }
    const ssize_t received = recv(socket, data, size, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    data += received;
    size -= static_cast<size_t>(received);
  }
  return true;
}

std::optional<std::string> receive_message(int socket, std::optional<Clock::time_point> deadline) {
  uint32_t size = 0;
  if (!receive_all(socket, reinterpret_cast<char*>(&size), sizeof size, deadline) || size > kMostBytes) return {};
  std::string text(size, '\0');
  if (!receive_all(socket, text.data(), size, deadline)) return {};
  return text;
}

// ---- the other process ----

// Without the kinds of the error and the operator's name, which stand before it, and what it was in.
std::string plain(std::string message) {
  constexpr std::string_view kKind = "InferenceError] ";
  if (const size_t last = message.rfind(kKind); last != std::string::npos) message.erase(0, last + kKind.size());
  message.erase(std::min(message.size(), message.find('\n')));
  return message;
}

// The model's only node checked, then its outputs' types inferred. What ONNX finds wrong with it is the graph's
// doc_string.
std::string inferred(const std::string& request) {
  onnx::ModelProto model;
  if (!model.ParseFromString(request) || model.graph().node_size() != 1) return {};
  std::unordered_map<std::string, int> opsets;
  for (const auto& set : model.opset_import()) opsets[set.domain()] = static_cast<int>(set.version());
  onnx::GraphProto graph = model.graph();
  try {
    onnx::checker::CheckerContext context;
    context.set_ir_version(8);
    context.set_opset_imports(opsets);
    onnx::checker::check_node(graph.node(0), context, onnx::checker::LexicalScopeContext());
    onnx::shape_inference::InferShapes(&graph, opsets);
    constexpr int kStrict = 1;
    onnx::shape_inference::InferShapes(model.mutable_graph(), opsets, onnx::OpSchemaRegistry::Instance(),
                                       onnx::ShapeInferenceOptions(true, kStrict));
  } catch (const std::exception& e) {
    graph.set_doc_string(plain(e.what()));
  }
  return graph.SerializeAsString();
}

[[noreturn]] void serve(int socket) {
  for (const int number : {SIGSEGV, SIGFPE, SIGABRT, SIGINT}) signal(number, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none{0, 0}, memory{kMostMemory, kMostMemory};
  setrlimit(RLIMIT_CORE, &none);
  setrlimit(RLIMIT_AS, &memory);
  while (const auto request = receive_message(socket, std::nullopt))
    if (!send_message(socket, inferred(*request))) break;
  _exit(0);
}

}  // namespace

bool InferenceProcess::start() {
  if (child_ >= 0) return true;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
  child_ = fork();
  if (child_ == 0) {
    close(ends[0]);
    serve(ends[1]);
  }
  close(ends[1]);
  socket_ = ends[0];
  if (child_ < 0) close(socket_);
  return child_ >= 0;
}

void InferenceProcess::stop() {
  if (child_ < 0) return;
  close(socket_);
  kill(child_, SIGKILL);
  while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
}

std::optional<std::string> InferenceProcess::ask(const std::string& request) {
  if (lost_ > kMostLost || !start()) return std::nullopt;
  const auto asked = Clock::now();
  std::optional<std::string> answer;
  if (send_message(socket_, request))
    answer = receive_message(socket_, Clock::now() + std::chrono::milliseconds(kMilliseconds));
  if (!answer) {  // crashed or stuck: the next node gets a new one, unless the model is made of such
    stop();
    lost_ += Clock::now() - asked;
  }
  return answer;
}

std::optional<onnx::GraphProto> InferenceProcess::infer(const onnx::GraphProto& graph,
                                                        const std::map<std::string, int64_t>& opsets) {
  onnx::ModelProto request;
  request.set_ir_version(8);
  for (const auto& [domain, version] : opsets) {
    auto& set = *request.add_opset_import();
    set.set_domain(domain);
    set.set_version(version);
  }
  *request.mutable_graph() = graph;
  const std::string text = request.SerializeAsString();
  if (text.size() > kMostBytes) return std::nullopt;
  // It ends with the thread that started it, which another model may have been read in.
  const bool was_there = child_ >= 0;
  std::optional<std::string> answer = ask(text);
  if (!answer && was_there) answer = ask(text);
  onnx::GraphProto result;
  if (!answer || answer->empty() || !result.ParseFromString(*answer)) return std::nullopt;
  return result;
}

}  // namespace gopt::ir
