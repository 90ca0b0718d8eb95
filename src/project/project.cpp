#include <remote/project.hpp>

#include "base/files.hpp"
#include "config/trust.hpp"
#include "jobs/select.hpp"
#include "launch/plan.hpp"
#include "project/check/check.hpp"
#include "project/core.hpp"
#include "project/report/report.hpp"
#include "ssh/pool.hpp"

namespace remote::project {

Core::Core(config::Config configuration, Hooks given, std::unique_ptr<ssh::Connector> connector)
    : config(std::move(configuration)),
      store(store_folder(config), {}, given.cancel),
      hooks(std::move(given)) {
  if (connector) {
    connector_ = std::make_unique<ssh::Pool>(std::move(connector));
  }
  for (const std::string& warning : config.warnings) {
    tell(ConfigWarning{warning});
  }
}

ssh::Connector& Core::connector() {
  require_trust();
  const std::lock_guard lock(connector_mutex_);
  if (!connector_) {
    ssh::ConnectorOptions options;
    options.ask = hooks.ask_secret;
    options.on_new_host_key = [this](const NewHostKey& key) { tell(key); };
    options.on_key_problem = [this](const Error& error) { tell(KeyProblem{error}); };
    connector_ = std::make_unique<ssh::Pool>(ssh::make_connector(config, std::move(options)));
  }
  return *connector_;
}

void Core::tell(const Event& event) {
  if (hooks.on_event) {
    const std::lock_guard lock(callbacks_);
    hooks.on_event(event);
  }
}

}  // namespace remote::project

