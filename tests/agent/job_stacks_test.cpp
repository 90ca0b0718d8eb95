#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "agent/kept_replies.hpp"
#include "agent/local_jobs.hpp"
#include "agent/slurm_host.hpp"
#include "agent/stacks/looker.hpp"
#include "agent/stacks/stacks.hpp"
#include "agent/stacks/threads.hpp"
#include "agent/started.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Frames = std::vector<std::string>;

TEST(StackThreads, OfPySpy) {
  const auto threads = parse_py_spy(
      "Process 41: python train.py\nPython v3.11.2 (/usr/bin/python3.11)\n\n"
      "Thread 52 (idle): \"Thread-1\"\n    wait (threading.py:324)\n"
      "Thread 41 (active): \"MainThread\"\n    forward (model.py:12)\n    <module> (train.py:30)\n",
      41);
  ASSERT_EQ(threads.size(), 2U);
  EXPECT_EQ(threads[0].frames, (Frames{"forward (model.py:12)", "<module> (train.py:30)"}));
  EXPECT_EQ(threads[1].frames, Frames{"wait (threading.py:324)"});
  EXPECT_EQ(parse_py_spy("Thread 52 (idle)\n    f (a:1)\nThread 41 (idle)\n    g (a:2)\n", 41).at(0).frames,
            Frames{"g (a:2)"});
  EXPECT_TRUE(parse_py_spy("", 41).empty());
  EXPECT_TRUE(parse_py_spy("    f (a:1)\nError: no\n", 41).empty());
}

TEST(StackThreads, OfFaulthandler) {
  const auto threads = parse_faulthandler(
      "Thread 0x00007f01 (most recent call first):\n  File \"/a b/x.py\", line 12 in run\n  ...\n\n"
      "Current thread 0x00007f02 (most recent call first):\n"
      "  File \"/a/\", line 1 in.py\", line 3 in forward\n  <no Python frame>\n");
  ASSERT_EQ(threads.size(), 2U);
  EXPECT_EQ(threads[0].name, "main thread");
  EXPECT_EQ(threads[0].frames, (Frames{"forward (/a/\", line 1 in.py:3)", "<no Python frame>"}));
  EXPECT_EQ(threads[1].name, "Thread 0x00007f01");
  EXPECT_EQ(threads[1].frames, (Frames{"run (/a b/x.py:12)", "..."}));
  EXPECT_TRUE(parse_faulthandler("  File \"x\", line 1 in f\n").empty());
}

TEST(StackThreads, OfHostileProgramsFitIntoAMessage) {
  std::string dump = "Thread 41 (idle): \"MainThread\"\n    \x1b]0;x\x07\xff (a.py:1)\n";
  EXPECT_EQ(parse_py_spy(dump, 41).at(0).frames, Frames{R"(\x1b]0;x\x07\xff (a.py:1))"});
  for (int i = 0; i < 50000; ++i) {
    dump += "    \xff\xff\xff\xff\n";
  }
  for (int i = 0; i < 20000; ++i) {
    dump += "Thread\x20x\n";
  }
  wire::StacksReply reply;
  reply.processes.push_back({.id = std::string(32, 'a'), .threads = parse_py_spy(dump, 41)});
  test::KeptReplies<wire::StacksReply> stream;
  stream.send(reply);  // checks its size
  EXPECT_EQ(reply.processes[0].threads.front().frames.size(), wire::max_stack_line);
}

