#include <sys/stat.h>

#include "jobs/stacks.hpp"
#include "support/job_journal.hpp"
#include "support/script_test.hpp"

// Removing jobs, their stacks and last lines, without ssh, with every sh that servers have.

namespace remote::jobs {
namespace {

using Outcome = CleanOutcome;

class JobTools : public test::ScriptTest {
 protected:
  void until_ended(const JobId& id) {
    test::until([&] { return test::has_ended(folder(id)); }, "the job's end");
  }
  std::vector<wire::ProcessStack> stacks(const JobId& id) { return ask_stacks(agent(), jobs_folder, {id}); }
  bool runs(const JobId& id) { return status(id).phase == wire::JobPhase::running; }
  void end(const JobId& id) { kill(id, SIGKILL, 0); }
};

TEST_P(JobTools, CleanRemovesWhatEndedAndNothingElse) {
  const JobId ended = start("echo out");
  const JobId running = start("sleep 60");
  until_ended(ended);
  std::ofstream(place() / ".jobs/mine.txt") << "mine";
  const JobId absent = JobId::random();
  CleanAnswer replies = ask_clean(agent(), jobs_folder, {ended, running, absent});
  ASSERT_EQ(replies.size(), 3U);
  EXPECT_EQ(replies[ended].outcome, Outcome::removed) << replies[ended].reason;
  EXPECT_EQ(replies[running].outcome, Outcome::running);
  EXPECT_NE(replies[running].reason.find("pid"), std::string::npos);
  EXPECT_EQ(replies[absent].outcome, Outcome::none);
  EXPECT_FALSE(fs::exists(folder(ended)));
  EXPECT_TRUE(fs::exists(folder(running) / "spec.json"));
  EXPECT_TRUE(fs::exists(place() / ".jobs/mine.txt"));
  EXPECT_TRUE(runs(running));
  end(running);
  EXPECT_EQ(clean(running).outcome, Outcome::removed);
}

TEST_P(JobTools, CleanSeesWhatTheSupervisorDoesNot) {
  // The main process has ended with a result, but a child is still running.
  const JobId left = start("sleep 60 & exit 0");
  until_ended(left);
  EXPECT_EQ(clean(left).outcome, Outcome::running);
  end(left);
  EXPECT_EQ(clean(left).outcome, Outcome::removed);
  // The supervisor is dead, but the job is running.
  const JobId orphan = start("sleep 60");
  ::kill(supervisor_of(orphan), SIGKILL);
  EXPECT_EQ(clean(orphan).outcome, Outcome::running);
  EXPECT_TRUE(runs(orphan));
  end(orphan);
  EXPECT_EQ(clean(orphan).outcome, Outcome::removed);
}

TEST_P(JobTools, CleanKeepsAFreshClaim) {
  fs::create_directories(place() / ".jobs");
  const JobId id = JobId::random();
  status(id, true);
  ASSERT_TRUE(test::has_ended(folder(id)));
  EXPECT_EQ(clean(id).outcome, Outcome::running);
  std::ofstream(folder(id) / "journal.jsonl") << "{\"kind\":\"never_starts\",\"at\":1000}\n";
  EXPECT_EQ(clean(id).outcome, Outcome::removed);
}

TEST_P(JobTools, CleanDoesNotFollowLinks) {
  fs::create_directories(place() / ".jobs");
  const fs::path precious = servers.home("a") / "precious";
  fs::create_directories(precious);
  std::ofstream(precious / "journal.jsonl") << test::format_end(0);
  const JobId id = JobId::random();
  fs::create_symlink(precious, folder(id));
  EXPECT_EQ(clean(id).outcome, Outcome::failed);
  EXPECT_TRUE(fs::exists(precious / "journal.jsonl"));
}

// Prints and sleeps on one line, because it may be sampled before it sleeps.
constexpr const char* program =
    "exec /usr/bin/python3 -c 'import threading, time\n"
    "def wait_here():\n  print(\"up\", flush=True); time.sleep(60)\n"
    "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nwait_here()'";

TEST_P(JobTools, StacksOfAPreparedProgram) {
  const JobId id = start_with_stacks(program, {{"RANK", "7"}});
  until_out(id, "up");
  for (int round = 0; round < 2; ++round) {  // the second answer has nothing from the first
    const auto found = stacks(id);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].id, id.text());
    EXPECT_EQ(found[0].rank, 7);
    EXPECT_EQ(found[0].why, "");
    const std::vector<ThreadStack>& threads = found[0].threads;
    ASSERT_EQ(threads.size(), 2U);
    ASSERT_FALSE(threads[0].frames.empty());
    EXPECT_EQ(threads[0].frames[0], "wait_here (<string>:3)");
  }
  EXPECT_TRUE(runs(id));
  end(id);
  EXPECT_TRUE(stacks(id).empty());
}

