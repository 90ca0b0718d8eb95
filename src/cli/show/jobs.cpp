#include "cli/show/jobs.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <remote/sweep.hpp>

#include "base/clock.hpp"
#include "base/command.hpp"
#include "base/json.hpp"
#include "base/ranges.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "cli/markdown.hpp"
#include "cli/show/launches.hpp"
#include "jobs/job_json.hpp"
#include "project/excluded.hpp"

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

}  // namespace

std::string attempt_text(const Attempt& attempt) {
  const std::string server = visible_line(attempt.server);
  const std::string took = format_duration(std::max<std::int64_t>(attempt.failed_at - attempt.began_at, 0));
  std::string text = fmt::format("attempt {}: ", attempt.number);
  if (attempt.cause == RestartCause::hang) {
    text += "no rank wrote or computed any more";
  } else if (!attempt.rank) {
    text += fmt::format("server {} was lost", server);
  } else if (attempt.cause == RestartCause::oom) {
    text += fmt::format("rank {} on {} ran out of memory", *attempt.rank, server);
  } else {
    text += fmt::format("rank {} on {} failed{}", *attempt.rank, server,
                        attempt.result ? fmt::format(" ({})", attempt.result->describe()) : "");
  }
  return text + " after " + took + (attempt.left_out ? ", and the server was left out as sick" : "");
}

std::string verdict_headline(const Verdict& verdict) {
  if (verdict.first) {
    const Job& first = *verdict.first;
    const auto second = first.failed_ms ? std::optional(*first.failed_ms / 1000) : first.ended_at;
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
    return verdict.lost_server + " was lost";
  }
  return fmt::format("{} of {} did not succeed", verdict.total - verdict.succeeded,
                     counted(static_cast<std::size_t>(verdict.total), "rank"));
}

namespace {

// The last line of the first failure's output; "" for none. Only this one counts: libraries warn of modules
// that they can do without.
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

// How the project may name the file or module that was not found there; the likeliest first.
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
  // The path may be one of the server's: what it ends with is the project's.
  std::vector<std::string> names = {last.substr(begin + 1, end - begin - 1)};
  while (names.back().find('/') != std::string::npos) {
    names.push_back(names.back().substr(names.back().find('/') + 1));
  }
  return names;
}

}  // namespace

std::string verdict_hint(const Verdict& verdict) {
  if (verdict.hung) {
    return fmt::format("what its ranks did then: remote job-why --launch {}", verdict.hung->key);
  }
  if (const std::string name = missing_module(last_word(verdict)); !name.empty()) {
    return fmt::format(
        "Python there has no module {}: name what has it in requirements.txt, then run `remote prepare`{}",
        name, name == "torch" ? "; Debian has it as python3-torch" : "");
  }
  if (trim(last_word(verdict)) == "bdb.BdbQuit") {
    return "breakpoint() waits for `remote attach` where the launch has --enable-stacks, as torch-launch has "
           "by "
           "itself; --env PYTHONBREAKPOINT=0 skips it";
  }
  for (const std::string& line : verdict.last_lines) {
    if (line.find("python: command not found") != std::string::npos ||
        line.find("python: not found") != std::string::npos) {
      return "`remote prepare` makes the Python environment there";
    }
    for (const char* end : {".py: command not found", ".py: not found", ".py: Permission denied"}) {
      if (line.ends_with(end)) {
        return "a Python script is started by Python: python train.py; torch-launch does that by itself";
      }
    }
  }
  return "";
}

