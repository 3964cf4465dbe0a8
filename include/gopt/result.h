// Errors as values. A stage returns Result<T> for everything that its input can cause: what is wrong, where, and what
// would mend it. GOPT_CHECK is for our own bugs only; it throws InternalError, which a main turns into exit status 2.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace gopt {

struct Error {
  std::string message;
};

// A broken invariant of ours, never the user's fault.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  // Precondition of both: ok().
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  const T* operator->() const { return &value(); }
  const Error& error() const { return std::get<1>(state_); }

  // The same error with "context: " before its message.
  Result with_context(const std::string& context) && {
    if (ok()) return std::move(*this);
    return Error{context + ": " + error().message};
  }

 private:
  std::variant<T, Error> state_;
};

struct Unit {};
using Status = Result<Unit>;

#define GOPT_CONCAT_(a, b) a##b
#define GOPT_CONCAT(a, b) GOPT_CONCAT_(a, b)
// Binds `decl` to the value of `expr`, or returns its error from the enclosing function.
#define GOPT_ASSIGN_OR_RETURN(decl, expr) GOPT_ASSIGN_OR_RETURN_(GOPT_CONCAT(result_, __LINE__), decl, expr)
#define GOPT_ASSIGN_OR_RETURN_(temp, decl, expr) \
  auto temp = (expr);                            \
  if (!temp.ok()) return temp.error();           \
  decl = *std::move(temp)
#define GOPT_RETURN_IF_ERROR(expr)                                    \
  do {                                                                \
    if (auto status_ = (expr); !status_.ok()) return status_.error(); \
  } while (false)

#define GOPT_CHECK(condition, message)                                                                      \
  do {                                                                                                      \
    if (!(condition))                                                                                       \
      throw ::gopt::InternalError(std::string(__FILE__ ":") + std::to_string(__LINE__) + ": " + (message)); \
  } while (false)

}  // namespace gopt
