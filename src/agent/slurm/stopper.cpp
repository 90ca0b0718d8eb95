#include "agent/slurm/stopper.hpp"

#include <algorithm>

namespace remote::agent {

using namespace std::chrono_literals;

Remains SlurmStopper::look(bool quick) {
  queue_.ask(quick ? 300ms : 0ms);
  members_.clear();
  for (StopTarget* target : targets_) {
    const std::string& id = target->job.id;
    const std::string number = read_slurm_number(target->job.folder);
    const SlurmRow* row = queue_.find(id, number);
    Member& known = known_.try_emplace(id, Member{target, number, SlurmKind::running}).first->second;
    if (row != nullptr) {
      known = {target, row->number, row->kind()};
    }
    // If Slurm does not answer, the job counts as alive.
    if (row != nullptr ? row->kind() != SlurmKind::ended : !queue_.trouble().empty()) {
      members_.push_back(known);
    }
  }
  return {.has_members = !members_.empty(), .is_closing = false};
}

void SlurmStopper::signal(int number) {
  std::vector<Member> queued;
  std::vector<Member> running;
  for (const Member& member : members_) {
    const auto sent = sent_.find(member.target->job.id);
    const bool had_it = sent != sent_.end() && sent->second == Sent{number, member.kind};
    if (!had_it && !member.number.empty()) {
      (member.kind == SlurmKind::queued ? queued : running).push_back(member);
    }
  }
  const std::vector<std::string> remove{"scancel"};
  const std::vector<std::string> kill{"scancel", "--full", "--signal=" + std::to_string(number)};
  std::vector<std::vector<std::string>> commands{kill};
  if (number == 9) {
    commands.push_back(remove);  // otherwise Slurm might requeue it
  }
  if (send(number, queued, {remove})) {
    send(number, running, commands);
  }
}

// Runs the commands with the numbers of these jobs. Returns false if Slurm does not answer in time; the next
// signal() continues with the rest.
bool SlurmStopper::send(int signal, std::span<const Member> members,
                        const std::vector<std::vector<std::string>>& commands) {
  constexpr std::size_t at_once = 100;
  bool answers = true;
  for (; answers && !members.empty(); members = members.subspan(std::min(at_once, members.size()))) {
    const auto some = members.first(std::min(at_once, members.size()));
    for (std::vector<std::string> command : commands) {
      for (const Member& member : some) {
        command.push_back(member.number);
      }
      answers = !tools_.call(command, 5s).timed_out && answers;
    }
    for (const Member& member : some) {
      const auto [sent, is_first] = sent_.insert_or_assign(member.target->job.id, Sent{signal, member.kind});
      member.target->signalled += is_first ? 1 : 0;
    }
  }
  return answers;
}

std::vector<wire::Survivor> SlurmStopper::survivors(const std::string& id) const {
  std::vector<wire::Survivor> survivors;
  for (const Member& member : members_) {
    if (member.target->job.id == id) {
      survivors.emplace_back().name =
          member.number.empty() ? "a Slurm job of unknown number" : "Slurm job " + member.number;
    }
  }
  return survivors;
}

}  // namespace remote::agent
