#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.hpp"
#include "jobs/ask.hpp"
#include "jobs/from_wire.hpp"
#include "jobs/start_jobs.hpp"
#include "launch/slurm.hpp"
#include "project/slurm.hpp"
#include "servers/agent.hpp"
#include "support/job_reports.hpp"
#include "support/local_connection.hpp"
#include "support/waiting.hpp"

// Jobs that a backend starts later: a Slurm made of four sh scripts, next to `local`. Its jobs wait until the
// file ~/go or ~/go.NUMBER exists. With the file ~/deaf it ignores all signals, with ~/slow it reports the
// ends of jobs late, and with ~/full it rejects new jobs.

namespace remote::jobs {
namespace {

namespace fs = std::filesystem;

constexpr const char* sbatch = R"sh(
[ ! -e ~/full ] || { echo 'sbatch: error: the queue is full' >&2; exit 1; }
for word; do
  case $word in --job-name=*) name=${word#*=} ;; esac
done
mkdir -p ~/slurm
number=1
while ! mkdir ~/slurm/$number 2>/dev/null; do number=$((number + 1)); done
echo "$name" >~/slurm/$number/name
echo PENDING >~/slurm/$number/state
setsid sh -c '
  place=$HOME/slurm/$1
  until [ -e ~/go ] || [ -e ~/go.$1 ]; do
    [ -e "$place/cancelled" ] && exit
    sleep 0.02
  done
  echo RUNNING >"$place/state"
  SLURM_JOB_ID=$1 SLURM_JOB_NODELIST=n1 setsid sh "$2" &
  echo $! >"$place/pid"
  wait $!
  [ ! -e ~/slow ] || sleep 0.5
  state=COMPLETED
  [ ! -e "$place/cancelled" ] || state=CANCELLED
  echo $state >"$place/state"
' sh "$number" "$word" </dev/null >/dev/null 2>&1 &
echo "$number"
)sh";

// It is called with -o '%F|%K|%T|%N|%e|%S|%r|%j'.
constexpr const char* squeue = R"sh(
for place in ~/slurm/[0-9]*; do
  [ -e "$place/state" ] || continue
  state=$(cat "$place/state")
  reason=None
  [ "$state" != PENDING ] || reason=Resources
  echo "${place##*/}|N/A|$state|n1|N/A|N/A|$reason|$(cat "$place/name")"
done
)sh";

constexpr const char* scancel = R"sh(
[ ! -e ~/deaf ] || exit 0
signal=
for word; do
  case $word in --signal=*) signal=${word#*=} ;; esac
done
for number; do
  place=$HOME/slurm/$number
  [ -e "$place/state" ] || continue
  state=$(cat "$place/state")
  case $state:$signal in
    PENDING:)
      : >"$place/cancelled"
      echo CANCELLED >"$place/state"
      ;;
    RUNNING:)
      : >"$place/cancelled"
      kill -9 "-$(cat "$place/pid")"
      ;;
    RUNNING:*) kill "-$signal" "-$(cat "$place/pid")" ;;
  esac
done
exit 0
)sh";

class QueueTest : public ::testing::TestWithParam<test::ServerShell> {
 protected:
  QueueTest() : servers(GetParam()), connection(servers.connect("a")) {
    servers.add_program("sbatch", sbatch);
    servers.add_program("squeue", squeue);
    servers.add_program("scancel", scancel);
    servers.add_program("sacct", "exit 1\n");
  }
  ~QueueTest() override { touch("go"); }  // no job waits any more

  AnyAgent agent() { return {*connection, cancel}; }
  fs::path home() { return servers.home("a"); }
  std::string file(JobId id, const std::string& name) {
    return read_file_if_there(home() / "proj/.jobs" / id.text() / name).value_or("");
  }
  void touch(const std::string& name) { write_file_atomic(home() / name, ""); }

  JobId start(const std::string& command, std::string_view backend = slurm_backend) {
    StartRequest request{JobId::random(), {command, "", {}}};
    request.backend = backend;
    if (backend == slurm_backend) {
      request.files = {{"batch.sh", launch::slurm_job_batch(project::program_for_nodes(), {}, false)}};
    }
    started = ask_start(agent(), {.folder = folder, .requests = {request}}).at(0);
    return request.id;
  }
  wire::JobReport status(JobId id, const std::vector<JobId>& claim = {}) {
    return ask_state(agent(), {.folder = folder, .ids = {id}, .claim = claim}).jobs.at(id);
  }
  void until_phase(JobId id, Phase phase) {
    EXPECT_TRUE(test::eventually([&] { return status(id).phase == phase; }));
  }
  std::map<JobId, wire::StopResult> kill(const std::vector<JobId>& ids, int grace = 5) {
    return ask_stop(agent(), {.folder = folder, .ids = ids, .grace_s = grace, .by = to_reason(by_ada)})
        .results;
  }
  CleanOutcome clean(JobId id) { return ask_clean(agent(), folder, {id}).at(id).outcome; }
  void expect_nothing_left() {
    EXPECT_TRUE(test::eventually([&] { return servers.processes().empty(); }));
  }

