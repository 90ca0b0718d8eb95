#include "cli/next_step.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <remote/verdict.hpp>

#include "base/paths.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/launches.hpp"
#include "sandbox/sandbox.hpp"

namespace remote::cli {
namespace fs = std::filesystem;
namespace {

bool runs(const Job& job) {
  return job.state == JobState::queued || job.state == JobState::starting || job.state == JobState::running;
}

std::string word(const std::string& text) {
  return shell_join({{text}});
}

std::string config_file(const Project& project) {
  std::error_code ignored;
  const fs::path file = project.folder() / ".remote/configs.yaml";
  const fs::path near = fs::proximate(file, ignored);
  return word((near.empty() ? file : near).string());
}

// Whether practice servers in configs.yaml are not running.
bool sandbox_is_down(Project& project) {
  const sandbox::Sandbox sandbox(project.folder());
  if (!is_folder(sandbox.folder())) {
    return false;
  }
  std::vector<sandbox::SandboxServer> practice;
  try {
    practice = sandbox.status();
  } catch (const Error&) {
    return false;  // this is only advice; `sandbox status` reports the error
  }
  return std::ranges::any_of(project.servers({}), [&](const ServerInfo& server) {
    const auto setting = [&](const char* name) {
      const auto found = std::ranges::find(server.settings, name, &ServerSetting::name);
      return found == server.settings.end() ? "" : found->value;
    };
    return setting("host") == "127.0.0.1" &&
           std::ranges::any_of(practice, [&](const sandbox::SandboxServer& one) {
             return one.pid == 0 && std::to_string(one.port) == setting("port");
           });
  });
}

// The first server with a problem in its settings.
std::optional<NextStep> settings_to_mend(Project& project) {
  for (const ServerInfo& server : project.servers({})) {
    if (server.error) {
      return NextStep{fmt::format("{}: {}; to see its settings", server.name, server.error->reason()),
                      "remote servers --verbose --server " + word(server.name)};
    }
    for (const ServerSetting& setting : server.settings) {
      if (!setting.problem.empty()) {
        return NextStep{fmt::format("{}: {} {} ({}): {}; to fix it", server.name, setting.name, setting.value,
                                    setting.from, setting.problem),
                        "${EDITOR:-vi} " + config_file(project)};
      }
    }
  }
  return std::nullopt;
}

// The Python file that is most likely the training script; train.py if none is.
std::string find_script(const fs::path& folder) {
  std::vector<std::string> scripts;
  for (const fs::path& file : entries_of(folder)) {
    if (file.extension() == ".py") {
      scripts.push_back(file.filename().string());
    }
  }
  for (const char* usual : {"train.py", "main.py"}) {
    if (std::ranges::find(scripts, usual) != scripts.end()) {
      return usual;
    }
  }
  return scripts.size() == 1 ? word(scripts.front()) : "train.py";
}

void add_failures(std::vector<NextStep>& steps, const ProjectStatus& status,
                  const std::vector<TableRow>& rows) {
  const auto add = [&](const Batch& batch) {
    // The job whose failure caused those of the others.
    const auto failed = verdict_of(batch).first;
    if (failed) {
      steps.push_back({fmt::format("to see why {} failed", describe(*failed)),
                       fmt::format("remote job-tail --job {}", failed->key)});
    }
    if (failed && failed->launch) {
      steps.push_back({"for the whole launch as one page",
                       fmt::format("remote report --launch {}", first_rank(batch).key)});
    }
    return failed.has_value();
  };
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (add(row->batch)) {
      return;
    }
  }
  // Shown until something else is started.
  if (!status.newest.empty() && status.newest.front().launch && is_over(status.newest)) {
    add(status.newest);
  }
}

}  // namespace

std::vector<NextStep> steps_to_a_project() {
  std::error_code ignored;
  const bool empty = fs::is_empty(current_folder(), ignored);
  return {{"to make this folder a project, with servers of your own", "remote init"},
          {"to try it on practice servers of this machine",
           empty ? "remote sandbox up --sample" : "remote sandbox up"},
          {"for all commands", "remote --help"}};
}

std::vector<NextStep> next_steps(Context& context, const ProjectStatus& status,
                                 const std::vector<TableRow>& rows) {
  Project& project = context.project();
  if (status.servers == 0) {
    return {{"to name your own servers, under `servers:`", "${EDITOR:-vi} " + config_file(project)},
            {"for practice servers of this machine", "remote sandbox up"}};
  }
  std::vector<NextStep> steps;
  const bool idle = status.unfinished.empty();
  const bool fresh = idle && !status.sent && !status.any_job;
  const bool down = sandbox_is_down(project);
  if (down) {
    steps.push_back({"some practice servers are down; to start them", "remote sandbox up"});
  } else if (const auto mend = fresh ? settings_to_mend(project) : std::nullopt) {
    steps.push_back(*mend);
  }
  if (!down &&
      std::ranges::find(status.unfinished, JobState::unknown, &Job::state) != status.unfinished.end()) {
    steps.push_back({"to see which servers answer", "remote servers"});
  }
  const auto newest = std::ranges::find_if(
      rows.rbegin(), rows.rend(), [&](const TableRow& row) { return std::ranges::any_of(row.batch, runs); });
  if (newest != rows.rend()) {
    const Job& job = first_rank(newest->batch);
    steps.push_back({job.rank ? "to follow rank 0" : "to follow it",
                     fmt::format("remote job-tail --{} {}", job.launch ? "launch" : "job", job.key)});
  }
  add_failures(steps, status, rows);
  const LaunchDefaults defaults = project.launch_defaults();
  const bool usual = defaults.command.has_value();
  if (!status.gone.empty()) {
    std::string command = "remote prepare";
    for (const std::string& server : status.gone) {
      command += " --server " + word(server);
    }
    steps.push_back(
        {fmt::format("the project's files are gone from {}; to send them again", join(status.gone, ", ")),
         std::move(command)});
  }
  if (fresh) {
    steps.push_back({"to make the servers ready", "remote prepare"});
  }
  // A launch that sends the project itself may not need preparation, such as that of `sandbox up --sample`.
  if (idle && status.gone.empty() && (!fresh || (usual && defaults.rsync.value_or(false)))) {
    steps.push_back({"to train", usual ? std::string("remote torch-launch")
                                       : "remote torch-launch --rsync -- " + find_script(project.folder())});
  }
  return steps;
}

}  // namespace remote::cli
