#include "servers/answer.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/login_shell.hpp"

namespace remote::servers {
namespace {

// More than any honest answer has: what is read from it stays in memory.
constexpr std::size_t most_lines = 1'000'000;

}  // namespace

AnswerLine::AnswerLine(std::string_view line) : line_(line), rest_(line.substr(answer_mark.size())) {
  kind_ = word();
}

void AnswerLine::refuse(const char* why) const {
  throw Error("the server's answer is not understood", fmt::format("{} in '{}'", why, line_.substr(0, 200)),
              "is another version of remote at work there, or does a shell start file print such lines?");
}

std::string_view AnswerLine::word() {
  const std::size_t end = rest_.find(' ');
  const std::string_view found = rest_.substr(0, end);
  if (found.empty()) {
    refuse("a word is missing");
  }
  rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
  if (end != std::string_view::npos && rest_.empty()) {
    refuse("a blank at the end");
  }
  return found;
}

void AnswerLine::end() const {
  if (more()) {
    refuse("too many words");
  }
}

std::string AnswerLine::name(std::string_view marks) {
  constexpr std::size_t longest = 255;
  const std::string_view found = word();
  const bool good = found.size() <= longest && std::ranges::all_of(found, [&](unsigned char c) {
                      return (c < 128 && std::isalnum(c) != 0) ||
                             marks.find(static_cast<char>(c)) != std::string_view::npos;
                    });
  if (!good) {
    refuse("a name is wrong");
  }
  return std::string(found);
}

AnswerReader::AnswerReader(Take take, Other other) : take_(std::move(take)), other_(std::move(other)) {}

void AnswerReader::add(std::string_view data) {
  lines_.add(data, [this](std::string_view line) {
    if (line.starts_with(answer_mark)) {
      take_line(line);
    } else if (other_) {
      other_(line);
    }
  });
}

void AnswerReader::take_line(std::string_view text) {
  if (failure_ || refusal_) {
    return;
  }
  try {
    AnswerLine line(text);
    if (text.size() == LineCutter::longest || ++count_ > most_lines) {
      line.refuse("too much");
    }
    if (line.kind() == "error") {
      const Refused refusal(std::string(line.rest()));
      if (count_ == 1) {
        refusal_ = refusal;
        return;
      }
      throw refusal;
    }
    if (closed_) {
      line.refuse("something follows the end");
    }
    if (line.kind() == "end") {
      line.end();
      closed_ = true;
    } else {
      take_(line);
    }
  } catch (const Error& error) {
    failure_.emplace(error);
  }
}

void AnswerReader::finish() const {
  if (refusal_) {
    throw *refusal_;
  }
  if (failure_) {
    throw *failure_;
  }
}

void AnswerReader::finish_with_closing_line(const std::string& ended) const {
  finish();
  if (lines_.rest().starts_with(answer_mark)) {
    AnswerLine(lines_.rest()).refuse("the line is cut");
  }
  if (count_ == 0) {
    throw login_shell_ended(ended);
  }
  if (!closed_) {
    throw Error("the server's answer is cut short",
                "its closing line is missing" + (ended.empty() ? "" : "; the script ended with " + ended),
                "try again; if it stays so, look at what 'sh -s' prints on that server");
  }
}

void check_refusal(std::string_view text) {
  AnswerReader reader([](AnswerLine&) {});
  reader.add(text);
  reader.add("\n");
  reader.finish();
}

}  // namespace remote::servers
