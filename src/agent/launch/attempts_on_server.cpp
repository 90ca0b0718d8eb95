#include "agent/launch/attempts_on_server.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/descriptor.hpp"
#include "agent/host/processes.hpp"
#include "agent/host/utc_time.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/journal.hpp"
#include "agent/job/last_words.hpp"
#include "agent/job/stop_record.hpp"
#include "agent/launch/checkpoints.hpp"
#include "agent/launch/failure_mark.hpp"
#include "agent/launch/mpi_orders.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "rules/members.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

using rules::Seconds;

// Sends a line to the job's guard. Returns false if the guard has exited.
bool send_to_guard(const Path& job_folder, const std::string& order) {
  const Descriptor fifo(
      ::open((job_folder / ".next").c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  return fifo && ::fstat(fifo.get(), &info) == 0 && S_ISFIFO(info.st_mode) &&
         write_whole(fifo.get(), order + "\n");
}

// Uses O_NONBLOCK, because the job can replace its files with FIFOs.
bool append_line(const Path& file, const std::string& line) {
  return write_job_file(file, line + "\n", O_APPEND | O_NONBLOCK);
}

bool append_to_stderr(const Path& job_folder, const std::string& line) {
  bool is_written = append_line(job_folder / "job.err", line);
  const Path ranks = job_folder / "ranks";
  if (is_own_folder(ranks)) {
    for (const std::string& name : list_names(ranks)) {
      if (name.ends_with(".err") && !name.starts_with('.')) {
        is_written = append_line(ranks / name, line) && is_written;
      }
    }
  }
  return is_written;
}

// The text is shown to the user.
std::string describe_cause(const wire::Cause& cause) {
  if (const auto* failure = std::get_if<wire::RankFailure>(&cause)) {
    const bool is_oom = failure->ending.kind == wire::EndKind::out_of_memory;
    return text::format("rank {} on {} failed ({} {})", failure->rank, wire::to_line(failure->server, 256),
                        is_oom ? "out of memory, signal" : wire::name_of_value(failure->ending.kind),
                        failure->ending.code);
  }
  if (const auto* loss = std::get_if<wire::ServerLoss>(&cause)) {
    return "the loss of " + wire::to_line(loss->server, 256);
  }
  if (const auto* death = std::get_if<wire::SupervisorDeath>(&cause)) {
    return "the death of the lifeline on " + wire::to_line(death->server, 256);
  }
  const int seconds = std::get<wire::Hang>(cause).seconds;
  return seconds >= 120 ? text::format("{} min without progress", seconds / 60)
                        : text::format("{} s without progress", seconds);
}

// CAUSE, CODE, RANK and SERVER of a line of `attempts`; "-" if unknown, except for CAUSE.
struct CauseWords {
  std::string_view cause;
  std::string code = "-";
  std::string rank = "-";
  std::string server{};
};

CauseWords to_cause_words(const wire::Cause& cause) {
  if (const auto* failure = std::get_if<wire::RankFailure>(&cause)) {
    return {wire::name_of_value(failure->ending.kind), std::to_string(failure->ending.code),
            std::to_string(failure->rank), failure->server};
  }
  if (const auto* loss = std::get_if<wire::ServerLoss>(&cause)) {
    return {.cause = "lost", .server = loss->server};
  }
  if (const auto* death = std::get_if<wire::SupervisorDeath>(&cause)) {
    return {.cause = "lifeline", .server = death->server};
  }
  return {.cause = "hang"};
}

// Returns NAME=VALUE lines that every job of the server gets in this attempt.
std::string format_common_variables(int attempt, const wire::Shape& shape) {
  return text::format("MASTER_PORT={}\nNODE_RANK={}\nGROUP_WORLD_SIZE={}\nRESTART_COUNT={}\nRESUME_FROM={}\n",
                      shape.port, shape.node_rank, shape.nodes, attempt - 1, shape.resume_from);
}

std::string format_rank_variables(int attempt, const wire::Shape& shape, int rank) {
  return text::format(
      "RANK={}\nWORLD_SIZE={}\nROLE_RANK={}\nROLE_WORLD_SIZE={}\nGROUP_RANK={}\nTORCHELASTIC_RESTART_COUNT={}"
      "\n",
      rank, shape.world_size, rank, shape.world_size, shape.node_rank, attempt - 1);
}

}  // namespace

AttemptsOnServer::AttemptsOnServer(const Host& host, const JobsFolder& folder, const wire::LaunchSpec& spec,
                                   std::vector<std::unique_ptr<WatchedJob>>& jobs)
    : host_(host), folder_(folder), spec_(spec), jobs_(jobs), is_spare_(exists(first().folder() / "spare")) {}

int AttemptsOnServer::attempt() const {
  const std::vector<std::string> words = read_job_words(first().folder() / "attempt");  // "number N"
  const auto number = words.size() == 2 ? parse_number<int>(words[1]) : std::nullopt;
  if (number && *number > 0 && *number <= wire::max_attempt) {
    return *number;
  }
  return is_spare_ ? 0 : 1;
}

std::optional<rules::Revived> AttemptsOnServer::find_revived(Seconds now) const {
  const Path lease = first().folder() / "lease";
  if (!has_entry(lease)) {
    return std::nullopt;
  }
  const std::vector<std::string> words = read_job_words(lease);
  const auto hundredths = words.empty() ? std::nullopt : parse_number<std::int64_t>(words[0]);
  // A lease is never longer than the timeout, even if the job has changed the file.
  const Seconds longest = now + Seconds(spec_.timeout_seconds);
  rules::Revived revived{
      .lease_until = hundredths ? std::min(Seconds(static_cast<double>(*hundredths) / 100), longest) : now,
      .attempt_began = now};
  for (const char* name : {"attempt", "pid"}) {
    if (const auto info = look_at(first().folder() / name)) {
      const Seconds written =
          std::chrono::seconds(info->st_mtim.tv_sec) + std::chrono::nanoseconds(info->st_mtim.tv_nsec);
      revived.attempt_began = now - Seconds(read_wall_clock()) + written;
      break;
    }
  }
  return revived;
}

std::uint64_t AttemptsOnServer::choose_first_question() {
  std::uint32_t question = 0;
  if (::getrandom(&question, sizeof question, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof question)) {
    return static_cast<std::uint64_t>(read_wall_clock().count());
  }
  return question;
}

bool AttemptsOnServer::start(int attempt, const wire::Shape& shape, const std::string& mpi_hosts,
                             std::vector<int>& ranks) {
  const std::string line = text::format("remote: the ranks begin anew (restart {}) at {} after {}",
                                        attempt - 1, format_utc_time(read_wall_clock()),
                                        shape.why ? describe_cause(*shape.why) : "an unknown failure");
  const bool numbers_own_ranks = spec_.restarts && spec_.restarts->numbers_own_ranks;
  ranks.clear();
  for (std::size_t i = 0; is_spare_ && i < jobs_.size(); ++i) {
    ranks.push_back(shape.first_rank + static_cast<int>(i));
  }
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const Path& job = jobs_[i]->folder();
    std::string variables = text::format("number {}\n", attempt) + format_common_variables(attempt, shape);
    if (spec_.uses_mpi()) {
      if (!forget_mpi_attempt(job)) {
        return false;
      }
      variables += text::format("WORLD_SIZE={}\nGROUP_RANK={}\nREMOTE_MPI_HOSTS={}\n", shape.world_size,
                                shape.node_rank, mpi_hosts);
    } else if (!numbers_own_ranks) {
      variables += format_rank_variables(attempt, shape, shape.first_rank + static_cast<int>(i));
    }
    if (!put_synced_file(job / "attempt", variables) || !append_to_stderr(job, line)) {
      return false;
    }
  }
  return std::ranges::all_of(jobs_, [&](const std::unique_ptr<WatchedJob>& job) {
    return send_to_guard(job->folder(), text::format("go {}", attempt));
  });
}