  test::LocalServers servers;
  std::unique_ptr<ssh::Connection> connection;
  const Cancel cancel;
  const RemoteFolder folder{"~/proj", ".jobs"};
  wire::StartedJob started;
};

TEST_P(QueueTest, AJobIsQueuedRunsAndEnds) {
  const JobId id = start("echo out; echo err >&2; until [ -e ~/end ]; do sleep 0.2; done; exit 3");
  EXPECT_EQ(started.outcome, StartOutcome::queued);
  EXPECT_EQ(started.reason, "Slurm job 1");
  EXPECT_EQ(file(id, "backend"), "slurm\n");
  wire::JobReport report = status(id, {id});  // queued, even if its starter is dead
  EXPECT_EQ(report.phase, Phase::queued);
  EXPECT_EQ(report.backend, "slurm");
  EXPECT_EQ(report.reason, "Slurm job 1, Resources");
  EXPECT_FALSE(report.pid);
  EXPECT_EQ(clean(id), CleanOutcome::running);
  touch("go");
  EXPECT_TRUE(test::eventually([&] { return file(id, "job.err") == "err\n"; }));
  report = status(id);
  EXPECT_EQ(report.phase, Phase::running);
  EXPECT_TRUE(report.started_at);
  EXPECT_EQ(clean(id), CleanOutcome::running);
  touch("end");
  until_phase(id, Phase::ended);
  report = status(id);
  EXPECT_EQ(result_of(report), ExitStatus::exited(3));
  EXPECT_EQ(report.out_size, 4U);
  EXPECT_EQ(report.err_size, 4U);
  expect_nothing_left();
  EXPECT_EQ(clean(id), CleanOutcome::removed);
  EXPECT_EQ(status(id).phase, Phase::none);
}

TEST_P(QueueTest, AFollowerWaitsForAQueuedJob) {
  const JobId id = start("echo first; sleep 0.3; echo last; exit 3");
  start("sleep 1; : >~/go", local_backend);
  servers::Agent running(*connection, cancel);
  std::string out;
  std::optional<wire::FollowEnds> end;
  bool has_ended = false;
  wire::FollowRequest request;
  request.place = to_place(folder);
  request.id = id.text();
  running.open(request, {.message =
                             [&](wire::Reply reply) {
                               if (auto* message = std::get_if<wire::FollowEnds>(&reply)) {
                                 end = std::move(*message);
                               }
                             },
                         .data =
                             [&](std::string_view data) {
                               EXPECT_EQ(data.substr(0, 1), "\1");
                               out += data.substr(1);
                             },
                         .end = [&] { has_ended = true; }});
  while (!has_ended) {
    running.wait(std::chrono::seconds(60), std::chrono::seconds(20));
  }
  EXPECT_EQ(out, "first\nlast\n");
  ASSERT_TRUE(end);
  EXPECT_EQ(end->job.phase, Phase::ended) << "it was followed to its end";
}

TEST_P(QueueTest, WhatIsQueuedIsKilled) {
  const JobId id = start("echo never");
  const wire::StopResult result = kill({id}).at(id);
  EXPECT_EQ(result.outcome, StopOutcome::killed);
  EXPECT_EQ(result.signalled, 1);
  expect_nothing_left();
  touch("go");
  const wire::JobReport now = status(id);
  EXPECT_EQ(now.phase, Phase::ended);
  EXPECT_EQ(result_of(now), ExitStatus::signalled(SIGTERM));
  ASSERT_TRUE(now.stop);
  EXPECT_EQ(now.stop->by, by_ada);
  EXPECT_EQ(file(id, "job.out"), "");
  EXPECT_EQ(kill({id}).at(id).outcome, StopOutcome::ended);
  EXPECT_EQ(clean(id), CleanOutcome::removed);
}

