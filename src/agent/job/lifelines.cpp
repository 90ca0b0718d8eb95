#include "agent/job/lifelines.hpp"

#include <chrono>

#include <unistd.h>

#include "agent/host/processes.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/kept_program.hpp"
#include "agent/launch/launch_files.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::chrono::milliseconds start_limit{2000};
constexpr unsigned poll_us = 5000;

wire::LifelineTrouble dead_lifeline(const std::string& reason) {
  return {.state = wire::LifelineState::dead, .reason = wire::to_line(reason, 1000)};
}

}  // namespace

void start_lifeline(const Host& host, const JobsFolder& folder, wire::LaunchSpec spec, const Path& program,
                    const std::vector<std::string>& ids, const SupervisorStarter& start) {
  spec.program = program.filename();
  std::string first;
  for (const std::string& id : ids) {
    if (write_launch_spec(folder.jobs / id, spec) && first.empty()) {
      first = id;
    }
  }
  if (!first.empty()) {
    start(host, folder, host.system("/proc/self/exe"), program, first);
  }
}

std::optional<wire::LifelineTrouble> Lifelines::check(const JobRecord& job) {
  const auto record = read_process_record(job.folder / "lifeline.pid");
  if (record && record->is_of_this_boot(host_) && !is_alive(host_, record->process)) {
    if (const auto known = revived_.find(record->process); known != revived_.end()) {
      return known->second;
    }
    if (find_process_limit(host_).empty()) {
      return revived_.emplace(record->process, revive(job, record->process)).first->second;
    }
  }
  const std::string reason(trim(read_job_line(job.folder / "lifeline").value_or("")));
  if (reason.empty() || reason == "ok") {
    return std::nullopt;
  }
  return wire::LifelineTrouble{.state = wire::LifelineState::missing, .reason = wire::to_line(reason, 1000)};
}

wire::LifelineTrouble Lifelines::revive(const JobRecord& job, ProcessId dead) {
  const auto digest = read_launch_program(job.folder);
  if (!digest) {
    return dead_lifeline("its file lifeline.json is missing");
  }
  const Path program = find_kept_program(folder_, *digest);
  if (program.empty()) {
    return dead_lifeline("its program in " + (folder_.jobs / ".bin").string() +
                         " is missing or writable by other users");
  }
  const Path agent = find_kept_agent(host_, program);
  if (agent.empty()) {
    return dead_lifeline("the agent of its launch in " + program.string() +
                         " is missing, cannot be executed or is writable by other users");
  }
  if (!start_(host_, folder_, agent, program, job.id)) {
    return dead_lifeline("no process can be started");
  }
  if (!await_start(job.folder / "lifeline.pid", dead)) {
    return dead_lifeline("it ends at once");
  }
  return {.state = wire::LifelineState::restarted};
}

bool Lifelines::await_start(const Path& record, ProcessId dead) const {
  const auto end = read_boot_clock() + start_limit;
  do {
    const auto now = read_process_record(record);
    if (now && now->process != dead && is_alive(host_, now->process)) {
      return true;
    }
    ::usleep(poll_us);
  } while (read_boot_clock() < end && !host_.is_cancelled());
  return false;
}

}  // namespace remote::agent