// To one request, another request's sampling looks like work of the rank.
TEST_P(JobTools, WhoLooksAtAJobWaitsForAnotherOneThatDoes) {
  const JobId id = start_with_stacks(program, {});
  until_out(id, "up");
  const JobId other = start("exec sleep 3");
  until([&] { return !file(other, "pid").empty(); }, "the other process runs");
  write_file_atomic(folder(id) / "looker", file(other, "pid"));
  EXPECT_EQ(stacks(id).at(0).why, "");
  EXPECT_FALSE(runs(other));
  EXPECT_FALSE(fs::exists(folder(id) / "looker"));
  write_file_atomic(folder(id) / "looker", "1 1\n");  // left by a request that was killed
  EXPECT_EQ(stacks(id).at(0).why, "");
  EXPECT_FALSE(fs::exists(folder(id) / "looker"));
  end(id);
}

// A torch built without libuv rejects a store that requests it, which is the default since torch 2.4.
TEST_P(JobTools, ATorchWithoutLibuvDoesWithout) {
  const fs::path torch = place() / "torch";
  fs::create_directories(torch / "distributed");
  std::ofstream(torch / "_C.py")
      << "import sys, types\n"
         "def _c10d_init():\n"
         "    sys.modules['torch._C._distributed_c10d'] = module\n"
         "    return True\n"
         "class TCPStore:\n"
         "    interrupted = False\n"
         "    def __init__(self, host, port, use_libuv=True):\n"
         "        if use_libuv:\n"
         "            raise RuntimeError('PyTorch was build without libuv support')\n"
         "        if port == 0:\n"
         "            raise RuntimeError('another reason')\n"
         "        if not TCPStore.interrupted:\n"
         "            TCPStore.interrupted = True\n"
         "            raise RuntimeError('Interrupted system call')\n"
         "        self.at = (host, port)\n"
         "module = types.ModuleType('torch._C._distributed_c10d')\n"
         "module.TCPStore = TCPStore\n";
  std::ofstream(torch / "__init__.py") << "import torch._C\n";
  std::ofstream(torch / "distributed/__init__.py") << "import torch\n"
                                                      "torch._C._c10d_init()\n"
                                                      "from torch._C._distributed_c10d import TCPStore\n";
  const std::string work =
      "exec /usr/bin/python3 -c 'from torch.distributed import TCPStore\n"
      "print(TCPStore(\"here\", port=7).at)\ntry:\n  TCPStore(\"here\", 0)\nexcept RuntimeError as e:\n  "
      "print(e)'";
  const JobId id = start_with_stacks(work, {{"PYTHONPATH", "."}});
  until_ended(id);
  EXPECT_EQ(file(id, "job.out"), "('here', 7)\nanother reason\n") << file(id, "job.err");
  const JobId plain = start(work, {{"PYTHONPATH", "."}});
  until_ended(plain);
  EXPECT_NE(file(plain, "job.err").find("libuv"), std::string::npos);
}

TEST_P(JobTools, StacksNeverSignalTheUnprepared) {
  const JobId python = start(program);
  const JobId other = start("exec sleep 60");
  until_out(python, "up");
  const auto found = stacks(python);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].threads.empty());
  EXPECT_NE(found[0].why.find("--enable-stacks"), std::string::npos);
  ASSERT_EQ(found[0].kernel.size(), 2U);  // two threads
  EXPECT_NE(found[0].kernel[0].find("state S"), std::string::npos);
  EXPECT_NE(stacks(other).at(0).why.find("not a Python process"), std::string::npos);
  EXPECT_TRUE(runs(python));
  EXPECT_TRUE(runs(other));
  end(python);
  end(other);
}

