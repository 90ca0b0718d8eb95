#pragma once

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/processes.hpp"
#include "agent/host_folder.hpp"
#include "agent/job/record.hpp"
#include "agent/job_journal.hpp"

namespace remote::agent::test {

// The folders of jobs in a project, on a host with this machine's processes and fake system files.
class JobFolders {
 public:
  JobFolders() {
    fs::create_symlink("/proc", fs::path(host().root) / "proc");
    for (const char* place : {"var/tmp", "tmp"}) {
      fs::create_directories(fs::path(host().root) / place);
    }
    fs::create_directories(folder_.host.shared_memory);
    fs::create_directories(jobs().jobs);
  }

  Host& host() { return folder_.host; }
  const fs::path& path() const { return folder_.path(); }
  wire::JobsPlace place() const { return {.project = "~/proj", .jobs_folder = ".jobs"}; }
  JobsFolder jobs() { return JobsFolder::of(host(), place()); }
  fs::path folder(const std::string& id) { return fs::path(jobs().jobs) / id; }
  JobRecord record(const std::string& id) { return read_record(host(), jobs(), id).value(); }

  // A unique id, because the processes of a job are found by its id.
  static std::string new_id() {
    static unsigned count = 0;
    char text[33];
    std::snprintf(text, sizeof text, "%024x%08x", static_cast<unsigned>(::getpid()), ++count);
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
  // A job that has just ended.
  std::string make_ended(const std::string& end, std::map<std::string, std::string> files = {}) {
    files.insert({{"spec.json", ""},
                  {"job.out", ""},
                  {"job.err", ""},
                  {"pid", "999999999 1\n"},
                  {"supervisor", "999999999 1 " + read_boot_id(host()) + " 999999999\n"},
                  {"journal.jsonl",
                   format_end(end + " " + std::to_string(read_wall_clock().count()) + " supervisor\n")}});
    return make(files);
  }
  // A job whose supervisor and main process are this process.
  std::string make_running(std::map<std::string, std::string> files = {}) {
    files.insert({{"spec.json", ""},
                  {"job.out", ""},
                  {"job.err", ""},
                  {"pid", this_process() + "\n"},
                  {"supervisor", this_process() + " " + read_boot_id(host()) + " -\n"}});
    return make(files);
  }
  std::string this_process() {
    const ProcessId id = read_process(host(), ::getpid()).value().id;
    return std::to_string(id.pid) + " " + std::to_string(id.start);
  }
  static void put_file(const fs::path& path, const std::string& text) { HostFolder::put(path, text); }
  void put(const std::string& id, const std::string& name, const std::string& text) {
    HostFolder::put(folder(id) / name, text);
  }
  std::string read(const std::string& id, const std::string& name) {
    std::ifstream file(folder(id) / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  HostFolder folder_;
};

}  // namespace remote::agent::test
