// `remote check --burn`: a launch of burn.py on all servers.

#include "project/check/burn.hpp"

#include <algorithm>
#include <atomic>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/failure_lines.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "jobs/kill.hpp"
#include "server/archive.hpp"
#include "servers/marked_lines.hpp"

namespace remote::project {
namespace {

// The ranks of the launch. The destructor stops and removes them, however the burn ends.
class Ranks {
 public:
  Ranks(Core& core, std::vector<Job> jobs) : core_(core), jobs_(std::move(jobs)) {}
  ~Ranks() {
    for (const BurnLeft& left : end()) {  // after Ctrl-C, or an error that is reported itself
      log_info(left.server, "left by --burn: {}", left.detail);
    }
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  const std::vector<Job>& jobs() const { return jobs_; }
  // Stops and removes the ranks, and returns the remains. Only the first call has an effect.
  std::vector<BurnLeft> end() noexcept;

 private:
  Core& core_;
  std::vector<Job> jobs_;
  bool ended_ = false;
};

std::vector<BurnLeft> Ranks::end() noexcept {
  if (std::exchange(ended_, true)) {
    return {};
  }
  KillResult killed;
  CleanResult cleaned;
  try {
    // Must also work after Ctrl-C, so it does not use the call's token.
    killed = kill(
        core_, jobs_,
        {.grace = std::chrono::seconds(2), .by = {.kind = JobReason::Kind::by_user, .text = "remote check"}},
        Cancel());
    std::vector<Job> ended;
    for (const KillResult::Entry& entry : killed.entries) {
      ended.push_back(entry.job);
    }
    cleaned = jobs::clean({core_.config, core_.store, core_.connector(), Cancel()}, ended);
  } catch (const std::exception& error) {
    log_info("", "the ranks of --burn were not all removed: {}", error.what());
  }
  return left_of(jobs_, killed, cleaned);
}

// What remains of a rank; nullopt: it has ended, and its folder is gone.
std::optional<BurnLeft> left_of(const Job& job, const KillResult& killed, const CleanResult& cleaned) {
  using Outcome = KillResult::Entry::Outcome;
  const std::string rank = fmt::format("rank {} (job {})", job.rank.value_or(0), job.key);
  const auto of_job = [&](const auto& entry) { return entry.job.id == job.id; };
  const auto end = std::ranges::find_if(killed.entries, of_job);
  if (end == killed.entries.end()) {
    const auto error = std::ranges::find(killed.errors, job.server, &Error::server);
    const std::string why = error == killed.errors.end() ? "" : ": " + error->reason();
    return BurnLeft{job.server, true, fmt::format("it is unknown whether {} has ended{}", rank, why),
                    job.key};
  }
  if (end->outcome == Outcome::survivors || end->outcome == Outcome::refused) {
    const std::string why = end->outcome == Outcome::refused ? end->reason : join(end->survivors, ", ");
    return BurnLeft{
        job.server, true,
        fmt::format("{} could not be ended{}{}", rank,
                    end->outcome == Outcome::refused ? ": " : "; still there: ", visible_line(why)),
        job.key};
  }
  const auto entry = std::ranges::find_if(cleaned.entries, of_job);
  if (entry != cleaned.entries.end() && entry->removed) {
    return std::nullopt;
  }
  const auto error = std::ranges::find(cleaned.errors, job.server, &Error::server);
  const std::string why = entry != cleaned.entries.end()  ? entry->reason
                          : error != cleaned.errors.end() ? error->reason()
                                                          : "";
  return BurnLeft{job.server, false,
                  fmt::format("the folder of {} stays{}", rank, why.empty() ? "" : ": " + visible_line(why)),
                  job.key};
}

std::string describe(wire::BurnProblem problem) {
  switch (problem) {
    case wire::BurnProblem::no_torch:
      return "the environment of the servers has no torch";
    case wire::BurnProblem::no_distributed:
      return "torch in the environment of the servers was built without torch.distributed";
    case wire::BurnProblem::timeout:
      break;
  }
  return "the ranks did not finish: they do not reach each other, or a device hangs";
}

// Why some ranks did not answer; "" if all did. An error from a rank has priority over the silence of ranks
// that were stopped because of it.
std::string failure_of(const std::vector<Job>& jobs, const std::vector<BurnAnswer>& answers,
                       const std::vector<std::string>& errors) {
  std::string failure;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const std::string rank = fmt::format("rank {} on {}: ", i, jobs[i].server);
    if (!answers[i].error.empty()) {
      return rank + answers[i].error;
    }
    if (!answers[i].device && failure.empty()) {
      const std::vector<std::string> last = find_failure_lines(split(errors[i], '\n'), 1);
      failure =
          rank + (last.empty() || trim(last.back()).empty() ? "it ended without an answer" : last.back());
    }
  }
  return failure;
}

}  // namespace

std::vector<BurnLeft> left_of(const std::vector<Job>& ranks, const KillResult& killed,
                              const CleanResult& cleaned) {
  std::vector<BurnLeft> all;
  for (const Job& job : ranks) {
    if (auto left = left_of(job, killed, cleaned)) {
      all.push_back(std::move(*left));
    }
  }
  std::ranges::stable_sort(all, {}, &BurnLeft::server);
  return all;
}

void BurnAnswer::take(const wire::BurnMessage& message) {
  const auto check_rank = [&](const char* field, int rank) {
    if (rank >= ranks) {
      throw wire::Malformed(field, "is out of range");
    }
  };
  if (const auto* failed = std::get_if<wire::BurnFailed>(&message)) {
    error = describe(failed->problem);
  } else if (const auto* missing = std::get_if<wire::BurnLacks>(&message)) {
    lacks = wire::name_of_value(missing->what);
  } else if (const auto* link = std::get_if<wire::BurnedLink>(&message)) {
    check_rank("from", link->from);
    check_rank("to", link->to);
    if (links.size() >= 2) {
      throw wire::Malformed("link", "is one too many");
    }
    links.push_back({.from = link->from, .to = link->to, .gbit_s = link->gbit_s});
  } else if (const auto* burned = std::get_if<wire::BurnedDevice>(&message)) {
    check_rank("rank", burned->rank);
    if (burned->name.empty()) {
      throw wire::Malformed("name", "is empty");
    }
    backend = wire::name_of_value(burned->backend);
    device = BurnDevice{.rank = burned->rank,
                        .device = burned->name,
                        .type = std::string(wire::name_of_value(burned->type)),
                        .tflops = burned->tflops,
                        .bus_gbit_s = burned->bus_gbit_s};
  }
}

Burn burn(Core& core, const std::vector<std::string>& servers, std::chrono::seconds time, bool by_gpu,
          const std::function<void(const std::string&, std::size_t, std::size_t)>& on_progress) {
  Burn burn;
  LaunchRequest request;
  // The program is passed in a variable to keep the displayed command readable.
  request.command = "exec python3 -c \"$REMOTE_BURN\" " + std::to_string(time.count());
  request.env = {{"REMOTE_BURN", std::string(server::python_text("burn.py"))}};
  request.servers = servers;
  request.nproc = by_gpu ? RanksPerServer(OnePer::gpu) : 1;
  request.tags = {"check", "burn"};
  request.python = false;
  request.tell_changes = false;
  request.await_lifelines = false;
  request.check = false;  // `remote check` has already done these checks
  std::optional<LaunchResult> launched;
  try {
    launched = launch(core, request);
  } catch (const Error& error) {
    burn.error = error.what_failed() + ": " + error.reason();
    return burn;
  }
  Ranks ranks(core, launched->jobs);
  if (!launched->errors.empty()) {
    burn.error = launched->errors.front().what_failed() + ": " + launched->errors.front().reason();
    burn.left = ranks.end();
    return burn;
  }
  std::vector<BurnAnswer> answers(ranks.jobs().size(), BurnAnswer{static_cast<int>(ranks.jobs().size())});
  std::vector<servers::MarkedLines> readers;
  for (BurnAnswer& answer : answers) {
    readers.emplace_back(wire::burn_mark, [&answer](std::string_view json) {
      answer.take(servers::parse_message<wire::BurnMessage>(json));
    });
  }
  std::vector<std::string> errors(answers.size());
  FollowRequest follow_request;
  follow_request.on_output = [&](const JobOutput& output) {
    if (output.stream == OutputStream::out) {
      readers[output.job].add(output.text);
    } else {
      append_end(errors[output.job], output.text);
    }
  };
  std::atomic<std::size_t> ended = 0;
  const auto tell = [&](std::size_t done) {
    if (on_progress) {
      on_progress(fmt::format("all devices compute, for about {} s; ranks done", time.count()), done,
                  answers.size());
    }
  };
  tell(0);
  follow_request.on_ended = [&](std::size_t, const Job&) { tell(++ended); };
  follow_request.judge = true;
  follow_request.end_others = std::chrono::seconds(5);
  const FollowResult followed = follow(core, ranks.jobs(), follow_request);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Job& job = ranks.jobs()[i];
    try {
      readers[i].check();
    } catch (const Error& error) {
      answers[i].error = error.reason();
    }
    if (answers[i].device) {
      answers[i].device->server = job.server;
      answers[i].device->lacks = answers[i].lacks;
      burn.devices.push_back(*answers[i].device);
      burn.links.insert(burn.links.end(), answers[i].links.begin(), answers[i].links.end());
      burn.backend = answers[i].backend;
    }
  }
  burn.error = failure_of(ranks.jobs(), answers, errors);
  judge_burn(burn);
  burn.left = ranks.end();
  return burn;
}

}  // namespace remote::project
