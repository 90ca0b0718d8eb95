#include "agent/job/lease_guard.hpp"

#include <csignal>
#include <vector>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/job/answers.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/job_spec.hpp"
#include "agent/job/journal.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int most_descriptors = 1024;
constexpr seconds pause_between_stops{5};

class LeaseGuard {
 public:
  LeaseGuard(const Host& host, const JobsFolder& folder, std::string id, seconds lease, std::string hub)
      : host_(host), folder_(folder), id_(std::move(id)), lease_(lease), hub_(std::move(hub)) {}

  void run() {
    milliseconds until = read_boot_clock() + lease_;
    while (!read_own_history(job()).has_ended() && exists(job() / spec_name)) {
      ::sleep(1);
      until = read_lease().value_or(until);
      const milliseconds now = read_boot_clock();
      if (now <= until) {
        continue;
      }
      if (has_ranks() && now - last_stop_ > pause_between_stops) {
        stop_apart(folder_, id_, "again");
        last_stop_ = read_boot_clock();
      }
      if (read_boot_clock() > until + 2 * lease_ && !has_lifeline()) {
        stop_apart(folder_, id_, "lost:" + hub_);
        return;
      }
    }
  }

 private:
  Path job() const { return folder_.jobs / id_; }
  // The file contains hundredths of a second since boot.
  std::optional<milliseconds> read_lease() const {
    const std::vector<std::string> words = read_job_words(job() / "lease");
    const auto hundredths = words.empty() ? std::nullopt : parse_number<std::int64_t>(words[0]);
    return hundredths && *hundredths >= 0 ? std::optional(milliseconds(*hundredths * 10)) : std::nullopt;
  }
  bool has_ranks() const {
    const std::vector<std::string> attempt = read_job_words(job() / "attempt");  // "number N"
    if (attempt.empty() && exists(job() / "spare")) {
      return false;  // a spare without a first attempt
    }
    const int number = attempt.size() > 1 ? parse_number<int>(attempt[1]).value_or(1) : 1;
    const auto ended = read_own_history(job()).last_attempt;
    return !ended || ended->attempt != number;
  }
  bool has_lifeline() const {
    const auto lifeline = parse_process_id(read_job_words(job() / "lifeline.pid"));
    return lifeline && is_alive(host_, *lifeline);
  }

  const Host& host_;
  const JobsFolder& folder_;
  std::string id_;
  seconds lease_;
  std::string hub_;
  milliseconds last_stop_{-1'000'000};
};

}  // namespace

void start_lease_guard(const Host& host, const JobsFolder& folder, const std::string& id, int lease_s,
                       const std::string& hub) {
  const pid_t pid = ::fork();
  if (pid != 0) {
    while (pid > 0 && ::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return;
  }
  if (::fork() == 0) {
    ::setsid();
    ::prctl(PR_SET_NAME, "remote-lease");
    for (int fd = STDERR_FILENO + 1; fd < most_descriptors; ++fd) {
      ::close(fd);
    }
    LeaseGuard(host, folder, id, seconds(lease_s), hub).run();
  }
  _exit(0);
}

}  // namespace remote::agent
