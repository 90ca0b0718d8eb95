#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "agent/host/descriptor.hpp"
#include "agent/job/open_ranks.hpp"
#include "agent/job_folders.hpp"
#include "agent/launch/mpi_orders.hpp"
#include "agent/mpi/programs.hpp"
#include "agent/started.hpp"

// The programs of a job that runs mpirun, each in its own process.

namespace remote::agent {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

class MpiProgramsTest : public ::testing::Test {
 protected:
  MpiProgramsTest() : id_(folders_.make({})), member_id_(folders_.make({})) {}

  fs::path folder() { return folders_.folder(id_); }
  fs::path member() { return folders_.folder(member_id_); }
  MpiOrders open() { return {folder(), {{"remote-b", "b"}, {"remote-c", "c"}}}; }
  void put(const std::string& name, const std::string& text) { folders_.put(id_, name, text); }
  std::string read(const std::string& name) { return folders_.read(id_, name); }
  std::string read_member(const std::string& name) { return folders_.read(member_id_, name); }
  bool has(const std::string& name) { return fs::exists(folder() / name); }
  Words read_lines_of(const std::string& name) {
    Words lines;
    std::ifstream file(folder() / name);
    for (std::string line; std::getline(file, line);) {
      lines.push_back(line);
    }
    return lines;
  }
  // Programs in `bin` come first on PATH.
  void set_program(const std::string& name, const std::string& body) {
    test::JobFolders::put_file(member() / "bin" / name, "#!/bin/sh\n" + body + "\n");
    fs::permissions(member() / "bin" / name, fs::perms::owner_all);
  }

