// Checks whether the servers are ready for a run: queries all of them in parallel, and judges the answers.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <iterator>
#include <mutex>
#include <numeric>

#include <fmt/format.h>
#include <remote/check.hpp>

#include "base/error_of.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "project/check/burn.hpp"
#include "project/check/deep.hpp"
#include "project/check/judge.hpp"
#include "project/check/network.hpp"
#include "project/core.hpp"
#include "project/prepared_check.hpp"
#include "project/report/kept_bandwidth.hpp"
#include "project/unfetched.hpp"
#include "servers/agent.hpp"
#include "servers/container.hpp"
#include "servers/facts.hpp"
#include "servers/fanout.hpp"
#include "servers/sent_state.hpp"

namespace remote {

bool ServerCheck::ok() const {
  return std::ranges::find(findings, CheckStatus::fail, &Finding::status) == findings.end();
}

bool CheckReport::ok() const {
  return std::ranges::all_of(servers, &ServerCheck::ok);
}

}  // namespace remote

namespace remote::project {
namespace {

Finding failed_by(const char* name, const Error& error) {
  Finding finding{name, CheckStatus::fail, error.what_failed() + ": " + error.reason(), std::nullopt};
  if (!error.hint().empty()) {
    finding.fix = Fix{Fix::Where::advice, error.hint()};
  }
  return finding;
}

struct Asked {
  ServerCheck found;
  std::string address{};  // empty: it did not answer; querying it again would only wait again
  std::string sent{};     // the project state that was sent to it
};

std::string sent_state(const Core& core, const config::Server& server, const ssh::LoginFacts& login) {
  const servers::SentState::Mark mark = servers::SentState(core.config, server, login).mark();
  return mark.digest.empty() ? "" : "state " + mark.digest.substr(0, 8);
}

// A server that does not answer must not delay the results of the others.
ssh::ConnectLimit connect_limit(const Core& core) {
  return core.config.connect_timeout_s == 0 ? ssh::ConnectLimit(4) : std::nullopt;  // 0: not set
}

// `packages`: what they are installed from.
Asked ask(Core& core, const config::Server& server, const std::optional<servers::PackageSources>& packages) {
  Asked asked{ServerCheck{server.name}};
  ServerCheck& found = asked.found;
  const char* step = "connect";
  try {
    const auto connection = core.connector().connect(server, core.cancel(), connect_limit(core));
    found.findings.push_back({step, CheckStatus::ok, "connected to " + connection->peer_address(), {}});
    asked.sent = sent_state(core, server, connection->login());
    step = "facts";
    servers::FactsRequest request = servers::check_request(core.config, server);
    if (packages && !servers::container_of(server, std::nullopt)) {
      request.wanted.packages = servers::packages_stamp(core.config, server, *packages);
    }
    const servers::FactsAnswer answer = servers::ask_facts(*connection, request, core.cancel());
    found.facts = answer.facts;
    asked.address = connection->peer_address();
    const auto judged = judge_server(core.config, server, *found.facts);
    found.findings.insert(found.findings.end(), judged.begin(), judged.end());
    if (answer.has_old_packages) {
      found.findings.push_back(old_packages(server.name));
    }
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    found.error = error_of(error).on(server.name);
    found.findings.push_back(failed_by(step, *found.error));
  }
  return asked;
}

// Load from the user's own jobs is not the server's fault.
void excuse_own_load(ServerCheck& server, const std::function<const std::vector<Job>&()>& unfinished_jobs) {
  const auto load = std::ranges::find(server.findings, "load", &Finding::name);
  if (load == server.findings.end() || load->status != CheckStatus::warn) {
    return;
  }
  const auto own = static_cast<std::size_t>(std::ranges::count_if(unfinished_jobs(), [&](const Job& job) {
    return job.server == server.server && job.state == JobState::running;
  }));
  if (own > 0) {
    *load = {"load",
             CheckStatus::ok,
             load->detail.substr(0, load->detail.find(':')) +
                 fmt::format("; {} of this project {} there", counted(own, "job"), own == 1 ? "runs" : "run"),
             {}};
  }
}

// Queries all servers in parallel, and reports progress after each answer.
std::vector<Asked> ask_all(Core& core, const std::vector<config::Server>& servers,
                           const CheckRequest& request) {
  const auto on_progress = core.on_caller(request.on_progress);
  std::atomic<std::size_t> done = 0;
  const auto tell = [&](std::size_t so_far) {
    if (on_progress) {
      on_progress("asking the servers", so_far, servers.size());
    }
  };
  std::once_flag read;
  std::vector<Job> jobs;
  const auto unfinished_jobs = [&]() -> const std::vector<Job>& {
    std::call_once(read, [&] { jobs = stored_jobs(core, {.unfinished_only = true}); });
    return jobs;
  };
  tell(0);
  const std::optional<servers::PackageSources> packages = find_package_sources(core.config);
  return servers::values_of(
      servers::fan_out(servers, &config::Server::name, [&](const config::Server& server, std::size_t) {
        Asked asked = ask(core, server, packages);
        excuse_own_load(asked.found, unfinished_jobs);
        for (const Finding& finding : asked.found.findings) {
          if (finding.status == CheckStatus::warn || finding.status == CheckStatus::fail) {
            core.tell(CheckWarned{{server.name}, finding});
          }
        }
        tell(++done);
        return asked;
      }));
}

// Adds to each server in `places` the findings at the same position in `all`.
void add_findings(const std::vector<std::vector<Finding>>& all, const std::vector<std::size_t>& places,
                  CheckReport& report) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::vector<Finding>& findings = report.servers[places[i]].findings;
    findings.insert(findings.end(), all[i].begin(), all[i].end());
  }
}
// For all servers of the report.
void add_findings(const std::vector<std::vector<Finding>>& all, CheckReport& report) {
  std::vector<std::size_t> places(all.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  add_findings(all, places, report);
}

void add_comparison(const config::Python& python, const std::vector<config::Server>& servers,
                    const std::vector<Asked>& asked, CheckReport& report) {
  std::vector<Compared> compared;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (report.servers[i].facts) {
      const std::vector<int>& listed = servers[i].gpu_indices;
      const std::optional<int> expected =
          listed.empty() ? servers[i].gpus : std::optional(static_cast<int>(listed.size()));
      const std::vector<Finding>& findings = report.servers[i].findings;
      const auto environment = std::ranges::find(findings, "environment", &Finding::name);
      const bool lacks_environment =
          environment != findings.end() &&
          (environment->status == CheckStatus::warn || environment->status == CheckStatus::fail);
      compared.push_back({report.servers[i].server, *report.servers[i].facts, expected, asked[i].sent,
                          pip_options(python), lacks_environment, listed});
      places.push_back(i);
    }
  }
  add_findings(judge_same(compared), places, report);
}

