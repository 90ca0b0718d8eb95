#include <algorithm>
#include <functional>
#include <limits>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/login_shell.hpp"
#include "base/strings.hpp"
#include "base/visible.hpp"
#include "jobs/protocol.hpp"
#include "jobs/protocol_parts.hpp"

// Reading the scripts' answers. What comes in is foreign text: every word is checked, nothing is guessed.

namespace remote::jobs {
namespace {

constexpr std::string_view mark = "@remote1 ";
// No script says more in a line; what is longer is not from one.
constexpr std::size_t longest_line = 65536;

// What is wrong with one line; parse_ functions turn it into an Error that shows the line.
struct BadLine {
  const char* why;
};

[[noreturn]] void refuse(std::string_view line, const char* why) {
  throw Error("the server's answer is not understood",
              fmt::format("{} in '{}'", why, visible_line(line, 200)),
              "is another version of remote at work there, or does a shell start file print such lines?");
}

// The words of a line, taken one after the other.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}

  bool empty() const { return rest_.empty(); }
  // Words are divided by single blanks.
  std::string_view next() {
    const std::size_t end = rest_.find(' ');
    const std::string_view word = rest_.substr(0, end);
    if (word.empty()) {
      throw BadLine{"a word is missing"};
    }
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    if (end != std::string_view::npos && rest_.empty()) {
      throw BadLine{"a blank at the end"};
    }
    return word;
  }
  std::string_view rest() {
    const std::string_view all = rest_;
    rest_ = {};
    return all;
  }
  void end() const {
    if (!rest_.empty()) {
      throw BadLine{"too many words"};
    }
  }

 private:
  std::string_view rest_;
};

template <typename Number>
Number number(std::string_view text, Number low, Number high = std::numeric_limits<Number>::max()) {
  const std::optional<Number> value = parse_number<Number>(text);
  if (!value || *value < low || *value > high) {
    throw BadLine{"a number is wrong"};
  }
  return *value;
}

// SECONDS.mmm, in milliseconds.
std::int64_t moment_word(std::string_view text) {
  constexpr std::int64_t year_10000 = 253402300800;
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos || text.size() != dot + 4 || text.find('-') != std::string_view::npos) {
    throw BadLine{"a moment is wrong"};
  }
  return number<std::int64_t>(text.substr(0, dot), 0, year_10000) * 1000 +
         number<std::int64_t>(text.substr(dot + 1), 0, 999);
}

JobId id_word(std::string_view text) {
  const auto id = JobId::parse(text);
  if (!id) {
    throw BadLine{"a job's id is wrong"};
  }
  return *id;
}

int pid_word(std::string_view text) {
  return number<int>(text, 1);
}

std::string percent_decode(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') {
      return c - '0';
    }
    if (c >= 'A' && c <= 'F') {
      return c - 'A' + 10;
    }
    throw BadLine{"a %XX is wrong"};
  };
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size()) {
      throw BadLine{"a %XX is cut"};
    }
    decoded += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
    i += 2;
  }
  return decoded;
}

// Hands every answer line to `take` (first word, the others); false from it: an unknown line. Checks the
// closing line.
void read_answer(std::string_view out, const std::function<bool(std::string_view, Words&)>& take) {
  bool ended = false;
  bool begun = false;
  while (!out.empty()) {
    const std::size_t newline = out.find('\n');
    const bool whole = newline != std::string_view::npos;
    const std::string_view line = out.substr(0, newline);
    out = whole ? out.substr(newline + 1) : std::string_view();
    if (!line.starts_with(mark)) {
      continue;
    }
    begun = true;
    try {
      if (line.size() > longest_line) {
        throw BadLine{"the line is too long"};
      }
      Words words(line.substr(mark.size()));
      const std::string_view first = words.next();
      if (!whole) {
        throw BadLine{"the line is cut"};
      }
      if (first == "error") {
        throw Error("the server refused", std::string(words.rest()));
      }
      if (ended) {
        throw BadLine{"something follows the end"};
      }
      if (first == "end") {
        words.end();
        ended = true;
      } else if (!take(first, words)) {
        throw BadLine{"an unknown word"};
      }
    } catch (const BadLine& bad) {
      refuse(line, bad.why);
    }
  }
  if (!begun) {
    throw login_shell_ended();
  }
  if (!ended) {
    throw Error("the server's answer is cut short", "its closing line is missing",
                "try again; if it stays so, look at what 'sh -s' prints on that server");
  }
}