class JobStacks : public testing::Test, protected test::LocalJobs {
 protected:
  std::vector<wire::ProcessStack> read(const std::string& id, const std::string& activate = "") {
    test::KeptReplies<wire::StacksReply> stream;
    answer_stacks(host(), {.place = place(), .ids = {id}, .activate = activate}, stream);
    std::vector<wire::ProcessStack> stacks;
    for (wire::StacksReply& reply : stream.parts()) {
      std::ranges::move(reply.processes, std::back_inserter(stacks));
    }
    return stacks;
  }
  // Starts Python with this program; returns when the program has created the file `up` in the job's folder
  // and sleeps.
  test::Started run_python(const std::string& id, const std::string& program, Frames environment = {}) {
    environment.push_back("REMOTE_JOB_ID=" + id);
    const fs::path up = folder(id) / "up";
    const std::string text =
        "import time\n" + program + "\nopen('" + up.string() + "', 'w')\ntime.sleep(1000)\n";
    test::Started child([&] {
      std::string python = "/usr/bin/python3";
      std::string option = "-c";
      std::string code = text;
      std::vector<char*> argv{python.data(), option.data(), code.data(), nullptr};
      std::vector<char*> variables;
      for (std::string& variable : environment) {
        variables.push_back(variable.data());
      }
      variables.push_back(nullptr);
      ::execve(python.c_str(), argv.data(), variables.data());
      ::_exit(98);
    });
    EXPECT_TRUE(test::eventually([&] { return fs::exists(up); }));
    EXPECT_TRUE(test::eventually([&] {
      const auto process = read_process(host(), child.pid());
      return process && process->state == 'S';
    })) << "time.sleep";
    return child;
  }
  // Python code that registers the signal, as a start with --enable-stacks does.
  std::string register_signal(const std::string& id) {
    return "import faulthandler\nstacks = open('" + (folder(id) / "stacks").string() +
           "', 'a')\nfaulthandler.register(50, stacks)";
  }
};

TEST_F(JobStacks, OfAPreparedProgram) {
  const std::string id = make({{"spec.json", ""}});
  const auto rank = run_python(id, register_signal(id), {"RANK=7"});
  for (int round = 0; round < 2; ++round) {  // the second answer has nothing from the first
    const auto stacks = read(id);
    ASSERT_THAT(stacks, SizeIs(1));
    EXPECT_EQ(stacks[0].id, id);
    EXPECT_EQ(stacks[0].pid, rank.pid());
    EXPECT_EQ(stacks[0].rank, 7);
    EXPECT_EQ(stacks[0].why, "");
    EXPECT_THAT(stacks[0].kernel, IsEmpty());
    ASSERT_THAT(stacks[0].threads, SizeIs(1));
    EXPECT_EQ(stacks[0].threads[0].frames, Frames{"<module> (<string>:6)"});
  }
  EXPECT_FALSE(fs::exists(folder(id) / "looker"));
  ::kill(rank.pid(), SIGSTOP);
  ASSERT_TRUE(test::eventually([&] { return read_process(host(), rank.pid())->state == 'T'; }));
  EXPECT_EQ(read(id).at(0).why, "there is no py-spy, and it is stopped and takes no signal");
  ::kill(rank.pid(), SIGCONT);
  fs::rename(folder(id) / "stacks", folder(id) / "other");
  ASSERT_EQ(::mkfifo((folder(id) / "stacks").c_str(), 0600), 0);
  EXPECT_THAT(read(id).at(0).why, HasSubstr("not started with --enable-stacks")) << "nor waits for a FIFO";
  put(id, "journal.jsonl", test::format_end("exit 0 1700000000123 supervisor\n"));
  EXPECT_THAT(read(id), IsEmpty());
}

TEST_F(JobStacks, TheUnpreparedAreNotSignaled) {
  const std::string id = make({{"spec.json", ""}});
  put(id, "stacks", "");
  const auto rank = run_python(id, "import os, signal\nsignal.signal(50, lambda *_: os._exit(3))");
  const auto stacks = read(id);
  EXPECT_TRUE(rank.lives());
  ASSERT_THAT(stacks, SizeIs(1));
  EXPECT_EQ(stacks[0].rank, std::nullopt);
  EXPECT_EQ(stacks[0].why, "there is no py-spy, and it was not started with --enable-stacks");
  ASSERT_THAT(stacks[0].kernel, SizeIs(1));
  EXPECT_THAT(stacks[0].kernel[0], testing::MatchesRegex("thread [0-9]+ \\(python3.*\\): state S.*"));
}

TEST_F(JobStacks, ByPySpy) {
  const std::string id = make({{"spec.json", ""}});
  const auto rank = run_python(id, "", {"RANK=0", "PATH=" + (path() / "traitor").string()});
  const std::string program = "echo \"Thread $3 (idle): \\\"MainThread\\\"\"; echo '    f (a.py:3)'";
  host();
  test::FakeHost::put_program(path() / "traitor/py-spy", "touch " + (path() / "was-run").string());
  test::FakeHost::put_program(path() / "env/py-spy", "[ \"$1 $2\" = 'dump --pid' ] || exit 1\n" + program);
  EXPECT_THAT(read(id).at(0).why, HasSubstr("no py-spy"));
  EXPECT_FALSE(fs::exists(path() / "was-run")) << "the PATH of a process";
  const std::string activate = "echo noise; PATH='" + (path() / "env").string() + "':$PATH";
  EXPECT_EQ(read(id, activate).at(0).threads.at(0).frames, Frames{"f (a.py:3)"});
  test::FakeHost::put_program(programs() / "py-spy", "echo one; printf 'two\\033' >&2; exit 1");
  EXPECT_EQ(read(id, activate).at(0).why,
            "py-spy failed: one two\\x1b, and it was not started with --enable-stacks");
}

