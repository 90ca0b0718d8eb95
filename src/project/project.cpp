#include <algorithm>
#include <array>
#include <thread>
#include <type_traits>

#include <poll.h>
#include <remote/project.hpp>

#include "base/error_of.hpp"
#include "base/files.hpp"
#include "config/trust.hpp"
#include "jobs/select.hpp"
#include "launch/plan.hpp"
#include "project/check/check.hpp"
#include "project/core.hpp"
#include "project/report/report.hpp"
#include "ssh/pool.hpp"

namespace remote::project {

State::State(config::Config configuration, Hooks given, std::unique_ptr<ssh::Connector> connector)
    : config(std::move(configuration)), hooks(std::move(given)), store_folder(project::store_folder(config)) {
  if (connector) {
    connector_ = std::make_unique<ssh::Pool>(std::move(connector));
  }
  for (const std::string& warning : config.warnings) {
    if (hooks.on_event) {
      hooks.on_event(ConfigWarning{warning});
    }
  }
}

ssh::Connector& State::connector() {
  const std::lock_guard lock(connector_mutex_);
  if (!connector_) {
    ssh::ConnectorOptions options;
    if (hooks.ask_secret) {
      options.ask = [this](const std::string& prompt) {
        return ask<std::optional<std::string>>([&] { return hooks.ask_secret(prompt); });
      };
    }
    if (hooks.on_event) {
      options.on_new_host_key = [this](const NewHostKey& key) { put([this, key] { hooks.on_event(key); }); };
      options.on_key_problem = [this](const Error& error) {
        put([this, error] { hooks.on_event(KeyProblem{error}); });
      };
    }
    connector_ = std::make_unique<ssh::Pool>(ssh::make_connector(config, std::move(options)));
  }
  return *connector_;
}

void State::put(std::function<void()> news) {
  const std::lock_guard lock(calls_mutex_);
  news_.push_back(std::move(news));
  if (!calls_.empty()) {
    calls_.back()->callbacks_.wake();
  }
}

Core::Core(State& state, const std::optional<Cancel>& own)
    : config(state.config),
      hooks(state.hooks),
      state_(state),
      own_(own),
      store(state.store_folder, {}, stop_),
      in_question_([&] {
        const std::lock_guard lock(state.calls_mutex_);
        return state.asking_.contains(std::this_thread::get_id());
      }()) {
  const std::lock_guard lock(state_.calls_mutex_);
  state_.calls_.push_back(this);
}

Core::~Core() {
  const std::lock_guard lock(state_.calls_mutex_);
  std::erase(state_.calls_, this);
  if (!state_.news_.empty() && !state_.calls_.empty()) {  // that came when this call was at its end
    state_.calls_.back()->callbacks_.wake();
  }
}

ssh::Connector& Core::connector() {
  require_trust();
  return state_.connector();
}

void Core::tell(const Event& event) {
  if (hooks.on_event) {
    callbacks_.post([this, event] { hooks.on_event(event); });
  }
}

void Core::settle() {
  auto done = std::make_shared<std::promise<void>>();
  const std::future<void> settled = done->get_future();
  callbacks_.post([done = std::move(done)] { done->set_value(); });
  settled.wait();
}

void Core::take_news() {
  for (;;) {
    std::function<void()> news;
    {
      const std::lock_guard lock(state_.calls_mutex_);
      if (state_.news_.empty()) {
        return;
      }
      news = std::move(state_.news_.front());
      state_.news_.pop_front();
    }
    callbacks_.run_now(news);
  }
}

void Core::take_turn() {
  take_news();  // also what has waited for an outer call
  const auto fd_of = [&](const Cancel& cancel) { return stop_.cancelled() ? -1 : cancel.fd(); };
  std::array<pollfd, 3> slots{{{callbacks_.fd(), POLLIN, 0},
                               {fd_of(hooks.cancel), POLLIN, 0},
                               {fd_of(own_ ? *own_ : hooks.cancel), POLLIN, 0}}};
  static_cast<void>(::poll(slots.data(), slots.size(), -1));
  if (hooks.cancel.cancelled() || (own_ && own_->cancelled())) {
    stop_.cancel();
  }
  take_news();
  callbacks_.run();
  if (callbacks_.failed()) {
    stop_.cancel();
  }
}

void Core::carry_out(const std::function<void()>& work) {
  std::exception_ptr failure;
  std::atomic<bool> over = false;
  std::thread body([&] {
    try {
      work();
    } catch (const Interrupted&) {
      failure = std::current_exception();
    } catch (const Error&) {
      failure = std::current_exception();
    } catch (const std::exception& error) {
      failure = std::make_exception_ptr(error_of(error));
    }
    over = true;
    callbacks_.wake();
  });
  while (!over) {
    take_turn();
  }
  body.join();
  take_news();
  while (callbacks_.run()) {
  }
  callbacks_.rethrow();
  if (failure) {
    std::rethrow_exception(failure);
  }
}

}  // namespace remote::project

