#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/clock.hpp"
#include "base/strings.hpp"
#include "jobs/protocol.hpp"

// Reading what the scripts answer about the state of jobs.

namespace remote::jobs {

using servers::AnswerLine;

namespace {

// SECONDS.mmm
ExactInstant moment(const AnswerLine& line, std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos || text.size() != dot + 4 || text.find('-') != std::string_view::npos) {
    line.refuse("a moment is wrong");
  }
  return line.instant_in<Instant>(text.substr(0, dot)) +
         std::chrono::milliseconds(line.number_in(text.substr(dot + 1), 0, 999));
}

// nullopt: a %XX is wrong.
std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  while (!text.empty()) {
    auto byte = static_cast<unsigned char>(text.front());
    const std::size_t length = byte == '%' ? 3 : 1;
    if (length == 3) {
      const std::string_view digits = text.substr(1, 2);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
      if (error != std::errc() || end != digits.data() + 2) {
        return std::nullopt;
      }
    }
    decoded += static_cast<char>(byte);
    text.remove_prefix(length);
  }
  return decoded;
}

// The two halves of a word that are divided by this mark.
std::pair<std::string_view, std::string_view> halves(const AnswerLine& line, std::string_view word, char mark,
                                                     const char* why) {
  const std::size_t at = word.find(mark);
  if (at == std::string_view::npos) {
    line.refuse(why);
  }
  return {word.substr(0, at), word.substr(at + 1)};
}

// KIND:CODE:MS:BY
End end_of(const AnswerLine& line, std::string_view text) {
  constexpr const char* wrong = "a record of an end is wrong";
  const auto [kind, after_kind] = halves(line, text, ':', wrong);
  const auto [code, after_code] = halves(line, after_kind, ':', wrong);
  const auto [ms, by] = halves(line, after_code, ':', wrong);
  End end;
  if (kind == "exit") {
    end.status = ExitStatus::exited(line.number_in(code, 0, 255));
  } else if (kind == "signal") {
    end.status = ExitStatus::signalled(line.number_in(code, 1, 64));
  } else {
    line.refuse(wrong);
  }
  if (!ms.empty()) {
    end.at = line.instant_in<ExactInstant>(ms);
  }
  const std::size_t at = by.find('@');
  end.by = by.substr(0, at);
  end.node = at == std::string_view::npos ? "" : by.substr(at + 1);
  return end;
}

constexpr std::size_t most_waits = 64;

// NAME RANK LINE ERROR |FILE
DebuggerWait wait_of(AnswerLine& line) {
  DebuggerWait wait;
  wait.id = line.word();
  if (wait.id.find_first_not_of("0123456789.") != std::string::npos) {
    line.refuse("a debugger's name is wrong");
  }
  if (const std::string_view rank = line.word(); rank != "-") {
    wait.rank = line.number_in(rank, 0);
  }
  wait.line = line.number(0);
  if (const std::string_view error = line.word(); error != "-") {
    wait.error = error;
  }
  const std::string_view file = line.rest();
  if (!file.starts_with('|') || file.size() > 4096) {
    line.refuse("a debugger's file is wrong");
  }
  wait.file = file.substr(1);
  return wait;
}

// AT:SECONDS:MOVED, in seconds; MOVED may be missing.
Hung hung_of(const AnswerLine& line, std::string_view text) {
  constexpr const char* wrong = "a record of standing still is wrong";
  const auto [at, after_at] = halves(line, text, ':', wrong);
  const auto [seconds, moved] = halves(line, after_at, ':', wrong);
  Hung hung{.at = line.instant_in<Instant>(at), .stood = std::chrono::seconds(line.number_in(seconds, 0))};
  if (!moved.empty()) {
    hung.moved_at = line.instant_in<Instant>(moved);
  }
  return hung;
}

constexpr std::size_t most_attempts = 1001;