bool has_gpus(const config::Server& server, const CheckReport& report, std::size_t index) {
  const auto& facts = report.servers[index].facts;
  return server.gpus.value_or(0) > 0 || !server.gpu_indices.empty() || (facts && !facts->gpus.gpus.empty()) ||
         (report.network && report.network->servers[index].has_gpus);
}

void add_network(Core& core, const std::vector<config::Server>& servers, const std::vector<Asked>& asked,
                 const NetworkOptions& options, CheckReport& report) {
  std::vector<std::string> addresses;
  std::ranges::transform(asked, std::back_inserter(addresses), &Asked::address);
  report.network = look_at_network(core, servers, addresses, options);
  if (!report.network) {
    return;
  }
  add_findings(network_findings(*report.network), report);
  if (report.network->bandwidth) {
    std::vector<bool> with_gpus;
    for (std::size_t i = 0; i < servers.size(); ++i) {
      with_gpus.push_back(has_gpus(servers[i], report, i));
    }
    add_findings(bandwidth_findings(*report.network, with_gpus), report);
    // If nothing could be measured, keep the previous result.
    if (std::ranges::any_of(report.network->bandwidth->flows,
                            [](const Flow& flow) { return flow.error.empty(); })) {
      try {
        keep_bandwidth(core.config, *report.network);
      } catch (const Error& error) {  // the measurements are still displayed
        core.tell(StoreProblem{error.message()});
      }
    }
  }
}

void add_burn(Core& core, const std::vector<config::Server>& servers, std::chrono::seconds time,
              const NetworkOptions& options, CheckReport& report) {
  if (time.count() == 0) {
    return;
  }
  std::vector<std::string> names;
  std::vector<std::size_t> places;
  bool by_gpu = true;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (report.servers[i].error) {
      continue;  // it already has a failed finding
    }
    if (servers[i].slurm) {
      report.servers[i].findings.push_back(
          {"burn", CheckStatus::skip, "a login node of Slurm is not for computing", {}});
      continue;
    }
    names.push_back(servers[i].name);
    places.push_back(i);
    by_gpu = by_gpu && has_gpus(servers[i], report, i);
  }
  if (names.empty()) {
    return;
  }
  report.burn = burn(core, names, time, by_gpu, options.on_progress);
  add_findings(burn_findings(*report.burn, names), places, report);
}

void clear_sick_marks(Core& core, const std::vector<std::string>& globs) {
  const auto outcomes = servers::fan_out(
      core.servers(globs), &config::Server::name, [&](const config::Server& server, std::size_t) {
        servers::AgentQuestion question;
        question.what = "mark of a sick server";
        question.request = wire::ClearSickMarkRequest{
            {core.config.project_path_on(server), core.config.remote_jobs_folder_name}};
        question.timeout = std::chrono::seconds(20);
        const auto connection = core.connector().connect(server, core.cancel(), connect_limit(core));
        servers::take_reply<wire::ClearSickMarkReply>(
            servers::ask_agent(*connection, question, core.cancel()));
        return true;
      });
  servers::values_of(outcomes);
}

// Reports files of the project that every server would lack.
void check_files(Core& core) {
  try {
    tell_unfetched(core, core.config, files_here(core.config, core.cancel()));
  } catch (const Error& error) {  // a sync reports this error
    log_info("", "{}", error.message());
  }
}

CheckReport check(Core& core, const CheckRequest& request) {
  if (!request.well.empty()) {
    clear_sick_marks(core, request.well);
  }
  const std::vector<config::Server> servers = core.servers(request.servers);
  const auto on_progress = core.on_caller(request.on_progress);
  std::future<void> project = std::async(std::launch::async, [&core] { check_files(core); });
  const std::vector<Asked> asked = ask_all(core, servers, request);
  project.get();
  CheckReport report;
  std::ranges::transform(asked, std::back_inserter(report.servers), &Asked::found);
  add_comparison(core.config.python, servers, asked, report);
  if (request.deep) {
    import_torch(core, {.on_progress = on_progress}, report);
    add_findings(deep_findings(report), report);
  }
  add_network(core, servers, asked, {.bandwidth = request.bandwidth, .on_progress = on_progress}, report);
  add_burn(core, servers, request.burn, {.on_progress = on_progress}, report);
  return report;
}

}  // namespace

}  // namespace remote::project

namespace remote {

CheckReport Project::check(const CheckRequest& request, const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [&](project::Core& core) { return project::check(core, request); });
}

}  // namespace remote
