#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <remote/project.hpp>

#include "base/files.hpp"
#include "config/config.hpp"
#include "config/trust.hpp"
#include "jobs/site.hpp"
#include "project/callbacks.hpp"
#include "ssh/connector.hpp"

namespace remote::servers {
class ProjectState;
}

namespace remote::project {

// Timeout for connecting to servers that are only queried for news, and for each of their answers.
inline constexpr std::chrono::milliseconds ask_limit{3000};

class Core;

// State that a Project keeps between calls.
class State {
 public:
  // If the connector is nullptr, creates the real one, which uses libssh.
  State(config::Config configuration, Hooks given, std::unique_ptr<ssh::Connector> connector = nullptr);

  const config::Config config;
  const Hooks hooks;
  const std::filesystem::path store_folder;

 private:
  friend class Core;
  ssh::Connector& connector();
  // Questions to the program and news about connections, which all calls share, go to the newest running
  // call, because an older call may be waiting for it in a callback. Thread-safe.
  template <typename Answer>
  Answer ask(const std::function<Answer()>& question);
  void put(std::function<void()> news);

  std::atomic<bool> trusted_ = false;
  std::mutex trust_mutex_;  // so that only one thread asks
  std::mutex connector_mutex_;
  std::unique_ptr<ssh::Connector> connector_;  // created on first use
  std::mutex calls_mutex_;
  std::vector<Core*> calls_;                // newest last
  std::deque<std::function<void()>> news_;  // not yet delivered
  std::multiset<std::thread::id> asking_;   // threads that are waiting for an answer
};

// One call of a Project, shared by all of its steps. Thread-safe unless noted otherwise.
class Core {
 public:
  // Call on the calling thread. `own`: the request's token; both it and Hooks::cancel end the call.
  explicit Core(State& state, const std::optional<Cancel>& own = {});
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  const config::Config& config;
  const Hooks& hooks;

 private:
  State& state_;
  const std::optional<Cancel> own_;
  Cancel stop_;

 public:
  jobs::Store store;

  const Cancel& cancel() const { return stop_; }
  // Asks the user to allow the demands of the settings on this machine. Throws Error (usage) if the answer is
  // no.
  void require_trust();
  // Whether the user allows these; a yes is remembered.
  bool ask_for(const std::vector<Demand>& demands);
  ssh::Connector& connector();
  // The context for operations on jobs.
  jobs::Site site() { return {config, store, connector(), stop_}; }

  // Delivers an event to the program.
  void tell(const Event& event);
  // Wraps a callback so that any thread may call it: its arguments are copied, and it runs on the calling
  // thread.
  template <typename... Arguments>
  std::function<void(Arguments...)> on_caller(std::function<void(Arguments...)> callback);
  // Wraps a callback that returns a value; the wrapper waits for it.
  template <typename Answer>
  std::function<Answer()> asked_of_caller(std::function<Answer()> callback);
  // Waits until all posted callbacks have run, so that the objects they refer to can be destroyed.
  void settle();

  // Runs `work` on a new thread and the callbacks on this one, until both are finished. Throws a callback's
  // exception, or else that of `work` (Error or Interrupted).
  void carry_out(const std::function<void()>& work);

  std::vector<config::Server> servers(const std::vector<std::string>& globs) const {
    return config::select_servers(config, globs);
  }
  // The only server that matches this name or glob, to run `thing` on ("a job"). Throws Error (usage); `what`
  // is the failed operation.
  config::Server one_server(const std::string& glob, const std::string& what,
                            const std::string& thing) const {
    std::vector<config::Server> found = servers({glob});
    if (found.size() != 1) {
      throw Error::usage(what, "'" + glob + "' names more than one server",
                         thing + " runs on one server; name it in full");
    }
    return std::move(found.front());
  }

 private:
  friend class State;
  void stop_if_cancelled();
  void take_turn();
  void take_news();

  const bool in_question_;  // called from ask_secret or allow, while a server waits for the answer
  Callbacks callbacks_;
};

// Waits at the end of a scope until the callbacks that refer to its local variables have run.
class SettledAtTheEnd {
 public:
  explicit SettledAtTheEnd(Core& core) : core_(core) {}
  SettledAtTheEnd(const SettledAtTheEnd&) = delete;
  SettledAtTheEnd& operator=(const SettledAtTheEnd&) = delete;
  ~SettledAtTheEnd() { core_.settle(); }

