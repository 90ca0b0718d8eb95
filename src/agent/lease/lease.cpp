#include "agent/lease/lease.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <set>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/processes.hpp"
#include "agent/host/run.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

using rules::LeaseState;
using rules::LeaseSurvey;
using std::chrono::milliseconds;

// How long another user's claim may delay this one.
constexpr milliseconds claim_limit{2000};
constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30U;

// Uses nanoseconds, because in milliseconds two arrivals could be equal.
std::uint64_t read_arrival() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

[[noreturn]] void refuse_missing(const Path& folder) {
  throw LeaseRefused(text::format("the file of the lease in {} is gone", folder.string()));
}

Shortage describe_shortage(const LeaseSurvey& survey, const rules::LeaseMachine& machine,
                           const rules::LeaseNeeds& needs, const std::vector<rules::LeaseEntry>& others) {
  if (survey.is_never_enough()) {
    return {.reason = never_enough};
  }
  if (const std::size_t waiters = survey.count_waiters(); waiters > 0) {
    return {.reason = waiters == 1 ? "another launch waits before this one"
                                   : text::format("{} launches wait before this one", waiters)};
  }
  const auto find_users = [&](auto holds) {
    std::set<unsigned> uids;
    for (const rules::LeaseEntry& entry : others) {
      const bool is_taken = entry.file.state == LeaseState::held || entry.file.state == LeaseState::claimed;
      if (is_taken && holds(entry.file)) {
        uids.insert(entry.uid);
      }
    }
    return std::vector<unsigned>(uids.begin(), uids.end());
  };
  if (survey.free_gpus().size() < needs.gpus) {
    const auto holds_wanted = [&](const rules::LeaseFile& file) {
      return std::ranges::any_of(machine.gpus, [&](const auto& gpu) {
        return (!needs.among || needs.among->contains(gpu.index)) &&
               std::ranges::find(file.gpus, gpu.key) != file.gpus.end();
      });
    };
    return {.reason = text::format("{} needed, and {} of {} free by now", counted(needs.gpus, "GPU"),
                                   survey.free_gpus().size(), survey.allowed_gpus()),
            .uids = find_users(holds_wanted)};
  }
  if (survey.free_cpus() < needs.cpus) {
    return {.reason = text::format("{} needed, and {} of {} free by now", counted(needs.cpus, "core"),
                                   survey.free_cpus(), survey.all_cpus()),
            .uids = find_users([](const rules::LeaseFile& file) { return file.cpus > 0; })};
  }
  return {.reason = text::format("{} GiB of memory needed, and {} of {} free by now", needs.memory / gibibyte,
                                 survey.free_memory() / gibibyte, survey.all_memory() / gibibyte),
          .uids = find_users([](const rules::LeaseFile& file) { return file.memory > 0; })};
}

}  // namespace

Lease::Lease(Path folder, std::string name, Descriptor file)
    : folder_(std::move(folder)), name_(std::move(name)), file_(std::move(file)), arrival_(read_arrival()) {}

Lease Lease::make(const Host& host) {
  const Path folder = find_leases_folder(host);
  while (true) {
    const std::string name = make_lease_name();
    const Path path = folder / name;
    Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file && errno == EEXIST) {
      continue;
    }
    if (!file) {
      throw LeaseRefused(text::format("cannot make a file in {}: {}", folder.string(), ::strerror(errno)));
    }
    if (file.get() <= lease_fd) {
      file = Descriptor(::fcntl(file.get(), F_DUPFD_CLOEXEC, lease_fd + 1));
    }
    Lease lease(folder, name, std::move(file));
    try {
      publish_lease(lease.fd());
    } catch (const LeaseRefused&) {
      lease.remove();
      throw;
    }
    return lease;
  }
}

Lease Lease::adopt(const Host& host, int fd) {
  const Path path = read_link(host.system("/proc/self/fd") / std::to_string(fd));
  struct stat info {};
  if (!is_lease_name(path.filename()) || ::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_uid != ::geteuid()) {
    refuse_missing(path.parent_path());
  }
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);  // programs that this process starts must not keep the lease
  publish_lease(fd);
  return {path.parent_path(), path.filename(), Descriptor(fd)};
}

LeaseSurvey Lease::survey(const rules::LeaseMachine& machine, const rules::LeaseNeeds& needs) const {
  std::vector<rules::LeaseEntry> others = read_lease_entries(folder_);
  std::erase_if(others, [&](const rules::LeaseEntry& entry) { return entry.name == name_; });
  return {machine, others, needs};
}

