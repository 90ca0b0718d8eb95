#pragma once

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/files.hpp"
#include "agent/host_folder.hpp"
#include "agent/job/guard.hpp"
#include "agent/job/job_spec.hpp"
#include "agent/job/record.hpp"
#include "agent/job/stop_jobs.hpp"
#include "agent/job_journal.hpp"
#include "agent/started.hpp"

namespace remote::agent::test {

// A project in a temporary folder with jobs that really run, under guards, without a client. The host has
// this machine's /proc, and its own other files. The destructor kills everything.
class JobsPlace {
 public:
  JobsPlace() {
    for (const char* name : {"proc", "sys"}) {
      fs::create_symlink(fs::path("/") / name, fs::path(folder.host.root.string()) / name);
    }
    for (const char* name : {"var/tmp", "tmp"}) {
      fs::create_directories(fs::path(folder.host.root.string()) / name);
    }
    fs::create_directories(folder.host.shared_memory.string());
    folder.put_system("etc/passwd", "root:x:0:0::/root:/bin/sh\n");
    place.project = folder.path() / "my proj";
    place.jobs = place.project / ".jobs";
    fs::create_directories(jobs() / ".bin");
    fs::create_directories(programs());
    host().environment["PATH"] = programs().string() + ":/usr/bin:/bin:/usr/sbin:/sbin";
    host().environment["HOME"] = host().home;
  }
  JobsPlace(const JobsPlace&) = delete;
  JobsPlace& operator=(const JobsPlace&) = delete;
  ~JobsPlace() {
    for (const std::string& id : ids_) {
      for (int i = 0; i < 100; ++i) {
        const std::set<int> pids = find_processes(id);
        for (const int pid : pids) {
          ::kill(pid, SIGKILL);
        }
        if (pids.empty()) {
          break;
        }
      }
    }
    for (const ProcessId& guard : guards_) {
      send_signal(Host{}, guard, SIGKILL);
    }
  }

  Host& host() { return folder.host; }
  fs::path programs() const { return folder.path() / "programs"; }
  fs::path jobs() const { return place.jobs.string(); }
  fs::path job(const std::string& id) const { return jobs() / id; }
  // The content of a file; "" if there is none.
  std::string file(const std::string& id, const std::string& name) const {
    return read_file(job(id) / name).value_or("");
  }
  std::optional<JobRecord> record(const std::string& id) { return read_record(host(), place, id); }
  pid_t main_pid(const std::string& id) { return record(id).value().main.value().pid; }

  static std::string new_id() {
    static int count = 0;
    char text[33];
    std::snprintf(text, sizeof text, "%016x%016x", ::getpid(), ++count);
    return text;
  }
  // Starts a job with this script; returns its id. The job is running, and has written "up" if the script
  // contains that.
  std::string start(const std::string& text, std::string id = new_id()) {
    fs::create_directories(job(id));
    EXPECT_TRUE(create_spec(job(id), {.project = job(id), .command = text}));
    for (const char* name : {"job.out", "job.err"}) {
      HostFolder::put(job(id) / name, "");
    }
    ids_.push_back(id);
    begin(id);
    eventually([&] { return !file(id, "pid").empty() || !read_end(job(id)).empty(); });
    if (text.find("echo up") != std::string::npos) {
      eventually([&] { return file(id, "job.out").find("up\n") != std::string::npos; });
    }
    return id;
  }
  // Starts the guard of a job whose folder exists.
  void begin(const std::string& id) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::clearenv();
      for (const auto& [name, value] : host().environment) {
        ::setenv(name.c_str(), value.c_str(), 1);
      }
      const GuardOrder order{.folder = place, .started = read_wall_clock()};
      ::_exit(start_guard(host(), order, id, ::open("/dev/null", O_WRONLY)) ? 0 : 1);
    }
    ::waitpid(pid, nullptr, 0);
    // Its file exists before it has any content.
    eventually([&] {
      const auto job = record(id);
      return job && job->supervisor;
    });
    if (const auto job = record(id); job && job->supervisor) {
      guards_.push_back(job->supervisor->id);
    }
  }

  // Kills a job's supervisor and its main process, and waits until they are dead. An exiting process has no
  // files or environment, so find_processes() misses it, although it is still alive for a moment.
  void crash(const std::string& id) {
    const JobRecord job = record(id).value();
    for (const ProcessId process : {job.supervisor.value().id, job.main.value()}) {
      ::kill(process.pid, SIGKILL);
    }
    for (const ProcessId process : {job.supervisor.value().id, job.main.value()}) {
      EXPECT_TRUE(eventually([&] { return !is_alive(Host{}, process); }));
    }
  }

  std::vector<StoppedJob> stop_all_of(const std::vector<std::string>& ids, int signal = SIGTERM,
                                      int grace_s = 5) {
    Backends backends(host(), place);
    return stop_jobs(
        backends,
        {.ids = ids, .signal = signal, .grace = std::chrono::seconds(grace_s), .by = {.text = "ada@laptop"}});
  }
  StoppedJob stop(const std::string& id, int signal = SIGTERM, int grace_s = 5) {
    return stop_all_of({id}, signal, grace_s).at(0);
  }

  // The living processes that have the job's variable, or have its outputs open for writing.
  std::set<int> find_processes(const std::string& id) const {
    std::set<int> pids;
    const std::string out = job(id) / "job.";
    for (const auto& [pid, job] : find_job_processes(Host{})) {
      if (job == id && is_there(pid)) {
        pids.insert(pid);
      }
    }
    for (const int pid : list_processes(Host{})) {
      const Path open = "/proc/" + std::to_string(pid) + "/fd";
      for (const std::string& name : list_names(open)) {
        struct stat info {};
        const Path link = open / name;
        if (read_link(link).starts_with(out) && ::lstat(link.c_str(), &info) == 0 &&
            (info.st_mode & S_IWUSR) != 0 && is_there(pid)) {
          pids.insert(pid);
        }
      }
    }
    return pids;
  }

  HostFolder folder;
  JobsFolder place;

 private:
  static bool is_there(int pid) {
    const auto process = read_process(Host{}, pid);
    return process && !process->is_dead() && pid != ::getpid();
  }

  std::vector<std::string> ids_;
  std::vector<ProcessId> guards_;
};

}  // namespace remote::agent::test
