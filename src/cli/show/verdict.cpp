#include "cli/show/verdict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/clock.hpp"
#include "base/strings.hpp"
#include "base/visible.hpp"
#include "cli/show/job_words.hpp"
#include "jobs/reason_text.hpp"

namespace remote::cli {
namespace {

constexpr std::size_t longest_line = 500;

std::string cause(const Job& job) {
  std::string text = job.result ? job.result->describe() : std::string(to_string(job.state));
  if (const std::string reason = jobs::reason_text(job.reason); !reason.empty()) {
    text += ", " + reason;
  }
  return text;
}

// ", 0.2 s before the next"
std::string lead(const Verdict& verdict) {
  constexpr std::int64_t to_tenths = 10000;
  if (!verdict.ahead_ms) {
    return "";
  }
  if (!verdict.exact && *verdict.ahead_ms == 0) {
    return ", in the same second as the next";
  }
  if (!verdict.exact || *verdict.ahead_ms >= to_tenths) {
    return fmt::format(", {} s before the next", *verdict.ahead_ms / 1000);
  }
  const std::int64_t tenths = *verdict.ahead_ms / 100;
  return tenths == 0 ? ", less than 0.1 s before the next"
                     : fmt::format(", {}.{} s before the next", tenths / 10, tenths % 10);
}

std::string headline(const Verdict& verdict) {
  if (verdict.first) {
    const Job& first = *verdict.first;
    const auto second = first.failed_ms ? std::optional(*first.failed_ms / 1000) : first.ended_at;
    const std::string when = second ? ", " + format_local_time(*second) : "";
    return fmt::format("rank {} on {} failed first ({}{}{})", first.rank.value_or(0), first.server,
                       cause(first), when, lead(verdict));
  }
  if (!verdict.lost_server.empty()) {
    return verdict.lost_server + " was lost";
  }
  return fmt::format("{} of {} ranks did not succeed", verdict.total - verdict.succeeded, verdict.total);
}

}  // namespace

std::string aftermath(const Verdict& verdict) {
  std::vector<std::string> parts;
  const auto add = [&](int count, const char* one, const char* several) {
    if (count > 0) {
      // only the first part says of whom it speaks
      const std::string who = parts.empty() ? counted(count, "other") : std::to_string(count);
      parts.push_back(fmt::format("{} {}", who, count == 1 ? one : several));
    }
  };
  const bool after = verdict.first || !verdict.lost_server.empty();
  add(verdict.ended, after ? "was ended after it" : "was ended",
      after ? "were ended after it" : "were ended");
  add(verdict.aborted, "aborted after it", "aborted after it");
  add(verdict.killed, "was killed", "were killed");
  add(verdict.succeeded, "succeeded", "succeeded");
  add(verdict.unknown, "is unknown", "are unknown");
  return fmt::format("{}", fmt::join(parts, ", "));
}

void show_verdict(Context& context, const Verdict& verdict) {
  ui::Terminal& terminal = context.terminal;
  if (verdict.succeeded == verdict.total) {
    terminal.notice(fmt::format("all {} ranks succeeded", verdict.total), ui::Style::green);
    return;
  }
  std::vector<std::string> lines;
  for (const std::string& line : verdict.last_lines) {
    if (!trim(line).empty()) {
      lines.push_back(visible_line(line, longest_line));
    }
  }
  const std::string rest = aftermath(verdict);
  std::string text = headline(verdict);
  if (!lines.empty()) {
    text += ": last lines of its stderr:";
  } else if (!rest.empty()) {
    text += ": " + rest;
  }
  terminal.notice(text, ui::Style::red);
  for (const std::string& line : lines) {
    terminal.notice("  " + line);
  }
  if (!lines.empty() && !rest.empty()) {
    terminal.notice(rest);
  }
  if (verdict.first) {
    terminal.notice(fmt::format("its output: remote job-tail --job {}", verdict.first->key));
  }
}

}  // namespace remote::cli
