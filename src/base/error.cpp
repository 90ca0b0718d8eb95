#include "base/error.hpp"

#include <utility>

namespace remote {

Error::Error(std::string what_failed, std::string reason, std::string hint, ErrorKind kind)
    : what_failed_(std::move(what_failed)), reason_(std::move(reason)), hint_(std::move(hint)), kind_(kind) {
  text_ = message();
}

Error Error::usage(std::string what_failed, std::string reason, std::string hint) {
  return {std::move(what_failed), std::move(reason), std::move(hint), ErrorKind::usage};
}

Error Error::interrupted() {
  return {"interrupted", "", "", ErrorKind::interrupted};
}

Error Error::on(std::string server_name) const {
  Error copy = *this;
  if (copy.server_.empty()) {
    copy.server_ = std::move(server_name);
    copy.text_ = copy.message();
  }
  return copy;
}

std::string Error::message() const {
  std::string text;
  for (const std::string* part : {&server_, &what_failed_, &reason_}) {
    if (part->empty()) {
      continue;
    }
    if (!text.empty()) {
      text += ": ";
    }
    text += *part;
  }
  return text;
}

}  // namespace remote
