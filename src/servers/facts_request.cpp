// What is asked for, and what follows from the answers.

#include <algorithm>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/clock.hpp"
#include "servers/facts.hpp"
#include "servers/python_env.hpp"

namespace remote::servers {
namespace {

bool names(const std::vector<std::string>& users, const std::string& user) {
  return std::ranges::find(users, user) != users.end();
}

}  // namespace

void add_facts(Script& script, const FactsRequest& request) {
  script.set_path("project", request.project)
      .set_path("env", request.environment)
      .set("activate", request.activate)
      .set("root", request.root)
      .set("shm", request.shm)
      .add("actions/facts.sh");
  for (const FactsPart& part : request.parts) {
    script.call(part.front(), {part.begin() + 1, part.end()});
  }
}

Action<FactsAnswer> facts_action(const FactsRequest& request) {
  Action<FactsAnswer> action;
  action.what = "facts";
  FactsRequest whole = request;
  whole.parts.insert(whole.parts.begin(), {"facts_begin"});
  whole.parts.push_back({"facts_end"});
  add_facts(action.script, whole);
  action.timeout = request.timeout;
  for (const FactsPart& part : request.parts) {
    if (part.front() == "stay_heard") {
      action.silence = std::chrono::seconds(std::stoi(part.at(1)));
    }
  }
  action.watchful = true;
  return action;
}

std::chrono::seconds check_silence(const config::Config& config) {
  return std::chrono::seconds(std::max(6, config.connect_timeout_s));
}

FactsRequest check_request(const config::Config& config, const config::Server& server) {
  return {.parts = {{"stay_heard", std::to_string(check_silence(config).count())},
                    {"tell_clock"},
                    {"tell_machine"},
                    {"tell_load"},
                    {"tell_logind"},
                    {"tell_jobs", config.remote_jobs_folder_name},
                    {"tell_disks", "project", "environment", "tmp", "shm"},
                    {"tell_python", "packages"},
                    {"tell_gpus", "full"}},
          .project = config.project_path_on(server),
          .environment = environment_folder(config, server),
          .activate = activation(config, server)};
}

FactsRequest load_request(std::string_view project) {
  return {.parts = {{"tell_load"},
                    {"tell_others"},
                    {"tell_disks", "project"},
                    {"tell_gpus", "brief"},
                    {"tell_leases"}},
          .project = std::string(project)};
}

FactsAnswer facts_of(ssh::Connection& connection, const FactsRequest& request, const Cancel& cancel) {
  const ExactInstant asked = now_milliseconds();
  FactsAnswer answer = run_action(connection, facts_action(request), cancel, FactsAnswer(request.parts));
  if (answer.clock > Instant()) {
    answer.facts.clock_ahead = clock_difference(answer.clock, asked, now_milliseconds());
  }
  return answer;
}

bool logout_ends_jobs(const ServerFacts& facts, const std::string& user) {
  const bool is_excluded = facts.kill_excluded.empty() ? user == "root" : names(facts.kill_excluded, user);
  return facts.in_session && facts.kill_user_processes && !is_excluded &&
         (facts.kill_only.empty() || names(facts.kill_only, user));
}

std::chrono::milliseconds clock_difference(Instant server, ExactInstant asked, ExactInstant answered) {
  // It was read in whole seconds: the moment lies within this one.
  const ExactInstant last = server + std::chrono::milliseconds(999);
  if (server > answered) {
    return server - answered;
  }
  return std::min(last - asked, std::chrono::milliseconds(0));
}

std::vector<std::string> lease_words(const LeaseRequest& lease, const std::vector<int>& among) {
  std::vector<std::string> words = {fmt::format("gpus={}", lease.gpus), fmt::format("cpus={}", lease.cpus),
                                    fmt::format("memory={}", lease.memory)};
  if (!among.empty()) {
    words.push_back(fmt::format("among={}", fmt::join(among, ",")));
  }
  return words;
}

int choose_port(const FactsAnswer& master, std::optional<int> wanted) {
  if (wanted && *wanted != 0) {
    if (master.port_free.value_or(true)) {
      return *wanted;
    }
    std::string holder = "it is taken";
    if (master.holder && master.holder->pid) {
      holder += fmt::format(" by {} (pid {}, user {})", master.holder->program, *master.holder->pid,
                            master.holder->user);
    } else if (master.holder) {
      holder += fmt::format(" by a process of user {}", master.holder->user);
    }
    throw Error::usage(fmt::format("cannot use port {} on the master", *wanted), holder)
        .mended_by(Remedy::choose_port, master.suggested_port ? std::to_string(*master.suggested_port) : "");
  }
  if (!master.suggested_port) {
    throw Error("cannot find a free port on the master", "all from 20000 to 32767 are in use")
        .mended_by(Remedy::choose_port);
  }
  return *master.suggested_port;
}

}  // namespace remote::servers