namespace {

void show_verdict(ui::Terminal& terminal, const Verdict& verdict, const std::string& hint) {
  for (const Attempt& attempt : verdict.attempts) {
    terminal.notice(attempt_text(attempt));
  }
  if (verdict.succeeded == verdict.total) {
    terminal.notice(
        verdict.total == 1 ? "the rank succeeded" : fmt::format("all {} ranks succeeded", verdict.total),
        ui::Style::green);
    return;
  }
  if (!verdict.left.empty()) {
    terminal.notice(
        fmt::format("the launch succeeded with {}; it went on without {}",
                    counted(static_cast<std::size_t>(verdict.succeeded), "rank"), join(verdict.left, ", ")),
        ui::Style::green);
    return;
  }
  std::vector<std::string> lines;
  for (const std::string& line : verdict.last_lines) {
    if (!trim(line).empty()) {
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
  // It may be longer than the terminal is wide, which would break it within a word.
  terminal.notice(terminal.stderr_is_terminal() ? wrapped(text, 0, terminal.columns()) : text,
                  ui::Style::red);
  for (const std::string& line : lines) {
    terminal.notice("  " + line);
  }
  if (!lines.empty() && !rest.empty()) {
    terminal.notice(rest);
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

std::string shown_value(const std::string& name, const std::string& value) {
  return visible_line(mask_value(name, value));
}

// What all processes have in common.
Env shared_env(const std::vector<PlannedProcess>& processes) {
  Env shared = processes.front().env;
  for (const PlannedProcess& process : processes) {
    std::erase_if(
        shared, [&](const auto& pair) { return std::ranges::find(process.env, pair) == process.env.end(); });
  }
  return shared;
}

void print_env(std::string& text, const Env& env, const Env& without, std::string_view indent) {
  for (const auto& pair : env) {
    if (std::find(without.begin(), without.end(), pair) == without.end()) {
      text += fmt::format("{}{}={}\n", indent, pair.first, shown_value(pair.first, pair.second));
    }
  }
}

// Without what it has left behind.
std::string own_state_text(const Job& job) {
  std::string text(to_string(job.state));
  // A job that was ended says by whom, and that reason already names the signal: "killed SIGTERM by
  // ada@laptop"; "ended after rank 2" stands for itself.
  std::string reason = jobs::reason_text(job.reason);
  if (job.state == JobState::killed) {
    using Kind = JobReason::Kind;
    if (job.reason.kind == Kind::after_rank || job.reason.kind == Kind::after_loss ||
        job.reason.kind == Kind::after_hang) {
      return reason;
    }
    if (job.reason.kind == Kind::by_user || job.reason.kind == Kind::by_launch) {
      return text + " " + reason;
    }
  }
  if ((job.state == JobState::failed || job.state == JobState::killed) && job.result) {
    text += " " + job.result->describe();
  }
  if (const auto still = still_since(job); still && reason.empty()) {
    reason = "hung: standing still since " + format_local_time(*still);
  }
  if (!job.waits.empty()) {
    const std::size_t more = job.waits.size() - 1;
    reason =
        "waiting in " + wait_text(job.waits.front()) + (more > 0 ? fmt::format(" and {} more", more) : "");
  }
  if (!reason.empty()) {
    text += " (" + reason + ")";
  }
  return text;
}

}  // namespace

std::string wait_text(const DebuggerWait& wait) {
  constexpr std::size_t longest = 40;
  const std::string file = visible_line(wait.file);
  const std::size_t cut = file.size() <= longest ? 0 : file.rfind('/') + 1;
  return fmt::format("{} {}:{}",
                     wait.error.empty() ? "breakpoint()" : "pdb after " + visible_line(wait.error),
                     visible_line(file.substr(cut), 2 * longest), wait.line);
}

std::string attach_command(const Job& job, const DebuggerWait& wait) {
  const std::optional<int> rank = wait.rank ? wait.rank : job.rank;
  return fmt::format("remote attach{} --job {}", rank ? fmt::format(" {}", *rank) : "", job.key);
}

std::optional<std::int64_t> still_since(const Job& job) {
  return job.state == JobState::running && job.hung && !job.hung->moved_at
             ? std::optional(job.hung->at - job.hung->seconds)
             : std::nullopt;
}

std::string state_text(const Job& job) {
  const std::string text = own_state_text(job);
  return is_final(job.state) ? text + left_text({job}) : text;
}

std::string rank_numbers(const Job& job) {
  const int first = job.rank.value_or(0);
  const int count = ranks_of(job);
  return count == 1 ? std::to_string(first) : fmt::format("{}-{}", first, first + count - 1);
}

std::string rank_text(const Job& job) {
  return (ranks_of(job) == 1 ? "rank " : "ranks ") + rank_numbers(job);
}

std::string failed_node(const Job& job) {
  using enum JobReason::Kind;
  const bool tells = job.reason.kind == none || job.reason.kind == out_of_memory;
  return tells && job.state == JobState::failed && ranks_of(job) == 1 ? visible_line(job.reason.text) : "";
}

std::string describe(const Job& job) {
  const std::string node = failed_node(job);
  if (job.point) {
    return fmt::format("job {} ({}{})", job.key, visible_line(sweep_point_text(job.point->values), 60),
                       job.point->waiting ? "" : " on " + job.server);
  }
  return job.rank
             ? fmt::format("job {} ({} on {})", job.key, rank_text(job), node.empty() ? job.server : node)
             : fmt::format("job {} on {}", job.key, job.server);
}

std::string kill_command(const std::vector<Job>& jobs) {
  std::string command = "remote job-kill";
  for (const Batch& batch : by_launch(jobs)) {
    if (!is_over(batch)) {
      command += fmt::format(" --{} {}", batch.front().launch ? "launch" : "job", batch.front().key);
    }
  }
  return command;
}

std::string started_unsaved(const std::vector<Job>& jobs) {
  std::vector<int> keys;
  std::ranges::transform(jobs, std::back_inserter(keys), &Job::key);
  const bool one = jobs.size() == 1;
  return fmt::format(
      "{} {} started, and the start is not recorded here; do not start {} again. To stop {}: {}",
      one ? "job" : "jobs", ranges(keys) + (one ? " was" : " were"), one ? "it" : "them", one ? "it" : "them",
      kill_command(jobs));
}

nlohmann::ordered_json jobs_json(const std::vector<Job>& jobs) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const Job& job : jobs) {
    array.push_back(jobs::to_json(job));
  }
  return array;
}

int exit_code_of(const Job& job) {
  if (job.state == JobState::succeeded) {
    return 0;
  }
  const int code = job.result ? job.result->shell_code() : 1;
  return code != 0 ? code : 1;
}

std::string aftermath(const Verdict& verdict) {
  const bool after = verdict.first || verdict.killed_first || !verdict.lost_server.empty();
  std::vector<std::string> parts;
  const auto add = [&](int count, const char* one, const char* several) {
    if (count > 0) {
      // only the first part says of whom it speaks
      const std::string who = parts.empty() && after ? counted(count, "other") : std::to_string(count);
      parts.push_back(fmt::format("{} {}", who, count == 1 ? one : several));
    }
  };
  add(verdict.ended, after ? "was ended after it" : "was ended",
      after ? "were ended after it" : "were ended");
  add(verdict.aborted, "aborted after it", "aborted after it");
  add(verdict.killed, "was killed", "were killed");
  add(verdict.succeeded, "succeeded", "succeeded");
  add(verdict.unknown, "is unknown", "are unknown");
  return fmt::format("{}", fmt::join(parts, ", "));
}

void show_end(Context& context, const FollowResult& result) {
  context.show(result.errors);
  if (!result.verdict) {
    return;
  }
  // What is missing there may be here, and was not sent.
  const std::vector<std::string> excluded =
      project::excluded(context.project().folder(), missing_names(*result.verdict), context.cancel);
  const std::string hint = excluded.empty()
                               ? verdict_hint(*result.verdict)
                               : fmt::format(
                                     "{} exists here but is excluded by exclude.txt: take it out of there, "
                                     "then run `remote rsync`",
                                     visible_line(excluded.front()));
  if (context.stream) {
    context.stream->verdict(*result.verdict);
  }
  show_verdict(context.terminal, *result.verdict, hint);
}

namespace {

std::string container_words(const Container& container) {
  std::string words = fmt::format(
      "{} {}", container.engine.empty() ? "the engine that is there," : container.engine, container.image);
  if (!container.workdir.empty()) {
    words += fmt::format(", in {}", container.workdir);
  }
  if (!container.args.empty()) {
    words += fmt::format(", with {}", mask_command(shell_join(container.args)));
  }
  return words;
}

nlohmann::ordered_json container_json(const Container& container) {
  std::vector<std::string> args;
  // a secret may stand behind its option
  for (const std::string& word : shell_words(mask_command(shell_join(container.args)))) {
    args.push_back(word);
  }
  nlohmann::ordered_json json{
      {"engine", nullptr}, {"image", container.image}, {"args", args}, {"workdir", nullptr}};
  if (!container.engine.empty()) {
    json["engine"] = container.engine;
  }
  if (!container.workdir.empty()) {
    json["workdir"] = container.workdir;
  }
  return json;
}

}  // namespace

namespace {

std::string shown_command(const PlannedProcess& process) {
  return mask_command(process.shown.empty() ? process.command : process.shown);
}

}  // namespace

std::string plan_text(const Plan& plan) {
  std::set<std::string> servers;
  for (const PlannedProcess& process : plan.processes) {
    servers.insert(process.server);
  }
  std::string text =
      plan.batch_script.empty()
          ? fmt::format("launch {}: {} on {}, launcher {}, master {} port {}\n", plan.run_id,
                        counted(static_cast<std::size_t>(plan.world_size), "rank"),
                        counted(servers.size(), "server"), plan.launcher, plan.master_addr, plan.master_port)
          : fmt::format("launch {}: {} by Slurm, launcher {}\n", plan.run_id,
                        counted(static_cast<std::size_t>(plan.world_size), "rank"), plan.launcher);
  const Env everywhere = shared_env(plan.processes);
  text += "on every process\n";
  print_env(text, everywhere, {}, "  ");
  int node = -1;
  for (const PlannedProcess& process : plan.processes) {
    if (node != process.node_rank) {
      node = process.node_rank;
      text += fmt::format("{} (node {})\n", process.server, node);
    }
    text += process.ranks == 1 ? fmt::format("  rank {} (local {})", process.rank, process.local_rank)
                               : fmt::format("  ranks {}-{}", process.rank, process.rank + process.ranks - 1);
    text += fmt::format(": {}\n", visible_line(shown_command(process)));
    text += fmt::format("    tags: {}\n", visible_line(join(process.tags, ", ")));
    if (process.container) {
      text += fmt::format("    container: {}\n", visible_line(container_words(*process.container)));
    }
    print_env(text, process.env, everywhere, "    ");
  }
  if (!plan.batch_script.empty()) {
    text += "batch script\n";
    for (const std::string& line : split(trim(plan.batch_script), '\n')) {
      text += "  " + visible_line(line) + "\n";
    }
  }
  return text;
}

nlohmann::ordered_json plan_json(const Plan& plan) {
  using Json = nlohmann::ordered_json;
  Json processes = Json::array();
  for (const PlannedProcess& process : plan.processes) {
    Json env = Json::object();
    for (const auto& [name, value] : process.env) {
      env[name] = mask_value(name, value);
    }
    processes.push_back(Json{{"server", process.server},
                             {"node_rank", process.node_rank},
                             {"rank", process.rank},
                             {"local_rank", process.local_rank},
                             {"ranks", process.ranks},
                             {"command", shown_command(process)},
                             {"env", std::move(env)},
                             {"tags", process.tags}});
    if (process.container) {
      processes.back()["container"] = container_json(*process.container);
    }
  }
  Json json{{"launch", plan.run_id},           {"launcher", plan.launcher},
            {"master_addr", plan.master_addr}, {"master_port", plan.master_port},
            {"world_size", plan.world_size},   {"processes", std::move(processes)}};
  if (!plan.batch_script.empty()) {
    json["batch_script"] = plan.batch_script;
  }
  return json;
}

}  // namespace remote::cli
