#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "jobs/ask.hpp"
#include "jobs/helpers.hpp"
#include "jobs/start.hpp"
#include "jobs/start_jobs.hpp"
#include "support/job_reports.hpp"
#include "support/local_connection.hpp"
#include "support/test_lifeline.hpp"
#include "support/test_sshd.hpp"
#include "support/waiting.hpp"

// mpirun's orders, from its agent on the simulated server "a" over the lifeline to the job on "b". Both are
// on this machine; mpirun and its daemon are shell scripts.

namespace remote::jobs {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class OrdersTest : public ::testing::TestWithParam<test::ServerShell> {
 protected:
  OrdersTest() : servers(GetParam()) {
    launch.servers = {{"a", 1, "localhost"}, {"b", 1, "remote-b"}};
    // The daemon: records its arguments, and ends when ~/go exists.
    set_daemon("printf '%s\\n' \"$@\" >>~/words; until [ -e ~/go ]; do sleep 0.2; done");
  }
  ~OrdersTest() override {
    EXPECT_TRUE(test::eventually([&] { return servers.processes().empty(); })) << "something is left";
  }

  void set_daemon(const std::string& body, const std::string& name = "orted") {
    const fs::path file = servers.home("b") / "bin" / name;
    fs::create_directories(file.parent_path());
    write_file_atomic(file, "#!/bin/sh\n" + body + "\n");
    fs::permissions(file, fs::perms::owner_all);
  }
  JobId start(const std::string& server, const std::string& command) {
    Job job;
    job.id = JobId::random();
    job.rank = server == "a" ? 0 : 1;
    servers::ProcessSpec process{command, "PATH=$HOME/bin:$PATH; export PATH\n", {}};
    process.programs = {"remote-mpi-agent", "remote-mpi-member", "remote-mpi-rank"};
    const auto connection = servers.connect(server);
    const auto replies = ask_start({*connection, Cancel()}, {.folder = {"~/proj", ".jobs"},
                                                             .requests = {{job.id, process}},
                                                             .launch = spec_for(launch, server, {job})});
    EXPECT_EQ(replies.at(0).outcome, StartOutcome::started) << replies.at(0).reason;
    return job.id;
  }
  wire::JobReport status(const std::string& server, const JobId& id) {
    const auto connection = servers.connect(server);
    return ask_state({*connection, Cancel()}, {.folder = {"~/proj", ".jobs"}, .ids = {id}}).jobs.at(id);
  }
  std::optional<ExitStatus> result(const std::string& server, const JobId& id) {
    wire::JobReport reply;
    EXPECT_TRUE(test::eventually([&] {
      reply = status(server, id);
      return reply.phase == wire::JobPhase::ended;
    })) << "the end of the job on "
        << server;
    return result_of(reply);
  }
  std::string errors(const std::string& server, const JobId& id) {
    return read_file(servers.home(server) / "proj/.jobs" / id.text() / "job.err");
  }
  std::string words() { return read_file_if_there(servers.home("b") / "words").value_or(""); }
  // Waits until a file with this prefix, such as "order.", is in the folder of a job on "a".
  void until_file(const fs::path& folder, const std::string& prefix) {
    EXPECT_TRUE(test::eventually([&] {
      return std::ranges::any_of(fs::directory_iterator(folder), [&](const auto& entry) {
        return entry.path().filename().string().starts_with(prefix);
      });
    })) << prefix;
  }
  void go(const std::string& server) { write_file_atomic(servers.home(server) / "go", ""); }
  void until_words() {
    EXPECT_TRUE(test::eventually([&] { return !words().empty(); })) << "no order came";
  }

