#include <cerrno>
#include <csignal>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/files.hpp"
#include "agent/host/run.hpp"
#include "agent/job/answers.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/report.hpp"
#include "agent/job/stop_jobs.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t most_stopped_in_part = 500;
constexpr std::size_t most_stop_bytes = std::size_t{256} << 10U;

// Ignores signals of a lost client, and returns a host whose commands continue if the client disconnects.
Host make_lasting_host(const Host& host) {
  std::signal(SIGHUP, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  Host lasting = host;
  lasting.cancelled.reset();
  // Programs started here do not belong to a job.
  lasting.environment.erase("REMOTE_JOB_ID");
  return lasting;
}

// Estimates the size of a result and its report in a message, in bytes.
std::size_t estimate_stop_size(const wire::StopResult& result, const wire::JobReport& report) {
  std::size_t size = 300 + result.reason.size() + estimate_size(report);
  for (const auto* list : {&result.survivors, &result.suspects}) {
    for (const wire::Survivor& one : *list) {
      size += 70 + one.name.size() + one.user.size();
    }
  }
  return size;
}

void send_in_parts(Stream& stream, wire::Moment now, std::vector<StoppedJob> stopped,
                   std::vector<wire::JobReport> reports) {
  wire::StopReply part{.now = now};
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < stopped.size(); ++i) {
    const std::size_t size = estimate_stop_size(stopped[i].result, reports[i]);
    const bool is_full = part.results.size() == most_stopped_in_part || bytes + size > most_stop_bytes;
    if (is_full && !part.results.empty()) {
      stream.send(std::exchange(part, {.now = now}));
      bytes = 0;
    }
    part.results.push_back(std::move(stopped[i].result));
    part.jobs.push_back(std::move(reports[i]));
    bytes += size;
  }
  stream.send(std::move(part));
}

// Reads the lines of stdin before the first empty line. Returns no lines if stdin ends before that.
std::vector<std::string> read_words() {
  constexpr std::size_t most = std::size_t{8} << 20U;
  std::string text;
  while (!text.starts_with('\n') && text.find("\n\n") == std::string::npos) {
    char buffer[4096];
    const ssize_t count = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (count <= 0 || text.size() > most) {
      return {};
    }
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return split(std::string_view(text).substr(0, text.find("\n\n")), '\n');
}

// Parses SIGNAL GRACE_S BY ID...
std::optional<StopOrder> parse_order(const std::vector<std::string>& words) {
  if (words.size() < 3) {
    return std::nullopt;
  }
  const auto signal = parse_number<int>(words[0]);
  const auto grace = parse_number<int>(words[1]);
  StopOrder order{.ids = {words.begin() + 3, words.end()}, .is_between_attempts = words[2] == "again"};
  const auto by = order.is_between_attempts ? wire::StoppedBy() : parse_stop_word(words[2]);
  if (!signal || *signal < 1 || *signal > 64 || !grace || *grace < 0 || *grace > 1'000'000 || !by) {
    return std::nullopt;
  }
  for (const std::string& id : order.ids) {
    if (!wire::is_id(id)) {
      return std::nullopt;
    }
  }
  order.signal = *signal;
  order.grace = std::chrono::seconds(*grace);
  order.by = *by;
  return order;
}

}  // namespace

void answer_stop(const Host& host, const wire::StopRequest& request, Stream& stream) {
  const Host lasting = make_lasting_host(host);
  const wire::Moment now = read_wall_clock();
  // The client compares its clock with this first message, because the others arrive much later.
  stream.send(wire::StopReply{.now = now});
  Backends backends(lasting, JobsFolder::of(lasting, request.place));
  std::vector<StoppedJob> stopped =
      stop_jobs(backends, {.ids = request.ids,
                           .claim = {request.claim.begin(), request.claim.end()},
                           .signal = request.signal,
                           .grace = std::chrono::seconds(request.grace_s),
                           .by = request.by});
  if (stream.is_closed()) {
    return;
  }
  backends.forget();
  Reporter reporter(backends);
  const std::set<std::string> dead(request.dead.begin(), request.dead.end());
  std::vector<wire::JobReport> reports;
  for (const StoppedJob& one : stopped) {
    reports.push_back(reporter.report(
        one.result.id, {.claim = dead.contains(one.result.id), .proven_gone = one.is_proven_gone}));
  }
  reporter.finish(reports);
  send_in_parts(stream, now, std::move(stopped), std::move(reports));
}

int run_stop(int count, char** words) {
  constexpr int wrong_usage = 2;
  std::vector<std::string> all(words, std::next(words, count));
  const Host host = make_lasting_host(Host::of_this_process());
  if (all.empty() || !Path(all.front()).is_absolute()) {
    write_whole(STDERR_FILENO, "usage: remote-agent stop JOBS_FOLDER [SIGNAL GRACE_S BY ID...]\n");
    return wrong_usage;
  }
  const Path jobs = all.front();
  all.erase(all.begin());
  if (all.empty()) {
    all = read_words();
    if (all.empty()) {
      return 1;  // the caller is gone
    }
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::dup2(null, STDIN_FILENO);
    ::close(null);
  }
  const auto order = parse_order(all);
  if (!order) {
    return wrong_usage;
  }
  Backends backends(host, JobsFolder{.project = jobs.parent_path(), .jobs = jobs});
  int left = 0;
  for (const StoppedJob& one : stop_jobs(backends, *order)) {
    left += one.result.outcome == KillResult::Entry::Outcome::survivors ? 1 : 0;
  }
  return left > 0 ? 1 : 0;
}

bool stop_apart(const JobsFolder& folder, const std::string& id, const std::string& by) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setsid();
    std::vector<std::string> words{folder.jobs.string(), "15", "5", by, id};
    std::vector<char*> pointers = pointers_to(words);
    ::_exit(run_stop(static_cast<int>(words.size()), pointers.data()));
  }
  int status = 1;
  while (pid > 0 && ::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return pid > 0 && status == 0;
}

}  // namespace remote::agent