namespace remote {

using project::Core;

namespace {

// A Core for one call, in which a link that breaks is an error and not a signal.
struct InUse {
  explicit InUse(Core& given) : core(given) {}
  Core& core;
  SigpipeGuard guard{};
  operator Core&() const { return core; }
};

// The same for a call that needs servers: whether it may is asked before anything is done.
struct WithServers : InUse {
  explicit WithServers(Core& given) : InUse(given) { core.require_trust(); }
};

}  // namespace

std::filesystem::path Project::find(const std::filesystem::path& start) {
  return config::find_project(start);
}

Project::Project(const std::filesystem::path& folder, Hooks hooks)
    : core_(std::make_unique<Core>(config::load(folder, hooks.strict), std::move(hooks))) {}
Project::Project(std::unique_ptr<Core> core) : core_(std::move(core)) {}
std::optional<Demand> Project::folder_demand(const std::filesystem::path& folder) {
  return config::folder_demand(folder);
}

void Project::allow(const std::filesystem::path& folder, const std::vector<Demand>& demands) {
  config::TrustStore(folder).allow(demands);
}

void Project::forget(const std::filesystem::path& folder) {
  config::TrustStore(folder).forget();
}

std::vector<Demand> Project::demands() {
  return project::demands(*core_);
}

void Project::require_trust() {
  core_->require_trust();
}

Project::~Project() {
  const SigpipeGuard guard;
  core_.reset();  // its connections say goodbye
}
Project::Project(Project&&) noexcept = default;
Project& Project::operator=(Project&&) noexcept = default;

const std::filesystem::path& Project::folder() const {
  return core_->config.project;
}

const std::string& Project::name() const {
  return core_->config.name;
}

std::vector<std::string> Project::server_names(const std::vector<std::string>& globs) const {
  std::vector<std::string> names;
  for (const config::Server& server : core_->servers(globs)) {
    names.push_back(server.name);
  }
  return names;
}

std::vector<LaunchHost> Project::resolve_hosts(const std::vector<LaunchHost>& hosts) const {
  return project::resolve_hosts(*core_, hosts);
}

LaunchDefaults Project::launch_defaults() const {
  const config::LaunchSettings& settings = core_->config.launch;
  if (settings.defaults.launcher) {
    try {
      launch::needs_port(*settings.defaults.launcher);
    } catch (const Error& error) {
      throw config::config_error(
          core_->config.file.string(), settings.launcher_mark,
          "'launcher' cannot be '" + config::printable(*settings.defaults.launcher) + "'", error.reason());
    }
  }
  return settings.defaults;
}

std::vector<ServerInfo> Project::servers(const std::vector<std::string>& globs) {
  return project::describe_servers(*core_, globs);
}

Report Project::report(const ReportRequest& request) {
  return project::report(WithServers{*core_}, request);
}

std::vector<Error> Project::mend(const CheckReport& report) {
  return project::mend(WithServers{*core_}, report);
}

CheckReport Project::check(const CheckRequest& request) {
  return project::check(WithServers{*core_}, request);
}

std::vector<ServerState> Project::server_states(const std::vector<std::string>& globs) {
  return project::server_states(WithServers{*core_}, globs);
}

void Project::watch(const WatchRequest& request) {
  project::watch(WithServers(*core_), request);
}

std::vector<ServerRun> Project::run(const RunRequest& request) {
  return project::run(WithServers{*core_}, request);
}

ServerRun Project::shell(const ShellRequest& request) {
  return project::shell(WithServers{*core_}, request);
}

std::vector<PrepareResult> Project::prepare(const PrepareRequest& request) {
  return project::prepare(WithServers{*core_}, request);
}

FirstSync Project::first_sync(const std::vector<std::string>& servers) {
  return project::first_sync(InUse{*core_}, servers);
}

Plan Project::plan(const LaunchRequest& request) {
  return project::plan(WithServers{*core_}, request);
}

LaunchResult Project::launch(const LaunchRequest& request) {
  const WithServers core{*core_};
  project::adopt_labml_jobs(core);  // their keys must not be given again
  return project::launch(core, request);
}

StartResult Project::start(const JobRequest& request) {
  const WithServers core{*core_};
  project::adopt_labml_jobs(core);
  return project::start(core, request);
}

const std::filesystem::path& Project::jobs_folder() const {
  return core_->store.folder();
}

std::vector<Job> Project::jobs(const JobsRequest& request) {
  return project::list(InUse{*core_}, request);
}

ProjectStatus Project::status() {
  return project::status(InUse{*core_});
}

void Project::status_was_told(const ProjectStatus& status) {
  project::status_was_told(InUse{*core_}, status);
}

std::vector<Job> Project::refresh(std::vector<Job> jobs) {
  return project::refresh(WithServers{*core_}, std::move(jobs));
}

std::vector<Job> Project::with_launch(const std::vector<Job>& jobs) {
  std::vector<Job> all = project::stored_jobs(*core_);
  std::erase_if(all, [&](const Job& job) {
    return std::none_of(jobs.begin(), jobs.end(), [&](const Job& one) {
      return job.id == one.id || (one.launch && job.launch == one.launch);
    });
  });
  return all;
}

Job Project::newest_master(const std::vector<std::string>& tags) {
  return jobs::default_to_follow(project::stored_jobs(*core_), tags);
}

FollowResult Project::follow(const std::vector<Job>& jobs, const FollowRequest& request) {
  return project::follow(WithServers{*core_}, jobs, request);
}

FollowResult Project::wait(const std::vector<Job>& jobs,
                           std::function<void(std::size_t, const Job&)> on_ended) {
  return project::wait(WithServers{*core_}, jobs, std::move(on_ended));
}

KillResult Project::kill(const std::vector<Job>& jobs, const KillRequest& request) {
  return project::kill(WithServers{*core_}, jobs, request, core_->cancel());
}

StacksResult Project::stacks(const std::vector<Job>& jobs) {
  return project::stacks(WithServers{*core_}, jobs);
}

SyncReport Project::pull(const PullRequest& request) {
  return project::pull(WithServers{*core_}, request);
}

std::vector<Error> Project::fetch_logs(const std::vector<Job>& jobs) {
  return project::fetch_logs(WithServers{*core_}, jobs);
}

CleanResult Project::clean(const std::vector<Job>& jobs) {
  return project::clean(WithServers{*core_}, jobs);
}

std::vector<AuthorizeResult> Project::authorize(const AuthorizeRequest& request) {
  return project::authorize(WithServers{*core_}, request);
}

}  // namespace remote
