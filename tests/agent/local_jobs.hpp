#pragma once

#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "agent/host/files.hpp"
#include "agent/host_folder.hpp"
#include "agent/job/record.hpp"
#include "agent/job_journal.hpp"
#include "agent/started.hpp"

namespace remote::agent::test {

// Jobs in the project ~/proj on a host with this machine's processes, and with its own programs on PATH.
class LocalJobs {
 public:
  LocalJobs() {
    fs::create_symlink("/proc", fs::path(host().root) / "proc");
    for (const char* place : {"var/tmp", "tmp"}) {
      fs::create_directories(fs::path(host().root) / place);
    }
    fs::create_directories(host().shared_memory);
    fs::create_directories(programs());
    fs::create_directories(jobs().jobs);
    host().environment["PATH"] = programs().string() + ":" + host().variable("PATH");
  }

  Host& host() { return folder_.host; }
  const fs::path& path() const { return folder_.path(); }
  fs::path programs() const { return path() / "programs"; }
  static wire::JobsPlace place() { return {.project = "~/proj", .jobs_folder = ".jobs"}; }
  JobsFolder jobs() { return JobsFolder::of(host(), place()); }
  fs::path folder(const std::string& id) { return fs::path(jobs().jobs) / id; }
  JobRecord record(const std::string& id) { return read_record(host(), jobs(), id).value(); }
  fs::path second_place() const {
    return path() / "the root/var/tmp" / ("remote-" + std::to_string(::geteuid()));
  }

  static std::string new_id() {
    static unsigned count = 0;
    char text[33];
    std::snprintf(text, sizeof text, "%024x%08x", 0xdefU, ++count);
    return text;
  }
  // A job with these files.
  std::string make(const std::map<std::string, std::string>& files) {
    std::string id = new_id();
    fs::create_directories(folder(id));
    for (const auto& [name, text] : files) {
      put(id, name, text);
    }
    return id;
  }
  void put(const std::string& id, const std::string& name, const std::string& text) {
    HostFolder::put(folder(id) / name, text);
  }
  std::string read(const std::string& id, const std::string& name) {
    return read_file(folder(id) / name).value_or("");
  }
  // Writes a file to the fallback folder.
  void put_second(const std::string& name, const std::string& text) const {
    fs::create_directories(second_place());
    fs::permissions(second_place(), fs::perms::owner_all);
    HostFolder::put(second_place() / name, text);
  }
  void put_program(const std::string& name, const std::string& text) const {
    folder_.put_program(programs() / name, text);
  }

  // "PID START" of a process.
  std::string words(const Started& process) {
    const ProcessId id = process.id(host());
    return std::to_string(id.pid) + " " + std::to_string(id.start);
  }
  std::string supervisor_words(const Started& process) {
    return words(process) + " " + read_boot_id(host()) + " " + std::to_string(process.pid()) + "\n";
  }
  // The supervisor line of a dead process.
  std::string dead_supervisor() { return "999999999 1 " + read_boot_id(host()) + " 999999999\n"; }
  // A process with the job's id in its environment.
  Started carrier(const std::string& id) {
    return run_sleep({"HOME=" + host().home.string(), "REMOTE_JOB_ID=" + id});
  }
  Started stranger() { return run_sleep({"HOME=" + host().home.string()}); }

 private:
  HostFolder folder_;
};

// Returns the result of a function that runs as another user, in its own process; requires root.
template <typename Function>
int call_as_nobody(const fs::path& folder, const Function& function) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (::lchown(entry.path().c_str(), 65534, 65534) != 0) {
      return -1;
    }
  }
  if (::lchown(folder.c_str(), 65534, 65534) != 0) {
    return -1;
  }
  Started child([&] {
    become(65534);
    ::_exit(function());
  });
  return child.wait();
}

}  // namespace remote::agent::test
