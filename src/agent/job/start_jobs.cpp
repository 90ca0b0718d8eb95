#include "agent/job/start_jobs.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/facts/machine_digest.hpp"
#include "agent/facts/project.hpp"
#include "agent/host/files.hpp"
#include "agent/host/processes.hpp"
#include "agent/host/remove.hpp"
#include "agent/host/run.hpp"
#include "agent/job/answers.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/job_spec.hpp"
#include "agent/job/kept_program.hpp"
#include "agent/job/lifelines.hpp"
#include "agent/lease/start_lease.hpp"
#include "agent/slurm/submit.hpp"
#include "agent/tree/trees.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

using wire::StartedJob;
using wire::StartOutcome;

// Guards report late if their disk hangs.
constexpr std::chrono::minutes longest_report{10};

StartedJob make_failed(const std::string& id, const std::string& reason) {
  return {.id = id, .outcome = StartOutcome::failed, .reason = wire::to_line(reason, 1000)};
}

// Reads the umask of this process from /proc, because umask(2) would temporarily change it for all threads.
std::string read_umask(const Host& host) {
  for (const std::string& line : read_lines(host.system("/proc/self/status"))) {
    if (line.starts_with("Umask:")) {
      return std::string(trim(std::string_view(line).substr(6)));
    }
  }
  return "0022";  // before Linux 4.7
}

class Start {
 public:
  Start(const Host& host, wire::JobsToStart request)
      : host_(host), request_(std::move(request)), folder_(JobsFolder::of(host, request_.place)) {}

  wire::StartJobsReply run(int lease) {
    if (const std::string limit = find_process_limit(host_); !limit.empty()) {
      throw std::runtime_error("it cannot start a process there: " + limit);
    }
    const KeptProgram kept(host_, folder_, request_.program);
    if (!kept.is_complete()) {
      return {.is_program_missing = true};
    }
    kept.add_agent();
    if (request_.launch && !request_.launch->activate.empty()) {
      // The activation code sources files of the program.
      request_.launch->activate.insert(
          0, text::format("remote_program='{}'\n", replace_all(kept.path().string(), "'", "'\\''")));
    }
    request_.spec.program = request_.program.digest;
    for (const wire::NewJob& job : request_.jobs) {
      make_folder(job);
    }
    start_local_jobs(kept.path(), lease);
    if (!slurm_ids_.empty()) {
      add(submit_to_slurm(host_, folder_, slurm_ids_));
    }
    return {.jobs = std::move(jobs_)};
  }

 private:
  void add(std::vector<StartedJob> jobs) { std::ranges::move(jobs, std::back_inserter(jobs_)); }

  void make_folder(const wire::NewJob& job) {
    const Path folder = folder_.jobs / job.id;
    if (::mkdir(folder.c_str(), 0700) != 0) {
      const int error = errno;
      if (const auto record = read_record(host_, folder_, job.id)) {
        jobs_.push_back({.id = job.id, .outcome = StartOutcome::exists, .pid = find_pid(*record)});
      } else {
        jobs_.push_back(
            make_failed(job.id, "cannot make the folder " + folder.string() + ": " + ::strerror(error)));
      }
      return;
    }
    if (job.backend != "local" && job.backend != "slurm") {
      ::rmdir(folder.c_str());
      jobs_.push_back(make_failed(job.id, "this version of remote does not know the backend " + job.backend));
      return;
    }
    if (!write_files(folder, job)) {
      jobs_.push_back(make_failed(job.id, explain_cannot_write(folder)));
      remove_folder(folder_.jobs, job.id, "");
      return;
    }
    (job.backend == "local" ? local_ids_ : slurm_ids_).push_back(job.id);
  }

  static std::optional<int> find_pid(const JobRecord& record) {
    return record.main && record.main->pid > 0 ? std::optional(record.main->pid) : std::nullopt;
  }

