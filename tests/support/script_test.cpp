#include "support/script_test.hpp"

#include <chrono>

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "jobs/from_wire.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace fs = std::filesystem;

ScriptTest::ScriptTest() : servers(GetParam()), connection(servers.connect("a")) {}

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

std::vector<wire::StartedJob> ScriptTest::start_all(const std::vector<jobs::StartRequest>& requests) {
  return jobs::ask_start(agent(), {.folder = jobs_folder, .requests = requests});
}

JobId ScriptTest::start(const std::string& command, std::vector<std::pair<std::string, std::string>> env,
                        std::string activate) {
  const JobId id = JobId::random();
  const auto replies = start_all({{id, command, std::move(activate), std::move(env)}});
  EXPECT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies.at(0).outcome, wire::StartOutcome::started) << replies.at(0).reason;
  EXPECT_TRUE(replies.at(0).pid);
  EXPECT_EQ(replies.at(0).id, id.text());
  return id;
}

JobId ScriptTest::start_with_stacks(const std::string& command,
                                    std::vector<std::pair<std::string, std::string>> env) {
  jobs::StartRequest request{JobId::random(), {command, "", std::move(env)}};
  request.process.startup_files = wire::StartupFiles::python;
  EXPECT_EQ(start_all({request}).at(0).outcome, wire::StartOutcome::started);
  return request.id;
}

wire::JobReport ScriptTest::status(const JobId& id, bool claim) {
  jobs::StateQuestion question{.folder = jobs_folder, .ids = {id}};
  question.claim = claim ? std::vector{id} : std::vector<JobId>{};
  return jobs::ask_state(agent(), question).jobs.at(id);
}

std::map<JobId, wire::JobReport> ScriptTest::status_of(const std::vector<JobId>& ids) {
  return jobs::ask_state(agent(), {.folder = jobs_folder, .ids = ids}).jobs;
}

wire::StopResult ScriptTest::kill(const JobId& id, int signal, int grace) {
  return kill_all({id}, signal, grace).at(id);
}

std::map<JobId, wire::StopResult> ScriptTest::kill_all(const std::vector<JobId>& ids, int signal, int grace,
                                                       const std::vector<JobId>& claim) {
  jobs::StopQuestion question{.folder = jobs_folder, .ids = ids};
  question.signal = signal;
  question.grace_s = grace;
  question.by = jobs::to_reason(jobs::by_ada);
  question.claim = claim;
  return jobs::ask_stop(agent(), question).results;
}

wire::CleanedJob ScriptTest::clean(const JobId& id) {
  return jobs::ask_clean(agent(), jobs_folder, {id}).at(id);
}

wire::JobReport ScriptTest::wait_end(const JobId& id) {
  wire::JobReport report;
  until(
      [&] {
        report = status(id);
        return report.phase != wire::JobPhase::running && report.phase != wire::JobPhase::starting;
      },
      "the job's end");
  return report;
}

void ScriptTest::until_out(const JobId& id, const std::string& text) {
  until([&] { return file(id, "job.out").find(text) != std::string::npos; }, text);
}

void ScriptTest::expect_nothing_left() {
  until([&] { return servers.processes().empty(); }, "no process is left");
}

AsNobody::AsNobody(LocalServers& servers) : connection_(servers.connect("a")), wrapped_(*connection_) {
  for (const fs::path& path :
       {servers.bin().parent_path(), servers.home("a").parent_path(), servers.home("a")}) {
    fs::permissions(path, fs::perms::all);
  }
  wrapped_.run_behind("exec " + find_program("setpriv")->string() +
                      " --reuid=65534 --regid=65534 --clear-groups");
}

}  // namespace remote::test
