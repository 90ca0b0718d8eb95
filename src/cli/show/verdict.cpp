#include "cli/show/verdict.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/clock.hpp"
#include "base/command.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "cli/failure_hints.hpp"
#include "cli/markdown.hpp"
#include "cli/script_launcher.hpp"
#include "cli/show/jobs.hpp"
#include "jobs/job_json.hpp"
#include "project/excluded.hpp"
#include "project/submodules.hpp"

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
  constexpr std::chrono::seconds to_tenths{10};
  if (!verdict.ahead) {
    return "";
  }
  if (!verdict.exact && verdict.ahead->count() == 0) {
    return ", in the same second as the next";
  }
  if (!verdict.exact || *verdict.ahead >= to_tenths) {
    return fmt::format(", {} s before the next", verdict.ahead->count() / 1000);
  }
  const std::int64_t tenths = verdict.ahead->count() / 100;
  return tenths == 0 ? ", less than 0.1 s before the next"
                     : fmt::format(", {}.{} s before the next", tenths / 10, tenths % 10);
}

// The last line of the first failure's output; "" if none. Only the last line counts, because libraries print
// warnings about modules that are optional.
std::string last_word(const Verdict& verdict) {
  const auto last = std::ranges::find_if(verdict.last_lines.rbegin(), verdict.last_lines.rend(),
                                         [](const std::string& line) { return !trim(line).empty(); });
  return verdict.first && last != verdict.last_lines.rend() ? *last : "";
}

std::string missing_module(const std::string& last) {
  constexpr std::string_view missing = "No module named ";
  const std::size_t at = last.find(missing);
  if (at == std::string::npos || !(last.starts_with("ModuleNotFoundError: ") || last.find("python") < at)) {
    return "";
  }
  std::string name = last.substr(at + missing.size());
  name = name.substr(name.starts_with('\'') ? 1 : 0);
  return name.substr(
      0, name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"));
}

// Possible names in the project for the file or module that was not found there, most likely first.
std::vector<std::string> missing_names(const Verdict& verdict) {
  const std::string last = last_word(verdict);
  if (const std::string name = missing_module(last); !name.empty()) {
    return {name, name + ".py"};
  }
  const std::size_t end = last.rfind('\'');
  const std::size_t begin = end == std::string::npos || end == 0 ? end : last.rfind('\'', end - 1);
  if (begin == std::string::npos || last.find("No such file or directory") == std::string::npos) {
    return {};
  }
  // The path may be absolute on the server: also try all of its suffixes.
  std::vector<std::string> names = {last.substr(begin + 1, end - begin - 1)};
  while (names.back().find('/') != std::string::npos) {
    names.push_back(names.back().substr(names.back().find('/') + 1));
  }
  return names;
}

constexpr const char* no_such_file = ": No such file or directory";

// The Python script that a shell, or a program such as env, could not run by name; "" for other lines.
std::string find_refused_script(std::string_view line) {
  for (const std::string_view end :
       {": command not found", ": not found", ": Permission denied", no_such_file}) {
    if (!line.ends_with(end)) {
      continue;
    }
    std::string name(line.substr(0, line.size() - end.size()));
    for (const std::string_view quote : {"'", "\u2019"}) {
      name.erase(name.ends_with(quote) ? name.size() - quote.size() : name.size());
    }
    for (const std::string_view before : {" ", "'", "\u2018"}) {
      const std::size_t at = name.rfind(before);
      name.erase(0, at == std::string::npos ? 0 : at + before.size());
    }
    if (name.ends_with(".py")) {
      return name;
    }
  }
  return "";
}

// The file of the project that a shell did not find by its name alone; "" if none.
std::string find_bare_file(const Verdict& verdict, const std::filesystem::path& folder) {
  for (const std::string_view line : verdict.last_lines) {
    for (const std::string_view end : {": command not found", ": not found"}) {
      if (!line.ends_with(end)) {
        continue;
      }
      const std::string_view before = line.substr(0, line.size() - end.size());
      const std::string name(before.substr(before.rfind(' ') + 1));  // npos + 1 is 0
      std::error_code failed;
      if (!name.empty() && name.find('/') == std::string::npos &&
          std::filesystem::is_regular_file(folder / name, failed)) {
        return name;
      }
    }
  }
  return "";
}

// What starts this file of the project. `command`: the line that did not find it.
std::string hint_for_bare_file(const std::string& name, const std::string& command,
                               const std::filesystem::path& folder) {
  using std::filesystem::perms;
  const bool is_first = command == name || command.starts_with(name + " ");
  const std::string right = is_first ? "--cmd " + visible_line(quote_for_typing("./" + command), 200)
                                     : visible_line("./" + name, 100);
  std::error_code failed;
  const perms mode = std::filesystem::status(folder / name, failed).permissions();
  return "a file of the project is started with its path: " + right +
         (failed || (mode & perms::owner_exec) != perms::none
              ? ""
              : fmt::format("; and `chmod +x {}` here, then `remote rsync`",
                            visible_line(shell_quote(name), 100)));
}

}  // namespace

