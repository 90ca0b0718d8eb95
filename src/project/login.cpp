// Opens and closes OpenSSH masters for the servers, which all commands then use.

#include <algorithm>
#include <map>
#include <set>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "project/core.hpp"
#include "servers/fanout.hpp"
#include "ssh/masters.hpp"

namespace remote::project {
namespace {

using ssh::Target;

// A master to open, for a server or a jump host.
struct Wanted {
  std::string name;  // for messages
  Target target;
  bool is_server = false;
};

Target target_of(const Core& core, const config::Server& server) {
  return ssh::resolve(core.config, server, home_folder() / ".ssh" / "config");
}

// Logs in to each host once: jump hosts before the hosts behind them, otherwise in the order of the file.
class Logins {
 public:
  Logins(Core& core, const LoginRequest& request) : core_(core), request_(request) {
    const auto callback = request.on_questions;
    if (callback) {
      tell_questions_ = [this, callback](const std::string& what) {
        core_.asked_of_caller<bool>([&] {
          callback(what);
          return true;
        })();
      };
    }
  }

  std::vector<LoginResult> run() {
    const std::vector<config::Server> servers = core_.servers(request_.servers);
    std::vector<LoginResult> results;
    std::vector<Wanted> all;
    for (const config::Server& server : servers) {
      results.push_back({server.name, false, {}, std::nullopt});
      try {
        all.push_back({server.name, target_of(core_, server), true});
      } catch (const Error& error) {
        results.back().error = error.on(server.name);
      }
    }
    open_jump_hosts(all);
    const auto outcomes = open_each(all);
    for (std::size_t i = 0, k = 0; i < results.size(); ++i) {
      if (results[i].error) {
        continue;
      }
      const auto& outcome = outcomes[k++];
      results[i].error = outcome.error;
      results[i].was_open = outcome.value.value_or(false);
      if (!outcome.error) {
        const auto span = masters_.open_for(all[k - 1].target).value_or(request_.open_for);
        results[i].until = now_seconds() + span;
      }
    }
    return results;
  }

 private:
  void open_jump_hosts(const std::vector<Wanted>& servers) {
    for (std::size_t depth = 0;; ++depth) {
      std::vector<Wanted> level;
      std::set<std::string> seen;
      bool deeper = false;
      for (const Wanted& server : servers) {
        if (depth < server.target.jumps.size()) {
          deeper = true;
          Target hop = ssh::jump_of(server.target, depth);
          const std::string key = hop.password_prompt();
          if (seen.insert(key).second) {
            level.push_back({"jump host " + hop.name, std::move(hop), false});
          }
        }
      }
      if (!deeper) {
        return;
      }
      const auto outcomes = open_each(level);
      for (std::size_t i = 0; i < level.size(); ++i) {
        if (outcomes[i].error) {
          failed_.emplace(level[i].target.password_prompt(), *outcomes[i].error);
        }
      }
    }
  }

  // Opens those that need no prompt in parallel, then the others one by one. The value: whether it was
  // already open.
  std::vector<servers::Outcome<bool>> open_each(const std::vector<Wanted>& all) {
    auto outcomes = servers::fan_out(all, &Wanted::name,
                                     [&](const Wanted& one, std::size_t) { return open(one, false); });
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!request_.on_terminal || !outcomes[i].error || outcomes[i].error->remedy() != Remedy::log_in ||
          behind_failed(all[i]) != nullptr) {
        continue;
      }
      try {
        if (tell_questions_) {
          tell_questions_(all[i].name);
        }
        outcomes[i].value = open(all[i], true);
        outcomes[i].error.reset();
      } catch (const Error& error) {
        outcomes[i].error = error.on(all[i].name);
      }
    }
    return outcomes;
  }

  const Error* behind_failed(const Wanted& one) const {
    for (std::size_t i = 0; i < one.target.jumps.size(); ++i) {
      const auto found = failed_.find(ssh::jump_of(one.target, i).password_prompt());
      if (found != failed_.end()) {
        return &found->second;
      }
    }
    return nullptr;
  }

  bool open(const Wanted& one, bool on_terminal) const {
    if (const Error* error = behind_failed(one)) {
      throw *error;
    }
    if (masters_.open_for(one.target) && answers(one)) {
      return true;
    }
    masters_.open(one.target, {request_.open_for, on_terminal}, core_.cancel());
    if (!answers(one)) {
      throw ssh::Unreachable("cannot use the new login", "the server does not answer over it",
                             "check the network and the server, then run the command again");
    }
    return false;
  }

  // A jump host may not allow commands, so a connection counts as an answer.
  bool answers(const Wanted& one) const {
    bool full = false;
    const auto connection = masters_.connect(one.target, core_.cancel(), std::nullopt, &full);
    if (!connection || !one.is_server) {
      return connection || full;
    }
    ssh::ExecRequest request;
    request.what = "proof of the login";
    request.command = "true";
    request.timeout = std::chrono::seconds(20);
    const ExecResult result = connection->exec(request, core_.cancel());
    if (!result.status.success()) {
      throw Error("cannot run a command over the new login", "`true` ended there with " + result.describe(),
                  "check the login shell's start files");
    }
    return true;
  }

  Core& core_;
  const LoginRequest& request_;
  ssh::Masters masters_;
  std::function<void(const std::string&)> tell_questions_;
  std::map<std::string, Error> failed_;  // by jump host
};

std::vector<std::string> logout(const Core& core, const std::vector<std::string>& globs) {
  const ssh::Masters masters;
  std::vector<std::string> closed;
  std::vector<Target> jumps;
  for (const config::Server& server : core.servers(globs)) {
    const Target target = target_of(core, server);
    if (masters.close(target)) {
      closed.push_back(server.name);
    }
    for (std::size_t i = target.jumps.size(); globs.empty() && i-- > 0;) {
      jumps.push_back(ssh::jump_of(target, i));
    }
  }
  for (const Target& jump : jumps) {
    if (masters.close(jump)) {
      closed.push_back("jump host " + jump.name);
    }
  }
  return closed;
}

}  // namespace
}  // namespace remote::project

namespace remote {

std::vector<LoginResult> Project::login(const LoginRequest& request, const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [&](project::Core& core) { return project::Logins(core, request).run(); });
}

std::vector<std::string> Project::logout(const std::vector<std::string>& servers,
                                         const std::optional<Cancel>& cancel) {
  return project::call(*state_, cancel, [&](project::Core& core) { return project::logout(core, servers); });
}

}  // namespace remote