StatusReply::Phase phase_word(std::string_view text) {
  using Phase = StatusReply::Phase;
  for (const auto& [name, phase] :
       {std::pair{"none", Phase::none}, std::pair{"starting", Phase::starting},
        std::pair{"queued", Phase::queued}, std::pair{"running", Phase::running},
        std::pair{"ended", Phase::ended}, std::pair{"gone", Phase::gone},
        std::pair{"rebooted", Phase::rebooted}, std::pair{"unknown", Phase::unknown}}) {
    if (text == name) {
      return phase;
    }
  }
  throw BadLine{"an unknown phase"};
}

ExitStatus result_word(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    throw BadLine{"a result is wrong"};
  }
  const std::string_view kind = text.substr(0, colon);
  const std::string_view value = text.substr(colon + 1);
  if (kind == "exit") {
    return ExitStatus::exited(number<int>(value, 0, 255));
  }
  if (kind == "signal") {
    return ExitStatus::signalled(number<int>(value, 1, 64));
  }
  throw BadLine{"a result is wrong"};
}

// One key=value of a job line.
void status_field(std::string_view word, StatusReply& job) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) {
    throw BadLine{"a key=value is wrong"};
  }
  const std::string_view key = word.substr(0, equals);
  const std::string_view value = word.substr(equals + 1);
  if (key == "pid") {
    job.pid = pid_word(value);
  } else if (key == "reason") {
    job.reason = std::string(value);
    std::replace(job.reason.begin(), job.reason.end(), '+', ' ');
  } else if (key == "supervised") {
    job.supervised = number<int>(value, 0, 1) == 1;
  } else if (key == "left") {
    job.left = number<int>(value, 0, 1) == 1;
  } else if (key == "result") {
    job.result = result_word(value);
  } else if (key == "started") {
    job.started_at = number<std::int64_t>(value, 0);
  } else if (key == "ended") {
    job.ended_at = number<std::int64_t>(value, 0);
  } else if (key == "wrote") {
    job.wrote_ms = moment_word(value);
  } else if (key == "done") {
    job.done_ms = moment_word(value);
  } else if (key == "stop") {
    job.stop_signal = number<int>(value, 1, 64);
  } else if (key == "by") {
    job.stop_by = value == "-" ? "" : percent_decode(value);
  } else if (key == "oom") {
    job.oom = number<int>(value, 0, 1) == 1;
  } else if (key == "lifeline") {
    job.lifeline = std::string(value);
  } else if (key == "out") {
    job.out_size = number<std::uint64_t>(value, 0);
  } else if (key == "err") {
    job.err_size = number<std::uint64_t>(value, 0);
  } else {
    throw BadLine{"an unknown key"};
  }
}

}  // namespace

void read_lines(std::string_view out, const std::function<bool(std::string_view, std::string_view)>& take) {
  read_answer(out, [&](std::string_view first, Words& words) { return take(first, words.rest()); });
}

std::vector<StartReply> parse_start(std::string_view out) {
  std::vector<StartReply> replies;
  read_answer(out, [&](std::string_view first, Words& words) {
    if (first != "start") {
      return false;
    }
    StartReply reply;
    reply.id = id_word(words.next());
    const std::string_view outcome = words.next();
    const std::string_view pid = words.next();
    if (outcome == "failed" || outcome == "queued") {
      reply.outcome = outcome == "failed" ? StartReply::Outcome::failed : StartReply::Outcome::queued;
      reply.reason = words.rest();
      if (pid != "-") {
        throw BadLine{"a pid of nothing"};
      }
    } else if (outcome == "started" || outcome == "exists") {
      reply.outcome = outcome == "started" ? StartReply::Outcome::started : StartReply::Outcome::exists;
      if (pid != "-") {
        reply.pid = pid_word(pid);
      }
    } else {
      throw BadLine{"an unknown outcome"};
    }
    words.end();
    replies.push_back(std::move(reply));
    return true;
  });
  return replies;
}