  test::LocalServers servers;
  wire::LaunchSpec launch = test::launch_of_two();
};

TEST_P(OrdersTest, AreOnlyTheDaemonAndItsArguments) {
  const JobId b = start("b", "remote-mpi-member");
  const JobId a = start(
      "a",
      "remote-mpi-agent remote-b 'PATH=/evil:$PATH;export PATH;touch ~/evil;/evil/orted' -mca ess '\"env\"' "
      "'\"a b\"' ';' 'touch ~/evil' '$(touch ~/evil)'");
  EXPECT_EQ(result("a", a), ExitStatus::exited(0));
  until_words();
  go("b");
  EXPECT_EQ(result("b", b), ExitStatus::exited(0));
  EXPECT_EQ(words(), "-mca\ness\nenv\na b\n;\ntouch\n~/evil\n$(touch\n~/evil)\n");
  EXPECT_FALSE(fs::exists(servers.home("a") / "evil"));
  EXPECT_FALSE(fs::exists(servers.home("b") / "evil"));
}

TEST_P(OrdersTest, GoToServersOfTheLaunchAndToNoOtherProgram) {
  const JobId b = start("b", "remote-mpi-member");
  const JobId a = start("a",
                        "remote-mpi-agent remote-c orted; remote-mpi-agent remote-b sh -c true; "
                        "remote-mpi-agent remote-b orted '\"'; exit 0");
  EXPECT_EQ(result("a", a), ExitStatus::exited(0));
  EXPECT_EQ(errors("a", a),
            "remote: mpirun cannot start its daemon for remote-c: it is not a server of this launch\n"
            "remote: mpirun cannot start its daemon for remote-b: its command line is not understood\n"
            "remote: mpirun cannot start its daemon for remote-b: its command line is not understood\n");
  // mpirun has ended without a valid order: jobs stop waiting for one, and that counts as a failure
  EXPECT_EQ(result("b", b), ExitStatus::exited(1));
  EXPECT_EQ(errors("b", b), "remote: mpirun has ended without having started its daemon here\n");
  EXPECT_TRUE(status("b", b).after_peer);
  EXPECT_EQ(words(), "");
}

TEST_P(OrdersTest, TheFirstOneCounts) {
  const JobId b = start("b", "remote-mpi-member");
  const JobId a = start("a", "remote-mpi-agent remote-b orted 1 && remote-mpi-agent remote-b orted 2");
  EXPECT_EQ(result("a", a), ExitStatus::exited(0));
  until_words();
  go("b");
  EXPECT_EQ(result("b", b), ExitStatus::exited(0));
  EXPECT_EQ(words(), "1\n");
  EXPECT_EQ(read_file(servers.home("b") / "proj/.jobs" / b.text() / "order"), "orted\n1\n");
}

// MPICH's mpirun treats the end of its agent as the end of its daemon.
TEST_P(OrdersTest, TheAgentOfHydraStaysUntilTheJobThereHasEnded) {
  launch.grace_seconds = 2;  // otherwise the failure on b would stop the job on a before it can write
  for (const int code : {0, 3}) {
    SCOPED_TRACE(code);
    fs::remove(servers.home("b") / "go");
    fs::remove(servers.home("b") / "words");
    set_daemon("echo begun >~/words; until [ -e ~/go ]; do sleep 0.2; done; exit " + std::to_string(code),
               "hydra_pmi_proxy");
    const JobId b = start("b", "remote-mpi-member");
    const JobId a = start("a", "remote-mpi-agent remote-b hydra_pmi_proxy; echo ended >&2; sleep 300");
    until_words();
    const fs::path folder = servers.home("a") / "proj/.jobs" / a.text();
    until_file(folder, "until.");
    EXPECT_EQ(errors("a", a), "");
    if (code == 0) {  // another lifeline takes over the waiting
      const pid_t dead = test::read_lifeline_pid(folder);
      test::kill_lifeline(folder);
      status("a", a);  // restarts it
      EXPECT_NE(test::read_lifeline_pid(folder), dead);
    }
    go("b");
    EXPECT_TRUE(test::eventually([&] { return errors("a", a) == "ended\n"; }));
    EXPECT_EQ(result("b", b), ExitStatus::exited(code));
    const auto connection = servers.connect("a");
    ask_stop({*connection, Cancel()}, {.folder = {"~/proj", ".jobs"}, .ids = {a}, .grace_s = 1});
  }
}

TEST_P(OrdersTest, AServerThatDoesNotComeIsNamed) {
  launch.timeout_seconds = 2;
  const JobId a = start("a", "remote-mpi-agent remote-b orted");
  EXPECT_EQ(result("a", a), ExitStatus::exited(1));
  EXPECT_THAT(errors("a", a), HasSubstr("server b does not reach this one at 127.0.0.1 port"));
}

// Orders may be given while no process is there to receive them.
TEST_P(OrdersTest, OutliveTheLifeline) {
  const JobId b = start("b", "remote-mpi-member");
  const JobId a = start("a", "until [ -e ~/go ]; do sleep 0.2; done; remote-mpi-agent remote-b orted late");
  const fs::path record = servers.home("a") / "proj/.jobs" / a.text() / "lifeline.pid";
  EXPECT_TRUE(test::eventually([&] { return fs::exists(record); }));
  test::kill_lifeline(record.parent_path());
  go("a");
  until_file(record.parent_path(), "order.");
  EXPECT_EQ(result("a", a), ExitStatus::exited(0));  // a status request restarts it
  until_words();
  go("b");
  EXPECT_EQ(result("b", b), ExitStatus::exited(0));
  EXPECT_EQ(words(), "late\n");
}

// If a rank fails, its exit code is the job's, and its time and last words are recorded.
TEST_P(OrdersTest, ARankLeavesWhatAVerdictNeeds) {
  const std::string variables =
      "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 "
      "OMPI_COMM_WORLD_LOCAL_SIZE=2 ";
  set_daemon(
      variables +
      "remote-mpi-rank 'echo \"$RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE\"; echo oops >&2; exit 7'\n"
      "exit 0");
  const JobId b = start("b", "remote-mpi-member");
  const JobId a = start("a", "remote-mpi-agent remote-b orted && sleep 300");
  EXPECT_EQ(result("b", b), ExitStatus::exited(7));
  EXPECT_EQ(result("a", a), ExitStatus::signalled(SIGTERM));
  const fs::path folder = servers.home("b") / "proj/.jobs" / b.text();
  EXPECT_EQ(read_file(folder / "job.out"), "[3] 3 4 1 2\n");
  EXPECT_EQ(read_file(folder / "job.err"), "[3] oops\n");
  EXPECT_EQ(read_file(folder / "ranks/3.out"), "3 4 1 2\n");
  const std::string record = read_file(folder / "failures/rank.3");
  EXPECT_TRUE(parse_number<std::int64_t>(record.substr(0, record.find('\n'))).value_or(0) > 1'700'000'000'000)
      << record;
  EXPECT_EQ(record.substr(record.find('\n')), "\noops\n");
  EXPECT_TRUE(read_file(folder / "failures/agent").starts_with("3 exit 7 "));
}

INSTANTIATE_TEST_SUITE_P(Shells, OrdersTest,
                         ::testing::Values(test::ServerShell::dash, test::ServerShell::busybox),
                         [](const auto& one) { return test::to_string(one.param); });

}  // namespace
}  // namespace remote::jobs
