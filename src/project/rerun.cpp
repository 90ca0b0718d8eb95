// A launch on record again: what can be had of it, its code on the servers, and its start.

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include <fmt/format.h>
#include <remote/history.hpp>

#include "base/command.hpp"
#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/strings.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/trees.hpp"
#include "project/core.hpp"
#include "project/git_state.hpp"
#include "project/past_code.hpp"
#include "servers/fanout.hpp"
#include "servers/python_env.hpp"
#include "servers/sent_state.hpp"

namespace remote::project {
namespace fs = std::filesystem;
namespace {

bool has(const Env& env, const std::string& name) {
  return std::ranges::find(env, name, &Env::value_type::first) != env.end();
}

// What an older version's record lets one conclude of the request.
LaunchRequest concluded(const PastLaunch& record) {
  LaunchRequest request{.command = record.command};
  request.launcher = record.beginning.launcher;
  std::map<std::string, int> ranks;
  for (const Job& job : record.jobs) {
    ranks[job.server] += ranks_of(job);
  }
  for (const std::string& server : record.servers) {
    request.hosts.push_back({.name = server, .slots = ranks[server]});
  }
  const auto& tags = record.tags;
  request.python = std::ranges::find(tags, "torch") != tags.end();
  request.tags = tags;
  return request;
}

void choose_servers(const Core& core, const RerunRequest& asked, Rerun& again) {
  LaunchRequest& request = again.request;
  if (!asked.servers.empty()) {
    request.hosts.clear();
    request.servers = asked.servers;
    return;
  }
  request.servers = request.hosts.empty() ? again.launch.servers : std::vector<std::string>();
  std::vector<std::string> gone;
  for (const std::string& name : again.launch.servers) {
    if (std::ranges::find(core.config.servers, name, &config::Server::name) == core.config.servers.end()) {
      gone.push_back(visible_line(name));
    }
  }
  if (!gone.empty()) {
    throw Error::usage("cannot start the launch again",
                       fmt::format("configs.yaml no longer has {}", join(gone, ", ")))
        .mended_by(Remedy::name_servers);
  }
}

void choose_command(const RerunRequest& asked, LaunchRequest& request) {
  request.command = asked.command.value_or(request.command);
  if (request.command.find(secret_mask) != std::string::npos) {
    throw Error::usage(
        "cannot start the launch again",
        fmt::format("its command has a secret, which was not kept: {}", visible_line(request.command)),
        "give the whole command");
  }
  if (!asked.more.empty() && !is_plain_command(request.command)) {
    throw Error::usage("cannot put words behind the command",
                       fmt::format("it is more than one program: {}", visible_line(request.command)),
                       "give the whole command");
  }
  request.command += asked.more.empty() ? "" : " " + asked.more;
}

// Secrets are taken from where they may still be: the request, configs.yaml, this process's environment.
void choose_variables(const Core& core, const RerunRequest& asked, Rerun& again) {
  Env& env = again.request.env;
  std::set<std::string> without(again.launch.secrets.begin(), again.launch.secrets.end());
  if (!again.launch.request) {
    for (const std::string& name : again.launch.variables) {
      const bool of_server = std::ranges::any_of(
          core.config.servers, [&](const config::Server& server) { return has(server.env, name); });
      if (!of_server) {
        without.insert(name);
        env.emplace_back(name, "");
      }
    }
  }
  const Env& usual = core.config.launch.defaults.env;
  std::erase_if(env, [&](auto& variable) {
    const std::string& name = variable.first;
    if (!without.contains(name)) {
      return false;
    }
    const char* here = looks_secret(name) ? std::getenv(name.c_str()) : nullptr;
    if (const auto found = std::ranges::find(usual, name, &Env::value_type::first); found != usual.end()) {
      variable.second = found->second;
    } else if (has(asked.env, name)) {
      return true;
    } else if (here != nullptr) {
      variable.second = here;
      again.from_here.push_back(name);
    } else {
      again.missing.push_back(name);
      return true;
    }
    return false;
  });
  env.insert(env.end(), asked.env.begin(), asked.env.end());
}

// Whether all servers had exactly what is here now, by name, size and time of each file.
bool is_what_they_had(const Core& core, const PastLaunch& record) {
  std::set<std::string> digests;
  for (const ServerSetup& server : record.beginning.servers) {
    const auto fact = std::ranges::find(server.facts, "code", &std::pair<std::string, std::string>::first);
    digests.insert(fact == server.facts.end() ? "" : fact->second);
  }
  return digests.size() == 1 && !digests.contains("") &&
         sha256_hex(servers::ProjectState::look(core.config, links_not_sent(core), core.cancel()).text()) ==
             *digests.begin();
}

// The digest of the tree that all ranks of a frozen launch ran in; "": there was none.
std::string frozen_tree(const PastLaunch& record) {
  std::set<std::string> trees;
  for (const ServerSetup& server : record.beginning.servers) {
    const auto fact = std::ranges::find(server.facts, "tree", &std::pair<std::string, std::string>::first);
    trees.insert(fact == server.facts.end() ? "" : fact->second);
  }
  return trees.size() == 1 && servers::is_digest(*trees.begin()) ? *trees.begin() : "";
}

void find_code_here(const Core& core, Rerun& again) {
  if (is_what_they_had(core, again.launch)) {
    again.code = Rerun::Code::same;
    return;
  }
  PastCode code(core.config.project, core.cancel());
  const PastCode::Tree then = code.then(again.launch);
  const PastCode::Tree now = code.now();
  again.why = then.kept;
  again.changed = code.changed(then, now);
  if (then.kept != CodeKept::kept) {
    again.code = Rerun::Code::gone;
  } else if (now.kept == CodeKept::kept && again.changed.empty() && then.untracked + now.untracked == 0) {
    again.code = Rerun::Code::same;
  } else {
    again.code = Rerun::Code::kept;
  }
}

void find_code(const Core& core, Rerun& again) {
  again.request.tree = frozen_tree(again.launch);
  if (again.request.tree.empty()) {
    find_code_here(core, again);
  } else {
    again.code = Rerun::Code::frozen;
  }
}

Rerun plan_rerun(const Core& core, const RerunRequest& asked) {
  Rerun again;
  again.launch = History(core.config.project).launch(asked.launch);
  again.request = again.launch.request ? *again.launch.request : concluded(again.launch);
  choose_servers(core, asked, again);
  choose_command(asked, again.request);
  choose_variables(core, asked, again);
  again.request.name = asked.name.value_or(again.launch.name);
  again.request.note = asked.note;
  again.request.tell_changes = false;  // what is sent now is what it runs
  find_code(core, again);
  return again;
}

std::vector<std::string> server_names(const LaunchRequest& request) {
  std::vector<std::string> names = request.servers;
  for (const LaunchHost& host : request.hosts) {
    names.push_back(host.name);
  }
  return names;
}

// Whether all servers still have the tree of the request, or can make it again from what they have.
bool servers_have_tree(Core& core, const LaunchRequest& request) {
  const std::string list = servers::sent_text(core.config, request.tree);
  const auto outcomes = servers::fan_out(
      core.servers(server_names(request)), &config::Server::name,
      [&](const config::Server& server, std::size_t) {
        const auto action = jobs::tree_action(jobs::remote_folder_for(core.config, server), request.tree,
                                              list, servers::activation(core.config, server));
        return servers::run_action(*core.connector().connect(server, core.cancel()), action, core.cancel())
            .ready;
      });
  for (const auto& outcome : outcomes) {
    if (!outcome.ok()) {
      throw Error(*outcome.error);
    }
  }
  return std::ranges::all_of(outcomes, [](const auto& outcome) { return *outcome.value; });
}

void send(Core& core, const LaunchRequest& request, const config::Config& config, bool overwrite) {
  PrepareRequest files;
  files.servers = server_names(request);
  files.setup = files.packages = false;
  files.overwrite = overwrite;
  bool all = true;
  for (const PrepareResult& result : prepare(core, files, config)) {
    if (result.error) {
      core.tell(PartFailed{*result.error});
      all = false;
    }
  }
  if (!all) {
    throw Error("nothing was started", "the code was not sent to all of the servers");
  }
}

// Sends the code of then, which git has, to the project's folder on the servers.
void send_kept(Core& core, const Rerun& again) {
  PastCode code(core.config.project, core.cancel());
  const PastCode::Tree tree = code.then(again.launch);
  if (tree.kept != CodeKept::kept) {
    throw Error("cannot start the launch again", "its code is gone", "start it with what is here now");
  }
  config::Config then = core.config;
  then.project = code.write(tree);
  then.logs_folder = core.config.local(core.config.logs_folder).string();
  then.exclude_file = core.config.local(core.config.exclude_file).string();
  // What was sent is remembered in the project's own .remote, which is never sent.
  fs::create_directory_symlink(core.config.project / ".remote", then.project / ".remote");
  send(core, again.request, then, true);
}

LaunchResult rerun(Core& core, Rerun again, bool code_of_now) {
  bool sent = false;
  if (again.code == Rerun::Code::frozen && !code_of_now) {
    sent = servers_have_tree(core, again.request);
    if (!sent) {
      find_code_here(core, again);
      if (again.code == Rerun::Code::gone) {
        throw Error::usage("cannot start the launch again",
                           "its tree is gone from the servers, and git does not have its code either",
                           "--code now starts it with what is here");
      }
    }
  }
  if (!sent) {
    again.request.tree.clear();
  }
  if (!sent && (code_of_now || again.code != Rerun::Code::kept)) {
    send(core, again.request, core.config, false);
    return launch(core, again.request);
  }
  if (!sent) {
    send_kept(core, again);
  }
  PastLaunch code;
  code.commit = again.launch.commit;
  code.branch = again.launch.branch;
  code.clean = again.launch.clean;
  code.changed = again.launch.changed;
  code.untracked = again.launch.untracked;
  const fs::path& patch = again.launch.patch;
  return launch(core, again.request,
                known_git(code, patch.empty() ? "" : read_file_if_there(patch).value_or("")));
}

}  // namespace
}  // namespace remote::project

namespace remote {

Rerun Project::plan_rerun(const RerunRequest& request, const std::optional<Cancel>& cancel) {
  return project::call(*state_, cancel,
                       [&](project::Core& core) { return project::plan_rerun(core, request); });
}

LaunchResult Project::rerun(const Rerun& rerun, bool code_of_now, const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel, [&](project::Core& core) {
    project::adopt_labml_jobs(core);  // their keys must not be given again
    return project::rerun(core, rerun, code_of_now);
  });
}

}  // namespace remote