  // Runs `mpi-NAME` for the job in this folder, in this folder. Its stderr is appended to the file `said`;
  // its stdin is `input`, unless that is -1.
  test::Started run(const std::string& name, const fs::path& job, Words words,
                    const Variables& variables = {}, int input = -1) {
    const std::string path = (member() / "bin").string() + ":" + ::getenv("PATH");
    return test::Started([&] {
      ::setenv("REMOTE_JOB_FOLDER", job.c_str(), 1);
      ::setenv("PATH", path.c_str(), 1);
      for (const auto& [variable, value] : variables) {
        ::setenv(variable.c_str(), value.c_str(), 1);
      }
      const int said = ::open((job / "said").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      if (said < 0 || ::dup2(said, STDERR_FILENO) < 0 || ::chdir(job.c_str()) != 0 ||
          (input >= 0 && ::dup2(input, STDIN_FILENO) < 0)) {
        ::_exit(99);
      }
      close_descriptors(STDERR_FILENO + 1);
      std::vector<char*> pointers;
      for (std::string& word : words) {
        pointers.push_back(word.data());
      }
      ::_exit(run_mpi_program(name, static_cast<int>(pointers.size()), pointers.data()));
    });
  }
  test::Started run_agent(const Words& words) { return run("agent", folder(), words); }
  test::Started run_member(const Variables& variables = {}) { return run("member", member(), {}, variables); }
  // Sends orders to the member until the condition holds.
  void pump(MpiOrders& orders, const std::function<bool()>& condition) {
    EXPECT_TRUE(test::eventually([&] {
      orders.look();
      orders.send(
          [&](const std::string& server, const wire::MpiOrder& order) {
            if (server == "b") {
              keep_mpi_order(member(), order);
            }
            return server == "b";
          },
          {{"c", "server c does not connect"}});
      return condition();
    }));
  }
  static bool is_gone(pid_t pid) {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid;
  }
  // The agent's exit code.
  int run_agent(MpiOrders& orders, const Words& words) {
    test::Started agent = run_agent(words);
    pump(orders, [&] { return is_gone(agent.pid()); });
    return agent.wait();
  }

  test::JobFolders folders_;
  std::string id_;
  std::string member_id_;
};

TEST_F(MpiProgramsTest, OthersDoNotExist) {
  EXPECT_EQ(run("ranks", folder(), {"true"}).wait(), 2);
  EXPECT_EQ(run("rank", folder(), {}).wait(), 2);
  EXPECT_EQ(run("rank", folder(), {"true", "true"}).wait(), 2);
  EXPECT_EQ(run("member", folder(), {"true"}).wait(), 2);
  EXPECT_EQ(run("order", folder(), {folder()}).wait(), 2);
  EXPECT_EQ(run("agent", folder(), {"-x"}).wait(), 2);
  EXPECT_EQ(read("said"), "");
  EXPECT_EQ(run("member", folder(), {}, {{"REMOTE_JOB_FOLDER", folder() / "gone"}}).wait(), 1);
  EXPECT_EQ(read("said"), "remote: cannot enter the job's folder, REMOTE_JOB_FOLDER\n");
}

TEST_F(MpiProgramsTest, ADaemonRunsWithItsArguments) {
  set_program("orted", "printf '%s\\n' \"$@\" >>words; exit 3");
  MpiOrders orders = open();
  test::Started member = run_member();
  EXPECT_EQ(run_agent(orders, {"-x", "remote-b", "PATH=/evil:$PATH;export PATH;touch evil;/evil/orted",
                               "-mca", "ess", "\"env\"", "\"a b\"", ";", "touch evil", "$(touch evil)"}),
            0);
  EXPECT_EQ(member.wait(), 3);
  EXPECT_EQ(read_member("words"), "-mca\ness\nenv\na b\n;\ntouch\nevil\n$(touch\nevil)\n");
  EXPECT_FALSE(has("evil"));
  EXPECT_FALSE(fs::exists(this->member() / "evil"));
}

TEST_F(MpiProgramsTest, ARefusedOrderIsAnError) {
  MpiOrders orders = open();
  EXPECT_EQ(run_agent(orders, {"remote-d", "orted"}), 1);
  EXPECT_EQ(run_agent(orders, {"remote-b", "sh", "-c", "true"}), 1);
  EXPECT_EQ(run_agent(orders, {"remote-c", "orted"}), 1);
  EXPECT_EQ(read("said"),
            "remote: mpirun cannot start its daemon for remote-d: it is not a server of this launch\n"
            "remote: mpirun cannot start its daemon for remote-b: its command line is not understood\n"
            "remote: mpirun cannot start its daemon for remote-c: server c does not connect\n");
  for (const auto& entry : fs::directory_iterator(folder())) {
    EXPECT_THAT(entry.path().filename().string(), ::testing::AnyOf("said", "orders"));
  }
}

TEST_F(MpiProgramsTest, AnOrderMayComeBeforeTheSupervisor) {
  set_program("orted", "printf '%s\\n' \"$@\" >>words");
  test::Started agent = run_agent(Words{"remote-b", "orted", "late"});
  EXPECT_TRUE(test::eventually([&] { return has("order." + std::to_string(agent.pid())); }));
  MpiOrders orders = open();
  pump(orders, [&] { return is_gone(agent.pid()); });
  EXPECT_EQ(agent.wait(), 0);
  EXPECT_EQ(run_member().wait(), 0);
  EXPECT_EQ(read_member("words"), "late\n");
}

// MPICH's mpirun assumes that the daemon has ended when its agent ends.
TEST_F(MpiProgramsTest, TheAgentOfHydraStaysUntilTheJobHasEnded) {
  set_program("hydra_pmi_proxy", "");
  MpiOrders orders = open();
  test::Started agent = run_agent(Words{"remote-b", "/usr/bin/hydra_pmi_proxy"});
  pump(orders, [&] { return orders.awaits_ends(); });
  EXPECT_EQ(run_member().wait(), 0);
  EXPECT_FALSE(is_gone(agent.pid()));
  orders = open();  // another supervisor
  orders.look();
  EXPECT_TRUE(orders.awaits_ends());
  orders.tell_ends({"b"});
  EXPECT_EQ(agent.wait(), 0);
  EXPECT_EQ(read("said"), "");
}

TEST_F(MpiProgramsTest, AMemberWithoutAnOrderFails) {
  test::Started member = run_member();
  EXPECT_TRUE(test::eventually([&] { return fs::exists(this->member() / "orders"); }));
  keep_mpi_order(this->member(), {});
  EXPECT_EQ(member.wait(), 1);
  EXPECT_EQ(read_member("said"), "remote: mpirun has ended without having started its daemon here\n");
}

TEST_F(MpiProgramsTest, AMemberRunsOnlyDaemons) {
  for (const char* order : {"sh\n-c\ntrue\n", "/bin/orted\n", "\n", "\n\norted\n"}) {
    folders_.put(member_id_, "order", order);
    EXPECT_EQ(run_member().wait(), 1) << order;
    EXPECT_EQ(read_member("said"), "remote: the order of mpirun is for none of its daemons\n");
    fs::remove(member() / "said");
  }
}

TEST_F(MpiProgramsTest, AMemberSaysThatItsDaemonIsMissing) {
  folders_.put(member_id_, "order", "prted\n");
  EXPECT_EQ(run_member({{"PATH", (member() / "bin").string()}}).wait(), 127);
  EXPECT_EQ(read_member("said"), "remote: cannot run prted: No such file or directory\n");
}

TEST_F(MpiProgramsTest, ADaemonGetsTheValuesOfItsServer) {
  set_program(
      "orted",
      "printf '%s\\n' \"$REMOTE_RANK_FOLDER\" \"$REMOTE_MPI_INTERFACE\" \"$1\" >values; umask >>values");
  folders_.put(member_id_, "order", "orted\n\n");
  fs::create_directory_symlink(member(), folder() / "link");
  const mode_t mask = ::umask(027);
  EXPECT_EQ(run_member({{"PWD", folder() / "link"}, {"OMPI_MCA_btl_tcp_if_include", "eth7"}}).wait(), 0);
  EXPECT_EQ(read_member("values"), (folder() / "link").string() + "\neth7\n\n0027\n");
  EXPECT_EQ(run_member({{"PWD", folder()}}).wait(), 0);
  ::umask(mask);
  EXPECT_EQ(read_member("values"), member().string() + "\n\n\n0027\n");
}

// The daemon stops its ranks, and the member must outlive the daemon.
TEST_F(MpiProgramsTest, AMemberOutlivesSignalsToItsGroup) {
  set_program(
      "orted",
      "trap 'sleep 0.1; echo stopped >stopped; exit 5' TERM; echo >begun; while :; do sleep 0.05; done");
  folders_.put(member_id_, "order", "orted\n");
  test::Started member = run_member();
  EXPECT_TRUE(test::eventually([&] { return fs::exists(this->member() / "begun"); }));
  ::kill(-member.pid(), SIGTERM);
  EXPECT_EQ(member.wait(), 5);
  EXPECT_EQ(read_member("stopped"), "stopped\n");
}

TEST_F(MpiProgramsTest, AMemberEndsAsTheRankThatFailedFirst) {
  const std::string stopped = "remote: ended by TERM, as mpirun does it when another rank has failed\n";
  const std::string left = "remote: exited with 14, as ranks of Open MPI 5 do when another one has failed\n";
  set_program("orted", "exit 1");
  folders_.put(member_id_, "order", "orted\n");
  folders_.put(member_id_, "failures/rank.2", "1\nwords\n" + stopped);
  folders_.put(member_id_, "failures/rank.3", "1\n" + left);
  folders_.put(member_id_, "failures/rank.4", "1\n" + stopped + "words\n");
  const std::string others = "2 signal 15 1700000000000 mpirun\n3 exit 14 1700000000000 mpirun\n";
  folders_.put(member_id_, "failures/agent",
               others + "4 exit 9 1700000000000 mpirun\n5 exit 8 1700000000000 mpirun\n");
  EXPECT_EQ(run_member().wait(), 9);
  folders_.put(member_id_, "failures/agent", others + "5 signal 11 1700000000000 mpirun\n");
  EXPECT_EQ(run_member().wait(), 128 + 11) << "without words";
  EXPECT_EQ(read_member("said"), "");
  folders_.put(member_id_, "failures/agent", others);
  EXPECT_EQ(run_member().wait(), 128 + 15) << "all of them follow from a rank elsewhere";
  EXPECT_EQ(read_member("said"), stopped);
  folders_.put(member_id_, "failures/agent", "nonsense\n");
  EXPECT_EQ(run_member().wait(), 1) << "the daemon's own";
}

// ---- By ssh

class MpiBySshTest : public MpiProgramsTest {
 protected:
  MpiBySshTest() {
    set_program(
        "ssh",
        "printf '%s\\n' \"$@\" >asked; while :; do case $1 in --) break ;; esac; shift; done; shift 2\n"
        "cd '" +
            fs::path(folders_.host().home).string() + "' && exec sh -c \"$1\"");
    put("mpi_hosts", "remote-bb bob 10.0.0.1 1 false\nremote-b ada 10.0.0.2 2222 cd 'proj/.jobs/" +
                         member_id_ + "' && printf '%s\\n' >got\n");
  }