TEST_F(JobStacks, OfRanksButNotOfDataLoaders) {
  const std::string id = make({{"spec.json", ""}});
  const auto rank = run_python(id, "import os\npid = os.fork()\nif pid == 0: time.sleep(1000)\n", {"RANK=3"});
  const auto other = run_python(make({}), "");
  const auto stacks = read(id);
  EXPECT_THAT(stacks, SizeIs(1));
  EXPECT_EQ(stacks.at(0).pid, rank.pid());
  const std::string odd_id = make({{"spec.json", ""}});
  for (const char* odd : {"RANK=2000000000", "RANK=99999999999", "RANK=-1", "RANK=1x"}) {
    fs::remove(folder(odd_id) / "up");
    const auto other_rank = run_python(odd_id, "", {odd});
    EXPECT_EQ(read(odd_id).at(0).rank, std::nullopt) << odd;
  }
  for (const auto& [pid, job] : find_job_processes(host())) {
    if (job == id && pid != rank.pid()) {
      ::kill(pid, SIGKILL);
    }
  }
}

TEST_F(JobStacks, AProgramThatIsNotPythonHasNone) {
  const std::string id = make({{"spec.json", ""}});
  const auto main = test::run_sleep({"REMOTE_JOB_ID=" + id});
  EXPECT_THAT(read(id), IsEmpty()) << "its main process is unknown";
  const ProcessId process = main.id(host());
  put(id, "pid", std::to_string(process.pid) + " " + std::to_string(process.start) + "\n");
  const auto stacks = read(id);
  ASSERT_THAT(stacks, SizeIs(1));
  EXPECT_EQ(stacks[0].why, "it is not a Python process");
  EXPECT_THAT(stacks[0].kernel, ElementsAre(HasSubstr("(sleep): state S")));
  put(id, "pid", std::to_string(process.pid) + " 1\n");
  EXPECT_THAT(read(id), IsEmpty());
  EXPECT_THAT(read(new_id()), IsEmpty());
}