void AttemptsOnServer::renew_lease(Seconds until) {
  const std::string text = text::format("{}\n", static_cast<std::int64_t>(until.count() * 100));
  for (const auto& job : jobs_) {
    put_synced_file(job->folder() / "lease", text);  // if this fails, the lease guard stops the ranks in time
  }
}

void AttemptsOnServer::release(const wire::AttemptsOver& over, const std::vector<std::string>& ended) {
  if (over.why) {
    append_safely(host_, first().folder(), first().id(), wire::RestartRefused{*over.why});
  }
  for (const auto& job : jobs_) {
    const JobRecord record{.id = job->id(), .folder = job->folder()};
    if (over.reason && std::ranges::find(ended, job->id()) != ended.end() &&
        !read_history(host_, record.folder, record.id).has_ended()) {
      record_stop(host_, record,
                  {.signal = SIGTERM, .by = to_stopped_by(*over.reason), .at = read_wall_clock()});
    }
    send_to_guard(job->folder(), "end");
  }
}

wire::RankFailure AttemptsOnServer::describe_failure(const rules::LaunchJob& job) const {
  wire::RankFailure failure;
  failure.rank = job.rank;
  if (job.round) {
    failure.ending = job.round->ending;
  }
  const auto found = std::ranges::find_if(
      jobs_, [&](const std::unique_ptr<WatchedJob>& each) { return each->id() == job.id; });
  if (found == jobs_.end()) {
    return failure;
  }
  const bool is_exit = failure.ending.kind == wire::EndKind::exit;
  const bool numbers_own_ranks = spec_.restarts && spec_.restarts->numbers_own_ranks;
  if (auto worker = numbers_own_ranks && is_exit ? (*found)->find_failed_worker() : std::nullopt) {
    failure = *std::move(worker);
    const std::string number = std::to_string(failure.rank);
    mark_failure(
        failure,
        (*found)->folder() / (spec_.uses_mpi() ? "failures/rank." + number : "ranks/" + number + ".err"),
        spec_.uses_mpi());
  } else if (spec_.uses_mpi() && is_exit) {
    failure.after_peer = true;  // mpirun or its daemon exited because a rank on another server failed
  } else {
    mark_failure(failure, (*found)->folder() / "job.err", false);
  }
  return failure;
}

