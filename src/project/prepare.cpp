// Setup, sync and packages on all servers in parallel.

#include "servers/prepare.hpp"

#include <algorithm>
#include <future>
#include <map>
#include <set>
#include <utility>

#include "base/log.hpp"
#include "base/strings.hpp"
#include "project/code_check.hpp"
#include "project/core.hpp"
#include "project/unfetched.hpp"
#include "servers/fanout.hpp"
#include "servers/links.hpp"
#include "servers/patterns.hpp"
#include "servers/peers.hpp"
#include "servers/project_tree.hpp"
#include "servers/python_env.hpp"
#include "servers/shared.hpp"

namespace remote::project {
namespace {

// Reports the progress of one server, and keeps the output of a failed command.
class Listener : public servers::PrepareListener {
 public:
  Listener(Core& core, std::size_t server) : core_(core), server_(server) {}
  void step(PrepareStep step) override { core_.tell(StepBegun{server_, step}); }
  void waits_for(const std::string& server) override {
    core_.tell(StepBegun{server_, PrepareStep::shared, server});
  }
  void detail(const std::string& text, std::optional<double> fraction) override {
    core_.tell(StepDetail{server_, text, fraction});
  }
  void transfer(const TransferProgress& progress) override { core_.tell(TransferNews{server_, progress}); }
  void failed_output(const std::string& last_lines, const std::string& log) override {
    last_lines_ = last_lines;
    log_ = log;
  }
  void failed(const Error& error) const { core_.tell(ServerFailed{server_, error, last_lines_, log_}); }
  const std::string& log() const { return log_; }

 private:
  Core& core_;
  std::size_t server_;
  std::string last_lines_;
  std::string log_;
};

servers::PrepareSteps steps_of(const Core& core, const PrepareRequest& request) {
  servers::PrepareSteps steps;
  steps.setup = request.setup;
  steps.sync = request.sync;
  steps.packages = request.packages;
  steps.force = request.force;
  steps.verify = request.verify;
  steps.remove = request.remove;
  steps.sync_options.pipe_program = core.hooks.rsync_helper;
  steps.sync_options.dry_run = request.dry_run;
  steps.sync_options.update = !request.overwrite;
  steps.sync_options.bytes_per_second = request.bytes_per_second;
  if (steps.setup && core.config.python.manager == config::PythonManager::conda &&
      !core.config.python.version) {
    steps.default_python = servers::local_python_version();
  }
  return steps;
}

// They only use disk space.
void forget_old_trees(const Core& core) {
  try {
    servers::remove_old_trees(core.config);
  } catch (const Error& error) {
    log_info("", "{}", error.message());
  }
}

// Returns how many pulled files are not sent back. Errors are ignored here, because each server reports them.
std::size_t tell_keys(Core& core, const std::shared_future<servers::ProjectState>& state) {
  if (!state.valid()) {
    return 0;
  }
  try {
    for (const std::string& key : state.get().keys()) {
      core.tell(LinkLeftOut{key, "", LinkLeftOut::Why::secret});
    }
    return state.get().pulled().size();
  } catch (const Error& error) {
    log_info("", "{}", error.message());
  }
  return 0;
}

// Reads the project's own files before any server is contacted, so that an unreadable file stops the command
// with a single error.
void check_project_files(Core& core, const config::Config& config, const PrepareRequest& request) {
  if (request.setup || request.packages) {
    servers::package_sources(config);
  }
  auto useless = request.sync ? servers::useless_patterns(config) : std::vector<UselessPattern>();
  if (!useless.empty()) {
    core.tell(UselessPatterns{config.exclude_file, std::move(useless)});
  }
}

// Records which servers share a folder, for later calls with --delete.
void record_shared(Core& core, const std::vector<PrepareResult>& results) {
  std::vector<std::string> asked;
  std::map<std::string, std::vector<std::string>> groups;  // by the server that was prepared
  for (const PrepareResult& result : results) {
    if (!result.error) {
      asked.push_back(result.server);
      const std::string& first = result.report.shared_with;
      groups[first.empty() ? result.server : first].push_back(result.server);
    }
  }
  std::vector<std::vector<std::string>> found;
  for (auto& [first, group] : groups) {
    if (group.size() > 1) {
      found.push_back(std::move(group));
    }
  }
  try {
    servers::SharedRecord(core.config).update(asked, found);
  } catch (const Error& error) {
    core.tell(PartsFailed{{error}});
  }
}

// If another folder than the project is sent, the user has not allowed any of its links.
std::vector<std::string> left_links(Core& core, const config::Config& config) {
  std::vector<std::string> names;
  if (&config == &core.config) {
    return links_to_leave(core);
  }
  for (const auto& link : servers::outside_links(
           config, [](const auto&) { return false; }, core.cancel())) {
    names.push_back(link.name);
  }
  return names;
}

}  // namespace

std::vector<PrepareResult> prepare(Core& core, const PrepareRequest& request, const config::Config& config) {
  const std::vector<config::Server> servers = core.servers(request.servers);
  check_project_files(core, config, request);
  servers::PrepareSteps steps = steps_of(core, request);
  std::optional<servers::Peers> peers;
  if (request.through_peers && servers.size() > 1) {
    steps.peers = &peers.emplace(config);
  }
  std::optional<servers::SharedFolders> shared;
  if (servers.size() > 1 && !request.dry_run) {
    steps.shared = &shared.emplace();
  }
  if (steps.sync) {
    steps.sync_options.leave = left_links(core, config);
    steps.state = std::async(std::launch::async, [&core, &config, leave = steps.sync_options.leave] {
      servers::ProjectState state = servers::ProjectState::look(config, leave, core.cancel());
      tell_unfetched(core, config, state);
      return state;
    });
  }
  if (steps.sync && &config == &core.config) {
    wire::ProjectSource source = own_source(config);  // in a copy, it removes the original's records
    if (!request.dry_run && !source.folder_id.empty()) {
      steps.source = std::move(source);
    }
    const auto own_jobs = std::async(std::launch::deferred, [&core] { return find_own_jobs(core); }).share();
    steps.knows_job = [own_jobs](const std::string& id) { return own_jobs.get().contains(id); };
  }
  std::vector<std::string> logs(servers.size());
  const auto outcomes =
      servers::fan_out(servers, &config::Server::name, [&](const config::Server& server, std::size_t index) {
        Listener listener(core, index);
        try {
          const auto connection = core.connector().connect(server, core.cancel());
          PrepareReport report =
              servers::prepare(*connection, config, server, steps, listener, core.cancel());
          core.tell(ServerPrepared{index, report});
          return report;
        } catch (const Error& error) {
          logs[index] = listener.log();
          listener.failed(error);
          throw;
        }
      });
  if (steps.state.valid()) {
    forget_old_trees(core);
  }
  std::vector<PrepareResult> results;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    results.push_back(
        {servers[i].name, outcomes[i].value.value_or(PrepareReport{}), outcomes[i].error, logs[i]});
  }
  if (const std::size_t pulled = tell_keys(core, steps.state); pulled > 0) {
    results.front().report.notes.push_back("not sent back: " + counted(pulled, "file") +
                                           " that job-pull brought");
  }
  if (shared) {
    record_shared(core, results);
  }
  return results;
}