TEST_F(JobStacks, WaitForAnotherProcessThatReadsThem) {
  const std::string id = make({{"spec.json", ""}});
  const fs::path file = folder(id) / "looker";
  put(id, "looker", "1 1\n");  // was killed
  { const Looker alone(host(), jobs(), {id, new_id()}); }
  EXPECT_FALSE(fs::exists(file));
  auto other = std::make_unique<test::Started>([] { ::sleep(1); });  // exits on its own
  const ProcessId process = other->id(host());
  put(id, "looker", std::to_string(process.pid) + " " + std::to_string(process.start) + "\n");
  {
    const Looker alone(host(), jobs(), {id});
    EXPECT_FALSE(is_alive(host(), process));
    EXPECT_TRUE(fs::exists(file));
  }
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(JobStacks, AreReadByTheOneThatAsksWhileALongLookWaits) {
  const std::string id = make({{"spec.json", ""}});
  Looker alone(host(), jobs(), {id}, false);
  EXPECT_FALSE(alone.is_asked());
  test::Started other([&] {
    const Looker next(host(), jobs(), {id});
    test::eventually([&] { return !fs::exists(folder(id) / "looker.next"); });
    put(id, "looked", "1");
  });
  EXPECT_TRUE(test::eventually([&] { return alone.is_asked(); }));
  EXPECT_FALSE(fs::exists(folder(id) / "looked"));
  alone.let_other_look();
  EXPECT_TRUE(fs::exists(folder(id) / "looked"));
  EXPECT_TRUE(fs::exists(folder(id) / "looker")) << "it has its turn again";
  EXPECT_FALSE(alone.is_asked());
  EXPECT_EQ(other.wait(), 0);
  put(id, "looker.next", "1 1\n");  // was killed
  EXPECT_FALSE(alone.is_asked());
}

class NodeStacksTest : public test::SlurmHost {
 protected:
  NodeStacksTest() {
    add_program("scontrol", "echo n1; echo n2");
    fs::create_directories(folder.jobs.string() + "/.bin/" + digest);
    for (const char* name : {"/.bin", "/.bin/0123"}) {
      fs::permissions(folder.jobs.string() + name, fs::perms::owner_all);
    }
  }
  std::vector<std::string> read(const std::string& id) {
    test::KeptReplies<wire::StacksReply> stream;
    answer_stacks(fake.host,
                  {.place = {.project = folder.project, .jobs_folder = ".jobs"},
                   .ids = {id},
                   .activate = "activation",
                   .digest = digest},
                  stream);
    std::vector<std::string> found;
    for (const wire::StacksReply& reply : stream.parts()) {
      found.push_back(reply.processes.at(0).why);
    }
    return found;
  }
  std::string trouble(const std::string& id) {
    try {
      read(id);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }

  const std::string digest = "0123";
};

TEST_F(NodeStacksTest, AreReadByAStepOnEachNode) {
  const std::string id = add_job("12");
  set_rows(row("12", "RUNNING", "None", "remote-" + id, "n[1-2]"));
  add_program("srun", "echo 'a greeting'; echo \"{\\\"processes\\\":[{\\\"id\\\":\\\"" + id +
                          "\\\",\\\"pid\\\":7,\\\"rank\\\":null,\\\"threads\\\":[],"
                          "\\\"why\\\":\\\"$7 $(cat)\\\",\\\"kernel\\\":[]}]}\"");
  EXPECT_THAT(read(id), ElementsAre("--ntasks=1 activation", "--ntasks=1 activation"));
  EXPECT_THAT(calls().back(),
              testing::StartsWith("srun --jobid=12 --overlap --mem=0 --cpu-bind=none --mpi=none --nodes=1 "
                                  "--ntasks=1 --nodelist=n2 sh -c a=$0/remote-agent; "));
  EXPECT_THAT(calls().back(), testing::EndsWith(" " + folder.jobs.string() + "/.bin/0123 stacks " +
                                                folder.jobs.string() + " " + id));
  set_rows(row("12", "PENDING", "None", "remote-" + id));
  EXPECT_THAT(read(id), IsEmpty());
  set_rows("");
  EXPECT_THAT(read(id), IsEmpty()) << "Slurm does not know it";
}

TEST_F(NodeStacksTest, AreReadByTheCopyOrFromMemory) {
  const std::string id = add_job("12");
  set_rows(row("12", "RUNNING", "None", "remote-" + id, "n1"));
  add_program("srun", "shift 8; exec \"$@\"");
  const auto print = [&](const std::string& why) {
    return "echo \"{\\\"processes\\\":[{\\\"id\\\":\\\"" + id +
           "\\\",\\\"pid\\\":7,\\\"rank\\\":null,\\\"threads\\\":[],\\\"why\\\":\\\"" + why +
           "\\\",\\\"kernel\\\":[]}]}\"";
  };
  const fs::path program = folder.jobs.string() + "/.bin/0123";
  fake.put_program(program / "remote-agent", "[ $1 != try ] || exit 42\n" + print("$1 $3"));
  EXPECT_THAT(read(id), ElementsAre("stacks " + id, "stacks " + id));
  fs::permissions(program / "remote-agent", fs::perms::owner_read);
  add_program("python3", print("${4##*/} ${5##*/} $6 $8"));
  const std::string from_memory = "run_agent.py remote-agent stacks " + id;
  EXPECT_THAT(read(id), ElementsAre(from_memory, from_memory));
}

TEST_F(NodeStacksTest, SayWhyThereAreNone) {
  const std::string id = add_job("12");
  set_rows(row("12", "RUNNING", "None", "remote-" + id, "n[1-2]"));
  add_program("srun", "echo 'srun: error: no' >&2; exit 1");
  EXPECT_EQ(trouble(id), "srun could not inspect the job on its nodes: srun: error: no");
  EXPECT_EQ(count_calls("scontrol show hostnames n[1-2]"), 1U);
  add_program("srun", "");
  EXPECT_EQ(trouble(id), "") << "its processes have just exited";
  set_rows("", 1);
  EXPECT_THAT(trouble(id), testing::StartsWith("Slurm does not answer"));
}

}  // namespace
}  // namespace remote::agent
