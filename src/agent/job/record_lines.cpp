#include <algorithm>
#include <array>

#include "agent/job/record.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

// Parses and formats the ends of ranks, and stop words.

namespace remote::agent {
namespace {

constexpr std::size_t longest_second_digits = 11;
constexpr std::size_t longest_ms_digits = 13;

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Parses a time in milliseconds. Older builds wrote seconds, optionally with three decimal places.
std::optional<wire::Moment> parse_moment(std::string_view text) {
  std::string digits(text);
  const std::size_t dot = text.size() > 4 ? text.size() - 4 : std::string_view::npos;
  if (dot != std::string_view::npos && text[dot] == '.') {
    digits.erase(dot, 1);
  } else if (digits.size() <= longest_second_digits) {
    digits += "000";
  }
  if (!is_digits(digits) || digits.size() > longest_ms_digits || text.empty()) {
    return std::nullopt;
  }
  return wire::Moment(parse_number<long long>(digits).value_or(0));
}

std::optional<int> parse_stop_number(std::string_view text) {
  const auto number = is_digits(text) ? parse_number<int>(text) : std::nullopt;
  return number && *number <= 1 << 30 ? number : std::nullopt;
}

}  // namespace

std::optional<EndLine> parse_end(std::string_view line) {
  const std::vector<std::string> words = split_words(line);
  if (words.size() < 2 || words[1].size() > 3 || !is_digits(words[1])) {
    return std::nullopt;
  }
  EndLine end;
  const int code = parse_number<int>(words[1]).value_or(0);
  if (words[0] == "exit" && code <= 255) {
    end.end.how = wire::ProcessEnd::exited(code);
  } else if (words[0] == "signal" && code >= 1 && code <= 64) {
    end.end.how = wire::ProcessEnd::signalled(code);
  } else if (words[0] == "never") {
    end.never_started = true;
  } else {
    return std::nullopt;
  }
  end.end.at = parse_moment(words.size() > 2 ? words[2] : "");
  constexpr std::array<std::string_view, 6> known{"supervisor", "kill",   "claim",
                                                  "slurm",      "mpirun", "torchrun"};
  const std::string by = words.size() > 3 ? words[3] : "-";
  const std::size_t at = by.find('@');
  end.end.by = "-";
  if (!wire::is_word(by, "._@-")) {
    return end;
  }
  std::string node;
  if (at != std::string::npos) {
    node = by.substr(at + 1);
    end.end.by = at > 0 && at <= 64 ? by.substr(0, at) : "-";
  } else if (std::ranges::find(known, by) != known.end()) {
    end.end.by = by;
  } else if (by != "-") {
    node = by;  // older builds wrote only the node
  }
  end.end.node = node.size() <= 200 && wire::is_word(node, "._-") ? node : "";
  return end;
}

std::string to_end_line(const wire::JobEnd& end) {
  const std::string by = (end.by.empty() ? "-" : end.by) + (end.node.empty() ? "" : "@" + end.node);
  return text::format("{} {} {} {}", end.how.signal != 0 ? "signal" : "exit",
                      end.how.signal != 0 ? end.how.signal : end.how.code,
                      end.at ? std::to_string(end.at->count()) : "-", by);
}

std::string to_stop_word(const wire::StoppedBy& by) {
  switch (by.cause) {
    case wire::StopCause::rank:
      return text::format("rank:{}", by.number);
    case wire::StopCause::lost:
      return "lost:" + wire::percent_encode(by.text);
    case wire::StopCause::hang:
      return text::format("hang:{}", by.number);
    case wire::StopCause::launch:
      return "launch";
    case wire::StopCause::user:
      break;
  }
  return "user:" + wire::percent_encode(by.text);
}

std::optional<wire::StoppedBy> parse_stop_word(std::string_view word) {
  using enum wire::StopCause;
  const std::optional<std::string> text = wire::percent_decode(word == "-" ? "" : word);
  if (!text) {
    return std::nullopt;
  }
  if (word == "launch") {
    return wire::StoppedBy{.cause = launch};
  }
  // Returns the text after the mark. Older builds used `old_mark`, and encoded the whole word.
  const auto after = [&](std::string_view mark, std::string_view old_mark) -> std::optional<std::string> {
    const std::string_view found = word.starts_with(mark) ? mark : old_mark;
    return text->starts_with(found) ? std::optional(text->substr(found.size())) : std::nullopt;
  };
  const auto number_after = [&](std::string_view mark, std::string_view old_mark) {
    return parse_stop_number(after(mark, old_mark).value_or(""));
  };
  if (const auto number = number_after("rank:", "rank ")) {
    return wire::StoppedBy{.cause = rank, .number = *number};
  }
  if (const auto server = after("lost:", "loss of ")) {
    return wire::StoppedBy{.cause = lost, .text = *server == "-" ? "" : wire::to_line(*server, 1000)};
  }
  if (const auto seconds = number_after("hang:", "hang:")) {
    return wire::StoppedBy{.cause = hang, .number = *seconds};
  }
  const std::string name = after("user:", "").value_or("");
  return wire::StoppedBy{.cause = user, .text = name == "-" ? "" : wire::to_line(name, 1000)};
}

}  // namespace remote::agent
