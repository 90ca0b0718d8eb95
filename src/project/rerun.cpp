// Starts a recorded launch again: what can be restored, its code on the servers, and its start.

#include <algorithm>
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
#include "servers/sent_state.hpp"

namespace remote::project {
namespace fs = std::filesystem;
namespace {

using Names = std::vector<std::string>;

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
    throw Error::usage("cannot append words to the command",
                       fmt::format("it is more than one program: {}", visible_line(request.command)),
                       "give the whole command");
  }
  request.command += asked.more.empty() ? "" : " " + asked.more;
}

// Takes the values of secrets from the request and configs.yaml, but not from this process's environment: a
// record that came with the project must not send that to its servers.
void choose_variables(const Core& core, const RerunRequest& asked, Rerun& again) {
  const std::vector<std::string>& secrets = again.launch.secrets;
  const Env& usual = core.config.launch.env;
  Env env;
  for (auto& [name, value] : again.request.env) {
    if (std::ranges::find(secrets, name) == secrets.end()) {
      env.emplace_back(name, value);
    } else if (const auto found = std::ranges::find(usual, name, &Env::value_type::first);
               found != usual.end()) {
      env.push_back(*found);
    } else if (std::ranges::find(asked.env, name, &Env::value_type::first) != asked.env.end()) {
      continue;
    } else {
      again.missing.push_back(name);
    }
  }
  env.insert(env.end(), asked.env.begin(), asked.env.end());
  again.request.env = std::move(env);
}

void find_code_here(const Core& core, Rerun& again) {
  const std::string digest = sent_digest(again.launch);
  const auto here = files_here(core.config, core.cancel());
  if (!digest.empty() && sha256_hex(here.text()) == digest) {
    again.code = Rerun::Code::same;
    return;
  }
  PastCode code(core.config.project, core.cancel());
  const PastCode::Tree then = code.then(again.launch);
  const PastCode::Tree now = code.now();
  again.why = then.kept;
  again.changed = code.changed(then, now);
  const auto had = files_sent(core.config, again.launch);
  const auto unkept =
      had && then.kept == CodeKept::kept ? code.changed_without_git(then, now, *had, here) : Names();
  if (then.kept != CodeKept::kept) {
    again.code = Rerun::Code::gone;
    if (had) {
      again.changed = here.differing_from(*had);
    }
  } else if (now.kept == CodeKept::kept && again.changed.empty() && unkept.empty() &&
             then.untracked + now.untracked == 0) {
    again.code = Rerun::Code::same;
  } else if (!then.submodules.empty() && (now.kept != CodeKept::kept || now.submodules != then.submodules)) {
    again.code = Rerun::Code::gone;
    again.why = CodeKept::submodules;
  } else {
    again.code = Rerun::Code::kept;
    again.unkept = unkept;
  }
}

void find_code(const Core& core, const RerunRequest& asked, Rerun& again) {
  again.request.tree = asked.tree ? tree_digest(again.launch) : "";
  if (again.request.tree.empty()) {
    find_code_here(core, again);
  } else {
    again.code = Rerun::Code::frozen;
  }
}

Rerun plan_rerun(const Core& core, const RerunRequest& asked) {
  Rerun again;
  again.launch = History(core.config.project).launch(asked.launch);
  if (again.launch.beginning.launcher == Launcher::sweep) {
    throw Error::usage(
        "cannot start a sweep again with rerun", "a sweep has its own list of points",
        fmt::format("run the missing points: remote sweep --resume {}", again.launch.first_key));
  }
  if (!again.launch.request) {
    throw Error::usage("cannot start the launch again",
                       "an older version wrote its record, without options and variables",
                       "start it as a new launch; its command was: " + visible_line(again.launch.command));
  }
  again.request = *again.launch.request;
  choose_servers(core, asked, again);
  choose_command(asked, again.request);
  choose_variables(core, asked, again);
  again.request.name = asked.name.value_or(again.launch.name);
  again.request.note = asked.note;
  again.request.tell_changes = false;  // the code that it runs was just sent
  find_code(core, asked, again);
  return again;
}