StatusAnswer parse_status(std::string_view out) {
  StatusAnswer answer;
  bool has_now = false;
  read_answer(out, [&](std::string_view first, Words& words) {
    if (first == "now") {
      const std::string_view now = words.next();
      if (now.find('.') != std::string_view::npos) {
        answer.server_now_ms = moment_word(now);
        answer.server_now = *answer.server_now_ms / 1000;
      } else {
        answer.server_now = number<std::int64_t>(now, 0);
      }
      words.end();
      has_now = true;
      return true;
    }
    if (first != "job") {
      return false;
    }
    StatusReply job;
    job.id = id_word(words.next());
    job.phase = phase_word(words.next());
    while (!words.empty()) {
      status_field(words.next(), job);
    }
    if (job.phase == StatusReply::Phase::ended && !job.result) {
      throw BadLine{"the result is missing"};
    }
    answer.jobs.push_back(std::move(job));
    return true;
  });
  if (!has_now) {
    throw Error("the server's answer is not understood", "its clock is missing");
  }
  return answer;
}

std::vector<KillReply> parse_kill(std::string_view out) {
  using Outcome = KillReply::Outcome;
  std::vector<KillReply> replies;
  read_answer(out, [&](std::string_view first, Words& words) {
    if (first == "survivor") {
      const JobId id = id_word(words.next());
      const auto reply =
          std::find_if(replies.begin(), replies.end(), [&](const KillReply& one) { return one.id == id; });
      if (reply == replies.end() || reply->outcome != Outcome::survivors) {
        throw BadLine{"a survivor of nothing"};
      }
      const std::string_view member = words.next();
      if (words.empty() && member.find(':') != std::string_view::npos) {
        reply->survivors.emplace_back(member);  // no process, but "slurm:123" or the like
        return true;
      }
      const int pid = pid_word(member);
      const std::string state(words.next());
      const std::string user(words.next());
      reply->survivors.push_back(
          fmt::format("pid {} ({}, user {}, state {})", pid, words.rest(), user, state));
      return true;
    }
    if (first != "kill") {
      return false;
    }
    KillReply reply;
    reply.id = id_word(words.next());
    const std::string_view outcome = words.next();
    if (outcome == "killed") {
      reply.outcome = Outcome::killed;
    } else if (outcome == "ended") {
      reply.outcome = Outcome::ended;
    } else if (outcome == "none") {
      reply.outcome = Outcome::none;
    } else if (outcome == "survivors") {
      reply.outcome = Outcome::survivors;
    } else if (outcome == "refused") {
      reply.outcome = Outcome::refused;
    } else {
      throw BadLine{"an unknown outcome"};
    }
    reply.signalled = number<int>(words.next(), 0);
    if (reply.outcome == Outcome::refused) {
      reply.reason = words.rest();
    }
    words.end();
    replies.push_back(std::move(reply));
    return true;
  });
  return replies;
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> parse_follow(std::string_view line) {
  if (!line.starts_with(mark)) {
    return std::nullopt;
  }
  try {
    Words words(line.substr(mark.size()));
    const std::string_view first = words.next();
    if (first == "error") {
      throw Error("cannot follow the job", std::string(words.rest()));
    }
    if (first != "follow") {
      throw BadLine{"an unknown word"};
    }
    const auto out = number<std::uint64_t>(words.next(), 0);
    const auto err = number<std::uint64_t>(words.next(), 0);
    words.end();
    return std::pair{out, err};
  } catch (const BadLine& bad) {
    refuse(line, bad.why);
  }
}

}  // namespace remote::jobs
