#include <sys/stat.h>

#include "jobs/protocol.hpp"
#include "jobs/stacks.hpp"
#include "support/instants.hpp"
#include "support/script_test.hpp"

// clean.sh and stacks.sh on the local shell, without ssh, under every sh that servers have.

namespace remote::jobs {
namespace {

using Outcome = CleanReply::Outcome;
using Method = ProcessDump::Method;

class JobTools : public test::ScriptTest {
 protected:
  void until_ended(const JobId& id) {
    test::until([&] { return fs::exists(folder(id) / "result"); }, "the job's end");
  }
  CleanReply clean(const JobId& id) { return run(clean_action(jobs_folder, {id})).jobs.at(0); }
  std::vector<ProcessDump> stacks(const JobId& id) { return run(stacks_action(jobs_folder, {id})).dumps; }
  bool runs(const JobId& id) { return status(id).phase == StatusReply::Phase::running; }
  void end(const JobId& id) { kill(id, SIGKILL, 0); }
};

TEST_P(JobTools, CleanRemovesWhatEndedAndNothingElse) {
  const JobId ended = start("echo out");
  const JobId running = start("sleep 60");
  until_ended(ended);
  std::ofstream(place() / ".jobs/mine.txt") << "mine";
  const JobId absent = JobId::random();
  auto replies = run(clean_action(jobs_folder, {ended, running, absent})).jobs;
  ASSERT_EQ(replies.size(), 3U);
  for (std::size_t i = 0; const JobId& id : {ended, running, absent}) {  // they come as they are known
    std::swap(replies[i++], *std::ranges::find(replies, id, &CleanReply::id));
  }
  EXPECT_EQ(replies[0].outcome, Outcome::removed) << replies[0].reason;
  EXPECT_EQ(replies[1].outcome, Outcome::running);
  EXPECT_NE(replies[1].reason.find("pid"), std::string::npos);
  EXPECT_EQ(replies[2].outcome, Outcome::none);
  EXPECT_FALSE(fs::exists(folder(ended)));
  EXPECT_TRUE(fs::exists(folder(running) / "job.sh"));
  EXPECT_TRUE(fs::exists(place() / ".jobs/mine.txt"));
  EXPECT_TRUE(runs(running));
  end(running);
  EXPECT_EQ(clean(running).outcome, Outcome::removed);
}

TEST_P(JobTools, CleanSeesWhatTheSupervisorDoesNot) {
  // The main process has ended with a result, a child of it lives on.
  const JobId left = start("sleep 60 & exit 0");
  until_ended(left);
  EXPECT_EQ(clean(left).outcome, Outcome::running);
  end(left);
  EXPECT_EQ(clean(left).outcome, Outcome::removed);
  // The supervisor is dead, the job lives.
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
  run(status_action(jobs_folder, {id}, {id}));
  ASSERT_TRUE(fs::exists(folder(id) / "result"));
  EXPECT_EQ(clean(id).outcome, Outcome::running);
  std::ofstream(folder(id) / "result") << "never 0 1000\n";
  EXPECT_EQ(clean(id).outcome, Outcome::removed);
}

TEST_P(JobTools, CleanDoesNotFollowLinks) {
  fs::create_directories(place() / ".jobs");
  const fs::path precious = servers.home("a") / "precious";
  fs::create_directories(precious);
  std::ofstream(precious / "result") << "exit 0 1000\n";
  const JobId id = JobId::random();
  fs::create_symlink(precious, folder(id));
  EXPECT_EQ(clean(id).outcome, Outcome::failed);
  EXPECT_TRUE(fs::exists(precious / "result"));
}

constexpr const char* program =
    "exec /usr/bin/python3 -c 'import threading, time\n"
    "def wait_here():\n  print(\"up\", flush=True)\n  time.sleep(60)\n"
    "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nwait_here()'";

TEST_P(JobTools, StacksOfAPreparedProgram) {
  const JobId id = start(program, {{"RANK", "7"}}, enable_stacks_text(".jobs"));
  until_out(id, "up");
  for (int round = 0; round < 2; ++round) {  // the second answer holds nothing of the first
    const auto dumps = stacks(id);
    ASSERT_EQ(dumps.size(), 1U);
    EXPECT_EQ(dumps[0].id, id);
    EXPECT_EQ(dumps[0].rank, 7);
    ASSERT_EQ(dumps[0].method, Method::faulthandler) << dumps[0].why;
    const auto threads = parse_threads(dumps[0]);
    ASSERT_EQ(threads.size(), 2U);
    ASSERT_FALSE(threads[0].frames.empty());
    EXPECT_EQ(threads[0].frames[0], "wait_here (<string>:4)");
  }
  EXPECT_TRUE(runs(id));
  end(id);
  EXPECT_TRUE(stacks(id).empty());
}

// A torch that is built without libuv refuses a store that asks for it, which is the default since torch 2.4.
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
  const JobId id = start(work, {{"PYTHONPATH", "."}}, enable_stacks_text(".jobs"));
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
  const auto dumps = stacks(python);
  ASSERT_EQ(dumps.size(), 1U);
  EXPECT_EQ(dumps[0].method, Method::kernel);
  EXPECT_NE(dumps[0].why.find("--enable-stacks"), std::string::npos);
  ASSERT_EQ(dumps[0].lines.size(), 2U);  // two threads
  EXPECT_NE(dumps[0].lines[0].find("state S"), std::string::npos);
  EXPECT_NE(stacks(other).at(0).why.find("not a Python process"), std::string::npos);
  EXPECT_TRUE(runs(python));
  EXPECT_TRUE(runs(other));
  end(python);
  end(other);
}

TEST_P(JobTools, EnableStacksChainsAndDisturbsNothing) {
  const JobId id = start(
      "mkdir -p other && echo 'print(\"other sitecustomize\", __name__)' >other/sitecustomize.py\n"
      "PYTHONPATH=$PYTHONPATH:other /usr/bin/python3 -c 'import sitecustomize; "
      "print(sitecustomize.__file__)'",
      {{"PYTHONPATH", "first"}}, enable_stacks_text(".jobs"));
  until_ended(id);
  const std::string out = file(id, "job.out");
  EXPECT_NE(out.find("other sitecustomize sitecustomize\n"), std::string::npos) << out;
  EXPECT_NE(out.find("other/sitecustomize.py\n"), std::string::npos) << out;
  EXPECT_EQ(read_file(folder(id) / "job.err"), "");
  const JobId plain =
      start("echo \"${PYTHONPATH##*:}\"; exit 3", {{"PYTHONPATH", "first"}}, enable_stacks_text(".jobs"));
  until_ended(plain);
  EXPECT_EQ(file(plain, "job.out"), "first\n");
}

// mpi_rank.sh ends a rank that left such a note and hangs in MPI_Finalize.
TEST_P(JobTools, ARankOfMpiThatRaisesSystemExitIsNoted) {
  const fs::path note = place() / "raised.rank.0";
  // What is noted of how the rank has left: " 7\n", or nothing.
  const auto noted = [&](const std::string& text) {
    fs::remove(note);
    const JobId id =
        start("/usr/bin/python3 -c 'import sys\n" + text + "'",
              {{"RANK", "0"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"REMOTE_JOB_FOLDER", place().string()}},
              enable_stacks_text(".jobs"));
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

TEST_P(JobTools, LooksAtPathsBeforeTheyAreBrought) {
  const fs::path home = servers.home("a");
  std::ofstream(home / "a file");
  fs::create_symlink("a file", home / "link");
  fs::create_symlink("nothing", home / "dangling");
  exec(servers::Script().input());  // it has the program now
  EXPECT_EQ(exec(servers::Script()
                     .add("actions/pull_look.sh")
                     .call_paths("pull_look", {"~/a file", "~", "link", "~/dangling", "~/nothing"})
                     .input()),
            "\n@remote1 pull there\n@remote1 pull there\n@remote1 pull link\n@remote1 pull missing\n"
            "@remote1 pull missing\n@remote1 end\n");
}

TEST_P(JobTools, FindsWhatFitsAPattern) {
  const fs::path folder = servers.home("a") / "my [project]/a b";
  fs::create_directories(folder);
  for (const char* name : {"1.pt", "2 *.pt", ".3.pt", "line\nbreak.pt"}) {
    std::ofstream(folder / name);
  }
  const auto match = [&](const std::string& pattern) {
    return exec(servers::Script()
                    .add("actions/pull_match.sh")
                    .append("set -f; IFS=x; folder=~/'my [project]'; pull_match " + pattern)
                    .input());
  };
  exec(servers::Script().input());  // it has the program now
  EXPECT_EQ(match("'a*/*.pt'"),
            "\n@remote1 pull name |a b/1.pt\n@remote1 pull name |a b/2 *.pt\n@remote1 end\n");
  EXPECT_EQ(match("'*/*.zip'"), "\n@remote1 end\n");
  EXPECT_EQ(match("'*/nothing/*'"), "\n@remote1 end\n");
}

TEST_P(JobTools, TellsTheLastLinesOfFiles) {
  exec(servers::Script().input());  // it has the program now
  const auto last = [&](const std::string& text) {
    std::ofstream(servers.home("a") / "job.err") << text;
    return exec(
        servers::Script().add("actions/last_lines.sh").append("folder=~; last_lines 2 job.err").input());
  };
  EXPECT_EQ(last("1\n@remote1 end\n3"), "\n@remote1 line |@remote1 end\n@remote1 line |3\n@remote1 end\n");
  EXPECT_EQ(last("\xff" + std::string(99999, 'x') + "\n\n"),
            "\n@remote1 line |" + std::string(2000, 'x') + "\n@remote1 line |\n@remote1 end\n");
  EXPECT_EQ(last(""), "\n@remote1 end\n");
  // Of the last attempt only
  const std::string anew = "remote: the ranks begin anew (restart 1) at 2026-11-24T11:58:19Z after rank 1\n";
  EXPECT_EQ(last("1\n" + anew + "2\n"), "\n@remote1 line |2\n@remote1 end\n");
  EXPECT_EQ(last("1\n" + anew), "\n@remote1 end\n");
  EXPECT_EQ(last(anew + anew), "\n@remote1 end\n");
  EXPECT_EQ(last(anew + "\n2"), "\n@remote1 line |\n@remote1 line |2\n@remote1 end\n");
  EXPECT_EQ(last("1\nremote: the workers begin anew (restart 1) at 2026-11-24T11:58:19.000Z\n"),
            "\n@remote1 end\n");
  EXPECT_EQ(last("1\nremote: the point begins again (retry 1 of 1) after exit 1\n"), "\n@remote1 end\n");
}

TEST_P(JobTools, TellsHowTorchrunsWorkersEnded) {
  const JobId id = start("exit 1");
  until_ended(id);
  const auto workers = [&] { return run(workers_action(jobs_folder, id, 2)).workers; };
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
  EXPECT_EQ(told.at(3).raised_at, exact_instant(1700000000123));
  EXPECT_EQ(told.at(3).last_lines, (std::vector<std::string>{"  File", "ValueError: a bad batch"}));
  EXPECT_FALSE(told.at(3).after_peer);
  EXPECT_EQ(told.at(3).end->status, ExitStatus::exited(1));
  EXPECT_EQ(told.at(3).end->node, "n2");
  EXPECT_EQ(told.at(1).end->node, "");  // no name of a node
  EXPECT_TRUE(told.at(0).after_peer);
  EXPECT_EQ(told.at(0).last_lines.back(), "@remote1 end");
  EXPECT_EQ(told.at(2).end->status, ExitStatus::signalled(9));
  EXPECT_EQ(told.at(2).end->at, exact_instant(1700000001042));
  EXPECT_EQ(told.at(2).last_lines, (std::vector<std::string>{"step 2", "Segmentation fault"}));
  EXPECT_FALSE(told.at(2).after_peer);
  EXPECT_TRUE(told.at(1).after_peer);
  // The job writes these files, so that anything may stand there.
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
