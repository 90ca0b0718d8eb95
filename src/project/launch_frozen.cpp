// A frozen launch: creates the tree that it runs in on all servers before anything starts.

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/strings.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/trees.hpp"
#include "project/launch_attempt.hpp"
#include "server/agent_command.hpp"
#include "servers/disk_hints.hpp"
#include "servers/fanout.hpp"
#include "servers/sent_state.hpp"
#include "wire/text.hpp"

namespace remote::project {
namespace {

Error not_frozen(const std::string& reason, const std::string& hint = {}) {
  return Error("cannot freeze the code", reason, hint);
}

std::string some(const std::vector<std::string>& names) {
  constexpr std::size_t most = 4;
  const std::size_t shown = std::min(most, names.size());
  return join({names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown)}, ", ") +
         (shown < names.size() ? ", …" : "");
}

// The digest of the files that were last sent to these servers.
std::string digest_sent(const config::Config& config, const std::vector<config::Server>& servers,
                        const std::vector<ssh::LoginFacts>& logins) {
  std::map<std::string, std::vector<std::string>> sent;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    sent[servers::SentState(config, servers[i], logins[i]).mark().digest].push_back(servers[i].name);
  }
  if (const auto never = sent.find(""); never != sent.end()) {
    throw not_frozen("the project was never copied to " + some(never->second))
        .mended_by(Remedy::send_project);
  }
  if (sent.size() > 1) {
    std::vector<std::string> groups;
    for (const auto& [digest, names] : sent) {
      groups.push_back(fmt::format("{} has {}", some(names), digest.substr(0, 12)));
    }
    throw not_frozen("the servers were sent different code: " + join(groups, "; "))
        .mended_by(Remedy::send_project);
  }
  return sent.begin()->first;
}

// Throws Error if the tree is not ready. `again`: the tree is from an earlier launch.
void judge(const wire::MakeTreeReply& answer, const std::string& tree, bool again) {
  switch (answer.outcome) {
    case wire::TreeOutcome::ready:
      return;
    case wire::TreeOutcome::failed:
      throw not_frozen(answer.reason, servers::disk_hint(answer.reason));
    case wire::TreeOutcome::differs:
      throw not_frozen(
          fmt::format("differs from the sent version: {} ({})",
                      counted(answer.differing.size() + static_cast<std::size_t>(answer.more), "file"),
                      some(answer.differing)),
          "copy the project again, or name in .remote/exclude.txt what programs write there");
    case wire::TreeOutcome::unknown:
      break;
  }
  if (again) {
    throw not_frozen("the tree " + tree.substr(0, 12) + " is gone there",
                     "job-clean removes a tree with the last launch that ran in it");
  }
  throw not_frozen("the sent files are gone there").mended_by(Remedy::send_project);
}

}  // namespace

// Nothing starts unless all servers have the same tree, because ranks in different trees would be worse than
// none.
void LaunchAttempt::freeze() {
  if (!request_.frozen.value_or(!request_.tree.empty())) {
    return;
  }
  if (!request_.tree.empty() && !wire::is_digest(request_.tree)) {
    throw Error::usage("cannot freeze the code", "'" + request_.tree + "' is not the digest of a tree",
                       "the records of launches contain them");
  }
  tree_ = request_.tree.empty() ? digest_sent(core_.config, servers_, logins_) : request_.tree;
  const std::string list = servers::sent_text(core_.config, tree_);
  freezing_.resize(servers_.size());
  const auto outcomes =
      servers::fan_out(servers_, &config::Server::name, [&](const config::Server& server, std::size_t index) {
        const StepTimer timer(freezing_[index], "freeze", server.name);
        const auto connection = connect(server);
        if (!connection->parks()) {
          connection->expect(server::agent_command(connection->agent_folders().chosen));  // for the facts
        }
        judge(jobs::make_tree({*connection, core_.cancel()}, jobs::remote_folder_for(core_.config, server),
                              tree_, list),
              tree_, !request_.tree.empty());
        return true;
      });
  require_all(servers::errors_of(outcomes), "a frozen launch needs the same code on all of its servers");
}

}  // namespace remote::project
