#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "wire/provision.hpp"
#include "wire/text.hpp"

namespace remote::agent {

// The largest part of a program's output in one message.
constexpr std::size_t longest_output = 65536;

// A step failed. The reason is shown to the user.
class ProvisionError : public std::runtime_error {
 public:
  explicit ProvisionError(const std::string& reason, std::string hint = {})
      : std::runtime_error(reason), hint_(std::move(hint)) {}
  static ProvisionError no_environment() {
    ProvisionError error("there is no Python environment here");
    error.lacks_environment_ = true;
    return error;
  }

  wire::ProvisionFailure describe() const {
    return {.reason = wire::to_line(what(), max_size),
            .hint = wire::to_line(hint_, max_size),
            .lacks_environment = lacks_environment_};
  }

 private:
  static constexpr std::size_t max_size = 8192;

  std::string hint_;
  bool lacks_environment_ = false;
};

}  // namespace remote::agent
