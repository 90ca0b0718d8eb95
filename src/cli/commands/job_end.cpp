// `remote job-kill`: kills jobs, and verifies that. `remote job-clean`: removes ended jobs, here and on the
// servers.

#include <algorithm>
#include <csignal>
#include <iterator>
#include <optional>
#include <utility>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/strings.hpp"
#include "cli/options.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/waiting.hpp"

namespace remote::cli {
namespace {

struct KillArguments {
  JobOptions jobs;
  std::string signal = "TERM";
  int grace = 10;
  bool all = false;
  bool yes = false;
};

constexpr std::size_t most_survivors = 20;

std::string outcome_text(const KillResult::Entry& entry) {
  using Outcome = KillResult::Entry::Outcome;
  switch (entry.outcome) {
    case Outcome::killed:
      return entry.suspects.empty() ? "killed" : "the processes known to be its own were killed; see below";
    case Outcome::ended:
      return fmt::format("had ended before: {}{}", visible_line(state_text(entry.job)),
                         entry.signalled > 0 ? "; its leftover processes were ended now" : "");
    case Outcome::none:
      return "was never started there";
    case Outcome::survivors:
      return "NOT ended";
    case Outcome::refused:
      return "NOT ended: " + visible_line(entry.reason);
  }
  return "";
}

nlohmann::json entry_json(const KillResult::Entry& entry, bool ended) {
  return {{"key", entry.job.key},
          {"id", entry.job.id.text()},
          {"server", entry.job.server},
          {"state", to_string(entry.job.state)},
          {"ended", ended},
          {"signalled", entry.signalled},
          {"survivors", entry.survivors},
          {"may_be_of_it", entry.suspects}};
}

bool is_unended(const Job& job) {
  return !is_final(job.state) || job.leftovers.value_or(0) > 0;
}

// Returns whether all have ended.
bool show_ended(Context& context, const std::vector<Job>& chosen, const KillResult& result) {
  bool all_ended = result.errors.empty();
  nlohmann::json all = nlohmann::json::array();
  Lines lines;
  std::vector<std::string> survivors;
  for (const KillResult::Entry& entry : result.entries) {
    const bool ended = entry.outcome != KillResult::Entry::Outcome::survivors &&
                       entry.outcome != KillResult::Entry::Outcome::refused;
    all_ended = all_ended && ended;
    all.push_back(entry_json(entry, ended));
    lines.add(entry.job, outcome_text(entry));
    for (const std::string& survivor : entry.survivors) {
      survivors.push_back(fmt::format("{}: still there: {}", describe(entry.job), visible_line(survivor)));
    }
    for (const std::string& suspect : entry.suspects) {
      survivors.push_back(fmt::format("{}: may belong to this job, and was not killed: {}",
                                      describe(entry.job), visible_line(suspect)));
    }
  }
  for (const Job& job : chosen) {  // the errors of their servers are shown later
    if (is_unended(job) && std::ranges::none_of(result.entries, [&](const KillResult::Entry& entry) {
          return entry.job.id == job.id;
        })) {
      lines.add(job, "may still be running");
    }
  }
  if (context.options.json) {
    context.print(all);
  } else {
    for (const std::string& line : lines.text()) {
      context.terminal.out(line + "\n");
    }
  }
  for (const std::string& line : first_lines(survivors, most_survivors)) {
    context.terminal.err("  " + line + "\n");
  }
  context.show(result.errors);
  return all_ended;
}

// If only some ranks of a launch were stopped, reports what will happen to the others.
void tell_the_others(Context& context, const std::vector<Job>& ended) {
  std::vector<Job> others = context.project().with_launch(ended);
  std::erase_if(others, [&](const Job& job) {
    return is_final(job.state) || std::ranges::find(ended, job.id, &Job::id) != ended.end();
  });
  others = context.project().refresh(std::move(others));
  std::erase_if(others, [](const Job& job) { return is_final(job.state); });
  for (const Batch& batch : by_launch(others)) {
    const bool known =
        std::ranges::all_of(batch, [](const Job& job) { return job.state != JobState::unknown; });
    const char* words = !known ? "may still run" : batch.size() == 1 ? "still runs" : "still run";
    context.terminal.notice(fmt::format("{} of the same launch {}. To end {}: {}",
                                        counted(batch.size(), "other rank"), words,
                                        batch.size() == 1 ? "it" : "them", kill_command(batch)));
  }
}

// Asks before killing or removing jobs that were started from another folder: the records here are copies,
// and the other folder may need the jobs. If no job is named, removes these from `chosen`.
void ask_about_copied(Context& context, std::vector<Job>& chosen, const JobOptions& jobs, bool yes,
                      const std::string& command, const std::string& verb) {
  std::vector<Job> copied;
  std::ranges::copy_if(chosen, std::back_inserter(copied), &Job::elsewhere);
  if (copied.empty()) {
    return;
  }
  const std::string what = fmt::format("{} that {} started from another folder",
                                       counted(copied.size(), "job"), copied.size() == 1 ? "was" : "were");
  if (!jobs.by_name()) {
    std::erase_if(chosen, &Job::elsewhere);
    context.terminal.notice(
        fmt::format("{} skipped; the records here are copies of that folder's. To {} {} anyway, name {}",
                    what, command == "job-kill" ? "end" : "remove", copied.size() == 1 ? "it" : "them",
                    copied.size() == 1 ? "it" : "them"));
  } else if (!yes) {
    context.confirm(copied, fmt::format("{} {}?", verb, what), "nothing was done",
                    Error::usage(command, "that is about " + what, "do it there, or add --yes"));
  }
}

// The matching unfinished jobs; named jobs are included even if they have ended.
std::vector<Job> jobs_to_kill(Context& context, const KillArguments& arguments) {
  const JobSelection selection = arguments.jobs.selection();
  bool hinted = false;
  context.on_event = [&](const Event& event) {
    context.show(event);
    if (std::holds_alternative<StoreProblem>(event) && !std::exchange(hinted, true)) {
      context.terminal.notice(
          " hint: if the job of that record, whose folder is its id, still runs, stop it on its server: "
          "remote run --server NAME --cmd 'read pid _ <.jobs/ID/pid && kill -- -$pid'");
    }
  };
  struct Usual {
    Context& context;
    ~Usual() {
      context.on_event = [&context = context](const Event& event) { context.show(event); };
    }
  } const usual{context};
  std::vector<Job> chosen = context.project().jobs(
      {.selection = selection, .unfinished_only = !arguments.jobs.by_name(), .ask = false});
  if (chosen.empty() && !arguments.jobs.tags.empty()) {  // no job ever had the tag: a mistake
    context.project().jobs({.selection = selection, .some = true, .ask = false});
  }
  if (chosen.empty()) {
    context.terminal.notice(arguments.jobs.named() && !arguments.jobs.by_name()
                                ? "no unfinished job has these tags; nothing to end"
                                : "no unfinished jobs; nothing to end");
    return chosen;
  }
  ask_about_copied(context, chosen, arguments.jobs, arguments.yes, "job-kill", "End");
  if (chosen.empty()) {
    return chosen;
  }
  if (!arguments.jobs.named() && !arguments.yes) {
    const std::string what = counted(chosen.size(), "unfinished job");
    context.confirm(chosen, fmt::format("End {}?", what), "nothing was ended",
                    Error::usage("job-kill", "no job is named, and that would end " + what,
                                 "name them by their keys, with --launch or with --tag, or add --yes"));
  }
  return chosen;
}

int kill(Context& context, const KillArguments& arguments) {
  KillRequest request;
  request.grace = std::chrono::seconds(arguments.grace);
  if (const auto signal = signal_number(arguments.signal)) {
    request.signal = *signal;
  } else {
    throw Error::usage("--signal " + arguments.signal, "there is no such signal", "try TERM, INT or KILL");
  }
  context.when_interrupted = "interrupted: no job was ended";
  const std::vector<Job> chosen = jobs_to_kill(context, arguments);
  const auto unended = std::ranges::count_if(chosen, is_unended);
  if (unended > 0 && arguments.grace > 0 && request.signal != SIGKILL) {
    context.terminal.notice(fmt::format("ending {}; processes still running after {} s are killed",
                                        counted(static_cast<std::size_t>(unended), "job"), arguments.grace));
  }
  KillResult result;
  if (!chosen.empty()) {
    const Waiting waiting(context.terminal, "for " + server_names(chosen));
    context.when_interrupted =
        "interrupted: servers that were reached finish ending the jobs; see which still run with: remote "
        "job-list";
    result = context.project().kill(chosen, request);
  }
  const bool all_ended = show_ended(context, chosen, result);
  if (arguments.jobs.named()) {
    tell_the_others(context, chosen);
  }
  return all_ended ? 0 : 1;
}

struct CleanArguments {
  JobOptions jobs;
  std::optional<double> older;
  bool all = false;
  bool yes = false;
  bool forget = false;
};

// For jobs on servers that are gone: removes only their local records, without contacting a server.
int forget(Context& context, const CleanArguments& arguments) {
  if (!arguments.jobs.by_name()) {
    throw Error::usage("job-clean --forget", "no job is named", "name those whose servers are gone for good");
  }
  const std::vector<Job> chosen =
      context.project().jobs({.selection = arguments.jobs.selection(), .some = true, .ask = false});
  if (!arguments.yes) {
    const std::string what = counted(chosen.size(), "job");
    context.confirm(
        chosen,
        fmt::format("Remove {} only here? Processes on the servers keep running, and cannot be stopped "
                    "from here.",
                    what),
        "nothing was removed",
        Error::usage("job-clean --forget", fmt::format("that would remove {} only here", what), "add --yes"));
  }
  context.project().forget(chosen);
  if (context.options.json) {
    context.print(jobs_json(chosen));
  } else {
    context.terminal.notice(counted(chosen.size(), "job") + " removed, only here");
  }
  return 0;
}

// Returns the chosen jobs that have ended, and reports the others. `left` counts those that stay although
// they were named, or because their state is unknown.
std::vector<Job> ended_ones(Context& context, const CleanArguments& arguments, std::vector<Job> chosen,
                            int& left) {
  std::size_t unfinished = 0;
  Lines staying;
  using Days = std::chrono::duration<double, std::chrono::days::period>;
  const Instant now = now_seconds();
  std::vector<Job> ended;
  for (Job& job : chosen) {
    if (!is_final(job.state)) {
      if (arguments.jobs.by_name() || job.state == JobState::unknown) {
        staying.add(job, "not removed: " + state_text(job));
        ++left;
      } else {
        ++unfinished;
      }
      continue;
    }
    if (!arguments.older || now - end_of(job) >= Days(*arguments.older)) {
      ended.push_back(std::move(job));
    }
  }
  for (const std::string& line : staying.text()) {
    context.terminal.warning(line);
  }
  if (unfinished > 0) {
    context.terminal.notice(counted(unfinished, "unfinished job") + " skipped");
  }
  return ended;
}

int clean(Context& context, const CleanArguments& arguments) {
  if (arguments.forget) {
    return forget(context, arguments);
  }
  // A job that is running according to its record may have ended since.
  std::optional<Waiting> waiting(std::in_place, context.terminal, "for servers with jobs");
  std::vector<Job> chosen =
      context.project().jobs({.selection = arguments.jobs.selection(), .some = !arguments.jobs.tags.empty()});
  waiting.reset();
  int left = 0;
  chosen = ended_ones(context, arguments, std::move(chosen), left);
  ask_about_copied(context, chosen, arguments.jobs, arguments.yes, "job-clean", "Remove");
  CleanResult result;
  if (!chosen.empty()) {
    if (!arguments.yes) {
      const std::string what =
          fmt::format("{} with {} output, here and on the servers", counted(chosen.size(), "ended job"),
                      chosen.size() == 1 ? "its" : "their");
      context.confirm(chosen, fmt::format("Remove {}?", what), "nothing was removed",
                      Error::usage("job-clean", "that would remove " + what, "add --yes"));
    }
    waiting.emplace(context.terminal, "for " + server_names(chosen));
    result = context.project().clean(chosen);
    waiting.reset();
  }
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  std::size_t removed = 0;
  Lines staying;
  for (const CleanResult::Entry& entry : result.entries) {
    const Job& job = entry.job;
    if (entry.removed) {
      ++removed;
    } else {
      staying.add(job, "not removed: " + visible_line(entry.reason));
      ++left;
    }
    all.push_back({{"key", job.key},
                   {"id", job.id.text()},
                   {"server", job.server},
                   {"removed", entry.removed},
                   {"reason", entry.reason}});
  }
  for (const std::string& line : staying.text()) {
    context.terminal.warning(line);
  }
  context.show(result.errors);
  left += static_cast<int>(result.errors.size());
  if (context.options.json) {
    context.print(all);
  } else {
    context.terminal.notice((removed == 0 ? "no jobs" : counted(removed, "job")) + " removed");
  }
  return left == 0 ? 0 : 1;
}

}  // namespace

void add_job_kill(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, kill);
  arguments.jobs.add(command, context);
  arguments.jobs.add_words(command, context);
  CLI::Option* signal =
      command.add_option("-s,--signal", arguments.signal, "First signal to send (default: TERM)");
  signal->type_name("S");
  context.completers[signal] = NameKind::signals;
  add_number_option(command, "--grace", arguments.grace, "Seconds before KILL (default: 10)", "SECONDS", 0,
                    86400);
  command.add_flag("-a,--all", arguments.all, "All unfinished jobs (the default)");
  command.add_flag("-y,--yes", arguments.yes, "Do not ask");
}

void add_job_clean(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, clean);
  arguments.jobs.add(command, context);
  arguments.jobs.add_words(command, context);
  command.add_option("--older", arguments.older, "Only jobs that ended at least this many days ago")
      ->type_name("DAYS")
      ->check(CLI::Range(0.0, 100000.0));
  command.add_flag("-a,--all", arguments.all, "All finished jobs (the default)");
  command.add_flag("--forget", arguments.forget,
                   "Remove the named jobs only here: their servers are gone for good");
  command.add_flag("-y,--yes", arguments.yes, "Do not ask");
}

}  // namespace remote::cli
