#include "support/script_test.hpp"

#include <chrono>

#include "base/files.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace fs = std::filesystem;
using jobs::StatusReply;

ScriptTest::ScriptTest() : servers(GetParam()), connection(servers.connect("a")) {}

std::string ScriptTest::exec(const std::string& script) {
  ssh::ExecRequest request;
  request.input = script;
  request.timeout = std::chrono::seconds(60);
  const ExecResult result = connection->exec(request);
  EXPECT_EQ(result.err, "");
  return result.out;
}

fs::path ScriptTest::place() {
  return servers.home("a") / "my proj";
}

fs::path ScriptTest::folder(const JobId& id) {
  return place() / ".jobs" / id.text();
}

std::string ScriptTest::file(const JobId& id, const std::string& name) {
  return read_file_if_there(folder(id) / name).value_or("");
}

pid_t ScriptTest::supervisor_of(const JobId& id) {
  return std::stoi(file(id, "supervisor"));
}

std::vector<jobs::StartReply> ScriptTest::start_all(const std::vector<jobs::StartRequest>& requests) {
  return run(jobs::start_action(jobs_folder, requests)).jobs;
}

JobId ScriptTest::start(const std::string& command, std::vector<std::pair<std::string, std::string>> env,
                        std::string activate) {
  const JobId id = JobId::random();
  const auto replies = start_all({{id, command, std::move(activate), std::move(env)}});
  EXPECT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies.at(0).outcome, jobs::StartReply::Outcome::started) << replies.at(0).reason;
  EXPECT_TRUE(replies.at(0).pid);
  EXPECT_EQ(replies.at(0).id, id);
  return id;
}

StatusReply ScriptTest::status(const JobId& id, bool claim) {
  const std::vector<JobId> claims = claim ? std::vector{id} : std::vector<JobId>{};
  return run(jobs::status_action(jobs_folder, {id}, claims)).jobs.at(0);
}

jobs::KillReply ScriptTest::kill(const JobId& id, int signal, int grace) {
  return run(jobs::kill_action(jobs_folder, {id}, {signal, grace, "ada@laptop"})).jobs.at(0);
}

StatusReply ScriptTest::wait_end(const JobId& id) {
  StatusReply reply;
  until(
      [&] {
        reply = status(id);
        return reply.phase != StatusReply::Phase::running && reply.phase != StatusReply::Phase::starting;
      },
      "the job's end");
  return reply;
}

void ScriptTest::until_out(const JobId& id, const std::string& text) {
  until([&] { return file(id, "job.out").find(text) != std::string::npos; }, text);
}

void ScriptTest::expect_nothing_left() {
  until([&] { return servers.processes().empty(); }, "no process is left");
}

}  // namespace remote::test
