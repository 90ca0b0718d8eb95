#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace remote {

// What an error means for the exit code: 1 for a failure, 2 for wrong usage or configuration.
enum class ErrorKind { failure, usage };

// An error written for a person: what failed, on which server, why, and what to try.
// The library throws it; a program prints message() and hint() and picks its exit code by kind().
class Error : public std::exception {
 public:
  // The texts may quote anything: control characters are made visible, and each is cut at 4000 characters.
  Error(std::string_view what_failed, std::string_view reason, std::string_view hint = {},
        ErrorKind kind = ErrorKind::failure);

  // Wrong usage or configuration: exit code 2.
  static Error usage(std::string_view what_failed, std::string_view reason, std::string_view hint = {});

  // A copy that names the server. A server that is already named stays.
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

// Thrown by whatever was told to stop through a Cancel token. It is no Error, so that no handler takes it for
// a failure.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

}  // namespace remote