std::string attempt_text(const Attempt& attempt) {
  const std::string server = visible_line(attempt.server);
  const std::string took = format_duration(attempt.failed_at - attempt.began_at);
  std::string text = fmt::format("attempt {}: ", attempt.number);
  if (attempt.cause == RestartCause::hang) {
    text += "all ranks stopped writing and computing";
  } else if (attempt.cause == RestartCause::lifeline) {
    text += fmt::format("the lifeline on {} died", server);
  } else if (!attempt.rank) {
    text += fmt::format("server {} was lost", server);
  } else if (attempt.cause == RestartCause::oom) {
    text += fmt::format("rank {} on {} ran out of memory", *attempt.rank, server);
  } else {
    text += fmt::format("rank {} on {} failed{}", *attempt.rank, server,
                        attempt.result ? fmt::format(" ({})", attempt.result->describe()) : "");
  }
  return text + " after " + took + (attempt.left_out ? ", and the server was excluded as sick" : "");
}

std::string no_restart_text(const Verdict& verdict) {
  if (!verdict.no_restart) {
    return "";
  }
  const std::string rank = verdict.first ? rank_text(*verdict.first) : "a rank";
  switch (*verdict.no_restart) {
    case NoRestart::cause:
      return "--restart-on does not name this failure";
    case NoRestart::exit_code:
      return "--no-restart-exit names this exit code";
    case NoRestart::repeated:
      return rank + " failed twice in a row with the same last line, without a newer checkpoint in between";
    case NoRestart::stopped:
      return verdict.first ? "a job was stopped, or its supervisor is gone" : "";
    case NoRestart::too_few_servers:
      return "fewer servers are left than --min-servers asks for";
    case NoRestart::unreached:
      return "a server never reached the first one, so its ranks may still run";
    case NoRestart::unfinished:
      return "on a server, the attempt could not be ended or the next one could not start";
    case NoRestart::coordinator_lost:
      return "the first server, which decides about restarts, was lost";
    case NoRestart::hang:
      return "--on-hang is not 'restart'";
  }
  return "";
}

std::string verdict_headline(const Verdict& verdict) {
  if (verdict.first) {
    const Job& first = *verdict.first;
    const auto second =
        first.failed_at ? std::chrono::floor<std::chrono::seconds>(*first.failed_at) : first.ended_at;
    const std::string when = second ? ", " + format_local_time(*second) : "";
    const std::string node = failed_node(first);
    return fmt::format("{} on {} failed{} ({}{}{})", rank_text(first), node.empty() ? first.server : node,
                       verdict.total > 1 ? " first" : "", cause(first), when, lead(verdict));
  }
  if (verdict.killed_first) {
    Job killed = *verdict.killed_first;
    killed.reason.result.reset();
    return verdict.killed > 0
               ? state_text(killed)
               : fmt::format("{} on {}: {}", rank_text(killed), killed.server, state_text(killed));
  }
  if (verdict.hung) {
    return jobs::reason_text(verdict.hung->reason);
  }
  if (!verdict.lost_server.empty()) {
    return verdict.lost_server + " was lost" +
           (verdict.reported_at
                ? fmt::format(" (no report since {})", format_local_time(*verdict.reported_at))
                : "");
  }
  return fmt::format("{} of {} did not succeed", verdict.total - verdict.succeeded,
                     counted(static_cast<std::size_t>(verdict.total), "rank"));
}

