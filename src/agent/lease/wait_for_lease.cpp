#include "agent/lease/wait_for_lease.hpp"

#include <chrono>
#include <csignal>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "agent/host/files.hpp"
#include "agent/host/processes.hpp"
#include "agent/host/run.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/journal.hpp"
#include "agent/job/record.hpp"
#include "agent/lease/lease.hpp"
#include "agent/network/socket_address.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/read_json.hpp"

namespace remote::agent {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds waiter_pause{100};
constexpr milliseconds survey_pause{500};
constexpr milliseconds driver_pause{3000};
constexpr std::size_t longest_queue = std::size_t{16} << 20U;

struct QueueFile {
  wire::LeaseToTake lease;
  std::vector<std::string> ids;
};

QueueFile read_queue_file(const Path& job) {
  const std::vector<std::string> lines =
      split(read_job_file(job / "queue", longest_queue).value_or(""), '\n');
  auto lease = lines.size() > 2 ? wire::read_json<wire::LeaseToTake>(lines[1]) : std::nullopt;
  if (!lease) {
    throw LeaseRefused("the file queue of the job is not understood");
  }
  return {.lease = std::move(*lease), .ids = split_words(lines[2])};
}

class LeaseWaiter {
 public:
  LeaseWaiter(const Host& host, const Path& job, QueueFile queue)
      : host_(host),
        job_(job),
        wanted_(std::move(queue.lease)),
        needs_(to_needs(wanted_.terms)),
        lease_(Lease::adopt(host, lease_fd)),
        machine_(read_lease_machine(host, needs_, wanted_.terms.prologue)) {
    for (const std::string& id : queue.ids) {
      folders_.push_back(job.parent_path() / id);
    }
    for (auto& gpu : machine_.resources.gpus) {
      gpu.is_used = false;  // other processes may have changed; claim() reads them again
    }
  }

  bool run() {
    bool is_held = false;
    milliseconds next_try{0};
    // If the parent has changed, the job has ended.
    while (::getppid() == parent_) {
      const bool can_notify = open_fifos();
      const std::vector<std::string> order = read_order();
      const bool may_take = order.front() == "take";
      if (is_held && order.front() == "keep") {
        lease_.give_back();
        is_held = false;
      }
      if (!is_held) {
        lease_.get_in_line(may_take);
        if (read_boot_clock() >= next_try) {
          is_held = try_to_take(may_take && can_notify);
          next_try = read_boot_clock() + survey_pause;
        }
      }
      if (is_held && (!wanted_.is_together || order.front() == "go")) {
        start_ranks(order.size() > 1 ? parse_number<int>(order[1]).value_or(0) : 0);
        return true;
      }
      report("turn.state", is_held ? "held" : may_take ? "line" : "keep");
      std::this_thread::sleep_for(waiter_pause);
    }
    return false;
  }

 private:
  // Writes a file of this job, if its text has changed.
  void report(const std::string& name, const std::string& text) {
    if (reported_[name] != text && put_file(job_ / name, text + "\n")) {
      reported_[name] = text;
    }
  }

  // The order of the launch's supervisor: "keep" the place, "take", or "go PORT".
  std::vector<std::string> read_order() const {
    std::vector<std::string> words =
        wanted_.is_together ? read_job_words(job_ / "turn.order") : std::vector<std::string>{"take"};
    return words.empty() ? std::vector<std::string>{"keep"} : words;
  }

  // Returns whether all other jobs read their FIFOs. If this process dies, they read EOF.
  bool open_fifos() {
    for (const Path& folder : folders_) {
      if (folder.filename() != job_.filename() && !fifos_.contains(folder)) {
        Descriptor fifo(::open((folder / ".turn").c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
        if (fifo) {
          fifos_.emplace(folder, std::move(fifo));
        }
      }
    }
    return fifos_.size() + 1 == folders_.size();
  }

  // Asks the driver only if the other leases leave enough resources.
  bool try_to_take(bool may_take) {
    if (needs_.memory > 0) {
      read_available_memory(host_, machine_.resources);
    }
    const rules::LeaseSurvey survey = lease_.survey(machine_.resources, needs_);
    if (survey.is_never_enough()) {
      throw LeaseRefused(never_enough);
    }
    report("turn", text::format("place {} in line", lease_.find_position(survey)));
    if (!may_take || lease_.is_behind(survey) || !survey.is_enough() || read_boot_clock() < next_claim_) {
      return false;
    }
    try {
      if (!lease_.claim(read_lease_machine(host_, needs_, wanted_.terms.prologue).resources, needs_)) {
        return true;
      }
    } catch (const DriverFails&) {
    } catch (const CannotStart&) {  // the user's process limit is reached, which may be temporary
    }
    next_claim_ = read_boot_clock() + driver_pause;
    return false;
  }

  void start_ranks(int port) {
    const int chosen = wanted_.is_together ? port : wanted_.chooses_port ? find_free_port(false) : 0;
    std::string devices = to_devices_text(lease_, machine_, needs_);
    if (wanted_.chooses_port && chosen > 0) {
      devices += text::format("MASTER_PORT={}\n", chosen);
    }
    const wire::JobStarted started{read_wall_clock()};
    for (const Path& folder : folders_) {
      if (!put_file(folder / "devices", devices) || !append_to_journal(folder, started)) {
        throw LeaseRefused("cannot write in the folders of its jobs: is the disk full?");
      }
    }
    for (const Path& folder : folders_) {
      ::unlink((folder / "queue").c_str());
    }
    for (const auto& fifo : fifos_) {
      if (!write_whole(fifo.second.get(), "go\n")) {
        throw LeaseRefused("another job of the launch has ended");
      }
    }
    if (wanted_.is_together) {
      report("turn.state", text::format("gone {}", port));
    }
  }

  pid_t parent_ = ::getppid();
  const Host& host_;
  Path job_;
  wire::LeaseToTake wanted_;
  rules::LeaseNeeds needs_;
  Lease lease_;
  LeaseMachine machine_;
  std::vector<Path> folders_;
  std::map<Path, Descriptor> fifos_;
  std::map<std::string, std::string> reported_;
  milliseconds next_claim_{0};
};

}  // namespace

int run_wait_for_lease(const char* folder) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    const Host host = Host::of_this_process();
    const Path job(folder);
    return LeaseWaiter(host, job, read_queue_file(job)).run() ? 0 : 1;
  } catch (const std::exception& error) {
    write_whole(STDERR_FILENO, text::format("remote: the lease was not taken: {}\n", error.what()));
    return 1;
  }
}

}  // namespace remote::agent