// NUMBER BEGAN FAILED NEXT CAUSE CODE RANK LEFT SERVER: milliseconds; CODE and RANK may be '-'
Attempt attempt_of(AnswerLine& line) {
  const auto second = [&line] {
    return std::chrono::floor<std::chrono::seconds>(line.instant_in<ExactInstant>(line.word()));
  };
  Attempt attempt;
  attempt.number = line.number(1);
  attempt.began_at = second();
  attempt.failed_at = second();
  attempt.next_at = second();
  const std::optional<RestartCause> cause = parse_restart_cause(line.word());
  if (!cause) {
    line.refuse("the cause of a restart is wrong");
  }
  attempt.cause = *cause;
  if (const std::string_view code = line.word(); code != "-") {
    attempt.result = *cause == RestartCause::exit ? ExitStatus::exited(line.number_in(code, 0, 255))
                                                  : ExitStatus::signalled(line.number_in(code, 1, 64));
  }
  if (const std::string_view rank = line.word(); rank != "-") {
    attempt.rank = line.number_in(rank, 0);
  }
  attempt.left_out = line.number(0) != 0;
  const std::optional<std::string> server = percent_decode(line.word());
  if (!server) {
    line.refuse("the server of an attempt is wrong");
  }
  attempt.server = *server;
  line.end();
  return attempt;
}

// One key=value of a job line.
void read_field(AnswerLine& line, StatusReply& job) {
  const auto [key, value] = halves(line, line.word(), '=', "a key=value is wrong");
  if (key == "backend") {
    job.backend = value;
  } else if (key == "reason") {
    job.reason = with_blanks(value);
  } else if (key == "pid") {
    job.pid = line.number_in(value, 1);
  } else if (key == "supervised") {
    job.supervised = line.number_in(value, 0, 1) == 1;
  } else if (key == "left") {
    job.left = line.number_in(value, 0, 1) == 1;
  } else if (key == "leftovers") {
    job.leftovers = line.number_in(value, 1);
  } else if (key == "unseen") {
    job.unseen = line.number_in(value, 0, 1) == 1;
  } else if (key == "end") {
    job.end = end_of(line, value);
  } else if (key == "started") {
    job.started_at = line.instant_in<Instant>(value);
  } else if (key == "wrote") {
    job.wrote_at = moment(line, value);
  } else if (key == "raised") {
    job.raised_at = line.instant_in<ExactInstant>(value);
  } else if (key == "peer") {
    job.after_peer = line.number_in(value, 0, 1) == 1;
  } else if (key == "stop") {
    job.stop_signal = line.number_in(value, 1, 64);
  } else if (key == "by") {
    const auto by = parse_by(value);
    if (!by) {
      line.refuse("a %XX is wrong");
    }
    job.stop_by = *by;
  } else if (key == "at") {
    job.stopped_at = line.instant_in<ExactInstant>(value);
  } else if (key == "oom") {
    job.oom = line.number_in(value, 0, 1) == 1;
  } else if (key == "hung") {
    job.hung = hung_of(line, value);
  } else if (key == "lifeline") {
    job.lifeline = {.kind = JobReason::Kind::no_lifeline, .text = with_blanks(value)};
  } else if (key == "dead") {
    job.lifeline = {.kind = JobReason::Kind::lifeline_dead, .text = with_blanks(value)};
  } else if (key == "restarted") {
    job.lifeline = {.kind = JobReason::Kind::lifeline_restarted};
  } else if (key == "out") {
    job.out_size = line.number_in<std::uint64_t>(value, 0);
  } else if (key == "err") {
    job.err_size = line.number_in<std::uint64_t>(value, 0);
  } else {
    line.refuse("an unknown key");
  }
}

StatusReply reply_of(AnswerLine& line) {
  using enum StatusReply::Phase;
  if (line.kind() != "job") {
    line.refuse_kind();
  }
  StatusReply job;
  job.id = id_word(line);
  job.phase = line.choice<StatusReply::Phase>(line.word(),
                                              {{"none", none},
                                               {"starting", starting},
                                               {"queued", queued},
                                               {"running", running},
                                               {"ended", ended},
                                               {"gone", gone},
                                               {"rebooted", rebooted},
                                               {"unknown", unknown}},
                                              "an unknown phase");
  while (line.more()) {
    read_field(line, job);
  }
  if (job.phase == ended && !job.end) {
    line.refuse("its end is missing");
  }
  return job;
}

}  // namespace