std::optional<LeaseSurvey> Lease::claim(const rules::LeaseMachine& machine, const rules::LeaseNeeds& needs) {
  if (!is_there()) {
    refuse_missing(folder_);
  }
  const LeaseState before = state_.value_or(LeaseState::announced);
  const milliseconds limit = read_boot_clock() + claim_limit;
  while (true) {
    const LeaseSurvey found = survey(machine, needs);
    if (is_behind(found)) {
      return found;
    }
    if (found.is_enough()) {
      gpus_.assign(found.free_gpus().begin(),
                   found.free_gpus().begin() + static_cast<std::ptrdiff_t>(needs.gpus));
      write(LeaseState::claimed, needs);
      if (stays_claimed(machine, needs, limit)) {
        write(LeaseState::held, needs);
        return std::nullopt;
      }
      gpus_.clear();
      write(before, {});
    } else if (!found.has_claims()) {
      return found;
    }
    if (read_boot_clock() > limit) {
      return survey(machine, needs);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(1000 + ::randombytes_uniform(4000)));
  }
}

// Call this after the claim was written. Returns whether all others leave the resources to it.
bool Lease::stays_claimed(const rules::LeaseMachine& machine, const rules::LeaseNeeds& needs,
                          milliseconds limit) const {
  while (true) {
    const LeaseSurvey found = survey(machine, needs);
    if (is_behind(found)) {
      return false;
    }
    const bool has_rival =
        std::ranges::any_of(gpus_, [&](const auto& gpu) { return found.is_owned(gpu.key); });
    if (found.is_enough() && !has_rival) {
      return true;
    }
    if (found.has_earlier_claim(arrival_, name_) || !found.has_claims() || read_boot_clock() > limit) {
      return false;
    }
    std::this_thread::sleep_for(milliseconds(1));  // the later one withdraws
  }
}

void Lease::get_in_line(bool may_take) {
  const LeaseState state = may_take ? LeaseState::waiting : LeaseState::announced;
  if (state_ != state) {
    write(state, {});
  }
}

void Lease::give_back() {
  gpus_.clear();
  get_in_line(false);
}

void Lease::remove() {
  ::unlink((folder_ / name_).c_str());
  file_.reset();
}

void Lease::write(LeaseState state, const rules::LeaseNeeds& needs) {
  rules::LeaseFile content{state, arrival_, needs.cpus, needs.memory, {}};
  for (const auto& gpu : gpus_) {
    content.gpus.push_back(gpu.key);
  }
  const std::string text = rules::format_lease_file(content);
  if (::pwrite(fd(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ::ftruncate(fd(), static_cast<off_t>(text.size())) != 0) {
    throw LeaseRefused(text::format("cannot write in {}: is the disk full?", folder_.string()));
  }
  state_ = state;
}

// Whether others can find the file. Links to it that another user has created do not matter.
bool Lease::is_there() const {
  struct stat own {};
  struct stat found {};
  return ::fstat(fd(), &own) == 0 && ::lstat((folder_ / name_).c_str(), &found) == 0 &&
         found.st_ino == own.st_ino && found.st_uid == ::geteuid();
}

std::string to_devices_text(const Lease& lease, const LeaseMachine& machine, const rules::LeaseNeeds& needs) {
  const std::string indices = join_indices(lease.gpus());
  return text::format("leased gpus={} cpus={} memory={}\n", indices.empty() ? "-" : indices, needs.cpus,
                      needs.memory) +
         to_gpu_variables(machine, lease.gpus());
}

std::optional<TakenLease> take_lease(const Host& host, const wire::LeaseTerms& terms, Shortage& shortage) {
  const rules::LeaseNeeds needs = to_needs(terms);
  Lease lease = Lease::make(host);
  try {
    const LeaseMachine machine = read_lease_machine(host, needs, terms.prologue);
    const std::optional<LeaseSurvey> found = lease.claim(machine.resources, needs);
    if (!found) {
      std::string devices = to_devices_text(lease, machine, needs);
      return TakenLease{std::move(lease), std::move(devices)};
    }
    lease.remove();
    shortage = describe_shortage(*found, machine.resources, needs, read_lease_entries(lease.folder()));
    return std::nullopt;
  } catch (const std::runtime_error&) {
    lease.remove();
    throw;
  }
}

}  // namespace remote::agent