TEST_P(QueueTest, WhatRunsIsKilledAndProvedToBeGone) {
  touch("go");
  touch("slow");
  const JobId obedient = start("trap 'exit 7' TERM; echo up; while :; do sleep 0.1; done");
  const JobId deaf = start("trap '' TERM; echo up; while :; do sleep 0.1; done");
  EXPECT_TRUE(test::eventually([&] { return file(deaf, "job.out") == "up\n"; }));
  EXPECT_TRUE(test::eventually([&] { return file(obedient, "job.out") == "up\n"; }));
  const JobId beside = start("exec sleep 1000", local_backend);
  EXPECT_EQ(started.outcome, StartOutcome::started);
  const auto results = kill({deaf, beside, obedient}, 1);
  ASSERT_EQ(results.size(), 3U);
  for (const auto& [id, result] : results) {
    EXPECT_EQ(result.outcome, StopOutcome::killed);
    EXPECT_EQ(result.signalled, 1);
  }
  EXPECT_TRUE(result_of(status(deaf)).value().signal()) << "even its supervisor got KILL";
  EXPECT_EQ(result_of(status(beside)), ExitStatus::signalled(SIGTERM));
  EXPECT_EQ(result_of(status(obedient)), ExitStatus::exited(7)) << "its own, though it came late";
  expect_nothing_left();
}

TEST_P(QueueTest, WhatCannotBeKilledIsNamed) {
  if (GetParam() != test::ServerShell::dash) {
    GTEST_SKIP() << "no script of a job takes part, and Slurm gets 25 seconds";
  }
  touch("deaf");
  const JobId running = start("echo up; exec sleep 1000");
  touch("go.1");
  EXPECT_TRUE(test::eventually([&] { return file(running, "job.out") == "up\n"; }));
  const JobId queued = start("exec sleep 1000");
  const auto results = kill({running, queued}, 0);
  for (const auto& [id, name] : {std::pair(running, "Slurm job 1"), std::pair(queued, "Slurm job 2")}) {
    EXPECT_EQ(results.at(id).outcome, StopOutcome::survivors);
    EXPECT_THAT(results.at(id).survivors,
                ::testing::ElementsAre(::testing::Field(&wire::Survivor::name, ::testing::StartsWith(name))));
  }
  EXPECT_EQ(status(running).phase, Phase::running);
  EXPECT_EQ(status(queued).phase, Phase::queued);
  fs::remove(home() / "deaf");
  for (const auto& [id, result] : kill({running, queued}, 0)) {
    EXPECT_EQ(result.outcome, StopOutcome::killed);
    EXPECT_THAT(file(id, "journal.jsonl"), ::testing::EndsWith("\"survivors\":[]}\n"));
  }
  expect_nothing_left();
}

TEST_P(QueueTest, WhatItRefusesNeverStarts) {
  touch("full");
  const JobId id = start("echo never");
  EXPECT_EQ(started.outcome, StartOutcome::failed);
  EXPECT_EQ(started.reason, "sbatch: error: the queue is full");
  EXPECT_EQ(status(id).phase, Phase::none);
  // nor does a job whose starter died before it was in the queue
  const JobId lost = JobId::random();
  make_folders(home() / "proj/.jobs" / lost.text());
  write_file_atomic(home() / "proj/.jobs" / lost.text() / "backend", "slurm\n");
  EXPECT_EQ(status(lost).phase, Phase::starting);
  EXPECT_EQ(status(lost, {lost}).phase, Phase::none);
  expect_nothing_left();
}

// A newer version made the folder.
TEST_P(QueueTest, AnUnknownBackendIsToldOfAndLeftAlone) {
  const JobId id = start("echo here; exec sleep 1000", local_backend);
  const JobId beside = start("exec sleep 1000", local_backend);
  EXPECT_TRUE(test::eventually([&] { return file(id, "job.out") == "here\n"; }));
  const fs::path backend = home() / "proj/.jobs" / id.text() / "backend";
  write_file_atomic(backend, "queue\n");
  const wire::JobReport report = status(id, {id});
  EXPECT_EQ(report.phase, Phase::unknown);
  EXPECT_EQ(report.backend, "queue");
  EXPECT_EQ(report.reason, "this version of remote does not know its backend queue");
  EXPECT_EQ(report.out_size, 5U);
  const auto results = kill({id, beside});
  EXPECT_EQ(results.at(id).outcome, StopOutcome::refused);
  EXPECT_EQ(results.at(id).reason, "this version of remote does not know its backend queue");
  EXPECT_EQ(results.at(beside).outcome, StopOutcome::killed);
  EXPECT_THAT(file(id, "journal.jsonl"), ::testing::Not(::testing::HasSubstr("stop_requested")));
  EXPECT_EQ(clean(id), CleanOutcome::running);
  EXPECT_EQ(servers.processes().size(), 2U) << "the job and its supervisor";
  fs::remove(backend);
  EXPECT_EQ(kill({id}).at(id).outcome, StopOutcome::killed);
}

INSTANTIATE_TEST_SUITE_P(Shells, QueueTest,
                         ::testing::Values(test::ServerShell::dash, test::ServerShell::bash,
                                           test::ServerShell::busybox),
                         [](const auto& one) { return test::to_string(one.param); });

}  // namespace
}  // namespace remote::jobs
