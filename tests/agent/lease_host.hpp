#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/fake_host.hpp"
#include "agent/lease/lease.hpp"
#include "agent/started.hpp"
#include "rules/usable.hpp"

namespace remote::agent::test {

constexpr uid_t nobody = 65534;

// A host with its own folder for leases, and a fake nvidia-smi with eight GPUs.
class LeaseHost : public testing::Test, protected FakeHost {
 protected:
  LeaseHost() {
    fs::permissions(folder(), fs::perms(0755));
    fs::create_directories(root());
    fs::create_symlink("/proc", root() / "proc");
    fs::create_directories(leases);
    EXPECT_EQ(::chmod(leases.c_str(), 01777), 0);
    host.environment["REMOTE_LEASES"] = leases;
    for (const std::string_view name : rules::visibility_variables) {
      host.environment.erase(std::string(name));
    }
    put(root() / "etc/passwd", "root:x:0:0::/root:/bin/sh\n");
    set_gpus(8);
    put_program(programs() / "nvidia-smi",
                "if [ -e '" + (folder() / "broken").string() +
                    "' ]; then\n"
                    "  echo x >'" +
                    (folder() / "asked").string() +
                    "'\n"
                    "  echo 'Failed to initialize NVML: Driver/library version mismatch'\n"
                    "  exit 18\n"
                    "fi\n"
                    "case $1 in\n"
                    "  --query-gpu=*) cat '" +
                    (folder() / "gpus").string() +
                    "' ;;\n"
                    "  --query-compute-apps=*) cat '" +
                    (folder() / "apps").string() +
                    "' ;;\n"
                    "esac");
    fs::permissions(programs() / "nvidia-smi", fs::perms(0755));  // other users run it, too
  }

  void set_gpus(int count, const std::string& apps = "") {
    std::string gpus;
    for (int i = 0; i < count; ++i) {
      gpus += std::to_string(i) + ", GPU-" + std::to_string(i) + "\n";
    }
    put(folder() / "gpus", gpus);
    put(folder() / "apps", apps);
  }

  // The taken lease; nullopt if not all of it is free.
  std::optional<Lease> take(const wire::LeaseTerms& terms) {
    Shortage found;
    std::optional<TakenLease> taken = take_lease(host, terms, found);
    shortage = found.reason;
    holders = found.uids;
    if (!taken) {
      return std::nullopt;
    }
    devices = taken->devices;
    return std::move(taken->lease);
  }
  std::string indices_of(const std::optional<Lease>& lease) {
    return lease ? join_indices(lease->gpus()) : "none";
  }
  std::vector<rules::LeaseState> states() {
    std::vector<rules::LeaseState> found;
    for (const auto& entry : entries()) {
      found.push_back(entry.file.state);
    }
    return found;
  }
  std::vector<rules::LeaseEntry> entries() { return read_lease_entries(leases); }
  // "" if it was taken, otherwise the number of free GPUs.
  std::string claim(Lease& lease, std::size_t gpus) {
    const rules::LeaseNeeds needs{.gpus = gpus, .among = {}};
    const auto survey = lease.claim(read_lease_machine(host, needs).resources, needs);
    return survey ? std::to_string(survey->free_gpus().size()) : "";
  }
  int cores() { return static_cast<int>(read_lease_machine(host, {.cpus = 1, .among = {}}).resources.cpus); }
  // The only name of a lease's file.
  fs::path only_file() const {
    fs::path found;
    for (const auto& entry : fs::directory_iterator(leases)) {
      EXPECT_TRUE(found.empty());
      found = entry.path();
    }
    return found;
  }
  fs::path own(const std::string& random, uid_t user = ::geteuid()) const {
    return leases / (".remote-lease." + std::to_string(user) + "." + random);
  }

  const fs::path leases = folder() / "shared folder";
  std::string shortage;
  std::vector<unsigned> holders;
  std::string devices;
};

// Locks a range for this open file description, without waiting; length 0: to the end of the file.
inline bool lock_bytes(int fd, short type, off_t start = 0, off_t length = 0) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = start;
  lock.l_len = length;
  return ::fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

}  // namespace remote::agent::test
