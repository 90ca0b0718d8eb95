#include "agent/job/start_jobs.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/facts/machine_digest.hpp"
#include "agent/fake_host.hpp"
#include "agent/host/files.hpp"
#include "agent/job/answers.hpp"
#include "agent/job/job_spec.hpp"
#include "agent/job/record.hpp"
#include "agent/launch/launch_files.hpp"
#include "agent/started.hpp"

namespace remote::agent {
namespace {

using ::testing::HasSubstr;
using wire::StartOutcome;

constexpr fs::perms only_for_owner = fs::perms::owner_read | fs::perms::owner_write;

std::string make_id(int number) {
  const std::string text = std::to_string(number);
  return std::string(32 - text.size(), 'a') + text;
}

// A shell script replaces the agent that starts guards: by default it runs each job and reports the pid 4121.
class StartJobs : public testing::Test, protected test::FakeHost {
 protected:
  StartJobs() {
    put(root() / "proc/sys/kernel/random/boot_id", "this-boot\n");
    put(root() / "proc/sys/kernel/hostname", "node1\n");
    put(root() / "proc/self/status", "Name:\tremote-agent\nUmask:\t0027\nState:\tR\n");
    for (const char* name : {"var/tmp", "tmp"}) {
      fs::create_directories(root() / name);
    }
    host.shared_memory = folder() / "shm";
    fs::create_directories(fs::path(host.shared_memory));
    put(copy() / "lib/job.sh", "the job\n");
    put(copy() / "python/tree.py", "");
    put(copy() / "remote-agent", "agent");
    for (const fs::path& path : {jobs(), bin(), copy(), copy() / "lib", copy() / "python"}) {
      fs::permissions(path, fs::perms::owner_all);
    }
    for (const char* name : {"lib/job.sh", "python/tree.py"}) {
      fs::permissions(copy() / name, only_for_owner);
    }
    request.place = {"~/my proj", ".jobs"};
    request.program = {"digest1", 8};
    set_guards(
        "for id; do\n"
        "  cd \"$jobs/$id\" || exit\n"
        "  echo '999999999 1 this-boot -' >supervisor\n"
        "  sh -c \"$(sed 's/.*,\"command\":\"\\(.*\\)\"}$/\\1/' spec.json)\" >job.out 2>job.err\n"
        "  printf '{\"kind\":\"ended\",\"end\":{\"how\":{\"code\":%d,\"signal\":0},\"at\":1700000000000,'\\\n"
        "'\"by\":\"supervisor\",\"node\":\"\"}}\\n' $? >>journal.jsonl\n"
        "  echo \"$id 4121\"\n"
        "done");
  }

  fs::path jobs() const { return home() / "my proj/.jobs"; }
  fs::path bin() const { return jobs() / ".bin"; }
  fs::path copy() const { return bin() / "digest1"; }
  fs::path job(const std::string& id) const { return jobs() / id; }
  std::string read(const fs::path& path) const { return read_file(Path(path)).value_or("none"); }
  std::string read(const std::string& id, const std::string& name) const { return read(job(id) / name); }
  JobRecord record(const std::string& id) {
    return read_record(host, JobsFolder::of(host, request.place), id).value();
  }

  // Sets the script for `remote-agent supervise JOBS_FOLDER UMASK ID...`. Its arguments are in the file
  // `words`.
  void set_guards(const std::string& text) {
    put_program(root() / "proc/self/exe",
                "printf '%s\\n' \"$@\" >'" + (folder() / "words").string() + "'\njobs=$2\nshift 3\n" + text);
  }
  bool have_guards_run() const { return fs::exists(folder() / "words"); }

