#pragma once

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "jobs/protocol.hpp"
#include "support/local_connection.hpp"
#include "support/waiting.hpp"

namespace remote::test {

// For tests of the scripts in src/server that care for jobs: on the local shell, without ssh, in a project
// whose path has a space in it. One server, `a`, with the shell that is the test's parameter.
class ScriptTest : public ::testing::TestWithParam<ServerShell> {
 protected:
  const RemoteFolder jobs_folder{"~/my proj", ".jobs"};

  ScriptTest();

  // What a script prints to stdout; it may print nothing to stderr.
  std::string exec(const std::string& script);
  // The answer of an action.
  template <typename Answer>
  Answer run(const servers::Action<Answer>& action) {
    return servers::read_answer<Answer>(exec(action.script.input()));
  }
  // The project's folder, a job's, and the content of a file there, empty without it.
  std::filesystem::path place();
  std::filesystem::path folder(const JobId& id);
  std::string file(const JobId& id, const std::string& name);
  pid_t supervisor_of(const JobId& id);

  std::vector<jobs::StartReply> start_all(const std::vector<jobs::StartRequest>& requests);
  // Starts one job; its id.
  JobId start(const std::string& command, std::vector<std::pair<std::string, std::string>> env = {},
              std::string activate = "");
  jobs::StatusReply status(const JobId& id, bool claim = false);
  jobs::KillReply kill(const JobId& id, int signal = SIGTERM, int grace = 5);

  jobs::StatusReply wait_end(const JobId& id);
  // Until the job has written this to its stdout.
  void until_out(const JobId& id, const std::string& text);
  // Until nothing runs any more on the server.
  void expect_nothing_left();

  LocalServers servers;
  std::unique_ptr<ssh::Connection> connection;
};

inline const auto every_shell = ::testing::Values(ServerShell::dash, ServerShell::bash, ServerShell::busybox);
inline const auto shell_name = [](const auto& one) { return to_string(one.param); };

}  // namespace remote::test

// What the tests of these scripts say often.
namespace remote::jobs {
namespace fs = std::filesystem;
using Phase = StatusReply::Phase;
using servers::read_answer;
using test::until;
}  // namespace remote::jobs
