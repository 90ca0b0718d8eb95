#pragma once

#include <chrono>
#include <initializer_list>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "agent/job/report.hpp"
#include "agent/job_folders.hpp"

namespace remote::agent::test {

class Reports : public ::testing::Test {
 protected:
  std::vector<wire::JobReport> report_all(const std::vector<std::string>& ids, ReportOptions options = {}) {
    Backends backends(jobs.host(), jobs.jobs());
    Reporter reporter(backends);
    std::vector<wire::JobReport> reports;
    for (const std::string& id : ids) {
      reports.push_back(reporter.report(id, options));
    }
    reporter.finish(reports);
    return reports;
  }
  wire::JobReport report(const std::string& id, ReportOptions options = {}) {
    return report_all({id}, options).at(0);
  }
  wire::JobReport claim(const std::string& id) { return report(id, {.claim = true}); }
  // Moves the modification times of these files.
  void age(const std::string& id, std::initializer_list<const char*> names, std::chrono::milliseconds by) {
    for (const char* name : names) {
      const fs::path path = jobs.folder(id) / name;
      fs::last_write_time(path, fs::last_write_time(path) - by);
    }
  }

  JobFolders jobs;
  const std::string me = jobs.this_process();
  const std::string boot = read_boot_id(jobs.host());
};

}  // namespace remote::agent::test
