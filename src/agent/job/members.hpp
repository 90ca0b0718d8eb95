#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/host/processes.hpp"
#include "wire/jobs.hpp"

// Finds the processes of jobs on this machine. A process belongs to a job if any of these is true:
//
// - its variable REMOTE_JOB_ID has the job's id
// - its pid and start time are on record
// - it has job.out or job.err open for writing
// - its parent, session or process group belongs to the job
// - it belonged to the job before
//
// It never belongs to the job if REMOTE_JOB_ID has the id of another job.

namespace remote::agent {

struct Member {
  ProcessId id;
  std::string job;
};

// The recorded data of a job.
struct MemberJob {
  std::string id;
  std::optional<ProcessId> supervisor{};  // nullopt if it was started before the last boot
  std::optional<ProcessId> main{};
  // If false, the job shares its session with other processes. Then only sessions and groups whose leader
  // belongs to the job count.
  bool has_session = false;
  std::optional<wire::Moment> ended_at{};
};

// Not thread-safe.
class Members {
 public:
  Members(const Host& host, const Path& jobs_folder, std::vector<MemberJob> jobs);

  // Checks all processes of the machine.
  void look();
  // A quick check of the known members. Returns false if look() is needed, because a member has a new child
  // or the children cannot be listed. Misses orphans.
  bool look_again();

  // The living processes of the last look, except supervisors and their helpers, which exit on their own.
  const std::vector<Member>& found() const { return members_; }
  bool has_any(const std::string& job) const { return counts_.contains(job); }
  // Returns the job that a process with this pid belonged to; "" if unknown.
  std::string find_job(int pid) const;

  // Returns processes of the last look() that may belong to the jobs, but whose environment and open files
  // cannot be read (ssh-agent, setuid programs). They are orphans of this user that were started while the
  // job was running, in the control group of its supervisor if that is known.
  std::vector<Member> find_suspects() const;

 private:
  // A process of the last look().
  struct Row {
    Process process;
    const MemberJob* job = nullptr;  // nullptr if it is not assigned
  };
  using Leaders = std::map<int, const MemberJob*>;  // by session or process group

  const MemberJob* find_job_by_id(const std::string& id) const;
  bool is_own(const Process& process) const;
  void collect_rows();
  const MemberJob* find_written_job(int pid) const;
  void assign(Row& row, const MemberJob& job);
  void spread();
  void collect_members();
  void set_members(std::vector<Member> members);

  const Host& host_;
  uid_t user_;
  std::vector<MemberJob> jobs_;
  std::map<std::string, const MemberJob*> by_id_;
  std::map<std::string, std::string> control_groups_;  // of supervisors, by job
  std::string real_folder_;                            // "/real/path/of/the/jobs/"
  Process self_;
  std::set<int> ancestors_;
  std::uint64_t oldest_ = 0;     // lower bound of the start times of members
  std::map<int, Member> known_;  // all current and former members, by pid
  std::vector<Row> rows_;        // ordered by pid
  // Processes of this user outside the jobs, from the last look; true: its variable has the id of another
  // job. The next look skips them, because jobs only get new processes. Empty if a supervisor is dead,
  // because its last child may not have its variable yet.
  std::map<ProcessId, bool> strangers_;
  std::map<int, const MemberJob*> own_;  // processes assigned in this look, by pid
  Leaders sessions_;
  Leaders groups_;
  std::vector<Member> members_;
  std::map<std::string, int> counts_;
};

}  // namespace remote::agent
