#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace remote {

// What a failure means for the exit code: see "Exit codes" in docs (0 well, 1 failed, 2 usage, 130
// interrupted).
enum class ErrorKind { failure, usage, interrupted };

// An error written for a person: what failed, on which server, why, and what to try.
// Thrown below the fan-out; the front end (src/cli) prints it and picks the exit code.
class Error : public std::exception {
 public:
  // The texts may quote anything: control characters are made visible, and each is cut at 4000 bytes.
  Error(std::string_view what_failed, std::string_view reason, std::string_view hint = {},
        ErrorKind kind = ErrorKind::failure);

  // Wrong usage or configuration: exit code 2.
  static Error usage(std::string_view what_failed, std::string_view reason, std::string_view hint = {});
  // The user pressed Ctrl-C: exit code 130.
  static Error interrupted();

  // The same error, said of one server. A server that is already named stays.
  Error on(std::string server_name) const;

  const std::string& what_failed() const { return what_failed_; }
  const std::string& server() const { return server_; }
  const std::string& reason() const { return reason_; }
  const std::string& hint() const { return hint_; }
  ErrorKind kind() const { return kind_; }

  // "SERVER: WHAT: REASON" on one line, without the hint. Parts that are empty are left out.
  std::string message() const;
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string what_failed_;
  std::string server_;
  std::string reason_;
  std::string hint_;
  ErrorKind kind_;
  std::string text_;
};

}  // namespace remote
