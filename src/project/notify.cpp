// Notifications about the end of a launch, which its servers send: their settings and results, and a test.

#include <chrono>
#include <utility>

#include "base/clock.hpp"
#include "base/command.hpp"
#include "base/strings.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/refresh.hpp"
#include "jobs/verdict.hpp"
#include "project/history.hpp"
#include "project/launch_attempt.hpp"
#include "server/archive.hpp"
#include "servers/agent.hpp"
#include "servers/python_env.hpp"
#include "wire/cbor.hpp"

namespace remote::project {
namespace {

// The settings of the notification. Contains secrets.
wire::NotifySpec make_spec(const config::Config& config, const config::Server& first) {
  const config::Notify& notify = *config.notify;
  wire::NotifySpec spec{.url = notify.url,
                        .command = notify.command,
                        .folder = config.project_path_on(first),
                        .project = config.name};
  spec.shape = notify.shape == "ntfy"    ? wire::NotifyShape::ntfy
               : notify.shape == "slack" ? wire::NotifyShape::slack
                                         : wire::NotifyShape::json;
  return spec;
}

NotifyTrial try_notify(Core& core) {
  if (!core.config.notify) {
    throw Error::usage("notifications are not configured", "configs.yaml has no notify",
                       "add a line such as notify: {url: https://ntfy.sh/TOPIC, shape: ntfy}");
  }
  const config::Server server = core.servers({}).front();
  wire::NotificationToTry trial{make_spec(core.config, server), servers::activation(core.config, server),
                                std::string(server::python_text("post.py"))};
  trial.spec.name = "notification";
  const wire::Bytes data = wire::encode(trial);
  servers::AgentQuestion question;
  question.what = "notify";
  question.request = wire::TryNotifyRequest{};
  question.data.assign(data.begin(), data.end());
  question.timeout = std::chrono::seconds(90);
  try {
    const auto connection = core.connector().connect(server, core.cancel());
    auto reply =
        servers::take_reply<wire::TryNotifyReply>(servers::ask_agent(*connection, question, core.cancel()));
    return {server.name, reply.is_sent, std::move(reply.answer)};
  } catch (const Error& error) {
    throw error.on(server.name);
  }
}

}  // namespace

std::optional<wire::NotifySpec> LaunchAttempt::make_notify_spec(const Plan& plan) const {
  if (!core_.config.notify) {
    return std::nullopt;
  }
  wire::NotifySpec spec = make_spec(core_.config, servers_.front());
  spec.name = request_.name;
  spec.ranks_command = mask_command(request_.command);
  for (const config::Server& server : servers_) {
    spec.servers.push_back(server.name);
  }
  spec.ranks = plan.world_size;
  spec.began = now_seconds().time_since_epoch().count();
  return spec;
}

std::string news_of(Core& core, const PastLaunch& launch) {
  // The servers retry for an hour.
  constexpr std::chrono::minutes patience{70};
  try {
    const Job& job = launch.jobs.front();
    const auto connection = core.connector().connect(jobs::server_of(core.config, job), core.cancel(),
                                                     std::chrono::ceil<std::chrono::seconds>(ask_limit));
    const auto lines = jobs::last_lines({*connection, core.cancel()}, {job}, 1, {"notify.result"});
    if (!lines.empty()) {
      return visible_line(lines.back(), 500);
    }
    // Also restarts its lifeline if that has died.
    jobs::ask_over(*connection, core.store, {job}, core.cancel());
  } catch (const Error&) {  // retried next time
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