  test::Started run_ssh(const Words& words) { return run("ssh", folder(), words); }
  // Runs on the other server, with this stdin.
  test::Started receive(Words words, int input) {
    words.insert(words.begin(), member());
    return run("order", member(), words, {{"REMOTE_JOB_FOLDER", ""}}, input);
  }
  void set_supervisor(const std::string& text) { folders_.put(member_id_, "supervisor", text); }
  bool has_order() { return fs::exists(member() / "order"); }
};

TEST_F(MpiBySshTest, AnOrderReachesTheJobThere) {
  EXPECT_EQ(run_ssh({"-x", "remote-b", "PATH=/evil:$PATH;export PATH;", "/evil/orted", "'it'\\''s'",
                     "$(touch x)", "\"a  b\""})
                .wait(),
            0);
  EXPECT_EQ(read("said"), "");
  EXPECT_EQ(read("asked"), "-o\nBatchMode=yes\n-p\n2222\n-l\nada\n--\n10.0.0.2\nexec sh -s\n");
  EXPECT_EQ(read_member("got"), "orted\nit's\n$(touch\nx)\na  b\n");
}

TEST_F(MpiBySshTest, RefusedOrdersAreErrors) {
  EXPECT_EQ(run_ssh({"remote-c", "orted"}).wait(), 1);
  EXPECT_EQ(run_ssh({"remote-b", "sh", "-c", "true"}).wait(), 1);
  EXPECT_EQ(run_ssh({"remote-b", "orted", "'"}).wait(), 1);
  EXPECT_EQ(run_ssh({"remote-b"}).wait(), 1);
  EXPECT_FALSE(has("asked"));
  fs::remove(folder() / "mpi_hosts");
  EXPECT_EQ(run_ssh({"remote-b", "orted"}).wait(), 1);
  EXPECT_EQ(read("said"),
            "remote: mpirun asks for remote-c, which is not a server of this launch\n"
            "remote: the order is for none of mpirun's daemons\n"
            "remote: the order is for none of mpirun's daemons\n"
            "remote: the order is for none of mpirun's daemons\n"
            "remote: mpirun asks for remote-b, which is not a server of this launch\n");
}

TEST_F(MpiBySshTest, AnSshThatFailsIsReported) {
  set_program("ssh", "echo refused >&2; exit 255");
  EXPECT_EQ(run_ssh({"remote-b", "orted"}).wait(), 255);
  EXPECT_EQ(read("said"),
            "refused\nremote: the order for 10.0.0.2 was not brought there by ssh (exit code 255)\n");
}

// ssh sees no end of file on stdin until mpirun's agent is gone.
TEST_F(MpiBySshTest, TheOtherServerNoticesThatTheAgentIsGone) {
  set_program("ssh", "echo >begun; cat >script; echo >gone");
  test::Started ssh = run_ssh({"remote-b", "orted"});
  EXPECT_TRUE(test::eventually([&] { return !read("script").empty(); }));
  EXPECT_FALSE(has("gone"));
  ::kill(ssh.pid(), SIGTERM);
  EXPECT_EQ(ssh.wait(), 128 + SIGTERM);
  EXPECT_TRUE(test::eventually([&] { return has("gone"); }));
}

TEST_F(MpiBySshTest, AnOrderIsKept) {
  EXPECT_EQ(receive({"orted", "a b", ""}, -1).wait(), 0);
  EXPECT_EQ(read_member("order"), "orted\na b\n\n");
  EXPECT_EQ(receive({"orted", "2"}, -1).wait(), 0);
  EXPECT_EQ(read_member("order"), "orted\na b\n\n");
  fs::remove(member() / "order");
  EXPECT_EQ(receive({"sh"}, -1).wait(), 1);
  EXPECT_EQ(receive({"orted", "a\nb"}, -1).wait(), 1);
  EXPECT_FALSE(has_order());
}

// Like ssh, because MPICH's mpirun assumes that the daemon has ended when its agent ends.
TEST_F(MpiBySshTest, TheReceiverOfHydraStays) {
  std::array<int, 2> input{};
  ASSERT_EQ(::pipe2(input.data(), O_CLOEXEC), 0);
  Descriptor writer(input[1]);
  const Descriptor reader(input[0]);
  const auto stays = [&](test::Started& receiver) {
    return test::eventually([&] { return has_order(); }) && receiver.lives();
  };
  {
    test::Started receiver = receive({"hydra_pmi_proxy"}, reader.get());
    EXPECT_TRUE(stays(receiver));
    folders_.put(member_id_, "journal.jsonl", test::format_end("exit 0 1700000000000 supervisor"));
    EXPECT_EQ(receiver.wait(), 0);
    fs::remove(member() / "journal.jsonl");
  }
  {
    test::Started job = test::run_sleep({});
    const auto id = job.id(Host{});
    set_supervisor(std::to_string(id.pid) + " " + std::to_string(id.start) + " boot -\n");
    test::Started receiver = receive({"hydra_pmi_proxy"}, reader.get());
    EXPECT_TRUE(stays(receiver));
    ::kill(job.pid(), SIGKILL);
    job.wait();
    EXPECT_EQ(receiver.wait(), 0) << "the supervisor has died";
  }
  set_supervisor("claimed\n");
  EXPECT_EQ(receive({"hydra_pmi_proxy"}, reader.get()).wait(), 0);
  fs::remove(member() / "supervisor");
  test::Started receiver = receive({"hydra_pmi_proxy"}, reader.get());
  EXPECT_TRUE(stays(receiver));
  writer.reset();
  EXPECT_EQ(receiver.wait(), 0) << "ssh is gone";
}

// ---- Ranks

const Variables first_of_one{{"OMPI_COMM_WORLD_RANK", "0"},
                             {"OMPI_COMM_WORLD_SIZE", "2"},
                             {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}};
const Variables last_of_two{{"OMPI_COMM_WORLD_RANK", "3"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
const Variables of_mpich{
    {"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};

class MpiRankTest : public MpiProgramsTest {
 protected:
  test::Started start_rank(const std::string& command, const Variables& variables) {
    return run("rank", folder(), {command}, variables);
  }
  int run_rank(const std::string& command, const Variables& variables = first_of_one) {
    return start_rank(command, variables).wait();
  }
  static Variables with(Variables variables, const Variables& more) {
    for (const auto& [name, value] : more) {
      variables[name] = value;
    }
    return variables;
  }
  // The record in failures/agent, without its time.
  std::string read_end() {
    std::istringstream line(read("failures/agent"));
    std::string rank;
    std::string kind;
    std::string code;
    std::string time;
    std::string by;
    line >> rank >> kind >> code >> time >> by;
    std::string rest;
    EXPECT_FALSE(line >> rest);
    return rank.empty() ? "" : rank + " " + kind + " " + code + " " + by;
  }
  // The lines of the record after the time. Expects the time to be that of failures/agent.
  std::string read_words(const std::string& rank) {
    const std::string text = read("failures/rank." + rank);
    const std::size_t end = text.find('\n');
    EXPECT_THAT(read("failures/agent"), HasSubstr(" " + text.substr(0, end) + " mpirun\n"));
    return end == std::string::npos ? text : text.substr(end + 1);
  }
  void expect_closed() {
    for (const auto& entry : fs::directory_iterator(folder())) {
      EXPECT_EQ(entry.path().filename().string().find(".rank."), std::string::npos) << entry.path();
    }
  }
};

TEST_F(MpiRankTest, HasTheVariablesOfTorch) {
  const std::string command = "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE; cat";
  EXPECT_EQ(run_rank(command, first_of_one), 0);
  EXPECT_EQ(read("job.out"), "0 2 0 1\n");
  EXPECT_EQ(run_rank(command, last_of_two), 0);
  EXPECT_EQ(read("ranks/3.out"), "3 4 1 2\n");
  EXPECT_EQ(run_rank(command, with(of_mpich, {{"PMI_RANK", "2"}, {"OMPI_COMM_WORLD_RANK", ""}})), 0);
  EXPECT_EQ(read("ranks/2.out"), "2 4 1 2\n");
  EXPECT_EQ(read("job.err") + read("said"), "");
  expect_closed();
  EXPECT_FALSE(has("failures"));
}

TEST_F(MpiRankTest, NeedsTheVariablesOfMpirun) {
  const std::string error =
      "remote: mpirun gave this process no rank: OMPI_COMM_WORLD_RANK (or PMI_RANK) and similar variables "
      "are missing\n";
  for (const auto& [name, value] : first_of_one) {
    for (const char* wrong : {"", "-1", "x", "1x", "../1"}) {
      EXPECT_EQ(run_rank("true", with(first_of_one, {{name, wrong}})), 1);
      EXPECT_EQ(read("said"), error) << name << " " << wrong;
      fs::remove(folder() / "said");
    }
  }
  EXPECT_FALSE(has("job.out"));
}

TEST_F(MpiRankTest, HasTheInterfaceOfItsServer) {
  const std::string command = "echo \"$OMPI_MCA_btl_tcp_if_include\"";
  const Variables mpirun = with(first_of_one, {{"OMPI_MCA_btl_tcp_if_include", "eth0"}});
  EXPECT_EQ(run_rank(command, mpirun), 0);
  EXPECT_EQ(run_rank(command, with(mpirun, {{"REMOTE_MPI_INTERFACE", ""}})), 0);
  EXPECT_EQ(run_rank(command, with(mpirun, {{"REMOTE_MPI_INTERFACE", "eth7"}})), 0);
  EXPECT_EQ(read("job.out"), "eth0\neth0\neth7\n");
}

TEST_F(MpiRankTest, OfPracticeServersShareNoMemory) {
  const std::string command = "env | grep ^OMPI_MCA | sort";
  EXPECT_EQ(run_rank(command), 0);
  EXPECT_EQ(read("job.out"), "");
  const std::string place = "_backing_directory=" + folder().string() + "\n";
  const std::string folders = "OMPI_MCA_osc_rdma" + place + "OMPI_MCA_osc_sm" + place;
  EXPECT_EQ(run_rank(command, with(first_of_one, {{"REMOTE_SANDBOX", "1"}})), 0);
  EXPECT_EQ(read("job.out"),
            "OMPI_MCA_btl_sm" + place + "OMPI_MCA_btl_vader" + place + "OMPI_MCA_coll=^han\n" + folders);
  fs::remove(folder() / "job.out");
  EXPECT_EQ(run_rank(command, with(first_of_one, {{"REMOTE_SANDBOX", "1"}, {"OMPI_MCA_coll", "tuned"}})), 0);
  EXPECT_THAT(read("job.out"), HasSubstr("OMPI_MCA_coll=tuned\n"));
}

TEST_F(MpiRankTest, RunsInTheFolderOfTheJob) {
  fs::create_directory(folder() / "project");
  fs::create_directory_symlink("project", folder() / "link");
  const mode_t mask = ::umask(027);
  EXPECT_EQ(run_rank("pwd; umask; cd ..; cat", with(first_of_one, {{"PWD", folder()}})), 0);
  EXPECT_EQ(run_rank("pwd", with(first_of_one, {{"REMOTE_RANK_FOLDER", folder() / "link"}})), 0);
  ::umask(mask);
  EXPECT_EQ(read("job.out"), folder().string() + "\n0027\n" + (folder() / "link").string() + "\n");
  EXPECT_EQ(fs::status(folder() / "job.out").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(run_rank("true", with(first_of_one, {{"REMOTE_RANK_FOLDER", folder() / "gone"}})), 127);
  EXPECT_EQ(read("job.err"),
            "remote: cannot run " + (folder() / "gone").string() + ": No such file or directory\n");
}

TEST_F(MpiRankTest, NeedsNoBash) {
  fs::create_directories(member() / "only");
  fs::create_symlink("/bin/sh", member() / "only/sh");
  fs::create_symlink(fs::canonical("/bin/cat"), member() / "only/cat");
  EXPECT_EQ(run_rank("exec 3</proc/$$/comm; cat <&3; echo \"-$0\"",
                     with(first_of_one, {{"PATH", (member() / "only").string()}})),
            0);
  EXPECT_EQ(run_rank("exec 3</proc/$$/comm; cat <&3; echo \"-$0\""), 0);
  EXPECT_EQ(read("job.out"), "sh\n-sh\nbash\n-bash\n");
}

TEST_F(MpiRankTest, LinesAreLabelledOnAServerWithSeveral) {
  const std::string command = "echo one; echo two >&2; printf 'a\\rb\\n\\n'; printf 'no end' >&2";
  EXPECT_EQ(run_rank(command, last_of_two), 0);
  EXPECT_EQ(read("job.out"), "[3] one\n[3] a\rb\n[3] \n");
  EXPECT_EQ(read("job.err"), "[3] two\n[3] no end\n");
  EXPECT_EQ(read("ranks/3.out"), "one\na\rb\n\n");
  EXPECT_EQ(read("ranks/3.err"), "two\nno end");
  EXPECT_EQ(run_rank("echo again", with(last_of_two, {{"RESTART_COUNT", "1"}})), 0);
  EXPECT_EQ(read("ranks/3.out"), "one\na\rb\n\nagain\n") << "the lines of the earlier attempt stay";
  EXPECT_EQ(fs::status(folder() / "ranks/3.out").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(MpiRankTest, MuchOutputArrives) {
  EXPECT_EQ(run_rank("seq 1 100000; head -c 200000 /dev/zero | tr '\\0' x", last_of_two), 0);
  const Words lines = read_lines_of("job.out");
  ASSERT_GT(lines.size(), 100000U);
  std::string last;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    ASSERT_TRUE(lines[i].starts_with("[3] ")) << i;
    if (i < 100000) {
      ASSERT_EQ(lines[i].substr(4), std::to_string(i + 1));
    } else {
      EXPECT_LE(lines[i].size(), 100000U) << "long lines are divided";
      last += lines[i].substr(4);
    }
  }
  EXPECT_EQ(last, std::string(200000, 'x'));
  EXPECT_TRUE(read("ranks/3.out").ends_with("\n100000\n" + last));
}

TEST_F(MpiRankTest, RunsWithoutLabelsIfRanksIsNoFolder) {
  put("elsewhere/file", "");
  fs::create_directory_symlink("elsewhere", folder() / "ranks");
  EXPECT_EQ(run_rank("echo out; echo err >&2; exit 2", last_of_two), 2);
  EXPECT_EQ(read("job.out") + read("job.err"), "out\nerr\n");
  EXPECT_FALSE(has("elsewhere/3.out"));
  EXPECT_EQ(read_words("3"), "");
}

TEST_F(MpiRankTest, AFailureIsRecorded) {
  put("job.err", "of an earlier attempt\n");
  EXPECT_EQ(run_rank("echo oops >&2; exit 7"), 7);
  EXPECT_EQ(read_end(), "0 exit 7 mpirun");
  EXPECT_EQ(read_words("0"), "oops\n");
  EXPECT_EQ(read("job.err"), "of an earlier attempt\noops\n");
  EXPECT_GT(std::stoll(read("failures/rank.0")), 1'700'000'000'000);
  expect_closed();
}

TEST_F(MpiRankTest, AFailureOfOneOfSeveralIsRecorded) {
  put("ranks/3.err", "of an earlier attempt\n");
  put("job.err", "of another rank\n");
  EXPECT_EQ(run_rank("echo oops >&2; exit 7", last_of_two), 7);
  EXPECT_EQ(read_end(), "3 exit 7 mpirun");
  EXPECT_EQ(read_words("3"), "oops\n");
  expect_closed();
}

TEST_F(MpiRankTest, TheLastLinesAreRecordedWithoutThoseOfMpirun) {
  EXPECT_EQ(
      run_rank("seq 1 60 >&2; echo '[node:00000] of orted' >&2; echo '[proxy:0:1@node] x' >&2; echo "
               "'[mpiexec@node] x' >&2\n"
               "echo '[node:00001] own' >&2; echo '[a b:00000] own' >&2; echo '[x]:00000] own' >&2; exit 1"),
      1);
  std::string expected;
  for (int i = 14; i <= 60; ++i) {
    expected += std::to_string(i) + "\n";
  }
  EXPECT_EQ(read_words("0"), expected + "[node:00001] own\n[a b:00000] own\n[x]:00000] own\n");
}

TEST_F(MpiRankTest, OnlyTheEndOfLongOutputIsRecorded) {
  EXPECT_EQ(run_rank("head -c 100000 /dev/zero | tr '\\0' x >&2; echo >&2; echo end >&2; exit 1"), 1);
  const std::string words = read_words("0");
  EXPECT_EQ(words.size(), 16384U);
  EXPECT_TRUE(words.ends_with("x\nend\n"));
}

TEST_F(MpiRankTest, ASignalIsRecorded) {
  EXPECT_EQ(run_rank("kill -SEGV $$"), 128 + SIGSEGV);
  EXPECT_EQ(read_end(), "0 signal 11 mpirun");
  EXPECT_EQ(read_words("0"), "");
  fs::remove_all(folder() / "failures");
  // A shell exits with 128+N after a command was killed by a signal.
  EXPECT_EQ(run_rank("sh -c 'kill -KILL $$'; exit $?"), 128 + SIGKILL);
  EXPECT_EQ(read_end(), "0 signal 9 mpirun");
  fs::remove_all(folder() / "failures");
  EXPECT_EQ(run_rank("exit 193"), 193);
  EXPECT_EQ(read_end(), "0 exit 193 mpirun");
}

TEST_F(MpiRankTest, AnEndByMpirunIsRecordedAsAConsequence) {
  EXPECT_EQ(run_rank("echo words >&2; kill -TERM $$"), 128 + SIGTERM);
  EXPECT_EQ(read_end(), "0 signal 15 mpirun");
  EXPECT_EQ(read_words("0"),
            "words\nremote: ended by TERM, as mpirun does it when another rank has failed\n");
  fs::remove_all(folder() / "failures");
  EXPECT_EQ(run_rank("exit 14"), 14);
  EXPECT_EQ(read_end(), "0 exit 14 mpirun");
  EXPECT_EQ(read_words("0"),
            "remote: exited with 14, as ranks of Open MPI 5 do when another one has failed\n");
}

TEST_F(MpiRankTest, OutlivesSignalsToItsGroup) {
  test::Started rank = start_rank(
      "trap 'echo stopped; echo last words >&2; exit 5' TERM; echo begun; while :; do sleep 0.05; done",
      last_of_two);
  EXPECT_TRUE(test::eventually([&] { return read("job.out") == "[3] begun\n"; }));
  ::kill(-rank.pid(), SIGTERM);
  EXPECT_EQ(rank.wait(), 5);
  EXPECT_EQ(read("job.out"), "[3] begun\n[3] stopped\n");
  EXPECT_EQ(read_end(), "3 exit 5 mpirun");
  EXPECT_TRUE(read_words("3").ends_with("last words\n"));  // bash also reports its own child
}

// sitecustomize.py writes the note.
TEST_F(MpiRankTest, OneThatRaisedFailedByThat) {
  EXPECT_EQ(run_rank("echo '1700000000123 5' >raised.rank.0; echo ValueError >&2; kill -ALRM $$"), 5);
  EXPECT_EQ(read("failures/agent"), "0 exit 5 1700000000123 mpirun\n");
  EXPECT_EQ(read("failures/rank.0"), "1700000000123\nValueError\n");
  expect_closed();
  fs::remove_all(folder() / "failures");
  EXPECT_EQ(run_rank("echo '1700000000123 14' >raised.rank.0; exit 14"), 14);
  EXPECT_EQ(read_words("0"), "") << "Python's own 14 is no consequence";
}

TEST_F(MpiRankTest, ANoteOfARaisedExceptionIsChecked) {
  for (const char* note : {"", "x 5\n", "1 0\n", "1 256\n", "-1 5\n", "1700000000123\n"}) {
    EXPECT_EQ(run_rank(std::string("printf '") + note + "' >raised.rank.0; exit 3"), 3);
    EXPECT_EQ(read_end(), "0 exit 3 mpirun") << note;
    expect_closed();
    fs::remove_all(folder() / "failures");
  }
  EXPECT_EQ(run_rank("echo '1700000000123 5' >raised.rank.0"), 0) << "it exited with 0";
  EXPECT_FALSE(has("failures"));
  expect_closed();
}

// MPICH's mpirun stops the other ranks only then.
TEST_F(MpiRankTest, EndsByASignalBelowMpich) {
  EXPECT_EQ(run_rank("exit 9", of_mpich), 128 + SIGTERM);
  EXPECT_EQ(read_end(), "3 exit 9 mpirun");
  expect_closed();
  EXPECT_EQ(run_rank("true", of_mpich), 0);
  fs::remove_all(folder() / "failures");
  EXPECT_EQ(run_rank("exit 14", of_mpich), 128 + SIGTERM);
  EXPECT_EQ(read_words("3"), "") << "only Open MPI ends ranks so";
}

TEST_F(MpiRankTest, OneThatIsKilledWithItsGroupIsRecordedByTheGuard) {
  // The first process is not in the process group.
  test::Started rank = start_rank(
      "setsid sh -c 'echo words >&2; until [ -e go ]; do sleep 0.05; done; echo late' & sleep 1000",
      of_mpich);
  EXPECT_TRUE(test::eventually([&] { return read("ranks/3.err") == "words\n"; }));
  const std::string open = read("open.rank.3");
  EXPECT_TRUE(open.starts_with(std::to_string(rank.pid()) + " 0 ")) << open;
  ::kill(-rank.pid(), SIGKILL);
  EXPECT_EQ(rank.wait(), 128 + SIGKILL);
  EXPECT_TRUE(has_open_rank(folder()));
  close_open_ranks(Host{}, folder(), wire::Moment(1'700'000'000'000));
  EXPECT_EQ(read_end(), "3 signal 9 mpirun");
  EXPECT_THAT(read_words("3"), HasSubstr("words\n"));
  // The labeller survives, and ends with the last process that writes.
  EXPECT_EQ(read("job.out"), "");
  put("go", "");
  const int labeller = std::stoi(split(open, ' ').at(2));
  EXPECT_TRUE(test::eventually([&] {
    const auto process = read_process(Host{}, labeller);
    return !process || process->is_dead();
  }));
  EXPECT_EQ(read("job.out"), "[3] late\n");
}

// MPICH's mpirun kills it because of another rank while it waits for the last output.
TEST_F(MpiRankTest, OneThatIsKilledAfterTheRanksEndHasNotedThatEnd) {
  test::Started rank = start_rank("sleep 1000 & echo $! >left; echo words >&2; exit 3", of_mpich);
  EXPECT_TRUE(test::eventually([&] { return read("open.rank.3").find(" exit 3 ") != std::string::npos; }));
  ::kill(rank.pid(), SIGKILL);
  EXPECT_EQ(rank.wait(), 128 + SIGKILL);
  close_open_ranks(Host{}, folder(), wire::Moment(1'700'000'000'000));
  EXPECT_EQ(read_end(), "3 exit 3 mpirun");
  EXPECT_EQ(read_words("3"), "words\n");
  EXPECT_GT(std::stoll(read("failures/rank.3")), 1'700'000'000'000) << "the time of its own end";
  ::kill(std::stoi(read("left")), SIGKILL);
}

// The SIGTERM came from mpirun, which did not wait any longer.
TEST_F(MpiRankTest, OneThatIsKilledAfterItsTermFollowsFromAnother) {
  test::Started rank = start_rank("sleep 1000 & echo $! >left; echo words >&2; kill -TERM $$", of_mpich);
  EXPECT_TRUE(test::eventually([&] { return read("open.rank.3").find(" signal 15 ") != std::string::npos; }));
  ::kill(rank.pid(), SIGKILL);
  EXPECT_EQ(rank.wait(), 128 + SIGKILL);
  close_open_ranks(Host{}, folder(), wire::Moment(1'700'000'000'000));
  EXPECT_EQ(read_end(), "3 signal 15 mpirun");
  EXPECT_EQ(read_words("3"),
            "words\nremote: ended by TERM, as mpirun does it when another rank has failed\n");
  ::kill(std::stoi(read("left")), SIGKILL);
}

TEST_F(MpiRankTest, ProcessesThatItLeavesBehindDelayItsEndShortly) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(run_rank("echo words; sleep 1000 & echo $! >left; exit 3", last_of_two), 3);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, test::patience);
  EXPECT_EQ(read("job.out"), "[3] words\n");
  EXPECT_EQ(read_end(), "3 exit 3 mpirun");
  ::kill(std::stoi(read("left")), SIGKILL);
}

TEST_F(MpiRankTest, AFullDiskDoesNotStopIt) {
  fs::create_symlink("/dev/full", folder() / "job.out");
  fs::create_symlink("/dev/full", folder() / "job.err");
  EXPECT_EQ(run_rank("seq 1 100000; exit 3", last_of_two), 3);
  EXPECT_EQ(read_lines_of("ranks/3.out").size(), 100000U);
}

}  // namespace
}  // namespace remote::agent
