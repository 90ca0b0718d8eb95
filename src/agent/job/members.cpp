#include "agent/job/members.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/files.hpp"
#include "agent/host/processes.hpp"
#include "agent/job/find_guards.hpp"
#include "base/format.hpp"

namespace remote::agent {
namespace {

std::string read_control_groups(const Host& host, int pid) {
  return read_file(find_process_folder(host, pid) / "cgroup").value_or("");
}

// Returns whether this user is not permitted to read the environment and open files of the process.
bool is_closed_to_us(const Host& host, int pid) {
  const Path path = find_process_folder(host, pid) / "environ";
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int error = errno;
  if (fd >= 0) {
    ::close(fd);
  }
  return fd < 0 && (error == EACCES || error == EPERM);
}

std::int64_t to_ticks(wire::Moment at) {
  const auto since_boot = at - (read_wall_clock() - read_boot_clock());
  return since_boot.count() * static_cast<std::int64_t>(::getauxval(AT_CLKTCK)) / 1000;
}

}  // namespace

Members::Members(const Host& host, const Path& jobs_folder, std::vector<MemberJob> jobs)
    : host_(host), user_(::geteuid()), jobs_(std::move(jobs)), real_folder_(find_real_path(jobs_folder)) {
  if (!real_folder_.empty() && !real_folder_.ends_with('/')) {
    real_folder_ += '/';
  }
  self_ = read_process(host_, ::getpid()).value_or(Process{});
  for (int pid = ::getpid(); pid > 1 && ancestors_.insert(pid).second;) {
    pid = read_process(host_, pid).value_or(Process{}).parent;
  }
  bool all_live = !jobs_.empty();
  oldest_ = UINT64_MAX;
  for (const MemberJob& job : jobs_) {
    by_id_.emplace(job.id, &job);
    // A supervisor's start time is a valid lower bound only while the supervisor is alive.
    const bool lives = job.supervisor && is_alive(host_, *job.supervisor);
    all_live = all_live && lives;
    if (lives) {
      oldest_ = std::min(oldest_, job.supervisor->start);
      control_groups_[job.id] = read_control_groups(host_, job.supervisor->pid);
    }
    for (const auto& id : {job.supervisor, job.main}) {
      if (id) {
        known_[id->pid] = {*id, job.id};
      }
    }
  }
  oldest_ = all_live ? oldest_ : 0;
}

void Members::look() {
  own_.clear();
  sessions_.clear();
  groups_.clear();
  collect_rows();
  spread();
  collect_members();
}

const MemberJob* Members::find_job_by_id(const std::string& id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

// Returns whether it is this process, an ancestor, or in the same session or process group.
bool Members::is_own(const Process& process) const {
  return process.group == self_.group || process.session == self_.session ||
         ancestors_.contains(process.id.pid);
}

// Collects the processes that may belong to the jobs, and assigns those that definitely do.
void Members::collect_rows() {
  rows_.clear();
  const std::map<ProcessId, bool> earlier_strangers = std::exchange(strangers_, {});
  for (const int pid : list_processes(host_)) {
    auto process = pid > 1 ? read_process(host_, pid) : std::nullopt;
    if (!process || process->is_dead() || is_own(*process)) {
      continue;
    }
    const auto known = known_.find(pid);
    const bool is_known = known != known_.end() && known->second.id == process->id;
    if (!is_known && process->id.start < oldest_) {
      continue;
    }
    const MemberJob* job = is_known ? find_job_by_id(known->second.job) : nullptr;
    bool has_other_job = false;
    if (const auto stranger = earlier_strangers.find(process->id); stranger != earlier_strangers.end()) {
      has_other_job = strangers_.insert(*stranger).first->second;
    } else if (find_owner(host_, pid) == user_) {
      const JobVariable variable = read_job_variable(host_, pid, user_);
      if (!variable.job.empty()) {
        job = find_job_by_id(variable.job);
        has_other_job = job == nullptr;
      } else if (job == nullptr) {
        job = find_written_job(pid);
      }
      if (job == nullptr && variable.is_readable && oldest_ > 0) {
        strangers_.emplace(process->id, has_other_job);
      }
    }
    if (has_other_job) {
      continue;  // the variable of another job takes precedence
    }
    Row& row = rows_.emplace_back(Row{std::move(*process)});
    if (job != nullptr) {
      assign(row, *job);
    }
  }
}

// Returns the job whose job.out or job.err the process has open for writing; followers only read these files.
// Does not access the files themselves, which could hang on a network file system.
const MemberJob* Members::find_written_job(int pid) const {
  if (real_folder_.empty()) {
    return nullptr;
  }
  const Path folder = find_process_folder(host_, pid) / "fd";
  for (const std::string& name : list_names(folder)) {
    const Path link = folder / name;
    const std::string target = read_link(link);
    if (!target.starts_with(real_folder_)) {
      continue;
    }
    const std::size_t slash = target.find('/', real_folder_.size());
    const std::string file = slash == std::string::npos ? "" : target.substr(slash);
    if (file != "/job.out" && file != "/job.err") {
      continue;
    }
    const MemberJob* job = find_job_by_id(target.substr(real_folder_.size(), slash - real_folder_.size()));
    struct stat info {};
    if (job != nullptr && ::lstat(link.c_str(), &info) == 0 && (info.st_mode & S_IWUSR) != 0) {
      return job;
    }
  }
  return nullptr;
}

// Assigns a process to the job, together with its session and process group.
void Members::assign(Row& row, const MemberJob& job) {
  const Process& process = row.process;
  row.job = &job;
  own_[process.id.pid] = &job;
  if (process.session > 1 && (job.has_session || process.session == process.id.pid)) {
    sessions_[process.session] = &job;
  }
  if (process.group > 1 && (job.has_session || process.group == process.id.pid)) {
    groups_[process.group] = &job;
  }
}

// Assigns children, sessions and groups of assigned processes, until nothing changes.
void Members::spread() {
  const auto find = [](const Leaders& leaders, int number) {
    const auto found = leaders.find(number);
    return found == leaders.end() ? nullptr : found->second;
  };
  for (bool has_more = true; has_more;) {
    has_more = false;
    for (Row& row : rows_) {
      if (row.job != nullptr) {
        continue;
      }
      const MemberJob* job = find(own_, row.process.parent);
      job = job != nullptr ? job : find(sessions_, row.process.session);
      job = job != nullptr ? job : find(groups_, row.process.group);
      if (job != nullptr) {
        assign(row, *job);
        has_more = true;
      }
    }
  }
}

void Members::collect_members() {
  std::vector<Member> members;
  for (const Row& row : rows_) {
    if (row.job == nullptr || row.process.id == row.job->supervisor) {
      continue;
    }
    members.push_back({row.process.id, row.job->id});
  }
  set_members(std::move(members));
}

void Members::set_members(std::vector<Member> members) {
  members_ = std::move(members);
  counts_.clear();
  for (const Member& member : members_) {
    ++counts_[member.job];
    known_[member.id.pid] = member;
  }
}

bool Members::look_again() {
  std::vector<Member> living;
  for (const Member& member : members_) {
    if (!is_alive(host_, member.id)) {
      continue;
    }
    living.push_back(member);
    const auto children = list_children(host_, member.id.pid);
    if (!children) {
      return false;
    }
    for (const int child : *children) {
      if (!std::ranges::binary_search(members_, child, {}, [](const Member& one) { return one.id.pid; })) {
        return false;
      }
    }
  }
  set_members(std::move(living));
  return true;
}

std::string Members::find_job(int pid) const {
  const auto found = known_.find(pid);
  return found == known_.end() ? "" : found->second.job;
}

std::vector<Member> Members::find_suspects() const {
  std::vector<Member> suspects;
  const uid_t user = ::geteuid();
  for (const Row& row : rows_) {
    const int pid = row.process.id.pid;
    if (row.job != nullptr || strangers_.contains(row.process.id) || !is_closed_to_us(host_, pid) ||
        (find_owner(host_, pid) != user && (user == 0 || find_real_user(host_, pid) != user))) {
      continue;
    }
    const auto process = read_process(host_, pid);
    // The files of an exiting process, such as the launch's lifeline, may be closed to us (seen on
    // Linux 6.18).
    if (!process || process->id != row.process.id || process->is_dead() || process->exits ||
        (process->parent != 1 &&
         read_process(host_, process->parent).value_or(Process{}).name != "systemd")) {
      continue;
    }
    const std::string groups = read_control_groups(host_, pid);
    for (const MemberJob& job : jobs_) {
      const auto found = control_groups_.find(job.id);
      const bool is_in_group =
          found == control_groups_.end() || found->second.empty() || found->second == groups;
      // One second of tolerance for clock adjustments.
      const bool is_in_time = job.supervisor && process->id.start >= job.supervisor->start &&
                              (!job.ended_at || static_cast<std::int64_t>(process->id.start) <=
                                                    to_ticks(*job.ended_at + std::chrono::seconds(1)));
      if (is_in_group && is_in_time) {
        suspects.push_back({process->id, job.id});
      }
    }
  }
  return suspects;
}

}  // namespace remote::agent
