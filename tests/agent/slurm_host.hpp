#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "agent/fake_host.hpp"
#include "agent/host/files.hpp"
#include "agent/host/processes.hpp"
#include "agent/job/backend.hpp"
#include "agent/job_journal.hpp"
#include "base/strings.hpp"

namespace remote::agent::test {

// A login node whose squeue and sacct print the files `rows` and `accounts` in the home folder, and exit with
// the codes in the files `code` and `sacct-code`. Each call adds a line to the file `calls`.
class SlurmHost : public ::testing::Test {
 protected:
  SlurmHost() {
    add_program("squeue", "cat ~/rows; exit $(cat ~/code)");
    add_program("sacct", "cat ~/accounts; exit $(cat ~/sacct-code)");
    add_program("scancel", "");
    set_rows("");
    set_accounts("");
  }

  // A line of squeue's output.
  static std::string row(const std::string& number, const std::string& state,
                         const std::string& reason = "None", const std::string& name = "job",
                         const std::string& nodes = "") {
    return number + "|N/A|" + state + "|" + nodes + "|2024-05-01T12:00:00|N/A|" + reason + "|" + name + "\n";
  }
  void add_program(const std::string& name, const std::string& text) {
    FakeHost::put_program(fake.programs() / name, "echo \"" + name + " $*\" >>~/calls\n" + text);
  }
  void set_rows(const std::string& rows, int code = 0) {
    put(fake.home() / "rows", rows);
    put(fake.home() / "code", std::to_string(code));
  }
  void set_accounts(const std::string& rows, int code = 0) {
    put(fake.home() / "accounts", rows);
    put(fake.home() / "sacct-code", std::to_string(code));
  }
  // The calls so far, without the options that never change.
  std::vector<std::string> calls() const {
    std::vector<std::string> lines = read_lines(fake.home() / "calls");
    for (std::string& line : lines) {
      if (line.starts_with("squeue -h -r ")) {
        line = "squeue";
      }
    }
    return lines;
  }
  std::size_t count_calls(const std::string& call) const {
    const std::vector<std::string> all = calls();
    return static_cast<std::size_t>(std::ranges::count(all, call));
  }
  void forget_calls() const { fs::remove(fake.home() / "calls"); }

  // Makes the folder of a job with this Slurm job number; "": no number yet.
  std::string add_job(const std::string& number = "7") {
    const std::string tail = std::to_string(++jobs_);
    const std::string id = std::string(32 - tail.size(), 'a') + tail;
    put_job(id, "backend", "slurm\n");
    put_job(id, "spec.json", "true\n");
    if (!number.empty()) {
      put_job(id, "slurm", number + "\n");
      fs::last_write_time(job_file(id, "slurm"), fs::file_time_type::clock::now() - std::chrono::hours(1));
    }
    return id;
  }
  fs::path job_file(const std::string& id, const std::string& name) const {
    return fs::path(folder.jobs.string()) / id / name;
  }
  void put_job(const std::string& id, const std::string& name, const std::string& text) const {
    put(job_file(id, name), text);
  }
  std::string read_job(const std::string& id, const std::string& name) const {
    return read_file(job_file(id, name).string()).value_or("(none)");
  }
  static void put(const fs::path& path, const std::string& text) { FakeHost::put(path, text); }

  JobRecord record(const std::string& id) const { return read_record(fake.host, folder, id).value(); }
  JobState find_state(JobRecord& job, Look look = Look::usual) {
    return make_slurm_backend(fake.host, folder)->find_state(job, look);
  }
  JobState find_state(const std::string& id, Look look = Look::usual) {
    JobRecord job = record(id);
    return find_state(job, look);
  }

  FakeHost fake;
  JobsFolder folder{fake.home() / "p", fake.home() / "p/.jobs"};

 private:
  int jobs_ = 0;
};

}  // namespace remote::agent::test