std::optional<JobReason> parse_by(std::string_view word) {
  using Kind = JobReason::Kind;
  const std::optional<std::string> text = percent_decode(word == "-" ? "" : word);
  if (!text) {
    return std::nullopt;
  }
  const auto behind = [&](std::string_view mark, std::string_view old_mark) -> std::optional<std::string> {
    const std::string_view found = word.starts_with(mark) ? mark : old_mark;
    return text->starts_with(found) ? std::optional(text->substr(found.size())) : std::nullopt;
  };
  if (word == "launch") {
    return JobReason{.kind = Kind::by_launch};
  }
  if (const auto rank = parse_number<int>(behind("rank:", "rank ").value_or(""))) {
    return JobReason{.kind = Kind::after_rank, .number = *rank};
  }
  if (auto server = behind("lost:", "loss of ")) {
    return JobReason{.kind = Kind::after_loss, .text = *std::move(server)};
  }
  if (const auto seconds = parse_number<int>(behind("hang:", "hang:").value_or(""))) {
    return JobReason{.kind = Kind::after_hang, .number = *seconds};
  }
  auto user = behind("user:", "");
  return JobReason{.kind = Kind::by_user, .text = user == "-" ? "" : *std::move(user)};
}

std::string with_blanks(std::string_view text) {
  std::string plain(text);
  std::ranges::replace(plain, '+', ' ');
  return plain;
}

JobId id_word(AnswerLine& line) {
  const auto id = JobId::parse(line.word());
  if (!id) {
    line.refuse("a job's id is wrong");
  }
  return *id;
}

void StatusAnswer::take(AnswerLine& line) {
  using enum StatusReply::Phase;
  const auto job_of_line = [&] { return std::ranges::find(jobs, id_word(line), &StatusReply::id); };
  if (line.kind() == "now") {
    const std::string_view now = line.word();
    exact = now.find('.') != std::string_view::npos;
    server_now = exact ? moment(line, now) : line.instant_in<Instant>(now);
    line.end();
    told_at = now_milliseconds();
    has_now_ = true;
  } else if (line.kind() == "used") {
    const auto job = job_of_line();
    if (job == jobs.end() || job->phase != ended) {
      line.refuse("a use of nothing");
    }
    job->usage.emplace();
    if (line.more()) {
      job->usage = JobUsage{line.number(1), line.number(0), line.number(0), line.number(0)};
    }
    line.end();
  } else if (line.kind() == "waits") {
    const auto job = job_of_line();
    if (job == jobs.end() || job->phase != running || job->waits.size() == most_waits) {
      line.refuse("a debugger of nothing");
    }
    job->waits.push_back(wait_of(line));
  } else if (line.kind() == "attempt") {
    const auto job = job_of_line();
    if (job == jobs.end() || job->attempts.size() == most_attempts) {
      line.refuse("an attempt of nothing");
    }
    job->attempts.push_back(attempt_of(line));
  } else {
    jobs.push_back(reply_of(line));
  }
}

void StatusAnswer::check() const {
  if (!has_now_) {
    throw Error("the server's answer is not understood", "its clock is missing").mended_by(Remedy::tell_more);
  }
}

void WorkersAnswer::take(AnswerLine& line) {
  if (line.kind() == "now") {
    clock.take(line);
    return;
  }
  const std::string kind(line.kind());
  WorkerReply& worker = workers[line.number(0)];
  if (kind == "raised") {
    worker.raised_at = line.instant_in<ExactInstant>(line.word());
    worker.after_peer = line.number_in(line.word(), 0, 1) == 1;
    line.end();
  } else if (kind == "text") {
    const std::string_view text = line.rest();
    if (!text.starts_with('|')) {
      line.refuse("a line is wrong");
    }
    worker.last_lines.emplace_back(text.substr(1));
  } else if (kind == "exited") {
    worker.end = end_of(line, line.word());
    worker.after_peer = line.number_in(line.word(), 0, 1) == 1;
    line.end();
  } else {
    line.refuse_kind();
  }
}

}  // namespace remote::jobs