namespace remote {

using project::Core;
using project::State;

namespace {

// Makes a call, in which a link that breaks is an error and not a signal.
template <typename Work>
auto call(State& state, const std::optional<Cancel>& cancel, const Work& work) {
  const SigpipeGuard guard;
  Core core(state, cancel);
  using Result = std::invoke_result_t<Work, Core&>;
  if constexpr (std::is_void_v<Result>) {
    core.carry_out([&] { work(core); });
  } else {
    std::optional<Result> result;
    core.carry_out([&] { result.emplace(work(core)); });
    return std::move(*result);
  }
}

// The same for a call that needs servers: whether it may is asked before anything is done.
template <typename Work>
auto call_servers(State& state, const std::optional<Cancel>& cancel, const Work& work) {
  return call(state, cancel, [&](Core& core) {
    core.require_trust();
    return work(core);
  });
}

}  // namespace

std::filesystem::path Project::find(const std::filesystem::path& start) {
  return config::find_project(start);
}

Project::Project(const std::filesystem::path& folder, Hooks hooks)
    : state_(std::make_unique<State>(config::load(folder, hooks.strict), std::move(hooks))) {}
Project::Project(std::unique_ptr<State> state) : state_(std::move(state)) {}
Project project::project_of(std::unique_ptr<State> state) {
  return Project(std::move(state));
}
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
  return call(*state_, {}, [](Core& core) { return project::demands(core); });
}

void Project::require_trust() {
  call_servers(*state_, {}, [](Core&) {});
}

Project::~Project() {
  const SigpipeGuard guard;
  state_.reset();  // its connections say goodbye
}
Project::Project(Project&&) noexcept = default;
Project& Project::operator=(Project&&) noexcept = default;

const std::filesystem::path& Project::folder() const {
  return state_->config.project;
}

const std::string& Project::name() const {
  return state_->config.name;
}

std::vector<std::string> Project::server_names(const std::vector<std::string>& globs) const {
  std::vector<std::string> names;
  for (const config::Server& server : config::select_servers(state_->config, globs)) {
    names.push_back(server.name);
  }
  return names;
}

std::vector<LaunchHost> Project::resolve_hosts(const std::vector<LaunchHost>& hosts) const {
  return call(*state_, {}, [&](Core& core) { return project::resolve_hosts(core, hosts); });
}

LaunchDefaults Project::launch_defaults() const {
  const config::LaunchSettings& settings = state_->config.launch;
  if (settings.defaults.launcher) {
    try {
      launch::needs_port(*settings.defaults.launcher);
    } catch (const Error& error) {
      throw config::config_error(
          state_->config.file.string(), settings.launcher_mark,
          "'launcher' cannot be '" + config::printable(*settings.defaults.launcher) + "'", error.reason());
    }
  }
  return settings.defaults;
}

std::vector<ServerInfo> Project::servers(const std::vector<std::string>& globs) {
  return call(*state_, {}, [&](Core& core) { return project::describe_servers(core, globs); });
}

Report Project::report(const ReportRequest& request, const std::optional<Cancel>& cancel) {
  return call_servers(*state_, cancel, [&](Core& core) { return project::report(core, request); });
}

std::vector<Error> Project::mend(const CheckReport& report, const std::optional<Cancel>& cancel) {
  return call_servers(*state_, cancel, [&](Core& core) { return project::mend(core, report); });
}

CheckReport Project::check(const CheckRequest& request, const std::optional<Cancel>& cancel) {
  return call_servers(*state_, cancel, [&](Core& core) { return project::check(core, request); });
}

std::vector<ServerState> Project::server_states(const std::vector<std::string>& globs,
                                                const std::optional<Cancel>& cancel) {
  return call_servers(*state_, cancel, [&](Core& core) { return project::server_states(core, globs); });
}

void Project::watch(const WatchRequest& request, const std::optional<Cancel>& cancel) {
  call_servers(*state_, cancel, [&](Core& core) { project::watch(core, request); });
}

std::vector<ServerRun> Project::run(const RunRequest& request, const std::optional<Cancel>& cancel) {
  return call_servers(*state_, cancel, [&](Core& core) { return project::run(core, request); });
}

ServerRun Project::shell(const ShellRequest& request, const std::optional<Cancel>& cancel) {
  return call_servers(*state_, cancel, [&](Core& core) { return project::shell(core, request); });
}