 private:
  Core& core_;
};

// The type that stores a callback's argument until the callback runs.
template <typename Argument>
struct Kept {
  using Type = std::decay_t<Argument>;
  static std::size_t bytes(const Type&) { return 0; }
};
template <>
struct Kept<std::string_view> {
  using Type = std::string;
  static std::size_t bytes(std::string_view text) { return text.size(); }
};

template <typename... Arguments>
std::function<void(Arguments...)> Core::on_caller(std::function<void(Arguments...)> callback) {
  if (!callback) {
    return {};
  }
  const auto shared = std::make_shared<std::function<void(Arguments...)>>(std::move(callback));
  return [this, shared](Arguments... arguments) {
    const std::size_t bytes = (std::size_t{0} + ... + Kept<Arguments>::bytes(arguments));
    callbacks_.post([shared, kept = std::tuple<typename Kept<Arguments>::Type...>(
                                 arguments...)] { std::apply(*shared, kept); },
                    bytes);
  };
}

// Lets another thread run `callback`, and waits for its result. Throws Interrupted if it does not run because
// another callback threw.
template <typename Answer>
Answer answer_of(const std::function<Answer()>& callback, const auto& hand_over) {
  auto promise = std::make_shared<std::promise<Answer>>();
  std::future<Answer> answer = promise->get_future();
  hand_over([promise = std::move(promise), callback] {
    try {
      if constexpr (std::is_void_v<Answer>) {
        callback();
        promise->set_value();
      } else {
        promise->set_value(callback());
      }
    } catch (...) {
      promise->set_exception(std::make_exception_ptr(Interrupted()));
      throw;
    }
  });
  try {
    return answer.get();
  } catch (const std::future_error&) {
    throw Interrupted();
  }
}

template <typename Answer>
Answer State::ask(const std::function<Answer()>& question) {
  const std::function<Answer()> counted = [this, &question] {
    struct Asking {
      State& state;
      std::multiset<std::thread::id>::iterator at;
      explicit Asking(State& given) : state(given) {
        const std::lock_guard lock(state.calls_mutex_);
        at = state.asking_.insert(std::this_thread::get_id());
      }
      ~Asking() {
        const std::lock_guard lock(state.calls_mutex_);
        state.asking_.erase(at);
      }
    } const asking(*this);
    return question();
  };
  return answer_of<Answer>(counted, [this](std::function<void()> ask_now) { put(std::move(ask_now)); });
}

template <typename Answer>
std::function<Answer()> Core::asked_of_caller(std::function<Answer()> callback) {
  if (!callback) {
    return {};
  }
  return [this, callback = std::move(callback)] {
    return answer_of<Answer>(callback,
                             [this](std::function<void()> run) { callbacks_.post(std::move(run)); });
  };
}

// Runs a call of Project. A broken connection is an error, not a SIGPIPE.
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

// For a call that may write to the project's folders: first asks whether those that lead outside the project
// are allowed.
template <typename Work>
auto call_here(State& state, const std::optional<Cancel>& cancel, const Work& work) {
  return call(state, cancel, [&](Core& core) {
    if (!config::folder_demands(core.config).empty()) {
      core.require_trust();
    }
    return work(core);
  });
}

// For a call that needs servers: first asks for everything that the settings require.
template <typename Work>
auto call_servers(State& state, const std::optional<Cancel>& cancel, const Work& work) {
  return call(state, cancel, [&](Core& core) {
    core.require_trust();
    return work(core);
  });
}

// Steps that several calls of Project share.

void watch(Core& core, const WatchRequest& request);
std::vector<ServerRun> run(Core& core, const RunRequest& request);

std::vector<LaunchHost> resolve_hosts(const Core& core, const std::vector<LaunchHost>& hosts);
LaunchResult launch(Core& core, const LaunchRequest& request);
// Sends the files of config.project: the project, or another folder with a .remote.
std::vector<PrepareResult> prepare(Core& core, const PrepareRequest& request, const config::Config& config);

std::vector<Job> list(Core& core, const JobsRequest& request);
// The folder for job records on this machine: the configured folder or, if labml_remote has its jobs there,
// one next to it. labml_remote assumes that each name in that folder is one of its own jobs, and fails to
// start if one is not.
std::filesystem::path store_folder(const config::Config& config);
// Creates records for jobs that labml_remote has started in this project since the last call. Its own records
// are not changed. These jobs are then treated like all others: listed, queried, stopped, and their keys are
// not reused.
void adopt_labml_jobs(const Core& core);
std::vector<Job> stored_jobs(Core& core, const jobs::Store::Filter& filter = {});
// Whether the job with this id is recorded here, and how many of these ids are not.
bool has_record(const Core& core, const std::string& id);
std::size_t count_unrecorded(const Core& core, const std::vector<std::string>& ids);
// The ids of the recorded jobs that were started from this folder. If it is a copy, the original's jobs are
// recorded, too.
std::set<std::string> find_own_jobs(const Core& core);
std::vector<Job> refresh(Core& core, std::vector<Job> jobs, std::chrono::milliseconds patience = ask_limit);
// Whether servers cannot reach each other. For a rank of the first server, false means that no server is
// missing, or that its lifeline may still be starting.
bool lacks_lifeline(const Job& job);
// Reports which of these jobs have no lifeline; returns whether there were any.
bool tell_missing_lifelines(Core& core, const std::vector<Job>& jobs);

// `ended`: ranks of the same launch that need not be followed.
FollowResult follow(Core& core, const std::vector<Job>& jobs, const FollowRequest& request,
                    const std::vector<Job>& ended = {});
// The verdict about a launch, including the last lines of the rank that failed first.
Verdict judge(Core& core, const std::vector<Job>& jobs, const std::vector<std::string>& gone);

KillResult kill(Core& core, const std::vector<Job>& jobs, const KillRequest& request, const Cancel& cancel,
                ssh::ConnectLimit limit = {});
std::vector<Error> fetch_logs(Core& core, const std::vector<Job>& jobs);

// The links that must not be followed when the project is sent, because the user has not allowed it; by their
// names in the project. Asks the user, and reports skipped links.
std::vector<std::string> links_to_leave(Core& core);

// The files that would be sent now, without asking the user.
servers::ProjectState files_here(const config::Config& config, const Cancel& cancel);

// The user of this call: "ada@laptop".
std::string user_at_host();

// The variables for a command or job on a server: those of the server, then those of the request, which
// override them.
inline Env job_env(const config::Server& server, const Env& request) {
  Env env = server.variables();
  env.insert(env.end(), request.begin(), request.end());
  return env;
}

}  // namespace remote::project