std::vector<std::string> AttemptsOnServer::find_checkpoints() const {
  return spec_.restarts ? agent::find_checkpoints(folder_.project, *spec_.restarts)
                        : std::vector<std::string>();
}

void AttemptsOnServer::record_attempt(int attempt, Seconds began, Seconds failed, Seconds next,
                                      const wire::Cause& cause, const std::vector<std::string>& without,
                                      bool sick) {
  const Seconds boot = read_wall_clock() - read_boot_clock();
  const auto to_wall_clock = [&](Seconds at) {
    return static_cast<std::int64_t>((boot + at).count() * 1000);
  };
  const CauseWords words = to_cause_words(cause);
  std::string names;
  for (const std::string& name : without) {
    names += (names.empty() ? "" : ",") + wire::percent_encode(name);
  }
  // The file is only shown to users, so failures are ignored.
  append_line(first().folder() / "attempts",
              text::format("{} {} {} {} {} {} {} {} {} {}", attempt, to_wall_clock(began),
                           to_wall_clock(failed), to_wall_clock(next), words.cause, words.code, words.rank,
                           sick ? 1 : 0, wire::percent_encode(words.server), names.empty() ? "-" : names));
}

void AttemptsOnServer::refuse_checkpoint() {
  for (const auto& job : jobs_) {
    append_line(job->folder() / "job.err",
                "remote: the ranks do not begin: the first server named a checkpoint that is not one of this "
                "server's");
  }
}

void AttemptsOnServer::mark_sick(const std::string& mark) {
  if (rules::is_sickness(mark)) {
    put_file(folder_.jobs / ".sick", text::format("{} {}\n", mark, read_wall_clock().count() / 1000));
  }
}

}  // namespace remote::agent
