// Copies the files that a launch wrote to results/KEY. The servers choose the names of their files, so these
// are not trusted.

#include "servers/results.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <remote/history.hpp>

#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/ownership.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "jobs/job_servers.hpp"
#include "project/core.hpp"
#include "servers/fanout.hpp"
#include "servers/shared.hpp"
#include "servers/sync.hpp"

namespace remote::project {
namespace {

namespace fs = std::filesystem;
using servers::WrittenFile;

// A folder in the project, by name. A project must not redirect it with a link to the outside.
fs::path own_folder(const Core& core, const fs::path& name) {
  fs::path folder = core.config.project / name;
  if (resolved(folder).lexically_relative(resolved(core.config.project)) != name) {
    throw Error::usage("cannot copy to " + folder.string(), "a symbolic link leads elsewhere",
                       "remove the link");
  }
  return folder;
}

// The first job on each server of the launch, skipping servers that share the folder of an earlier one.
std::vector<Job> one_a_server(const Core& core, const std::vector<Job>& jobs) {
  const servers::SharedRecord shared(core.config);
  std::vector<Job> firsts;
  std::set<std::string> known;
  for (const Job& job : jobs) {
    if (known.insert(job.server).second) {
      firsts.push_back(job);
      std::ranges::copy(shared.others(job.server), std::inserter(known, known.end()));
    }
  }
  return firsts;
}

// Creates results/, which git should ignore.
void make_results_folder(const fs::path& folder) {
  if (!is_there(folder)) {
    make_folders(folder);
    write_file_atomic(folder / ".gitignore", "*\n");
  }
}

void copy(Core& core, const Job& job, const std::vector<WrittenFile>& files, const fs::path& below,
          const ResultsRequest& request, Results& results) {
  make_results_folder(results.folder.parent_path());
  servers::PullOptions options;
  options.update = true;
  options.pipe_program = core.hooks.rsync_helper;
  options.on_progress = core.on_caller(request.on_progress);
  // In the folder of job-pull, which removes old partial files.
  options.partial_folder = core.config.local(".remote/sent/.pulls") /
                           Sha256().add_field(job.id.text()).add_field(job.server).hex().substr(0, 16);
  make_folders(options.partial_folder);
  std::ranges::transform(files, std::back_inserter(options.names), &WrittenFile::name);
  const auto connection = core.connector().connect(jobs::server_of(core.config, job), core.cancel());
  const SyncReport report = servers::sync_from(*connection, {job.remote_folder.project + "/"},
                                               results.folder / below, options, core.cancel());
  std::error_code ignored;
  fs::remove_all(options.partial_folder, ignored);
  for (const auto& [from, to] :
       {std::pair(&report.changed, &results.files), std::pair(&report.newer, &results.newer)}) {
    std::ranges::transform(*from, std::back_inserter(*to),
                           [&](const std::string& file) { return (below / file).string(); });
  }
  std::ranges::copy(report.warnings, std::back_inserter(results.warnings));
  results.bytes += report.bytes;
}

// The folder in results/KEY for a server's files: "" for the first server, otherwise the server's name.
// Throws Error if an output of the first server has such a name.
fs::path place_of(const std::vector<Job>& jobs, std::size_t index, const std::vector<WrittenFile>& files) {
  if (index > 0) {
    return jobs[index].server;
  }
  for (const Job& job : jobs) {
    if (&job != &jobs.front() && std::ranges::any_of(files, [&](const WrittenFile& file) {
          return lower_case(split(file.name, '/').front()) == lower_case(job.server);
        })) {
      throw Error(fmt::format("cannot copy '{}'", job.server),
                  fmt::format("results of the server '{}' are in a folder of that name", job.server),
                  "let the program write to another folder");
    }
  }
  return {};
}

// When the launch ran, by this server's clock.
servers::RunTime time_on(const PastLaunch& launch, const std::string& server) {
  const auto& setups = launch.beginning.servers;
  const auto setup = std::ranges::find(setups, server, &ServerSetup::server);
  const auto ahead = setup == setups.end() ? std::chrono::seconds(0)
                                           : std::chrono::floor<std::chrono::seconds>(setup->clock_ahead);
  servers::RunTime time{launch.began_at + ahead, std::nullopt};
  if (launch.ended_at) {
    time.to = *launch.ended_at + ahead + std::chrono::seconds(1);
  }
  return time;
}

Results pull_results(Core& core, const ResultsRequest& request) {
  const std::vector<std::string>& outputs = core.config.outputs;
  if (outputs.empty()) {
    throw Error::usage("cannot copy results", "configs.yaml does not say what launches write",
                       "add a line such as outputs: [checkpoints/, metrics.csv]");
  }
  const PastLaunch launch = History(core.config.project).launch(request.launch);
  if (launch.jobs.empty()) {
    throw Error("cannot copy results", "the launch has not started anything yet",
                "wait until it has started");
  }
  Results results;
  const fs::path name = fs::path("results") / std::to_string(launch.first_key);
  results.folder = own_folder(core, name);
  const std::vector<Job> jobs = one_a_server(core, launch.jobs);
  const auto found = servers::fan_out(jobs, &Job::server, [&](const Job& job, std::size_t) {
    const auto connection = core.connector().connect(jobs::server_of(core.config, job), core.cancel());
    return servers::find_written(*connection, job, launch.jobs, outputs, time_on(launch, job.server),
                                 core.cancel());
  });
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    try {
      if (!found[i].ok()) {
        throw *found[i].error;
      }
      std::vector<WrittenFile> files = found[i].value->files;
      if (const int odd = found[i].value->odd; odd > 0) {
        results.warnings.push_back(fmt::format(
            "{}: skipped {} with control characters in their names, or that control what runs here (.git)",
            jobs[i].server, counted(static_cast<std::size_t>(odd), "file")));
      }
      const fs::path below = place_of(jobs, i, files);
      own_folder(core, below.empty() ? name : name / below);
      std::vector<std::string> waiting;
      if (core.config.checkpoint) {
        files = servers::complete_files(std::move(files), *core.config.checkpoint, waiting);
      }
      std::ranges::transform(waiting, std::back_inserter(results.waiting),
                             [&](const std::string& file) { return (below / file).string(); });
      results.found += files.size();
      if (!files.empty()) {
        copy(core, jobs[i], files, below, request, results);
      }
    } catch (const Error& error) {
      results.errors.push_back(error.on(jobs[i].server));
    }
  }
  return results;
}

}  // namespace

}  // namespace remote::project

namespace remote {

Results Project::pull_results(const ResultsRequest& request, const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [&](project::Core& core) { return project::pull_results(core, request); });
}

}  // namespace remote