std::string verdict_hint(const Verdict& verdict, bool has_one_rank_each) {
  if (verdict.hung) {
    return fmt::format("state of its ranks at that time: remote job-why --launch {}", verdict.hung->key);
  }
  if (verdict.gone && verdict.first) {
    return fmt::format("{}{} no longer answers: {}", verdict.first->server,
                       verdict.reported_at ? fmt::format(" has not reported since {} and",
                                                         format_local_time(*verdict.reported_at))
                                           : "",
                       why_silent);
  }
  if (const std::string name = missing_module(last_word(verdict)); !name.empty()) {
    return fmt::format(
        "Python there has no module {}: add its package to requirements.txt if it is missing there, and run "
        "`remote prepare`{}",
        name, name == "torch" ? "; Debian has it as python3-torch" : "");
  }
  if (trim(last_word(verdict)) == "bdb.BdbQuit") {
    return "breakpoint() waits for `remote attach` if the launch has --enable-stacks, the default of "
           "torch-launch; --env PYTHONBREAKPOINT=0 skips it";
  }
  const std::string command = verdict.first ? verdict.first->command : "";
  for (const std::string& line : verdict.last_lines) {
    if (line.ends_with("not found") && command.starts_with('\'')) {
      return fmt::format("a line for the shell goes to --cmd: --cmd {}",
                         visible_line(shell_quote(shell_words(command).front()), 200));
    }
    const std::string script = find_refused_script(line);
    if (!script.empty() && (insert_python(command) != command || !line.ends_with(no_such_file))) {
      const std::string right = insert_python(command, true);
      return "a Python script is started by Python: " +
             (right == command ? "python " + visible_line(script, 100)
                               : "--cmd " + visible_line(quote_for_typing(right), 200));
    }
  }
  std::vector<std::string> lines = verdict.last_lines;
  if (verdict.first) {
    lines.insert(lines.begin(), cause(*verdict.first));  // takes precedence over its last lines
  }
  return hint_for_failure(lines, {.has_one_rank_each = has_one_rank_each,
                                  .server = verdict.first ? verdict.first->server : "",
                                  .shm = verdict.shm});
}

std::string processes_left_note(const std::vector<Job>& jobs) {
  int left = 0;
  const Job* with_left = nullptr;
  for (const Job& job : jobs) {
    left += job.leftovers.value_or(0);
    with_left = with_left == nullptr && job.leftovers.value_or(0) > 0 ? &job : with_left;
  }
  if (with_left == nullptr) {
    return "";
  }
  const std::string key =
      with_left->launch ? fmt::format("--launch {}", with_left->key) : fmt::format("{}", with_left->key);
  return fmt::format(
      "{} still {} behind the command, by `&`, nohup or tmux, which a job does not need: `remote "
      "job-kill {}` ends {}",
      counted(static_cast<std::size_t>(left), "process"), left == 1 ? "runs" : "run", key,
      left == 1 ? "it" : "them");
}

std::vector<std::string> success_notes(const std::vector<Job>& jobs, const std::string& launcher) {
  std::vector<std::string> notes;
  if (const auto ranks = std::ranges::count_if(jobs, std::not_fn(is_idle)); !launcher.empty() && ranks > 1) {
    notes.push_back(fmt::format(
        "each rank started {} itself, so these were {} separate trainings: `remote torch-launch -- "
        "train.py` starts the ranks of one",
        visible_line(launcher, 60), ranks));
  }
  if (std::string note = processes_left_note(jobs); !note.empty()) {
    notes.push_back(std::move(note));
  }
  if (const std::string last = jobs.empty() ? "" : last_of_pipe(jobs.front().command); !last.empty()) {
    notes.push_back(fmt::format(
        "that is the exit status of `{}`, the end of the pipe: to count a failure before it, run {}",
        visible_line(last, 60),
        visible_line("--cmd " + quote_for_typing("set -o pipefail; " + insert_python(jobs.front().command)),
                     200)));
  }
  if (const std::string right = jobs.empty() ? "" : with_failures_of_list(jobs.front().command);
      !right.empty()) {
    notes.push_back(fmt::format(
        "that is the exit status of `{}`, the end of the list: to count a failure before it, run {}",
        visible_line(right.substr(right.rfind(" && ") + 4), 60),
        visible_line("--cmd " + quote_for_typing(insert_python(right)), 200)));
  }
  return notes;
}

std::string aftermath(const Verdict& verdict) {
  const bool after = verdict.first || verdict.killed_first || !verdict.lost_server.empty();
  std::vector<std::string> parts;
  const auto add = [&](int count, const char* one, const char* several) {
    if (count > 0) {
      // only the first part says "others"
      const std::string who = parts.empty() && after ? counted(count, "other") : std::to_string(count);
      parts.push_back(fmt::format("{} {}", who, count == 1 ? one : several));
    }
  };
  add(verdict.ended, after ? "was ended after it" : "was ended",
      after ? "were ended after it" : "were ended");
  add(verdict.aborted, "failed after it", "failed after it");
  add(verdict.killed, "was killed", "were killed");
  add(verdict.succeeded, "succeeded", "succeeded");
  add(verdict.unknown, "is unknown", "are unknown");
  return fmt::format("{}", fmt::join(parts, ", "));
}

