// Telling somebody that a launch has ended, which its servers do: whom and what, what came of it, and a
// trial.

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/command.hpp"
#include "base/strings.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/protocol.hpp"
#include "jobs/refresh.hpp"
#include "jobs/verdict.hpp"
#include "project/history.hpp"
#include "project/launch_attempt.hpp"
#include "servers/action.hpp"
#include "servers/python_env.hpp"

namespace remote::project {
namespace {

// A line of the file `notify`; none for an empty value.
std::string line_of(std::string_view key, std::string_view value) {
  return value.empty() ? "" : fmt::format("{} {}\n", key, jobs::percent_encode(value));
}

// Whom to tell: a secret.
std::string lines_of(const config::Config& config, const config::Server& first) {
  const config::Notify& notify = *config.notify;
  return line_of("notify_command", notify.command) + line_of("url", notify.url) +
         line_of("shape", notify.shape) + line_of("folder", config.project_path_on(first)) +
         line_of("project", config.name);
}

struct TrialAnswer : NotifyTrial {
  void take(servers::AnswerLine& line) {
    if (line.kind() != "notify") {
      line.refuse_kind();
    }
    sent = line.choice<bool>(line.word(), {{"sent", true}, {"failed", false}}, "an unknown word");
    answer = line.rest();
  }
};

NotifyTrial try_notify(Core& core) {
  if (!core.config.notify) {
    throw Error::usage("nobody is to be told", "configs.yaml has no notify",
                       "add a line such as notify: {url: https://ntfy.sh/TOPIC, shape: ntfy}");
  }
  const config::Server server = core.servers({}).front();
  servers::Action<TrialAnswer> action;
  action.what = "notify";
  action.script.set("request", lines_of(core.config, server) + line_of("name", "notification"))
      .set("activate", servers::activation(core.config, server))
      .add("actions/notify_test.sh")
      .call("notify_test");
  action.timeout = std::chrono::seconds(90);
  try {
    const auto connection = core.connector().connect(server, core.cancel());
    TrialAnswer trial = servers::run_action(*connection, action, core.cancel(), TrialAnswer());
    trial.server = server.name;
    return trial;
  } catch (const Error& error) {
    throw error.on(server.name);
  }
}

}  // namespace

std::string LaunchAttempt::news_text(const Plan& plan) const {
  if (!core_.config.notify) {
    return "";
  }
  std::string servers;
  for (const config::Server& server : servers_) {
    servers += " " + jobs::percent_encode(server.name);
  }
  return lines_of(core_.config, servers_.front()) + line_of("name", request_.name) +
         line_of("command", mask_command(request_.command)) +
         fmt::format("servers{}\nranks {}\nbegan {}\n", servers, plan.world_size,
                     now_seconds().time_since_epoch().count());
}

std::string news_of(Core& core, const PastLaunch& launch) {
  // The servers try for an hour.
  constexpr std::chrono::minutes patience{70};
  try {
    const Job& job = launch.jobs.front();
    const auto connection = core.connector().connect(jobs::server_of(core.config, job), core.cancel(),
                                                     std::chrono::ceil<std::chrono::seconds>(ask_limit));
    const auto lines = jobs::last_lines(*connection, {job}, 1, {"notify.result"}, core.cancel());
    if (!lines.empty()) {
      return visible_line(lines.back(), 500);
    }
    // Its lifeline may have died: then this starts it again.
    jobs::ask_over(*connection, core.store, {job}, core.cancel());
  } catch (const Error&) {  // asked again the next time
  }
  return launch.ended_at.value_or(Instant()) + patience < now_seconds()
             ? "not known: the first server has not said"
             : "pending";
}

}  // namespace remote::project

namespace remote {

NotifyTrial Project::try_notify(const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [](project::Core& core) { return project::try_notify(core); });
}

}  // namespace remote
