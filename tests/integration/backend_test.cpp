#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/files.hpp"
#include "jobs/protocol.hpp"
#include "support/local_connection.hpp"
#include "support/waiting.hpp"

// The seam between the scripts and their backends: a queue, which is nothing but four sh functions, beside
// `local`. Its jobs wait until the file ~/go is there, and run without a supervisor and without the cookie.
// The file ~/deaf makes it ignore all signals, and ~/slow makes it late with its results.

namespace remote::jobs {
namespace {

namespace fs = std::filesystem;
using Phase = StatusReply::Phase;
using Outcome = KillReply::Outcome;

constexpr std::string_view queue_functions = R"sh(
queue_start() {
  for qs_id; do
    : >"$jobs/$qs_id/ticket"
    (cd "$jobs/$qs_id" && exec setsid sh -c '
      until [ -e ~/go ]; do
        [ -e ticket ] || exit
        sleep 0.02
      done
      mv ticket slot || exit
      date +%s >started
      setsid sh job.sh >>job.out 2>>job.err &
      read -r stat </proc/$!/stat
      set -- ${stat#*") "}
      echo "$! ${20}" >pid
      wait $!
      code=$?
      kind=exit
      [ $code -lt 129 ] || kind=signal code=$((code - 128))
      [ ! -e ~/slow ] || sleep 0.5
      echo "$kind $code $(date +%s)" >.end
      mv .end result
    ' </dev/null >/dev/null 2>&1) &
    if [ -e ~/full ]; then
      not_started "$qs_id" 'the queue is full'
      rm "$jobs/$qs_id/ticket"
    else
      queued "$qs_id" 'waiting for go'
    fi
  done
}

queue_state() {
  if [ -n "$f_end" ]; then
    phase=ended
    [ -z "$f_pid" ] || ! alive "$f_pid" "$f_pid_start" || phase=running left=1 pid=$f_pid
  elif [ -e "$f_dir/ticket" ]; then
    phase=queued reason='waiting for go'
  elif [ -e "$f_dir/slot" ]; then
    phase=running pid=$f_pid
  else
    phase=starting
  fi
}

queue_members() {
  qm_how=$1
  shift
  for qm_id; do
    facts "$qm_id"
    if [ "$qm_how" = closing ]; then
      [ ! -e "$f_dir/slot" ] || [ -n "$f_end" ] || closing="$closing queue:slot:$qm_id"
    elif [ -e "$f_dir/ticket" ]; then
      members="$members queue:ticket:$qm_id"
    elif alive "$f_pid" "$f_pid_start"; then
      members="$members $f_pid:$f_pid_start:$qm_id"
    fi
  done
}

queue_signal() {
  [ ! -e ~/deaf ] || return 0
  qg_signal=$1
  shift
  for qg_member; do
    qg_id=${qg_member##*:}
    case $qg_member in
      queue:*) rm "$jobs/$qg_id/ticket" && signalled "$qg_id" ;;
      *)
        kill "-$qg_signal" "-${qg_member%%:*}"
        [ -e "$jobs/$qg_id/told" ] || signalled "$qg_id"
        : >"$jobs/$qg_id/told"
        ;;
    esac
  done
}
)sh";

class QueueTest : public ::testing::TestWithParam<test::ServerShell> {
 protected:
  QueueTest() : servers(GetParam()), connection(servers.connect("a")) {}

  std::string exec(const std::string& script, bool keep_input = false) {
    ssh::ExecRequest request;
    // as if the program had it
    request.input = servers::Script().append(knows_queue ? queue_functions : "").text() + script;
    request.keep_input = keep_input;
    request.timeout = std::chrono::seconds(60);
    return connection->exec(request).out;
  }
  template <typename Answer>
  Answer run(const servers::Action<Answer>& action) {
    return servers::read_answer<Answer>(exec(action.script.input()));
  }
  fs::path home() { return servers.home("a"); }
  std::string file(JobId id, const std::string& name) {
    return read_file_if_there(home() / "proj/.jobs" / id.text() / name).value_or("");
  }
  void touch(const std::string& name) { write_file_atomic(home() / name, ""); }