namespace {

bool have_one_rank_each(const std::vector<Job>& jobs) {
  std::set<std::string> servers;
  return std::ranges::all_of(
      jobs, [&](const Job& job) { return ranks_of(job) == 1 && servers.insert(job.server).second; });
}

// `shown`: the output of the first failure has already been shown.
void show_verdict(ui::Terminal& terminal, const Verdict& verdict, const std::vector<Job>& jobs,
                  const std::string& launcher, const std::string& hint, bool shown) {
  for (const Attempt& attempt : verdict.attempts) {
    terminal.notice(attempt_text(attempt));
  }
  if (!verdict.left.empty()) {
    terminal.notice(
        fmt::format("the launch succeeded with {}; it continued without {}",
                    counted(static_cast<std::size_t>(verdict.succeeded), "rank"), join(verdict.left, ", ")),
        ui::Style::green);
    return;
  }
  if (verdict.succeeded == verdict.total) {
    terminal.notice(
        verdict.total == 1 ? "the rank succeeded" : fmt::format("all {} ranks succeeded", verdict.total),
        ui::Style::green);
    for (const std::string& note : success_notes(jobs, launcher)) {
      terminal.notice(note);
    }
    return;
  }
  std::vector<std::string> lines;
  for (const std::string& line : verdict.last_lines) {
    if (!trim(line).empty() && !shown) {
      lines.push_back(visible_line(line, longest_line));
    }
  }
  const std::string rest = aftermath(verdict);
  std::string text = verdict_headline(verdict);
  if (!lines.empty()) {
    text += ": last lines of its stderr:";
  } else if (!rest.empty()) {
    text += ": " + rest;
  }
  // Wrapped, because the terminal might otherwise break a line within a word.
  terminal.notice(terminal.stderr_is_terminal() ? wrapped(text, 0, terminal.columns()) : text,
                  ui::Style::red);
  for (const std::string& line : lines) {
    terminal.notice("  " + line);
  }
  if (!lines.empty() && !rest.empty()) {
    terminal.notice(rest);
  }
  if (const std::string why = no_restart_text(verdict); !why.empty()) {
    terminal.notice("not started again: " + why);
  }
  if (!hint.empty()) {
    terminal.notice(" hint: " + hint);
  }
  if (verdict.first) {
    const Job& first = *verdict.first;
    const bool of_agent = first.ranks && ranks_of(first) == 1;
    terminal.notice(fmt::format("its output: remote job-tail --job {}{}", first.key,
                                of_agent ? fmt::format(" --rank {}", first.rank.value_or(0)) : ""));
  }
}

}  // namespace

void show_end(Context& context, const FollowResult& result, bool shown) {
  context.show(result.errors);
  if (!result.verdict) {
    for (const Job& job : result.jobs) {
      if (const std::string note = processes_left_note({job}); !note.empty() && is_final(job.state)) {
        context.terminal.notice(note);
      }
    }
    return;
  }
  // A missing file may exist here but was not sent.
  const std::vector<std::string> names = missing_names(*result.verdict);
  const std::vector<std::string> excluded =
      project::excluded(context.project().folder(), names, context.cancel);
  const std::string submodule = project::find_empty_submodule(context.project().folder(), names);
  const bool one_each = have_one_rank_each(result.jobs);
  std::string hint = verdict_hint(*result.verdict, one_each);
  const std::filesystem::path folder = context.project().folder();
  if (const std::string bare = find_bare_file(*result.verdict, folder); hint.empty() && !bare.empty()) {
    hint = hint_for_bare_file(bare, result.verdict->first ? result.verdict->first->command : "", folder);
  }
  if (!excluded.empty()) {
    hint =
        fmt::format("{} exists here but is excluded by exclude.txt: remove it there, then run `remote rsync`",
                    visible_line(excluded.front()));
  } else if (!submodule.empty()) {
    hint = fmt::format(
        "the folder of the submodule {} is empty here: `git submodule update --init` here, then `remote "
        "rsync`",
        visible_line(submodule));
  }
  if (const std::string module = missing_module(last_word(*result.verdict));
      excluded.empty() && !module.empty() && project::requires_module(context.project().folder(), module)) {
    hint = fmt::format(
        "requirements.txt names {}, and Python there does not have it: `remote prepare`, or `remote "
        "update-packages --force` if it is already done",
        module);
  }
  if (context.stream) {
    context.stream->verdict(*result.verdict, hint);
  }
  // Only read if it can matter, because it may be in a file of the project.
  const bool may_be_apart = result.jobs.size() > 1 && result.verdict->succeeded == result.verdict->total;
  const std::string launcher =
      may_be_apart ? find_own_launcher(context.project().folder(), result.jobs.front().command) : "";
  show_verdict(context.terminal, *result.verdict, result.jobs, launcher, hint, shown);
}

}  // namespace remote::cli
