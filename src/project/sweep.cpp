// Starts a sweep, and collects its results. docs/sweep.md describes the rules.

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/command.hpp"
#include "base/shell_quote.hpp"
#include "base/simple_commands.hpp"
#include "base/strings.hpp"
#include "project/git_state.hpp"
#include "project/history.hpp"
#include "project/lease.hpp"
#include "project/new_job.hpp"
#include "project/script_check.hpp"
#include "project/server_setup.hpp"
#include "project/sweep_members.hpp"
#include "servers/agent.hpp"
#include "servers/facts.hpp"

namespace remote::project {
std::string point_command(const SweepRequest& request, const SweepRow& point) {
  if (!request.words.empty()) {
    std::vector<std::string> words;
    for (const std::string& word : request.words) {
      words.push_back(fill_sweep_word(word, point));
    }
    return shell_join(words);
  }
  constexpr std::string_view harmless =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-:/@%,=";
  for (const auto& [name, value] : point) {
    if (value.find_first_not_of(harmless) != std::string::npos) {
      throw Error::usage(fmt::format("the value '{}' of {} cannot be used in a line for the shell",
                                     visible_line(value, 60), name),
                         "the shell would interpret it", "give the command as separate words");
    }
  }
  return fill_sweep_word(request.line, point);
}

Env sweep_env(const SweepRequest& request, const config::Server& server, const JobId& launch, GitState& git) {
  Env env = with_commit(job_env(server, request.env), git);
  env.emplace_back("RUN_UUID", launch.text());
  return env;
}

Env point_env(Env env, std::size_t number, const SweepRow& point) {
  env.emplace_back("SWEEP_POINT", std::to_string(number));
  for (const auto& [name, value] : point) {
    env.emplace_back(sweep_variable(name), value);
  }
  return env;
}

static std::string command_template(const SweepRequest& request) {
  return request.words.empty() ? request.line : shell_join(request.words);
}

std::string shown_command(const SweepRequest& request) {
  return mask_command(command_template(request));
}

CodeCheck make_code_check(const Core& core, const SweepRequest& request) {
  return CodeCheck(core, request.check ? std::optional(PreparedCheck(core.config, command_template(request),
                                                                     request.env, request.image))
                                       : std::nullopt);
}

CodeCheck::Result check_members(Core& core, const std::vector<Member>& members, CodeCheck& code) {
  std::vector<config::Server> servers;
  std::vector<ssh::LoginFacts> logins;
  for (const Member& member : members) {
    servers.push_back(member.server);
    logins.push_back(member.login);
  }
  return code.tell(core, servers, logins);
}

LaunchMemory remember_sweep(Core& core, const SweepRequest& request, const std::vector<Member>& members,
                            const JobId& launch, GitState& git, const CodeCheck::Result& found) {
  LaunchRequest asked;
  asked.command = command_template(request);
  asked.launcher = Launcher::sweep;
  asked.env = request.env;
  asked.lease = request.lease;
  asked.name = request.name;
  asked.note = request.note;
  Plan plan;
  plan.launcher = Launcher::sweep;
  plan.run_id = launch.text();
  plan.processes.push_back(
      {.server = members.front().server.name, .command = asked.command, .tags = request.tags});
  tell_code(core, git, found.servers);
  std::vector<ServerSetup> setups;
  for (const Member& member : members) {
    setups.push_back(planned_setup(core.config, member.server, member.login, {}, found.changed));
  }
  return LaunchMemory(core, asked, plan, git, std::move(setups), {});
}

namespace {

constexpr int most_leased = 1000;  // points per server, if only their leases limit the number

jobs::SweepPoints points_on(const Core& core, const SweepRequest& request, const Member& member,
                            const Env& env, const std::vector<SweepRow>& points) {
  jobs::SweepPoints there{.requests = {},
                          .slots = request.slots.value_or(request.lease.any() ? most_leased : 1),
                          .lease = request.lease.any() ? std::optional(servers::to_terms(
                                                             request.lease, core.config, member.server))
                                                       : std::nullopt,
                          .retry = request.retry};
  for (std::size_t i = 0; i < points.size(); ++i) {
    const jobs::NewJob job = new_job(core.config, member.server,
                                     {point_command(request, points[i]), point_env(env, i, points[i]),
                                      request.enable_stacks, member.container});
    there.requests.push_back({job.job.id, job.process});
  }
  return there;
}

void check(const SweepRequest& request, const std::vector<config::Server>& servers) {
  check_name(request.name);
  if (request.words.empty() == trim(request.line).empty()) {
    throw Error::usage("cannot sweep", "the command is empty", "give the command that every point runs");
  }
  check_lease(request.lease, with_set_variables(request.env, command_template(request)), "cannot sweep");
  check_slurm_sweep(request, servers);
}

SweepPlan plan_sweep(const SweepRequest& request, const std::vector<config::Server>& servers) {
  SweepPlan plan{.points = sweep_points(request.parameters, request.rows), .commands = {}, .servers = {}};
  check(request, servers);
  for (const SweepRow& point : plan.points) {
    plan.commands.push_back(mask_command(point_command(request, point)));
  }
  std::ranges::transform(servers, std::back_inserter(plan.servers), &config::Server::name);
  return plan;
}

}  // namespace

SweepStarted start_sweep(Core& core, const SweepRequest& request) {
  const std::vector<config::Server> servers = core.servers(request.servers);
  // Finds errors before any server is contacted.
  const std::vector<SweepRow> points = plan_sweep(request, servers).points;
  if (request.check) {
    check_script(core, servers, command_template(request), request.env, request.image, {});
  }
  if (servers.front().slurm) {
    return start_slurm_sweep(core, request, servers.front(), points);
  }
  GitState git = ask_git(core);
  CodeCheck code = make_code_check(core, request);
  SweepStarted result{.launch = JobId::random(), .jobs = {}, .servers = {}, .errors = {}};
  const std::vector<Member> members = ready_all(core, servers, request.image, request.lease, result.errors);
  const CodeCheck::Result found = check_members(core, members, code);
  std::vector<jobs::SweepPoints> texts;
  for (const Member& member : members) {
    texts.push_back(
        points_on(core, request, member, sweep_env(request, member.server, result.launch, git), points));
  }
  jobs::SweepRun run = run_of(members, result.launch);
  for (std::size_t i = 0; i < points.size(); ++i) {
    Job job = waiting_job(core, members.front(), result.launch);
    job.command = shown_command(request);
    set_tags(job, request.tags);
    job.point = SweepPoint{.number = static_cast<int>(i), .values = points[i], .waiting = true};
    run.ids.push_back(job.id.text());
    result.jobs.push_back(std::move(job));
  }
  jobs::add_new(core.config, core.store, result.jobs);
  LaunchMemory memory = remember_sweep(core, request, members, result.launch, git, found);
  // Before the start, because the points may be running even without an answer.
  memory.started(result.jobs, std::nullopt, "");
  try {
    result.servers = begin_run(core, members, run, &texts, {}, result.errors);
  } catch (const servers::Refused& error) {
    give_up(core, result.jobs, error);
    throw Error(error).on(members.front().server.name);
  }
  return result;
}

namespace {

SweepResults results(Core& core, const std::string& launch, const SweepBest& by) {
  std::vector<Job> points = refresh(core, recorded_points(core, launch));
  measure_points(core, points);
  complete_records(core);
  return sweep_results(points, by);
}

}  // namespace
}  // namespace remote::project

namespace remote {

SweepPlan Project::plan(const SweepRequest& request) {
  return project::call_here(*state_, {}, [&](project::Core& core) {
    return project::plan_sweep(request, core.servers(request.servers));
  });
}

SweepStarted Project::sweep(const SweepRequest& request, const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel, [&](project::Core& core) {
    project::adopt_labml_jobs(core);  // so that their keys are not reused
    return project::start_sweep(core, request);
  });
}

SweepStarted Project::resume_sweep(const ResumeRequest& request, const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [&](project::Core& core) { return project::resume_sweep(core, request); });
}

SweepResults Project::sweep_results(const std::string& launch, const SweepBest& by,
                                    const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [&](project::Core& core) { return project::results(core, launch, by); });
}

}  // namespace remote
