#include "cli/common.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <pwd.h>
#include <remote/error.hpp>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/shell_quote.hpp"
#include "base/visible.hpp"
#include "jobs/job_json.hpp"

namespace remote::cli {

void add_server_option(CLI::App& command, std::vector<std::string>& globs) {
  command.add_option("--server", globs, "Only this server; may be repeated and takes globs (default: all)")
      ->type_name("NAME")
      ->allow_extra_args(false);
}

void add_env_options(CLI::App& command, EnvOptions& env) {
  // allow_extra_args(false): each use takes its two words and no more, and CLI11 does not read a value in
  // brackets as a list.
  command.add_option("--env", env.words, "Sets a variable for the command: two words, repeatable")
      ->type_name("NAME VALUE")
      ->allow_extra_args(false);
  command.add_option("-e", env.assignments, "The short form of --env")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

std::vector<std::pair<std::string, std::string>> EnvOptions::collect() const {
  std::vector<std::pair<std::string, std::string>> all = words;
  for (const std::string& assignment : assignments) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos) {
      throw Error::usage("-e " + assignment, "there is no '=' in it",
                         "write -e NAME=VALUE, or --env NAME VALUE");
    }
    all.emplace_back(assignment.substr(0, equals), assignment.substr(equals + 1));
  }
  for (const auto& [name, value] : all) {
    check_variable(name);
  }
  return all;
}

void add_tag_option(CLI::App& command, std::vector<std::string>& tags, const std::string& help) {
  command.add_option("--tag", tags, help)->type_name("T")->allow_extra_args(false);
}

void add_job_option(CLI::App& command, std::vector<std::string>& keys) {
  command.add_option("--job", keys, "The job with this key, or whose id begins so; may be repeated")
      ->type_name("KEY")
      ->allow_extra_args(false);
}

jobs::Store open_store(Context& context) {
  const config::Config& config = context.config();
  return jobs::Store(config.local(config.jobs_folder));
}

std::vector<jobs::Job> stored_jobs(Context& context, const jobs::Store& store, bool unfinished_only) {
  jobs::Store::Listing listing = store.list({.unfinished_only = unfinished_only});
  for (const std::string& problem : listing.problems) {
    context.terminal.warning(problem);
  }
  return std::move(listing.jobs);
}

std::vector<jobs::Job> ask_servers(Context& context, jobs::Store& store, std::vector<jobs::Job> jobs) {
  jobs::News news =
      jobs::ask(context.config(), store, context.connector(), std::move(jobs), ask_limit, context.cancel);
  context.show_new_host_keys();
  for (const Error& error : news.silent) {
    context.terminal.warning(error.message() + "; the state of its jobs is unknown");
  }
  if (news.unsaved) {
    context.terminal.warning(news.unsaved->message());
  }
  return std::move(news.jobs);
}

void confirm(Context& context, const std::vector<jobs::Job>& jobs, const std::string& question,
             const std::string& undone, const Error& cannot_ask) {
  constexpr std::size_t most_shown = 20;
  ui::Terminal& terminal = context.terminal;
  if (!terminal.stdin_is_terminal()) {
    throw cannot_ask;
  }
  for (std::size_t i = 0; i < std::min(jobs.size(), most_shown); ++i) {
    const jobs::Job& job = jobs[i];
    terminal.err(visible_line(fmt::format("  {}: {}: {}", describe(job), state_text(job), job.command)) +
                 "\n");
  }
  if (jobs.size() > most_shown) {
    terminal.err(fmt::format("  … and {} more\n", jobs.size() - most_shown));
  }
  const auto answer = terminal.ask(question + " [y/N] ");
  if (!answer || (*answer != "y" && *answer != "Y" && *answer != "yes")) {
    throw Error(undone, "not confirmed");
  }
}

std::string who_am_i() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const passwd* entry =
      ::getpwuid(::getuid());  // NOLINT(concurrency-mt-unsafe): before any thread is started
  return fmt::format("{}@{}", entry != nullptr ? entry->pw_name : "someone", host.data());
}

std::string state_text(const jobs::Job& job) {
  std::string text(jobs::to_string(job.state));
  // A job that was ended says by whom, and that reason already names the signal: "killed SIGTERM by
  // ada@laptop"; "ended after rank 2" stands for itself.
  if (job.state == jobs::State::killed && !job.reason.empty()) {
    if (job.reason.starts_with("ended after ")) {
      return job.reason;
    }
    if (job.reason.starts_with("SIG")) {
      return text + " " + job.reason;
    }
  }
  if ((job.state == jobs::State::failed || job.state == jobs::State::killed) && job.result) {
    text += " " + job.result->describe();
  }
  if (!job.reason.empty()) {
    text += " (" + job.reason + ")";
  }
  return text;
}

std::string describe(const jobs::Job& job) {
  return job.rank ? fmt::format("job {} (rank {} on {})", job.key, *job.rank, job.server)
                  : fmt::format("job {} on {}", job.key, job.server);
}

std::string json_text(const std::vector<jobs::Job>& jobs) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const jobs::Job& job : jobs) {
    array.push_back(jobs::to_json(job));
  }
  return dump_json(array);
}

int exit_code_of(const jobs::Job& job) {
  if (job.state == jobs::State::succeeded) {
    return 0;
  }
  const int code = job.result ? job.result->shell_code() : 1;
  return code != 0 ? code : 1;
}

}  // namespace remote::cli
