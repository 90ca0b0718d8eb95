#include "cli/verdict.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/clock.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "cli/common.hpp"
#include "jobs/remote_folder.hpp"
#include "jobs/verdict.hpp"
#include "ssh/connection.hpp"

namespace remote::cli {
namespace {

constexpr int last_lines = 10;
constexpr std::size_t longest_line = 500;

// The last lines of a job's stderr, without what would move the cursor; empty when there are none or the
// server does not answer: the verdict is no place to wait.
std::vector<std::string> last_stderr(Context& context, const jobs::Job& job) {
  std::vector<std::string> lines;
  try {
    const auto connection =
        context.connector().connect(jobs::server_of(context.config(), job), context.cancel,
                                    std::chrono::ceil<std::chrono::seconds>(ask_limit));
    ssh::ExecRequest request;
    request.input =
        ssh::wrap_script(fmt::format("echo; echo @remote1 stderr\ntail -c 65536 {}/job.err | tail -n {}\n",
                                     remote_path_word(jobs::job_folder_text(job)), last_lines));
    request.timeout = std::chrono::seconds(5);
    const std::string out = connection->exec(request, context.cancel).out;
    constexpr std::string_view mark = "\n@remote1 stderr\n";
    const std::size_t at = out.find(mark);
    if (at == std::string::npos) {
      return lines;
    }
    for (std::string line : split(out.substr(at + mark.size()), '\n')) {
      line.erase(std::remove_if(line.begin(), line.end(),
                                [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; }),
                 line.end());
      if (line.size() > longest_line) {
        line = line.substr(0, longest_line) + "…";
      }
      if (!trim(line).empty()) {
        lines.push_back(line);
      }
    }
  } catch (const Error&) {
    return {};
  }
  return lines;
}

std::string cause(const jobs::Job& job) {
  std::string text = job.result ? job.result->describe() : std::string(jobs::to_string(job.state));
  if (!job.reason.empty()) {
    text += ", " + job.reason;
  }
  return text;
}

// ", 0.2 s before the next"
std::string lead(const jobs::Verdict& verdict) {
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

std::string headline(const jobs::Verdict& verdict, const std::vector<jobs::Job>& jobs) {
  if (verdict.first != nullptr) {
    const jobs::Job& first = *verdict.first;
    const auto second = first.failed_ms ? std::optional(*first.failed_ms / 1000) : first.ended_at;
    const std::string when = second ? ", " + format_local_time(*second) : "";
    return fmt::format("rank {} on {} failed first ({}{}{})", first.rank.value_or(0), first.server,
                       cause(first), when, lead(verdict));
  }
  if (!verdict.lost_server.empty()) {
    return verdict.lost_server + " was lost";
  }
  return fmt::format("{} of {} ranks did not succeed",
                     jobs.size() - static_cast<std::size_t>(verdict.succeeded), jobs.size());
}

}  // namespace

bool are_one_launch(const std::vector<jobs::Job>& jobs) {
  return jobs.size() > 1 && std::ranges::all_of(jobs, [&](const jobs::Job& job) {
           return job.launch && job.launch == jobs.front().launch;
         });
}

void tell_verdict(Context& context, const std::vector<jobs::Job>& jobs) {
  ui::Terminal& terminal = context.terminal;
  const jobs::Verdict verdict = jobs::verdict_of(jobs);
  if (static_cast<std::size_t>(verdict.succeeded) == jobs.size()) {
    terminal.notice(fmt::format("all {} ranks succeeded", jobs.size()), ui::Style::green);
    return;
  }
  std::string text = headline(verdict, jobs);
  const std::vector<std::string> lines =
      verdict.first != nullptr ? last_stderr(context, *verdict.first) : std::vector<std::string>{};
  const std::string rest = jobs::aftermath(verdict);
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
  if (verdict.first != nullptr) {
    terminal.notice(fmt::format("its output: remote job-tail --job {}", verdict.first->key));
  }
}

}  // namespace remote::cli