TEST_P(JobTools, EnableStacksChainsAndDisturbsNothing) {
  const JobId id = start_with_stacks(
      "mkdir -p other && echo 'print(\"other sitecustomize\", __name__)' >other/sitecustomize.py\n"
      "PYTHONPATH=$PYTHONPATH:other /usr/bin/python3 -c 'import sitecustomize; "
      "print(sitecustomize.__file__)'",
      {{"PYTHONPATH", "first"}});
  until_ended(id);
  const std::string out = file(id, "job.out");
  EXPECT_NE(out.find("other sitecustomize sitecustomize\n"), std::string::npos) << out;
  EXPECT_NE(out.find("other/sitecustomize.py\n"), std::string::npos) << out;
  EXPECT_EQ(read_file(folder(id) / "job.err"), "");
  const JobId plain = start_with_stacks("echo \"${PYTHONPATH##*:}\"; exit 3", {{"PYTHONPATH", "first"}});
  until_ended(plain);
  EXPECT_EQ(file(plain, "job.out"), "first\n");
}

// The note of a rank that then hangs in MPI_Finalize (src/agent/mpi/rank.cpp).
TEST_P(JobTools, ARankOfMpiThatRaisesSystemExitIsNoted) {
  const fs::path note = place() / "raised.rank.0";
  // The noted exit code of the rank: " 7
  // ", or nothing.
  const auto noted = [&](const std::string& text) {
    fs::remove(note);
    const JobId id = start_with_stacks(
        "/usr/bin/python3 -c 'import sys\n" + text + "'",
        {{"RANK", "0"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"REMOTE_JOB_FOLDER", place().string()}});
    until_ended(id);
    return fs::exists(note) ? read_file(note).substr(read_file(note).find(' ')) : "";
  };
  EXPECT_EQ(noted("sys.exit(6)"), " 6\n");
  EXPECT_EQ(noted("raise SystemExit(7)"), " 7\n");
  EXPECT_EQ(noted("raise SystemExit(\"no data\")"), " 1\n");
  EXPECT_EQ(noted("sys.exit(\"no data\")"), " 1\n");
  EXPECT_EQ(noted("class Stop(SystemExit): pass\ndef main(): raise Stop(300)\nmain()"), " 44\n");
  EXPECT_EQ(noted("try: sys.exit(5)\nexcept SystemExit as error: error.code = 9; raise"), " 9\n");
  EXPECT_EQ(noted("raise SystemExit(0)"), "");
  EXPECT_EQ(noted("raise SystemExit"), "");
  EXPECT_EQ(noted("sys.exit()"), "");
  EXPECT_EQ(noted("import threading\nt = threading.Thread(target=lambda: sys.exit(3)); t.start(); t.join()"),
            "");
  EXPECT_EQ(noted("try: raise SystemExit(5)\nexcept SystemExit as error: assert error.code == 5"), "");
}

TEST_P(JobTools, TellsTheLastLinesOfFiles) {
  using Lines = std::vector<std::string>;
  const JobId id = start("exit 0");
  until_ended(id);
  const auto last = [&](const std::string& text, const std::string& name = "job.err") {
    fs::create_directories(folder(id) / "ranks");
    std::ofstream(folder(id) / name) << text;
    return ask_lines(agent(), {.folder = jobs_folder, .ids = {id}, .files = {name}, .count = 2});
  };
  EXPECT_EQ(last("1\n@remote1 end\n3"), (Lines{"@remote1 end", "3"}));
  EXPECT_EQ(last("\xff" + std::string(99999, 'x') + "\n\n"), (Lines{std::string(2000, 'x'), ""}));
  EXPECT_EQ(last("10%\r20%\n"), Lines{"20%"}) << "a progress bar's last state";
  EXPECT_EQ(last("", "job.out"), Lines());
  EXPECT_EQ(last("a rank\n", "ranks/0.err"), Lines{"a rank"});
  EXPECT_EQ(last(""), Lines());
  // Only from the last attempt
  const std::string anew = "remote: the ranks begin anew (restart 1) at 2026-11-24T11:58:19Z after rank 1\n";
  EXPECT_EQ(last("1\n" + anew + "2\n"), Lines{"2"});
  EXPECT_EQ(last("1\n" + anew), Lines());
  EXPECT_EQ(last(anew + anew), Lines());
  EXPECT_EQ(last(anew + "\n2"), (Lines{"", "2"}));
  EXPECT_EQ(last("1\nremote: the workers begin anew (restart 1) at 2026-11-24T11:58:19.000Z\n"), Lines());
  EXPECT_EQ(last("1\nremote: the point begins again (retry 1 of 1) after exit 1\n"), Lines());
}