std::vector<PrepareResult> Project::prepare(const PrepareRequest& request,
                                            const std::optional<Cancel>& cancel) {
  return call_servers(*state_, cancel, [&](Core& core) { return project::prepare(core, request); });
}

FirstSync Project::first_sync(const std::vector<std::string>& servers, const std::optional<Cancel>& cancel) {
  return call(*state_, cancel, [&](Core& core) { return project::first_sync(core, servers); });
}

Plan Project::plan(const LaunchRequest& request, const std::optional<Cancel>& cancel) {
  return call_servers(*state_, cancel, [&](Core& core) { return project::plan(core, request); });
}

LaunchResult Project::launch(const LaunchRequest& request, const std::optional<Cancel>& cancel) {
  return call_servers(*state_, cancel, [&](Core& core) {
    project::adopt_labml_jobs(core);  // their keys must not be given again
    return project::launch(core, request);
  });
}

StartResult Project::start(const JobRequest& request, const std::optional<Cancel>& cancel) {
  return call_servers(*state_, cancel, [&](Core& core) {
    project::adopt_labml_jobs(core);  // their keys must not be given again
    return project::start(core, request);
  });
}

const std::filesystem::path& Project::jobs_folder() const {
  return state_->store_folder;
}

std::vector<Job> Project::jobs(const JobsRequest& request, const std::optional<Cancel>& cancel) {
  return call(*state_, cancel, [&](Core& core) { return project::list(core, request); });
}

ProjectStatus Project::status(const std::optional<Cancel>& cancel) {
  return call(*state_, cancel, [&](Core& core) { return project::status(core); });
}

void Project::status_was_told(const ProjectStatus& status) {
  call(*state_, {}, [&](Core& core) { project::status_was_told(core, status); });
}

std::vector<Job> Project::refresh(std::vector<Job> jobs, const std::optional<Cancel>& cancel) {
  return call_servers(*state_, cancel, [&](Core& core) { return project::refresh(core, std::move(jobs)); });
}

std::vector<Job> Project::with_launch(const std::vector<Job>& jobs) {
  std::vector<Job> all = call(*state_, {}, [](Core& core) { return project::stored_jobs(core); });
  std::erase_if(all, [&](const Job& job) {
    return std::none_of(jobs.begin(), jobs.end(), [&](const Job& one) {
      return job.id == one.id || (one.launch && job.launch == one.launch);
    });
  });
  return all;
}

Job Project::newest_master(const std::vector<std::string>& tags) {
  return call(*state_, {},
              [&](Core& core) { return jobs::default_to_follow(project::stored_jobs(core), tags); });
}

FollowResult Project::follow(const std::vector<Job>& jobs, const FollowRequest& request,
                             const std::optional<Cancel>& cancel) {
  return call_servers(*state_, cancel, [&](Core& core) { return project::follow(core, jobs, request); });
}

FollowResult Project::wait(const std::vector<Job>& jobs,
                           std::function<void(std::size_t, const Job&)> on_ended,
                           const std::optional<Cancel>& cancel) {
  return call_servers(*state_, cancel, [&](Core& core) { return project::wait(core, jobs, on_ended); });
}

KillResult Project::kill(const std::vector<Job>& jobs, const KillRequest& request,
                         const std::optional<Cancel>& cancel) {
  return call_servers(*state_, cancel,
                      [&](Core& core) { return project::kill(core, jobs, request, core.cancel()); });
}

StacksResult Project::stacks(const std::vector<Job>& jobs, const std::optional<Cancel>& cancel) {
  return call_servers(*state_, cancel, [&](Core& core) { return project::stacks(core, jobs); });
}

SyncReport Project::pull(const PullRequest& request, const std::optional<Cancel>& cancel) {
  return call_servers(*state_, cancel, [&](Core& core) { return project::pull(core, request); });
}

std::vector<Error> Project::fetch_logs(const std::vector<Job>& jobs, const std::optional<Cancel>& cancel) {
  return call_servers(*state_, cancel, [&](Core& core) { return project::fetch_logs(core, jobs); });
}

CleanResult Project::clean(const std::vector<Job>& jobs, const std::optional<Cancel>& cancel) {
  return call_servers(*state_, cancel, [&](Core& core) { return project::clean(core, jobs); });
}

std::vector<AuthorizeResult> Project::authorize(const AuthorizeRequest& request,
                                                const std::optional<Cancel>& cancel) {
  return call_servers(*state_, cancel, [&](Core& core) { return project::authorize(core, request); });
}

}  // namespace remote
