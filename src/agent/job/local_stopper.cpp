#include "agent/job/local_stopper.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <set>
#include <utility>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/container/boxes.hpp"
#include "agent/gpus/memory_holders.hpp"
#include "agent/host/processes.hpp"
#include "agent/host/run.hpp"
#include "agent/host/users.hpp"
#include "agent/job/members.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

using std::chrono::milliseconds;

// Supervisors and containers normally exit on their own within milliseconds. Exceptions are a full disk and
// SIGSTOP.
constexpr milliseconds patience_with_supervisor{1500};
constexpr milliseconds patience_with_box{1000};

constexpr std::size_t most_survivors = 1000;

std::vector<MemberJob> collect_member_jobs(const Host& host, const std::vector<StopTarget*>& targets) {
  const std::string boot = read_boot_id(host);
  std::vector<MemberJob> jobs;
  for (const StopTarget* target : targets) {
    const JobRecord& record = target->job;
    MemberJob& job = jobs.emplace_back(MemberJob{record.id});
    if (record.supervisor && record.supervisor->id.pid > 0 && record.supervisor->boot == boot) {
      job.supervisor = record.supervisor->id;
      job.has_session = record.supervisor->has_session;
    }
    // For jobs of labml_remote, the recorded pid may belong to another process.
    const bool is_of_this_boot = !record.supervisor || record.supervisor->boot == boot;
    if (record.backend == "local" && is_of_this_boot) {
      job.main = record.main;
    }
    job.ended_at = record.end ? record.end->at : std::nullopt;
  }
  return jobs;
}

// Waits until all processes have exited, at most for `longest`. Returns false if the kernel does not support
// pidfds.
bool await_ends(const std::vector<ProcessId>& processes, milliseconds longest) {
  constexpr long pidfd_open = 434;
  std::vector<pollfd> open;
  bool is_supported = true;
  for (const ProcessId& process : processes) {
    const auto fd = static_cast<int>(::syscall(pidfd_open, process.pid, 0U));
    is_supported = is_supported && (fd >= 0 || errno == ESRCH);
    if (fd >= 0) {
      open.push_back({fd, POLLIN, 0});
    }
  }
  const milliseconds end = read_boot_clock() + longest;
  std::size_t left = open.size();
  while (is_supported && left > 0) {
    const milliseconds rest = end - read_boot_clock();
    if (rest <= milliseconds(0) || ::poll(open.data(), open.size(), static_cast<int>(rest.count())) <= 0) {
      break;
    }
    left = 0;
    for (pollfd& one : open) {
      if (one.fd >= 0 && one.revents != 0) {
        ::close(one.fd);
        one.fd = -1;  // poll() ignores negative descriptors
      }
      left += one.fd >= 0 ? 1 : 0;
    }
  }
  for (const pollfd& one : open) {
    if (one.fd >= 0) {
      ::close(one.fd);
    }
  }
  return is_supported;
}

class LocalStopper : public Stopper {
 public:
  LocalStopper(const Host& host, const JobsFolder& folder, std::vector<StopTarget*> targets)
      : host_(host),
        targets_(std::move(targets)),
        members_(host, folder.jobs, collect_member_jobs(host, targets_)),
        boot_(read_boot_id(host)),
        users_(host) {
    for (StopTarget* target : targets_) {
      by_id_.emplace(target->job.id, target);
      if (find_engine(target->job)) {
        boxed_.push_back(target);
      }
    }
  }

  Remains look(bool quick) override;
  void signal(int number) override;
  void freeze() override;
  void wait(milliseconds longest) override;
  void find_memory_holders() override;
  std::vector<wire::Survivor> survivors(const std::string& id) const override;
  std::vector<wire::Survivor> suspects(const std::string& id) override;

 private:
  // The last signal sent to a process.
  struct Signalled {
    std::uint64_t start = 0;
    int signal = 0;
  };

