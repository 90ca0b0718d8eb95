#pragma once

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "jobs/ask.hpp"
#include "jobs/start_jobs.hpp"
#include "support/job_reports.hpp"
#include "support/local_connection.hpp"
#include "support/waiting.hpp"
#include "support/wrapped_connection.hpp"

namespace remote::test {

// For tests of how servers handle jobs: on a local shell, without ssh, in a project whose path has a space.
// There is one server, `a`; its shell is the test's parameter.
class ScriptTest : public ::testing::TestWithParam<ServerShell> {
 protected:
  const RemoteFolder jobs_folder{"~/my proj", ".jobs"};

  ScriptTest();

  // The project's folder, a job's folder, and the content of a file in the latter (empty if there is none).
  std::filesystem::path place();
  std::filesystem::path folder(const JobId& id);
  std::string file(const JobId& id, const std::string& name);
  pid_t supervisor_of(const JobId& id);

  std::vector<wire::StartedJob> start_all(const std::vector<jobs::StartRequest>& requests);
  // Starts one job; returns its id.
  JobId start(const std::string& command, std::vector<std::pair<std::string, std::string>> env = {},
              std::string activate = "");
  // Starts a job with --enable-stacks.
  JobId start_with_stacks(const std::string& command,
                          std::vector<std::pair<std::string, std::string>> env = {});
  // The server's agent. It is started for each request.
  jobs::AnyAgent agent() { return {*connection, cancel}; }
  wire::JobReport status(const JobId& id, bool claim = false);
  std::map<JobId, wire::JobReport> status_of(const std::vector<JobId>& ids);
  wire::StopResult kill(const JobId& id, int signal = SIGTERM, int grace = 5);
  // `claim`: see jobs::StopQuestion.
  std::map<JobId, wire::StopResult> kill_all(const std::vector<JobId>& ids, int signal = SIGTERM,
                                             int grace = 5, const std::vector<JobId>& claim = {});
  wire::CleanedJob clean(const JobId& id);

  wire::JobReport wait_end(const JobId& id);
  // Waits until the job has written this to its stdout.
  void until_out(const JobId& id, const std::string& text);
  // Waits until no process of the server is left.
  void expect_nothing_left();

  LocalServers servers;
  std::unique_ptr<ssh::Connection> connection;
  const Cancel cancel;
};

// Answers for the user `nobody`, for tests that run as root.
class AsNobody {
 public:
  explicit AsNobody(LocalServers& servers);

  jobs::AnyAgent agent() { return {wrapped_, cancel_}; }

 private:
  std::unique_ptr<ssh::Connection> connection_;
  WrappedConnection wrapped_;
  Cancel cancel_;
};

inline const auto every_shell = ::testing::Values(ServerShell::dash, ServerShell::bash, ServerShell::busybox);
inline const auto shell_name = [](const auto& one) { return to_string(one.param); };

}  // namespace remote::test

// Shortcuts for these tests.
namespace remote::jobs {
namespace fs = std::filesystem;
using test::until;
}  // namespace remote::jobs
