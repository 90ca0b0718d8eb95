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

// How long servers that are only asked for news may take to connect, and then be silent.
inline constexpr std::chrono::milliseconds ask_limit{3000};

class Core;

// What a Project keeps between its calls.
class State {
 public:
  // A null connector is replaced by the real one, over libssh.
  State(config::Config configuration, Hooks given, std::unique_ptr<ssh::Connector> connector = nullptr);

  const config::Config config;
  const Hooks hooks;
  const std::filesystem::path store_folder;

 private:
  friend class Core;
  ssh::Connector& connector();
  // Questions to the program and news of the connections, which all calls share, are for the newest of the
  // calls that are under way: another one may wait for it, in a callback. Any thread.
  template <typename Answer>
  Answer ask(const std::function<Answer()>& question);
  void put(std::function<void()> news);

  std::atomic<bool> trusted_ = false;
  std::mutex trust_mutex_;  // one question, whoever comes first
  std::mutex connector_mutex_;
  std::unique_ptr<ssh::Connector> connector_;  // made when it is first asked for
  std::mutex calls_mutex_;
  std::vector<Core*> calls_;                // the newest one last
  std::deque<std::function<void()>> news_;  // that nobody has taken yet
  std::multiset<std::thread::id> asking_;   // the threads that are at a question
};

// One call of a Project: what its steps work with. Everything may be used by any thread, where nothing else
// is said.
class Core {
 public:
  // On the thread that calls. `own` is the request's; it and Hooks::cancel both end the call.
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
  // Asks for what the settings want of this machine. Throws Error (usage) where it is not allowed.
  void require_trust();
  // Whether the user allows this; yes is remembered.
  bool ask_for(const std::vector<Demand>& demands);
  // The connections of this project.
  ssh::Connector& connector();
  // What the actions on jobs work with.
  jobs::Site site() { return {config, store, connector(), stop_}; }

  // Hands an event over.
  void tell(const Event& event);
  // The callback as one that any thread may call: its arguments are copied, and the calling thread gets them.
  template <typename... Arguments>
  std::function<void(Arguments...)> on_caller(std::function<void(Arguments...)> callback);
  // The same for one that answers, which is waited for.
  template <typename Answer>
  std::function<Answer()> asked_of_caller(std::function<Answer()> callback);
  // Waits until all callbacks that were handed over have been run: what they refer to may go then.
  void settle();

  // Runs `work` on a thread of its own and the callbacks on this one, to the end of both. Throws what a
  // callback threw, else what `work` threw, as an Error or Interrupted.
  void carry_out(const std::function<void()>& work);

  std::vector<config::Server> servers(const std::vector<std::string>& globs) const {
    return config::select_servers(config, globs);
  }
  // The only one of that name or glob, on which `thing` runs ("a job"). Throws Error (usage), of which `what`
  // is what fails.
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

  const bool in_question_;  // made from ask_secret or allow, for which a server waits
  Callbacks callbacks_;
};

// At the end of a scope: waits until the callbacks that refer to what is in it have been run.
class SettledAtTheEnd {
 public:
  explicit SettledAtTheEnd(Core& core) : core_(core) {}
  SettledAtTheEnd(const SettledAtTheEnd&) = delete;
  SettledAtTheEnd& operator=(const SettledAtTheEnd&) = delete;
  ~SettledAtTheEnd() { core_.settle(); }

 private:
  Core& core_;
};

// How a callback's argument is kept until the calling thread gets it.
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

// Has a thread run `callback` and waits for what it returns. Throws Interrupted where it is not run, because
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

// The same for a call that may write into the project's folders: whether they may lie where they do is asked
// before anything is done.
template <typename Work>
auto call_here(State& state, const std::optional<Cancel>& cancel, const Work& work) {
  return call(state, cancel, [&](Core& core) {
    if (!config::folder_demands(core.config).empty()) {
      core.require_trust();
    }
    return work(core);
  });
}

// The same for a call that needs servers, and all that the settings ask for.
template <typename Work>
auto call_servers(State& state, const std::optional<Cancel>& cancel, const Work& work) {
  return call(state, cancel, [&](Core& core) {
    core.require_trust();
    return work(core);
  });
}

// What calls of Project have their steps in common with.

void watch(Core& core, const WatchRequest& request);
std::vector<ServerRun> run(Core& core, const RunRequest& request);

std::vector<LaunchHost> resolve_hosts(const Core& core, const std::vector<LaunchHost>& hosts);
LaunchResult launch(Core& core, const LaunchRequest& request);
// Sends what is in config.project: the project, or in its place another folder with a .remote.
std::vector<PrepareResult> prepare(Core& core, const PrepareRequest& request, const config::Config& config);

std::vector<Job> list(Core& core, const JobsRequest& request);
// Where the jobs are recorded here: the configured folder, or one beside it where labml_remote has its jobs.
// labml_remote takes each name in that folder for a job of its own, and does not start where one is not.
std::filesystem::path store_folder(const config::Config& config);
// Makes records of the jobs that labml_remote has started in this project since, beside its own, which stay
// as they are. They are then jobs as all others: listed, asked about, ended, and their keys are not given
// again.
void adopt_labml_jobs(const Core& core);
std::vector<Job> stored_jobs(Core& core, const jobs::Store::Filter& filter = {});
// Whether the job with this id is recorded here, and how many of these are not.
bool has_record(const Core& core, const std::string& id);
std::size_t count_unrecorded(const Core& core, const std::vector<std::string>& ids);
std::vector<Job> refresh(Core& core, std::vector<Job> jobs, std::chrono::milliseconds patience = ask_limit);
// Whether servers miss each other. Of the first server's rank: else it may still begin, and misses nobody.
bool lacks_lifeline(const Job& job);
// Tells which of these jobs run without a lifeline; whether there was one.
bool tell_missing_lifelines(Core& core, const std::vector<Job>& jobs);

// `ended`: ranks of the same launch that need no following.
FollowResult follow(Core& core, const std::vector<Job>& jobs, const FollowRequest& request,
                    const std::vector<Job>& ended = {});
// The verdict about a launch, with the last lines that its first failed rank wrote.
Verdict judge(Core& core, const std::vector<Job>& jobs, const std::vector<std::string>& gone);

KillResult kill(Core& core, const std::vector<Job>& jobs, const KillRequest& request, const Cancel& cancel,
                ssh::ConnectLimit limit = {});
std::vector<Error> fetch_logs(Core& core, const std::vector<Job>& jobs);

// What the project wants and the user has not allowed: settings and links.
// The links that are not to be followed when the project is sent, by their names in it; asks and tells.
std::vector<std::string> links_to_leave(Core& core);

// What would be sent now, without a question.
servers::ProjectState files_here(const config::Config& config, const Cancel& cancel);

// "ada@laptop": who does this.
std::string user_at_host();

// What a command or job on a server gets: the server's variables, and those of the request, which win.
inline Env job_env(const config::Server& server, const Env& request) {
  Env env = server.variables();
  env.insert(env.end(), request.begin(), request.end());
  return env;
}

}  // namespace remote::project