  std::optional<ProcessId> find_supervisor(const StopTarget& target) const;
  bool has_members(const StopTarget& target) const;
  bool is_box_up(const std::string& id) const { return running_boxes_.contains(id); }
  void check_boxes(bool quick);
  void ask_engines();
  void close_supervisors();
  void close_boxes();
  void signal_process(const Member& member, int number);
  void signal_box_of(StopTarget& target, int number);
  // Returns whether all members of the job are in our PID namespace, so that none is in its container.
  bool is_out_of_reach(const std::string& id) const;
  std::string find_user(int pid) const;
  std::optional<wire::Survivor> describe(ProcessId id) const;

  const Host& host_;
  std::vector<StopTarget*> targets_;
  std::map<std::string, StopTarget*> by_id_;
  Members members_;
  std::string boot_;
  mutable UserNames users_;
  std::string limit_;  // see find_process_limit()
  std::map<int, Signalled> signalled_;

  std::vector<StopTarget*> boxed_;
  std::map<std::string, BoxState> boxes_;   // by job, from the last query of the engines
  std::set<std::string> running_boxes_;     // ids of their jobs
  std::map<std::string, int> box_signals_;  // last signal, by job

  std::vector<std::pair<ProcessId, std::string>> closing_supervisors_;  // with ids of their jobs
  std::set<std::string> closing_boxes_;
  std::map<std::string, milliseconds> supervisors_alone_since_;
  std::map<std::string, milliseconds> boxes_alone_since_;

  std::map<std::string, std::vector<int>> memory_holders_;                 // by job
  std::optional<std::map<std::string, std::vector<ProcessId>>> suspects_;  // by job
};

std::optional<ProcessId> LocalStopper::find_supervisor(const StopTarget& target) const {
  const auto& supervisor = target.job.supervisor;
  return supervisor && supervisor->id.pid > 0 && supervisor->boot == boot_ ? std::optional(supervisor->id)
                                                                           : std::nullopt;
}

bool LocalStopper::has_members(const StopTarget& target) const {
  return members_.has_any(target.job.id) || is_box_up(target.job.id);
}

Remains LocalStopper::look(bool quick) {
  if (!quick) {
    limit_ = find_process_limit(host_);
  }
  if (!quick || !members_.look_again()) {
    members_.look();
  }
  check_boxes(quick);
  close_supervisors();
  close_boxes();
  return {.has_members = !members_.found().empty() || !running_boxes_.empty(),
          .is_closing = !closing_supervisors_.empty() || !closing_boxes_.empty()};
}

// Querying the engines is slow, so a quick look does it only if a job has no visible process.
void LocalStopper::check_boxes(bool quick) {
  const bool has_hidden = std::ranges::any_of(
      boxed_, [&](const StopTarget* target) { return !members_.has_any(target->job.id); });
  if (boxed_.empty() || !limit_.empty()) {
    return;
  }
  if (!quick || has_hidden) {
    ask_engines();
  } else {
    running_boxes_.clear();  // waiting for the visible processes is enough
  }
}

void LocalStopper::ask_engines() {
  std::vector<const JobRecord*> jobs;
  for (const StopTarget* target : boxed_) {
    jobs.push_back(&target->job);
  }
  try {
    boxes_ = list_boxes(host_, jobs);
  } catch (const CannotStart&) {
    return;  // keep the previous states
  }
  running_boxes_.clear();
  for (const auto& [id, state] : boxes_) {
    if (state == BoxState::up) {
      running_boxes_.insert(id);
    }
  }
}