  std::string add(const std::string& script, std::vector<wire::JobFile> files = {},
                  const std::string& backend = "local") {
    const std::string id = make_id(static_cast<int>(request.jobs.size()) + 1);
    request.jobs.push_back({id, backend, {.command = script}, std::move(files)});
    return id;
  }
  std::vector<wire::StartedJob> start() {
    const wire::StartJobsReply reply = start_jobs(host, request);
    EXPECT_FALSE(reply.is_program_missing);
    EXPECT_EQ(reply.jobs.size(), request.jobs.size());
    return reply.jobs;
  }
  // Starts a job; returns the report about it.
  wire::StartedJob start(const std::string& id) {
    for (const wire::StartedJob& one : start()) {
      if (one.id == id) {
        return one;
      }
    }
    ADD_FAILURE() << "nothing is reported of " << id;
    return {};
  }
  void expect_failed(const wire::StartedJob& started, const std::string& reason) {
    EXPECT_EQ(started.outcome, StartOutcome::failed);
    EXPECT_THAT(started.reason, HasSubstr(reason));
    EXPECT_FALSE(started.pid);
  }
  void expect_never_starts(const std::string& id) {
    EXPECT_TRUE(record(id).never_started());
    EXPECT_TRUE(record(id).is_claimed);
  }
  std::string refusal() {
    try {
      start_jobs(host, request);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "none";
  }
  // Leaves only these programs on PATH, and those added to their folder.
  void keep_only(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      fs::create_symlink(fs::path("/bin") / name, programs() / name);
    }
    host.environment["PATH"] = programs();
    host.environment["SHELL"] = "/bin/sh";
  }