TEST_P(JobTools, TellsHowTorchrunsWorkersEnded) {
  const JobId id = start("exit 1");
  until_ended(id);
  const auto workers = [&] { return ask_workers(agent(), jobs_folder, id, 2).workers; };
  EXPECT_TRUE(workers().empty());
  const fs::path failures = folder(id) / "failures";
  fs::create_directory(failures);
  std::ofstream(failures / "rank.3") << "1700000000123\nTraceback\n  File\nValueError: a bad batch\n";
  std::ofstream(failures / "rank.0") << "1700000000456\nConnection closed by peer\n@remote1 end";
  std::ofstream(failures / "agent")
      << "2 signal 9 1700000001042\n3 exit 1 1700000002000 n2\n1 exit 3 1700000002001 slurm@$(id)\n"
      << "4 signal 6 1700000002002 slurm@n-4.x\n5 exit 1 1700000002003 torchrun\n";
  fs::create_directory(folder(id) / "ranks");
  std::ofstream(folder(id) / "ranks" / "2.err") << "step 1\nstep 2\nSegmentation fault\n";
  std::ofstream(folder(id) / "ranks" / "1.err") << "Connection reset by peer\n";
  const auto told = workers();
  ASSERT_EQ(told.size(), 6U);
  EXPECT_EQ(told.at(4).end->node, "n-4.x");
  EXPECT_EQ(told.at(5).end->node, "");
  EXPECT_EQ(told.at(5).end->by, "torchrun");
  EXPECT_EQ(told.at(3).raised_at, std::chrono::milliseconds(1700000000123));
  EXPECT_EQ(told.at(3).last_lines, (std::vector<std::string>{"  File", "ValueError: a bad batch"}));
  EXPECT_FALSE(told.at(3).after_peer);
  EXPECT_EQ(told.at(3).end->how, wire::ProcessEnd::exited(1));
  EXPECT_EQ(told.at(3).end->node, "n2");
  EXPECT_EQ(told.at(1).end->node, "");  // not a node name
  EXPECT_TRUE(told.at(0).after_peer);
  EXPECT_EQ(told.at(0).last_lines.back(), "@remote1 end");
  EXPECT_EQ(told.at(2).end->how, wire::ProcessEnd::signalled(9));
  EXPECT_EQ(told.at(2).end->at, std::chrono::milliseconds(1700000001042));
  EXPECT_EQ(told.at(2).last_lines, (std::vector<std::string>{"step 2", "Segmentation fault"}));
  EXPECT_FALSE(told.at(2).after_peer);
  EXPECT_TRUE(told.at(1).after_peer);
  // The job writes these files, so they may contain anything.
  fs::create_directory(failures / "rank.7");
  ASSERT_EQ(::mkfifo((failures / "rank.6").c_str(), 0600), 0);
  std::ofstream(failures / "rank.1;echo") << "1\n";
  std::ofstream(failures / "rank.5") << "$(touch x)\n";
  std::ofstream(failures / "agent") << "x exit 1 2\n3 exit 1 99999999999999999999\n3 exit 1 1700000002\n3 "
                                       "exit 1 1\n../../x exit 1 2\n4 exit";
  EXPECT_EQ(workers().size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Shells, JobTools, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
