// Telling somebody that a launch has ended, which its servers do: whom and what, what came of it, and a
// trial.

#include "jobs/notify.hpp"

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/command.hpp"
#include "base/strings.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/verdict.hpp"
#include "project/history.hpp"
#include "project/launch_attempt.hpp"
#include "servers/python_env.hpp"

namespace remote::project {

std::string LaunchAttempt::news_text(const Plan& plan) const {
  const config::Config& config = core_.config;
  if (!config.notify) {
    return "";
  }
  std::string servers;
  int ranks = 0;
  for (const PlannedProcess& process : plan.processes) {
    ranks += process.ranks;
  }
  for (const config::Server& server : servers_) {
    servers += " " + jobs::percent_encode(server.name);
  }
  return jobs::notify_lines(*config.notify, config.project_path_on(servers_.front())) +
         jobs::notify_line("project", config.name) + jobs::notify_line("name", request_.name) +
         jobs::notify_line("command", mask_command(request_.command)) + "servers" + servers + "\n" +
         fmt::format("ranks {}\nbegan {}\n", ranks, now_seconds());
}

std::string news_of(Core& core, const PastLaunch& launch) {
  // The servers try for an hour.
  constexpr std::int64_t patience_s = 4200;
  try {
    const Job& job = launch.jobs.front();
    const auto connection = core.connector().connect(jobs::server_of(core.config, job), core.cancel(),
                                                     std::chrono::ceil<std::chrono::seconds>(ask_limit));
    const auto lines = jobs::last_lines(*connection, job, 1, {"notify.result"}, core.cancel());
    if (!lines.empty()) {
      return visible_line(lines.back(), 500);
    }
  } catch (const Error&) {  // asked again the next time
  }
  return launch.ended_at.value_or(0) + patience_s < now_seconds() ? "not known: the first server has not said"
                                                                  : "pending";
}

namespace {

NotifyTrial try_notify(Core& core) {
  if (!core.config.notify) {
    throw Error::usage("nobody is to be told", "configs.yaml has no notify",
                       "add a line such as notify: {url: https://ntfy.sh/TOPIC, shape: ntfy}");
  }
  const config::Server server = core.servers({}).front();
  const std::string lines = jobs::notify_lines(*core.config.notify, core.config.project_path_on(server)) +
                            jobs::notify_line("project", core.config.name) +
                            jobs::notify_line("name", "remote notify --test");
  try {
    const auto connection = core.connector().connect(server, core.cancel());
    const jobs::NotifyAnswer answer =
        jobs::try_notify(*connection, lines, servers::activation(core.config, server), core.cancel());
    return {server.name, answer.sent, answer.text};
  } catch (const Error& error) {
    throw error.on(server.name);
  }
}

}  // namespace

}  // namespace remote::project

namespace remote {

NotifyTrial Project::try_notify(const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [](project::Core& core) { return project::try_notify(core); });
}

}  // namespace remote
