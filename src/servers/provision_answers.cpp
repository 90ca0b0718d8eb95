#include "servers/provision_answers.hpp"

#include <algorithm>

#include "base/strings.hpp"

namespace remote::servers {
namespace {

constexpr std::string_view answer_mark = "@remote1 ";
constexpr std::size_t max_line = 4096;
constexpr std::size_t max_answers = 1000;

}  // namespace

void ProvisionAnswers::add(std::string_view data) {
  for (const char c : data) {
    if (c == '\n' || c == '\r') {
      take_line();
      line_.clear();
    } else if (line_.size() < max_line) {
      line_ += c;
    }
  }
}

bool ProvisionAnswers::have(const std::string& what) const {
  return std::find(have_.begin(), have_.end(), what) != have_.end();
}

void ProvisionAnswers::take_line() {
  std::string_view text = trim(line_);
  if (!text.starts_with(answer_mark)) {
    if (!text.empty()) {
      detail_(std::string(text));
    }
    return;
  }
  text.remove_prefix(answer_mark.size());
  const std::size_t space = text.find(' ');
  const std::string_view word = text.substr(0, space);
  const std::string value(space == std::string_view::npos ? "" : text.substr(space + 1));
  if (word == "step") {
    detail_(value);
  } else if (word == "fail") {
    failure = value;
  } else if (word == "hint") {
    hint = value;
  } else if (word == "note" && notes.size() < max_answers) {
    notes.push_back(value);
  } else if (word == "have" && have_.size() < max_answers) {
    have_.push_back(value);
  }
}

}  // namespace remote::servers