  bool write_files(const Path& folder, const wire::NewJob& job) const {
    bool is_written = job.backend == "local" || create_file(folder / "backend", job.backend + "\n");
    is_written = is_written && create_spec(folder, make_spec(request_.spec, job.spec)) &&
                 create_file(folder / "job.out", "") && create_file(folder / "job.err", "");
    for (const wire::JobFile& file : job.files) {
      is_written = is_written && create_file(folder / file.name, file.text);
      if (file.name == "tree") {
        is_written = is_written && use_tree(host_, folder_, job.id);
      }
    }
    return is_written;
  }

  void start_local_jobs(const Path& program, int inherited_lease) {
    if (local_ids_.empty()) {
      return;
    }
    std::optional<Lease> lease;
    if (request_.lease) {
      try {
        lease.emplace(take_for_jobs(host_, folder_, *request_.lease, local_ids_));
      } catch (const std::runtime_error& error) {
        const bool can_wait = dynamic_cast<const LeasedByOthers*>(&error) != nullptr;
        for (const std::string& id : local_ids_) {
          jobs_.push_back(fail_start(host_, folder_, id, error.what()));
          jobs_.back().can_wait = can_wait;
        }
        return;
      }
    }
    const std::map<std::string, std::string> reports =
        supervise(program, lease ? lease->fd() : inherited_lease);
    for (const std::string& id : local_ids_) {
      const auto report = reports.find(id);
      jobs_.push_back(
          describe(id, report == reports.end() ? "! its supervisor did not start" : report->second));
    }
    if (request_.launch) {
      start_lifeline(host_, folder_, std::move(*request_.launch), program, local_ids_);
    }
  }

  // Starts the guards. Runs this process's own executable, because the copy of the agent may be on a noexec
  // file system. Returns the guards' reports by job id (see start_guard()).
  std::map<std::string, std::string> supervise(const Path& program, int lease) const {
    RunRequest guards{.argv = {program / "remote-agent", "supervise", folder_.jobs, read_umask(host_)}};
    guards.argv.insert(guards.argv.end(), local_ids_.begin(), local_ids_.end());
    guards.program = host_.system("/proc/self/exe");
    guards.limit = longest_report;
    guards.lease = lease;
    guards.is_job = true;
    guards.awaits_children = true;
    std::map<std::string, std::string> reports;
    for (const std::string& line : split(agent::run(host_, guards).out, '\n')) {
      const std::size_t blank = line.find(' ');
      if (blank != std::string::npos) {
        reports.emplace(line.substr(0, blank), line.substr(blank + 1));
      }
    }
    return reports;
  }

  StartedJob describe(const std::string& id, const std::string& report) const {
    if (report.starts_with("! ")) {
      return fail_start(host_, folder_, id, report.substr(2));
    }
    StartedJob job{.id = id, .outcome = StartOutcome::queued, .machine = machine_};
    if (report == "spare") {
      job.reason = "spare, until it replaces a server";
    } else if (has_entry(folder_.jobs / id / "queue")) {
      job.reason = "its turn";
    } else {
      job.outcome = StartOutcome::started;
      job.pid = parse_number<int>(report);
    }
    return job;
  }

  const Host& host_;
  const std::string machine_ = read_machine_digest(host_);
  wire::JobsToStart request_;
  JobsFolder folder_;
  std::vector<std::string> local_ids_;
  std::vector<std::string> slurm_ids_;
  std::vector<StartedJob> jobs_;
};

}  // namespace

StartedJob fail_start(const Host& host, const JobsFolder& folder, const std::string& id,
                      const std::string& reason) {
  if (!claim(host, folder, id)) {
    const auto supervisor = look_at(folder.jobs / id / "supervisor");
    if (!supervisor || supervisor->st_size == 0) {
      remove_folder(folder.jobs, id, "");
    }
  }
  return make_failed(id, reason);
}

wire::StartJobsReply start_jobs(const Host& client_host, const wire::JobsToStart& jobs, int lease) {
  const Host host = client_host.without_cancel();
  return Start(host, jobs).run(lease);
}

}  // namespace remote::agent
