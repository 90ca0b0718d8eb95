#include "jobs/uninstall.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "jobs/from_wire.hpp"
#include "servers/agent.hpp"

namespace remote::jobs {
namespace {

using Reason = UninstallResult::Leftover::Reason;
static_assert(static_cast<int>(Reason::results) == static_cast<int>(wire::LeftReason::results));

}  // namespace

const std::vector<std::string>& shared_folders() {
  static const std::vector<std::string> folders = {"/dev/shm", "/run/lock", "/tmp", "/var/tmp"};
  return folders;
}

UninstallAnswer uninstall(ssh::Connection& connection, const UninstallOrder& order, const Cancel& cancel) {
  servers::AgentQuestion question;
  question.what = "uninstall";
  question.request =
      wire::UninstallRequest{to_place(order.folder), order.agent_folder, order.dry_run, order.shared};
  question.timeout = std::chrono::minutes(10);  // trees of frozen launches can be large
  // The agent cannot answer other questions afterwards, because it is removed.
  auto reply =
      servers::take_reply<wire::UninstallReply>(servers::Agent(connection, cancel).ask_last(question));
  UninstallAnswer answer;
  std::ranges::transform(reply.running, std::back_inserter(answer.running), [](const wire::RunningJob& job) {
    return UninstallResult::RunningJob{job.id ? JobId::parse(*job.id) : std::nullopt, job.pid, job.project};
  });
  answer.removed = std::move(reply.removed);
  std::ranges::transform(reply.left, std::back_inserter(answer.left), [](const wire::LeftPath& left) {
    return UninstallResult::Leftover{static_cast<Reason>(left.reason), left.path};
  });
  return answer;
}

}  // namespace remote::jobs