// Finds running supervisors. Kills a supervisor if it does not exit within some time after its job.
void LocalStopper::close_supervisors() {
  closing_supervisors_.clear();
  for (const StopTarget* target : targets_) {
    const auto id = target->keeps_supervisor ? std::nullopt : find_supervisor(*target);
    const auto process = id ? read_process(host_, id->pid) : std::nullopt;
    if (!process || process->id != *id || process->is_dead()) {
      continue;
    }
    closing_supervisors_.emplace_back(*id, target->job.id);
    if (has_members(*target)) {
      continue;
    }
    if (process->state == 'T') {
      send_signal(host_, *id, SIGCONT);
    }
    const milliseconds now = read_boot_clock();
    const auto since = supervisors_alone_since_.emplace(target->job.id, now).first->second;
    if (now - since >= patience_with_supervisor) {
      send_signal(host_, *id, SIGKILL);
    }
  }
}

// Finds containers without processes. Removes a container if its engine does not do so within some time.
void LocalStopper::close_boxes() {
  closing_boxes_.clear();
  for (const StopTarget* target : boxed_) {
    const std::string& id = target->job.id;
    const auto box = boxes_.find(id);
    if (target->keeps_supervisor || target->job.backend != "local" || is_box_up(id) || box == boxes_.end() ||
        box->second == BoxState::missing) {
      continue;
    }
    closing_boxes_.insert(id);
    if (members_.has_any(id)) {
      continue;
    }
    const milliseconds now = read_boot_clock();
    if (now - boxes_alone_since_.emplace(id, now).first->second >= patience_with_box && limit_.empty()) {
      try {
        remove_box(host_, target->job);
      } catch (const CannotStart&) {
        continue;  // the next look tries again
      }
    }
  }
}

// Signals main processes first. A main process that waits for a child could otherwise exit normally after the
// child, as if it had not been stopped.
void LocalStopper::signal(int number) {
  const std::vector<Member> members = members_.found();
  const auto is_main = [&](const Member& member) {
    const StopTarget& target = *by_id_.at(member.job);
    return target.job.main && target.job.main->pid == member.id.pid;
  };
  for (const bool main : {true, false}) {
    for (const Member& member : members) {
      if (is_main(member) == main) {
        signal_process(member, number);
      }
    }
  }
  for (const std::string& id : std::set(running_boxes_)) {
    try {
      signal_box_of(*by_id_.at(id), number);
    } catch (const CannotStart&) {
      continue;  // the next call tries again
    }
  }
}

void LocalStopper::signal_process(const Member& member, int number) {
  const auto before = signalled_.find(member.id.pid);
  const bool is_known = before != signalled_.end() && before->second.start == member.id.start;
  if (number != SIGKILL && is_known && before->second.signal == number) {
    return;
  }
  if (!send_signal(host_, member.id, number)) {
    return;
  }
  if (number != SIGKILL) {
    send_signal(host_, member.id, SIGCONT);  // a stopped process does not handle signals
  }
  StopTarget& target = *by_id_.at(member.job);
  if (!is_known) {
    ++target.signalled;
  }
  signalled_[member.id.pid] = {member.id.start, number};
  if (target.job.backend == "local" && target.job.main && target.job.main->pid == member.id.pid) {
    target.last_signal = number;
  }
}

bool LocalStopper::is_out_of_reach(const std::string& id) const {
  const std::string here = read_link(host_.system("/proc/self/ns/pid"));
  return std::ranges::all_of(members_.found(), [&](const Member& member) {
    return member.job != id || read_link(find_process_folder(host_, member.id.pid) / "ns/pid") == here;
  });
}

// Signals a container through its engine if its processes are not among the members, for example because they
// run as another user. Members have already received the signal directly.
void LocalStopper::signal_box_of(StopTarget& target, int number) {
  const std::string& id = target.job.id;
  if (number == SIGKILL) {
    remove_box(host_, target.job);
    ++target.signalled;
    return;
  }
  int& last = box_signals_[id];
  if (last == number) {
    return;
  }
  last = number;
  if (is_out_of_reach(id)) {
    signal_box(host_, target.job, number);
    ++target.signalled;
  }
}

void LocalStopper::freeze() {
  for (int i = 0; i < 2; ++i) {
    for (const Member& member : members_.found()) {
      send_signal(host_, member.id, SIGSTOP);
    }
    look(false);
  }
}

