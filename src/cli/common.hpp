#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/App.hpp>

#include "cli/context.hpp"
#include "jobs/ask.hpp"
#include "jobs/job.hpp"
#include "jobs/store.hpp"

// What several subcommands share: options with the same meaning everywhere, the job store, and how jobs are
// named.

namespace remote::cli {

void add_server_option(CLI::App& command, std::vector<std::string>& globs);

// --env NAME VALUE and -e NAME=VALUE, both repeatable.
struct EnvOptions {
  std::vector<std::pair<std::string, std::string>> words;
  std::vector<std::string> assignments;

  // All of them, in that order. Throws Error (usage) for what is no variable.
  std::vector<std::pair<std::string, std::string>> collect() const;
};
void add_env_options(CLI::App& command, EnvOptions& env);

// --tag T, repeatable; one tag a use.
void add_tag_option(CLI::App& command, std::vector<std::string>& tags, const std::string& help);
// --job KEY, repeatable.
void add_job_option(CLI::App& command, std::vector<std::string>& keys);

jobs::Store open_store(Context& context);

// How long job-list and the others wait for a server before they call its jobs unknown.
inline constexpr std::chrono::milliseconds ask_limit{3000};
// Asks the servers of the unfinished jobs; a warning on stderr for each that stays silent.
std::vector<jobs::Job> ask_servers(Context& context, jobs::Store& store, std::vector<jobs::Job> jobs);
// The stored jobs; a warning for each record that cannot be read.
std::vector<jobs::Job> stored_jobs(Context& context, const jobs::Store& store, bool unfinished_only = false);

// Shows the jobs and asks the question. Throws Error, whose text begins with `undone`, unless the answer is
// yes, and `cannot_ask` when nobody is there to answer.
void confirm(Context& context, const std::vector<jobs::Job>& jobs, const std::string& question,
             const std::string& undone, const Error& cannot_ask);

// "ada@laptop": who does this, for the stop file.
std::string who_am_i();

// "failed exit 1", "killed SIGTERM by ada@laptop", "ended after rank 2", "running": a job's state and why.
std::string state_text(const jobs::Job& job);
// "job 3 (rank 2 on node-2)".
std::string describe(const jobs::Job& job);
// The jobs as one JSON array, with a newline.
std::string json_text(const std::vector<jobs::Job>& jobs);
// 0 for a success; the exit code or 128+N of what failed; 1 where neither is known.
int exit_code_of(const jobs::Job& job);

}  // namespace remote::cli