std::vector<std::string> server_names(const LaunchRequest& request) {
  std::vector<std::string> names = request.servers;
  for (const LaunchHost& host : request.hosts) {
    names.push_back(host.name);
  }
  return names;
}

// Throws Error if a server no longer has the tree of the request, and cannot create it again from its files.
void require_tree(Core& core, const LaunchRequest& request) {
  const std::string list = servers::sent_text(core.config, request.tree);
  const std::vector<config::Server> chosen = core.servers(server_names(request));
  const auto outcomes =
      servers::fan_out(chosen, &config::Server::name, [&](const config::Server& server, std::size_t) {
        const auto connection = core.connector().connect(server, core.cancel());
        return jobs::make_tree({*connection, core.cancel()}, jobs::remote_folder_for(core.config, server),
                               request.tree, list);
      });
  std::vector<std::string> gone;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (!outcomes[i].ok()) {
      throw Error(*outcomes[i].error);
    }
    const wire::MakeTreeReply& answer = *outcomes[i].value;
    if (answer.outcome == wire::TreeOutcome::failed) {
      throw Error("cannot restore the tree of the launch", answer.reason,
                  "fix that on the server, or take the code from git")
          .on(chosen[i].name);
    }
    if (answer.outcome != wire::TreeOutcome::ready) {
      gone.push_back(chosen[i].name);
    }
  }
  if (!gone.empty()) {
    throw Error::usage("cannot start the launch again", "its tree is gone from " + join(gone, ", "))
        .mended_by(Remedy::choose_code);
  }
}

void send(Core& core, const LaunchRequest& request, const config::Config& config, bool overwrite) {
  PrepareRequest files;
  files.servers = server_names(request);
  files.setup = files.packages = false;
  files.overwrite = overwrite;
  std::vector<Error> errors;
  for (const PrepareResult& result : prepare(core, files, config)) {
    if (result.error) {
      errors.push_back(*result.error);
    } else if (!result.report.files.newer.empty()) {
      errors.push_back(Error("cannot send the code",
                             "not sent from here, and newer there: " + join(result.report.files.newer, ", "))
                           .mended_by(Remedy::overwrite_files)
                           .on(result.server));
    }
  }
  if (!errors.empty()) {
    core.tell(PartsFailed{errors});
    throw Error("nothing was started", "the code was not sent to all of the servers")
        .mended_by(Remedy::check_server);
  }
}

// Sends the launch's code, from git, to the project's folder on the servers.
void send_kept(Core& core, const Rerun& again) {
  PastCode code(core.config.project, core.cancel());
  const PastCode::Tree tree = code.then(again.launch);
  if (tree.kept != CodeKept::kept) {
    throw Error("cannot start the launch again", "its code is gone", "start it with the current code");
  }
  config::Config then = core.config;
  then.project = code.write(tree);
  then.logs_folder = core.config.local(core.config.logs_folder).string();
  // The record of sent files is in the project's own .remote, which is never sent.
  std::error_code error;
  fs::create_directory_symlink(core.config.project / ".remote", then.project / ".remote", error);
  if (error) {
    throw Error("cannot restore the code of the launch in " + then.project.string(), error.message(),
                "free some space there, or set TMPDIR to another folder");
  }
  send(core, again.request, then, true);
}

LaunchResult rerun(Core& core, Rerun again, bool code_of_now) {
  const bool in_tree = again.code == Rerun::Code::frozen && !code_of_now;
  if (!in_tree) {
    again.request.tree.clear();
  }
  if (in_tree) {
    require_tree(core, again.request);
  } else if (code_of_now || again.code != Rerun::Code::kept) {
    send(core, again.request, core.config, false);
    again.request.tell_changes = true;
    return launch(core, again.request);
  } else {
    send_kept(core, again);
  }
  PastLaunch code;
  code.commit = again.launch.commit;
  code.branch = again.launch.branch;
  code.clean = again.launch.clean;
  code.changed = again.launch.changed;
  code.untracked = again.launch.untracked;
  code.changed_in = again.launch.changed_in;
  return launch(core, again.request, known_git(code, read_patch(again.launch)), true);
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
    project::adopt_labml_jobs(core);  // so that their keys are not reused
    return project::rerun(core, rerun, code_of_now);
  });
}

}  // namespace remote
