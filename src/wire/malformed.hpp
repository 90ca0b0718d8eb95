#pragma once

#include <exception>
#include <string>

namespace remote::wire {

// Thrown for bytes that the protocol does not allow. what() names the place and the reason, but not the
// value, because another machine sent it.
class Malformed : public std::exception {
 public:
  Malformed(const std::string& place, const std::string& reason)
      : text_(place.empty() ? "the message " + reason : "'" + place + "' " + reason) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

}  // namespace remote::wire