  wire::JobsToStart request;
};

TEST_F(StartJobs, StartsThemAll) {
  request.spec.variables = {{"ALL", "1"}};
  request.spec.environment.emplace().code = "~/p";
  request.spec.command = "echo one; exit 3";
  const std::string first = add("");
  const std::string second = add("echo two; echo err >&2; echo $REMOTE_HID_TMOUT");
  request.jobs[1].spec.variables = {{"OWN", "2"}};
  request.jobs[1].spec.activate = "enter";
  host.set_aside["TMOUT"] = "7";
  const auto replies = start();
  ASSERT_EQ(replies.size(), 2U);
  for (const wire::StartedJob& reply : replies) {
    EXPECT_EQ(reply.outcome, StartOutcome::started);
    EXPECT_EQ(reply.pid, 4121);
    EXPECT_EQ(reply.reason, "");
    EXPECT_EQ(reply.machine, read_machine_digest(host));
  }
  EXPECT_EQ(replies[0].id + replies[1].id, first + second);
  EXPECT_EQ(read(folder() / "words"),
            "supervise\n" + jobs().string() + "\n0027\n" + first + "\n" + second + "\n");
  wire::JobSpec spec = request.spec;
  spec.program = "digest1";
  EXPECT_EQ(read_spec(Path(job(first))), spec);
  spec.variables.push_back({"OWN", "2"});
  spec.activate = "enter";
  spec.environment.reset();
  spec.command = "echo two; echo err >&2; echo $REMOTE_HID_TMOUT";
  EXPECT_EQ(read_spec(Path(job(second))), spec);
  EXPECT_EQ(read(first, "job.out"), "one\n");
  EXPECT_EQ(read(second, "job.out"), "two\n7\n") << "the account's variables are for its jobs";
  EXPECT_EQ(read(second, "job.err"), "err\n");
  EXPECT_EQ(record(first).end.value().how, wire::ProcessEnd::exited(3));
  EXPECT_FALSE(fs::exists(job(first) / "backend"));
}

TEST_F(StartJobs, FilesAreForTheOwnerOnly) {
  const mode_t before = ::umask(0);
  const std::string id = add("", {{"init_file", "1 /x\n"}, {"retry", "3\n"}, {"spare", ""}});
  start();
  ::umask(before);
  EXPECT_EQ(fs::status(job(id)).permissions(), fs::perms::owner_all);
  for (const char* name : {spec_name, "job.out", "job.err", "init_file", "retry", "spare"}) {
    EXPECT_EQ(fs::status(job(id) / name).permissions(), only_for_owner) << name;
  }
  EXPECT_EQ(read(id, "init_file"), "1 /x\n");
  EXPECT_EQ(read(id, "retry"), "3\n");
  EXPECT_EQ(read(id, "spare"), "");
  EXPECT_EQ(read(id, "job.err"), "");
}

TEST_F(StartJobs, TheUmaskMayBeUnknown) {
  put(root() / "proc/self/status", "Name:\tremote-agent\n");
  add("");
  start();
  EXPECT_THAT(read(folder() / "words"), HasSubstr("\n0022\n"));
}

TEST_F(StartJobs, StartsOnce) {
  const std::string id = add("echo once");
  start();
  put(job(id) / "pid", "4123 77\n");
  request.jobs[0].spec.command = "echo twice";
  fs::remove(folder() / "words");
  wire::StartedJob again = start(id);
  EXPECT_EQ(again.outcome, StartOutcome::exists);
  EXPECT_EQ(again.pid, 4123);
  EXPECT_EQ(read(id, "job.out"), "once\n");
  EXPECT_EQ(read_spec(Path(job(id))).value().command, "echo once");
  EXPECT_FALSE(have_guards_run());
  fs::remove(job(id) / "pid");
  again = start(id);
  EXPECT_EQ(again.outcome, StartOutcome::exists);
  EXPECT_FALSE(again.pid);
  // Another job is started next to it.
  const std::string other = add("echo other");
  const auto replies = start();
  for (const wire::StartedJob& reply : replies) {
    EXPECT_EQ(reply.outcome, reply.id == id ? StartOutcome::exists : StartOutcome::started);
  }
  EXPECT_EQ(read(other, "job.out"), "other\n");
  EXPECT_THAT(read(folder() / "words"), ::testing::Not(HasSubstr(id)));
}

TEST_F(StartJobs, AClaimedIdNeverStarts) {
  const std::string id = add("echo late");
  ASSERT_TRUE(claim(host, JobsFolder::of(host, request.place), id));
  EXPECT_EQ(start(id).outcome, StartOutcome::exists);
  EXPECT_FALSE(have_guards_run());
  EXPECT_FALSE(fs::exists(job(id) / spec_name));
  expect_never_starts(id);
}

TEST_F(StartJobs, AStarterThatDiedHalfWayIsNotFollowedByAnother) {
  const std::string id = add("echo late");
  fs::create_directories(job(id));
  EXPECT_EQ(start(id).outcome, StartOutcome::exists);
  EXPECT_TRUE(fs::is_empty(job(id)));
}

TEST_F(StartJobs, AFolderThatCannotBeMadeFailsAlone) {
  const std::string bad = add("");
  const std::string good = add("echo good");
  put(job(bad), "a file");
  for (const wire::StartedJob& reply : start()) {
    if (reply.id == bad) {
      expect_failed(reply, bad);
    } else {
      EXPECT_EQ(reply.outcome, StartOutcome::started);
    }
  }
  EXPECT_EQ(read(job(bad)), "a file");
  EXPECT_EQ(read(good, "job.out"), "good\n");
}

TEST_F(StartJobs, WhatCannotBeWrittenLeavesNoFolder) {
  put(jobs() / "file", "precious");
  std::vector<std::string> bad;
  for (const char* name : {spec_name, "job.out", "", ".", ".."}) {
    bad.push_back(add("", {{"retry", "1\n"}, {name, "evil"}}));
  }
  const std::string good = add("echo good");
  for (const wire::StartedJob& reply : start()) {
    if (reply.id == good) {
      EXPECT_EQ(reply.outcome, StartOutcome::started);
    } else {
      expect_failed(reply,
                    "cannot write in " + job(reply.id).string() + ": no permission, or the disk is full");
    }
  }
  for (const std::string& id : bad) {
    EXPECT_FALSE(fs::exists(job(id)));
  }
  EXPECT_EQ(read(jobs() / "file"), "precious");
}

TEST_F(StartJobs, AFolderOfJobsThatCannotBeMadeIsARefusal) {
  fs::remove_all(jobs());
  put(jobs(), "a file");
  add("");
  EXPECT_EQ(refusal(), "cannot write in " + jobs().string() + ": no permission, or the disk is full");
}

TEST_F(StartJobs, NothingIsStartedAtTheProcessLimit) {
  fs::remove_all(home() / "my proj");
  add("");
  put(root() / "proc/self/limits",
      "Max processes             24                   24                   processes \n");
  put(root() / "proc/loadavg", "0.20 0.18 0.12 1/800 11206\n");
  for (int thread = 1; thread <= 24; ++thread) {
    put(root() / "proc/100/task" / std::to_string(thread) / "stat", "");
  }
  EXPECT_EQ(refusal(),
            "it cannot start a process there: the login's limit of 24 processes (ulimit -u) is reached");
  EXPECT_FALSE(fs::exists(home() / "my proj"));
}

TEST_F(StartJobs, WithoutTheProgramNothingIsStarted) {
  const std::string id = add("");
  const auto expect_missing = [&](const char* what) {
    SCOPED_TRACE(what);
    const wire::StartJobsReply reply = start_jobs(host, request);
    EXPECT_TRUE(reply.is_program_missing);
    EXPECT_TRUE(reply.jobs.empty());
    EXPECT_FALSE(fs::exists(job(id)));
    EXPECT_FALSE(have_guards_run());
  };
  put(copy() / "lib/job.sh", "evil\n");
  expect_missing("another text");
  put(copy() / "lib/job.sh", "job\n");
  fs::permissions(copy() / "lib/job.sh", fs::perms::others_write, fs::perm_options::add);
  expect_missing("a file that others may write");
  fs::rename(copy(), bin() / "elsewhere");
  fs::create_symlink("elsewhere", copy());
  expect_missing("a link");
  fs::remove(copy());
  expect_missing("no copy");
  fs::remove_all(home() / "my proj");
  expect_missing("no project");
}

TEST_F(StartJobs, TheAgentIsPutBesideTheProgram) {
  add("");
  fs::remove(copy() / "remote-agent");
  start();
  EXPECT_EQ(read(copy() / "remote-agent"), read(root() / "proc/self/exe"));
  EXPECT_TRUE(fs::exists(copy() / "used"));
}

TEST_F(StartJobs, AnUnknownBackendIsNamed) {
  const std::string id = add("", {}, "queue");
  expect_failed(start(id), "this version of remote does not know the backend queue");
  EXPECT_FALSE(fs::exists(job(id)));
}

TEST_F(StartJobs, AJobWhoseGuardDoesNotBeginNeverStarts) {
  const std::string told = add("");
  const std::string silent = add("");
  set_guards("echo \"noise\"; echo \"$1 ! no room \033[2J\"");
  const auto replies = start();
  expect_failed(replies.at(0), "no room \\x1b[2J");
  expect_failed(replies.at(1), "its supervisor did not start");
  expect_never_starts(told);
  expect_never_starts(silent);
}

TEST_F(StartJobs, AnAgentThatDoesNotStartIsReported) {
  const std::string id = add("");
  fs::permissions(root() / "proc/self/exe", fs::perms::owner_read);
  expect_failed(start(id), "its supervisor did not start");
  expect_never_starts(id);
}

// On a full disk the guard leaves an empty file. A lifeline would wait for such a job forever.
TEST_F(StartJobs, AJobWithAnEmptySupervisorLeavesNoFolder) {
  const std::string empty = add("");
  const std::string begun = add("");
  set_guards(
      ": >\"$jobs/$1/supervisor\"; echo \"$1 ! the disk is full\"\n"
      "echo '999999999 1 this-boot -' >\"$jobs/$2/supervisor\"; echo \"$2 ! why\"");
  const auto replies = start();
  expect_failed(replies.at(0), "the disk is full");
  expect_failed(replies.at(1), "why");
  EXPECT_FALSE(fs::exists(job(empty)));
  EXPECT_EQ(read(begun, "supervisor"), "999999999 1 this-boot -\n") << "it has begun";
}

TEST_F(StartJobs, SparesAndJobsInALineAreQueued) {
  const std::string spare = add("", {{"spare", ""}});
  const std::string waits = add("", {{"queue", ""}});
  set_guards("echo \"$1 spare\"; echo \"$2 4121\"");
  const auto replies = start();
  EXPECT_EQ(replies.at(0).id, spare);
  EXPECT_EQ(replies.at(1).id, waits);
  for (const wire::StartedJob& reply : replies) {
    EXPECT_EQ(reply.outcome, StartOutcome::queued);
    EXPECT_FALSE(reply.pid);
  }
  EXPECT_EQ(replies[0].reason, "spare, until it replaces a server");
  EXPECT_EQ(replies[1].reason, "its turn");
}

// A guard keeps the output open until it has reported.
TEST_F(StartJobs, GuardsMayReportLate) {
  const std::string id = add("");
  set_guards("(sleep 0.3; echo \"$1 4121\") &");
  EXPECT_EQ(start(id).outcome, StartOutcome::started);
}

TEST_F(StartJobs, WithoutALeaseNoneStarts) {
  keep_only({"sh"});
  host.environment["REMOTE_LEASES"] = folder() / "none";
  request.lease.emplace().terms.gpus = 1;
  request.launch.emplace().tokens = {"secret"};
  const std::vector<std::string> ids{add(""), add("")};
  for (const wire::StartedJob& reply : start()) {
    expect_failed(reply, (folder() / "none").string() +
                             " is not a folder that its users can share: it must be root's, with mode 1777");
  }
  EXPECT_FALSE(have_guards_run());
  for (const std::string& id : ids) {
    expect_never_starts(id);
    EXPECT_FALSE(fs::exists(job(id) / "lifeline.json"));
  }
}

// This works without Python.
TEST_F(StartJobs, ALeaseIsDescriptorSevenOfItsGuards) {
  keep_only({"sh", "cat"});
  put_program(programs() / "nvidia-smi", "case $1 in --query-gpu=*) echo 0, GPU-0 ;; esac");
  fs::create_directories(folder() / "leases");
  fs::permissions(folder() / "leases", fs::perms::owner_all);
  host.environment["REMOTE_LEASES"] = folder() / "leases";
  request.lease.emplace().terms.gpus = 1;
  const std::string id = add("");
  set_guards("cat <&7 >\"$jobs/$1/seen\"; echo \"$1 4121\"");
  EXPECT_EQ(start(id).outcome, StartOutcome::started);
  EXPECT_THAT(read(id, "seen"), testing::MatchesRegex("remote-lease1 [0-9]+ 0 0 state:held GPU-0\n"));
  EXPECT_TRUE(read(id, "devices").starts_with("leased gpus=0 cpus=0 memory=0\n"));
}

TEST_F(StartJobs, WithoutALeaseThereIsNoDescriptorSeven) {
  const std::string id = add("");
  set_guards("[ -e /proc/$$/fd/7 ] && echo yes >\"$jobs/$1/seen\"; echo \"$1 4121\"");
  start();
  EXPECT_EQ(read(id, "seen"), "none");
}

// This works without Python.
TEST_F(StartJobs, TheSupervisorOfTheirLaunchStartsBesideThem) {
  keep_only({"sh", "cat"});
  const std::string given = (folder() / "given").string();
  put_program(root() / "proc/self/exe",
              "if [ \"$1\" = supervise-launch ]; then\n"
              "  printf '%s\\n' \"$@\" >'" +
                  given +
                  "'\n"
                  "  exit\n"
                  "fi\n"
                  "shift 3\n"
                  "for id; do echo \"$id 4121\"; done");
  wire::LaunchSpec& spec = request.launch.emplace();
  spec.tokens = {"secret"};
  spec.activate = "true\n";
  spec.server = "a";
  spec.servers = {{"a", 2, ""}};
  const std::vector<std::string> ids{add(""), add("")};
  spec.jobs = {{ids[0], 0}, {ids[1], 1}};
  start();
  wire::LaunchSpec expected = spec;
  expected.program = "digest1";
  expected.activate = "remote_program='" + copy().string() + "'\ntrue\n";
  for (const std::string& id : ids) {
    EXPECT_EQ(read_launch_spec(job(id).string()), expected);
    EXPECT_EQ(fs::status(job(id) / "lifeline.json").permissions(), only_for_owner) << "it is a secret";
  }
  const std::string words =
      "supervise-launch\n" + jobs().string() + "\n" + copy().string() + "\n" + ids[0] + "\n";
  EXPECT_TRUE(test::eventually([&] { return read(folder() / "given") == words; }))
      << read(folder() / "given");
}

TEST_F(StartJobs, JobsOfSlurmAreSubmitted) {
  put_program(programs() / "squeue", "");
  put_program(programs() / "sbatch",
              "cat \"$PWD/batch.sh\" >'" + (folder() / "batch").string() + "'; echo 7");
  const std::string id = add("true", {{"batch.sh", "#!/bin/sh\n"}}, "slurm");
  const std::string local = add("echo here");
  for (const wire::StartedJob& reply : start()) {
    if (reply.id == id) {
      EXPECT_EQ(reply.outcome, StartOutcome::queued);
      EXPECT_EQ(reply.reason, "Slurm job 7");
    } else {
      EXPECT_EQ(reply.outcome, StartOutcome::started);
    }
  }
  EXPECT_EQ(read(folder() / "batch"), "#!/bin/sh\n");
  EXPECT_EQ(read(id, "slurm"), "7\n");
  EXPECT_EQ(read(id, "backend"), "slurm\n");
  EXPECT_EQ(read(local, "job.out"), "here\n");
}

TEST_F(StartJobs, AJobNotesThatItNeedsItsTree) {
  const std::string tree(64, 'd');
  fs::create_directories(jobs() / ".trees" / (tree + ".jobs"));
  put(jobs() / ".trees" / (tree + ".starting"), "");
  const std::string id = add("", {{"tree", tree + "\n"}});
  const std::string odd = add("", {{"tree", "../../x\n"}});
  const std::string gone = add("", {{"tree", std::string(64, 'e') + "\n"}});
  for (const wire::StartedJob& reply : start()) {
    if (reply.id == id) {
      EXPECT_EQ(reply.outcome, StartOutcome::started);
    } else {
      expect_failed(reply, "cannot write in ");
      EXPECT_FALSE(fs::exists(job(reply.id)));
    }
  }
  EXPECT_EQ(read(jobs() / ".trees" / (tree + ".jobs") / id), "node1\n");
  EXPECT_FALSE(fs::exists(jobs() / ".trees" / (tree + ".starting")));
}

TEST_F(StartJobs, ALostClientDoesNotStopItHalfWay) {
  *host.cancelled = true;
  const std::vector<std::string> ids{add("echo one"), add("echo two")};
  for (const wire::StartedJob& reply : start()) {
    EXPECT_EQ(reply.outcome, StartOutcome::started) << reply.reason;
  }
  EXPECT_EQ(read(ids[1], "job.out"), "two\n");
}

TEST_F(StartJobs, NobodyElsesFileIsWrittenThroughALink) {
  put(folder() / "precious", "data");
  const std::string id = add("echo x");
  fs::create_symlink(folder() / "elsewhere", job(id));
  fs::create_directories(folder() / "elsewhere");
  const wire::StartedJob reply = start(id);
  EXPECT_NE(reply.outcome, StartOutcome::started);
  EXPECT_TRUE(fs::is_empty(folder() / "elsewhere"));
}

// The points of a sweep: their supervisor has taken the lease.
TEST_F(StartJobs, JobsInheritTheLeaseOfTheCaller) {
  put(folder() / "lease file", "the lease");
  set_guards("for id; do cat <&7 >\"$jobs/$id/seen\"; echo \"$id 4121\"; done");
  const std::string id = add("", {{"devices", "leased gpus=0\n"}});
  const int lease = ::open((folder() / "lease file").c_str(), O_RDONLY | O_CLOEXEC);
  const wire::StartJobsReply reply = start_jobs(host, request, lease);
  ::close(lease);
  ASSERT_EQ(reply.jobs.size(), 1U);
  EXPECT_EQ(reply.jobs[0].outcome, StartOutcome::started);
  EXPECT_EQ(read(id, "seen"), "the lease");
  EXPECT_EQ(read(id, "devices"), "leased gpus=0\n");
}

}  // namespace
}  // namespace remote::agent