  JobId start(const std::string& command, const std::string& backend = "queue") {
    StartRequest request{JobId::random(), command, "", {}};
    request.backend = backend;
    started = run(start_action(folder, {request})).jobs.at(0);
    return request.id;
  }
  StatusReply status(JobId id, const std::vector<JobId>& claim = {}) {
    return run(status_action(folder, {id}, claim)).jobs.at(0);
  }
  void until_phase(JobId id, Phase phase) {
    EXPECT_TRUE(test::eventually([&] { return status(id).phase == phase; }, 20));
  }
  std::vector<KillReply> kill(const std::vector<JobId>& ids, int grace = 5) {
    return run(kill_action(folder, ids, {SIGTERM, grace, "ada@laptop"})).jobs;
  }
  CleanReply clean(JobId id) { return run(clean_action(folder, {id})).jobs.at(0); }
  void expect_nothing_left() {
    EXPECT_TRUE(test::eventually([&] { return servers.processes().empty(); }, 20));
  }

  test::LocalServers servers;
  std::unique_ptr<ssh::Connection> connection;
  const RemoteFolder folder{"~/proj", ".jobs"};
  bool knows_queue = true;
  StartReply started;
};

TEST_P(QueueTest, AJobIsQueuedRunsAndEnds) {
  const JobId id = start("echo out; echo err >&2; until [ -e ~/end ]; do sleep 0.2; done; exit 3");
  EXPECT_EQ(started.outcome, StartReply::Outcome::queued);
  EXPECT_EQ(started.reason, "waiting for go");
  EXPECT_EQ(file(id, "backend"), "queue\n");
  StatusReply reply = status(id, {id});  // whoever started it may be dead: it is in the queue all the same
  EXPECT_EQ(reply.phase, Phase::queued);
  EXPECT_EQ(reply.backend, "queue");
  EXPECT_EQ(reply.reason, "waiting for go");
  EXPECT_FALSE(reply.pid);
  EXPECT_EQ(clean(id).outcome, CleanReply::Outcome::running);
  touch("go");
  EXPECT_TRUE(test::eventually([&] { return !file(id, "pid").empty(); }));
  reply = status(id);
  EXPECT_EQ(reply.phase, Phase::running);
  EXPECT_EQ(std::to_string(reply.pid.value_or(0)), file(id, "pid").substr(0, file(id, "pid").find(' ')));
  EXPECT_TRUE(reply.started_at);
  EXPECT_EQ(clean(id).outcome, CleanReply::Outcome::running);
  touch("end");
  until_phase(id, Phase::ended);
  reply = status(id);
  EXPECT_EQ(reply.result(), ExitStatus::exited(3));
  EXPECT_EQ(reply.out_size, 4U);
  EXPECT_EQ(reply.err_size, 4U);
  EXPECT_EQ(clean(id).outcome, CleanReply::Outcome::removed);
  EXPECT_EQ(status(id).phase, Phase::none);
}

TEST_P(QueueTest, AFollowerWaitsForAQueuedJob) {
  const JobId id = start("echo first; sleep 0.3; echo last; exit 3");
  EXPECT_EQ(run(start_action(folder, {{JobId::random(), "sleep 1; : >~/go", "", {}}})).jobs.size(), 1U);
  const std::string out = exec(follow_script(folder, {id, 0, 0, {}, true}), true);
  EXPECT_TRUE(out.ends_with("\n@remote1 follow 0 0\nfirst\nlast\n")) << out;
  EXPECT_EQ(status(id).phase, Phase::ended) << "it was followed to its end";
}

TEST_P(QueueTest, WhatIsQueuedIsKilled) {
  const JobId id = start("echo never");
  const KillReply reply = kill({id}).at(0);
  EXPECT_EQ(reply.outcome, Outcome::killed);
  EXPECT_EQ(reply.signalled, 1);
  expect_nothing_left();
  touch("go");
  const StatusReply now = status(id);
  EXPECT_EQ(now.phase, Phase::ended);
  EXPECT_EQ(now.result(), ExitStatus::signalled(SIGTERM));
  EXPECT_EQ(now.stop_by, parse_by("ada@laptop"));
  EXPECT_EQ(file(id, "job.out"), "");
  EXPECT_EQ(kill({id}).at(0).outcome, Outcome::ended);
  EXPECT_EQ(clean(id).outcome, CleanReply::Outcome::removed);
}

TEST_P(QueueTest, WhatRunsIsKilledAndProvedToBeGone) {
  touch("go");
  touch("slow");
  const JobId obedient = start("trap 'exit 7' TERM; echo up; while :; do sleep 0.1; done");
  const JobId deaf = start("trap '' TERM; echo up; while :; do sleep 0.1; done");
  EXPECT_TRUE(test::eventually([&] { return file(deaf, "job.out") == "up\n"; }));
  EXPECT_TRUE(test::eventually([&] { return file(obedient, "job.out") == "up\n"; }));
  const JobId beside = start("exec sleep 1000", "local");
  EXPECT_EQ(started.outcome, StartReply::Outcome::started);
  const auto replies = kill({deaf, beside, obedient}, 1);
  ASSERT_EQ(replies.size(), 3U);
  for (const KillReply& reply : replies) {
    EXPECT_EQ(reply.outcome, Outcome::killed);
    EXPECT_EQ(reply.signalled, 1);
  }
  EXPECT_EQ(status(deaf).result(), ExitStatus::signalled(SIGKILL));
  EXPECT_EQ(status(beside).result(), ExitStatus::signalled(SIGTERM));
  EXPECT_EQ(status(obedient).result(), ExitStatus::exited(7)) << "the backend's own, though it came late";
  expect_nothing_left();
}

TEST_P(QueueTest, WhatCannotBeKilledIsNamed) {
  touch("deaf");
  const JobId queued = start("exec sleep 1000");
  EXPECT_EQ(kill({queued}, 0).at(0).survivors, std::vector<std::string>{"queue:ticket"});
  EXPECT_EQ(status(queued).phase, Phase::queued);
  touch("go");
  EXPECT_TRUE(test::eventually([&] { return !file(queued, "pid").empty(); }));
  const KillReply reply = kill({queued}, 0).at(0);
  EXPECT_EQ(reply.outcome, Outcome::survivors);
  ASSERT_EQ(reply.survivors.size(), 2U);
  EXPECT_EQ(reply.survivors[0].substr(0, 4), "pid ");
  EXPECT_EQ(reply.survivors[1], "queue:slot") << "the result is still missing";
  EXPECT_EQ(status(queued).phase, Phase::running);
  fs::remove(home() / "deaf");
  EXPECT_EQ(kill({queued}, 0).at(0).outcome, Outcome::killed);
  EXPECT_EQ(file(queued, "survivors"), "");
  expect_nothing_left();
}

TEST_P(QueueTest, WhatItRefusesNeverStarts) {
  touch("full");
  const JobId id = start("echo never");
  EXPECT_EQ(started.outcome, StartReply::Outcome::failed);
  EXPECT_EQ(started.reason, "the queue is full");
  EXPECT_EQ(status(id).phase, Phase::none);
  // nor does one whose starter died before it came into the queue
  const JobId lost = JobId::random();
  make_folders(home() / "proj/.jobs" / lost.text());
  write_file_atomic(home() / "proj/.jobs" / lost.text() / "backend", "queue\n");
  EXPECT_EQ(status(lost).phase, Phase::starting);
  EXPECT_EQ(status(lost, {lost}).phase, Phase::none);
  expect_nothing_left();
}

// The folder was made by a newer version.
TEST_P(QueueTest, AnUnknownBackendIsToldOfAndLeftAlone) {
  const JobId id = start("echo here; exec sleep 1000");
  const JobId beside = start("exec sleep 1000", "local");
  touch("go");
  EXPECT_TRUE(test::eventually([&] { return file(id, "job.out") == "here\n"; }));
  knows_queue = false;
  const StatusReply reply = status(id, {id});
  EXPECT_EQ(reply.phase, Phase::unknown);
  EXPECT_EQ(reply.reason, "this version of remote does not know its backend queue");
  EXPECT_EQ(reply.out_size, 5U);
  const auto replies = kill({id, beside});
  EXPECT_EQ(replies.at(0).outcome, Outcome::refused);
  EXPECT_EQ(replies.at(0).reason, "this version of remote does not know its backend queue");
  EXPECT_EQ(replies.at(1).outcome, Outcome::killed);
  EXPECT_EQ(file(id, "stop"), "");
  EXPECT_EQ(clean(id).outcome, CleanReply::Outcome::running);
  EXPECT_EQ(servers.processes().size(), 2U) << "the job and its queue";
}

INSTANTIATE_TEST_SUITE_P(Shells, QueueTest,
                         ::testing::Values(test::ServerShell::dash, test::ServerShell::bash,
                                           test::ServerShell::busybox),
                         [](const auto& one) { return test::to_string(one.param); });

}  // namespace
}  // namespace remote::jobs
