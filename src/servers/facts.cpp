#include "servers/facts.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/clock.hpp"
#include "base/strings.hpp"
#include "servers/python_env.hpp"

namespace remote::servers {
namespace {

bool contains(const std::vector<std::string>& users, const std::string& user) {
  return std::ranges::find(users, user) != users.end();
}

AgentQuestion question_for(const FactsRequest& request) {
  wire::FactsRequest wanted = request.wanted;
  wanted.activate = inline_files(wanted.activate);
  return {.what = "facts",
          .request = std::move(wanted),
          .data = request.files,
          .timeout = request.timeout,
          .silence = request.silence,
          .watchful = true};
}

// Throws Error if a requested part is missing in the reply.
void check_reply(const wire::FactsRequest& wanted, const wire::FactsReply& reply) {
  const auto need = [](bool asked, bool there, const char* what) {
    if (asked && !there) {
      throw Error("the server's answer is not understood", fmt::format("nothing about '{}' in it", what))
          .mended_by(Remedy::tell_more);
    }
  };
  need(wanted.clock, reply.clock.has_value(), "clock");
  need(wanted.machine, reply.facts.usable_threads > 0, "machine");
  need(wanted.load, reply.ticks.all > 0, "load");
  need(wanted.route_to.has_value(), reply.route.has_value(), "route");
  need(wanted.port.has_value(), reply.port.has_value(), "port");
}

}  // namespace

ServerLoad FactsAnswer::load(const std::optional<wire::Ticks>& earlier) const {
  ServerLoad load{.cpus = cpus_online};
  if (!facts.load.empty()) {
    load.load = facts.load.front();
  }
  if (facts.memory > 0) {
    load.memory_total = facts.memory;
    load.memory_available = facts.memory_available;
  }
  if (const DiskFacts* disk = facts.disk("project")) {
    load.disk_total = disk->total_bytes;
    load.disk_free = disk->free_bytes;
  }
  if (earlier && ticks.all > earlier->all && ticks.busy >= earlier->busy &&
      ticks.busy - earlier->busy <= ticks.all - earlier->all) {
    load.cpu = 100.0 * static_cast<double>(ticks.busy - earlier->busy) /
               static_cast<double>(ticks.all - earlier->all);
  }
  load.others = others;
  load.leases = leases.leases;
  return load;
}

std::chrono::seconds check_silence(const config::Config& config) {
  return std::chrono::seconds(std::max(6, config.connect_timeout_s));
}

FactsRequest check_request(const config::Config& config, const config::Server& server) {
  wire::FactsRequest wanted{.project = config.project_path_on(server),
                            .environment = environment_folder(config, server),
                            .variables = to_wire(server.variables()),
                            .activate = activation(config, server)};
  wanted.clock = wanted.machine = wanted.load = wanted.logind = true;
  wanted.jobs = wanted.open = config.remote_jobs_folder_name;
  wanted.disks = {wire::DiskPlace::project, wire::DiskPlace::environment, wire::DiskPlace::tmp,
                  wire::DiskPlace::shm};
  wanted.python = true;
  wanted.gpus = wire::GpuDetail::full;
  return {.wanted = std::move(wanted), .silence = check_silence(config)};
}

FactsRequest load_request(std::string_view project, const std::string& prologue) {
  wire::FactsRequest wanted{.project = std::string(project), .activate = prologue};
  wanted.load = wanted.others = true;
  wanted.disks = {wire::DiskPlace::project};
  wanted.gpus = wire::GpuDetail::brief;
  return {.wanted = std::move(wanted), .leases = true};
}

wire::FactsReply ask_facts(Agent& agent, const FactsRequest& request) {
  auto reply = take_reply<wire::FactsReply>(agent.ask(question_for(request)));
  check_reply(request.wanted, reply);
  return reply;
}

FactsAnswer ask_facts(ssh::Connection& connection, const FactsRequest& request, const Cancel& cancel) {
  const ExactInstant asked = now_milliseconds();
  FactsAnswer answer{take_reply<wire::FactsReply>(ask_agent(connection, question_for(request), cancel)), {}};
  check_reply(request.wanted, answer);
  if (answer.clock) {
    answer.facts.clock_ahead = clock_difference(ExactInstant(*answer.clock), asked, now_milliseconds());
  }
  if (request.lease || (request.leases && answer.has_leases)) {
    std::optional<wire::LeaseTerms> terms = request.lease;
    if (terms && terms->prologue.empty()) {
      terms->prologue = inline_files(request.wanted.activate);
    }
    answer.leases = take_reply<wire::LeasesReply>(ask_agent(connection, leases_question(terms), cancel));
  }
  return answer;
}

bool logout_ends_jobs(const ServerFacts& facts, const std::string& user) {
  const bool is_excluded = facts.kill_excluded.empty() ? user == "root" : contains(facts.kill_excluded, user);
  return facts.in_session && facts.kill_user_processes && !is_excluded &&
         (facts.kill_only.empty() || contains(facts.kill_only, user));
}

std::chrono::milliseconds clock_difference(ExactInstant server, ExactInstant asked, ExactInstant answered) {
  if (server > answered) {
    return server - answered;
  }
  return std::min(server - asked, std::chrono::milliseconds(0));
}

int choose_port(const FactsAnswer& master, std::optional<int> wanted) {
  const wire::PortFacts ports = master.port.value_or(wire::PortFacts());
  if (wanted && *wanted != 0) {
    if (ports.is_free.value_or(true)) {
      return *wanted;
    }
    std::string holder = "it is taken";
    if (ports.holder && ports.holder->pid) {
      holder += fmt::format(" by {} (pid {}, user {})", ports.holder->program, *ports.holder->pid,
                            ports.holder->user);
    } else if (ports.holder) {
      holder += fmt::format(" by a process of user {}", ports.holder->user);
    }
    throw Error::usage(fmt::format("cannot use port {} on the master", *wanted), holder)
        .mended_by(Remedy::choose_port, ports.suggested ? std::to_string(*ports.suggested) : "");
  }
  if (!ports.suggested) {
    throw Error("cannot find a free port on the master", "all from 20000 to 32767 are in use")
        .mended_by(Remedy::choose_port);
  }
  return *ports.suggested;
}

}  // namespace remote::servers