namespace {

FirstSync first_sync(Core& core, const std::vector<std::string>& globs) {
  FirstSync pending;
  const auto here = files_here(core.config, core.cancel());
  std::map<std::string, std::uint64_t> grown;  // by file: bytes missing on the server with the least of it
  for (const config::Server& server : core.servers(globs)) {
    const servers::ProjectState then = servers::last_sent(core.config, server.name);
    bool lacks = false;
    auto old = then.files().begin();
    for (const servers::FileStamp& file : here.files()) {
      old = std::find_if(old, then.files().end(), [&](const auto& one) { return one.name >= file.name; });
      const bool known = old != then.files().end() && old->name == file.name;
      if (!known || old->size < file.size) {
        std::uint64_t& bytes = grown[file.name];
        bytes = std::max(bytes, known ? file.size - old->size : file.size);
        lacks = true;
      }
    }
    if (lacks) {
      pending.servers.push_back(server.name);
    }
  }
  std::map<std::string, FirstSync::Part> parts;
  for (const auto& [name, bytes] : grown) {
    const std::string top =
        name.substr(0, name.find('/') == std::string::npos ? name.size() : name.find('/') + 1);
    FirstSync::Part& part = parts[top];
    part.name = top;
    part.bytes += bytes;
    ++part.files;
    pending.bytes += bytes;
    ++pending.files;
  }
  for (auto& [name, part] : parts) {
    pending.parts.push_back(std::move(part));
  }
  std::ranges::stable_sort(pending.parts, std::ranges::greater(), &FirstSync::Part::bytes);
  return pending;
}

}  // namespace

}  // namespace remote::project

namespace remote {

std::vector<PrepareResult> Project::prepare(const PrepareRequest& request,
                                            const std::optional<Cancel>& cancel) {
  return project::call_servers(
      *state_, cancel, [&](project::Core& core) { return project::prepare(core, request, core.config); });
}

FirstSync Project::first_sync(const std::vector<std::string>& servers, const std::optional<Cancel>& cancel) {
  return project::call(*state_, cancel,
                       [&](project::Core& core) { return project::first_sync(core, servers); });
}

}  // namespace remote