void LocalStopper::wait(milliseconds longest) {
  constexpr std::size_t most = 256;
  std::vector<ProcessId> processes;
  for (const Member& member : members_.found()) {
    processes.push_back(member.id);
  }
  for (const auto& [id, job] : closing_supervisors_) {
    processes.push_back(id);
  }
  const bool has_others = !running_boxes_.empty() || !closing_boxes_.empty() || processes.empty();
  if (has_others || processes.size() > most || !await_ends(processes, longest)) {
    Stopper::wait(longest);
  }
}

void LocalStopper::find_memory_holders() {
  memory_holders_.clear();
  if (!limit_.empty()) {
    return;
  }
  // The driver may take a moment to release memory.
  constexpr int most_tries = 4;
  for (int i = 0; i < most_tries; ++i) {
    if (i > 0) {
      std::this_thread::sleep_for(milliseconds(500));
    }
    memory_holders_.clear();
    for (const int pid : agent::find_memory_holders(host_, std::chrono::seconds(5))) {
      const std::string job = members_.find_job(pid);
      const auto process = job.empty() ? std::nullopt : read_process(host_, pid);
      if (!job.empty() && (!process || process->is_dead())) {
        memory_holders_[job].push_back(pid);
      }
    }
    if (memory_holders_.empty()) {
      return;
    }
  }
}

std::string LocalStopper::find_user(int pid) const {
  const auto owner = find_owner(host_, pid);
  if (!owner || !limit_.empty()) {
    return "?";
  }
  try {
    return wire::to_line(users_.find(*owner), 64);
  } catch (const CannotStart&) {
    return "?";
  }
}

// Returns nullopt if the process is gone.
std::optional<wire::Survivor> LocalStopper::describe(ProcessId id) const {
  const auto process = read_process(host_, id.pid);
  if (!process || process->id != id || process->is_dead()) {
    return std::nullopt;
  }
  return wire::Survivor{.pid = id.pid,
                        .name = wire::to_line(process->name),
                        .user = find_user(id.pid),
                        .state = std::string(1, process->state)};
}

std::vector<wire::Survivor> LocalStopper::survivors(const std::string& id) const {
  std::vector<wire::Survivor> survivors;
  const auto add = [&](std::optional<wire::Survivor> one) {
    if (one && survivors.size() < most_survivors) {
      survivors.push_back(*std::move(one));
    }
  };
  for (const Member& member : members_.found()) {
    if (member.job == id) {
      add(describe(member.id));
    }
  }
  for (const auto& [supervisor, job] : closing_supervisors_) {
    if (job == id) {
      add(describe(supervisor));
    }
  }
  if (is_box_up(id) || closing_boxes_.contains(id)) {
    add(wire::Survivor{.name = "container " + box_name(id)});
  }
  const auto holders = memory_holders_.find(id);
  if (holders != memory_holders_.end()) {
    for (const int pid : holders->second) {
      add(wire::Survivor{.pid = pid, .user = "?", .state = "X", .holds_gpu_memory = true});
    }
  }
  return survivors;
}

std::vector<wire::Survivor> LocalStopper::suspects(const std::string& id) {
  if (!suspects_) {
    suspects_.emplace();
    for (const Member& suspect : members_.find_suspects()) {
      (*suspects_)[suspect.job].push_back(suspect.id);
    }
  }
  std::vector<wire::Survivor> suspects;
  for (const ProcessId& process : (*suspects_)[id]) {
    auto suspect = describe(process);
    if (suspect && suspects.size() < most_survivors) {
      suspects.push_back(*std::move(suspect));
    }
  }
  return suspects;
}

}  // namespace

std::unique_ptr<Stopper> make_local_stopper(const Host& host, const JobsFolder& folder,
                                            std::vector<StopTarget*> targets) {
  return std::make_unique<LocalStopper>(host, folder, std::move(targets));
}

}  // namespace remote::agent
