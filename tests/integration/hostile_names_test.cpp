#include <fmt/format.h>
#include <unistd.h>

#include "base/subprocess.hpp"
#include "jobs/from_wire.hpp"
#include "jobs/stacks.hpp"
#include "servers/facts.hpp"
#include "support/processes.hpp"
#include "support/script_test.hpp"

// Names that others on a server choose: paths of open files, arguments, variables, names of processes and
// users. A script must not treat a part of a name as its own line, a pattern or code.

namespace remote::jobs {
namespace {

// Starts 24 processes with random names of characters that are special in shells or lists. If the test runs
// as root, half of them belong to another user. Any code in a name would create $HOME.taken if it ran.
constexpr const char* crowd = R"names(
import ctypes, os, random, sys, time
seed, folder, job, out = sys.argv[1:]
dice = random.Random(int(seed))
take = ">${HOME}.taken"
pieces = ["\n", "\n", "*", "?", "[!a]", "'", '"', "\\", ";" + take + ";", "$(" + take + ")", "`" + take + "`", "=;" + take + ";#",
          "\n/proc/1;" + take + "/fd:\n", "\nl-wx------ 1 root root 64 -> " + out + "\n", "/proc/1/fd/1", "x[$(" + take + ")]",
          "REMOTE_JOB_ID=" + job, "\x1b[2J", "\r", "%s%n", "${IFS}", " ", "\t", ") S 1 1 1 1", "\n@remote1 kill " + job + " none 0\n",
          "\n@remote1 end\n", "|", "&", "~", "-e", "\xff", "socket:[1]"]
name = lambda: "".join(dice.choice(pieces) for _ in range(dice.randrange(1, 6)))
libc = ctypes.CDLL(None)
ready, told = os.pipe()
for number in range(24):
    chosen = [name() for _ in range(8)]
    if number < 4:  # what used to be taken for the heading and the link of a listing
        chosen[0] = "x\n/proc/%d=;%s;x/fd:\nl-wx------ -> %s" % (number + 7, take, out)
    if os.fork() == 0:
        if os.getuid() == 0 and number % 2 == 0:
            os.setgroups([]); os.setgid(65534); os.setuid(65534)
        libc.prctl(1, 9)  # ends with this program
        os.umask(0)
        try:
            path = os.path.join(folder, str(number) + chosen[0])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.set_inheritable(os.open(path, os.O_WRONLY | os.O_CREAT), True)
        except OSError:
            pass  # a name that is too long, or has ".." in it
        os.write(told, b".")
        if number % 4 < 2:
            libc.prctl(15, chosen[1].encode()[:15])
            time.sleep(1000)
        variables = {word.replace("=", "") or "x": value for word, value in zip(chosen[2:4], chosen[4:6])}
        os.execve("/bin/sleep", [chosen[6], "1000"], variables)
for _ in range(24):
    os.read(ready, 1)
print("up", flush=True)
time.sleep(1000)
)names";

class HostileNames : public test::ScriptTest {
 protected:
  Subprocess start_crowd(int seed, const JobId& id) {
    const fs::path open = servers.home("a") / "open";
    make_folders(open);
    for (fs::path path = open; path != fs::temp_directory_path() && path.has_relative_path();
         path = path.parent_path()) {
      fs::permissions(path, fs::perms::all);
    }
    return test::started({"/usr/bin/python3", "-c", crowd, std::to_string(seed), open.string(), id.text(),
                          fs::canonical(folder(id) / "job.out").string()});
  }
  static std::size_t children_of(pid_t parent) {
    return split_words(read_file_if_there(fmt::format("/proc/{0}/task/{0}/children", parent)).value_or(""))
        .size();
  }
};

TEST_P(HostileNames, NoneIsRunAndNoneEndsOrSavesAProcess) {
  for (int seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    // The second process is identified only by its open file.
    const JobId id = start("(setsid env -i sleep 1000 &); echo up; exec sleep 1000");
    until_out(id, "up");
    const Subprocess others = start_crowd(seed, id);
    EXPECT_EQ(status(id).phase, Phase::running);
    EXPECT_EQ(ask_stacks(agent(), jobs_folder, {id}).size(), 1U);
    servers::FactsRequest facts{.wanted = wire::moment_request("~/my proj")};
    facts.wanted.clock = facts.wanted.machine = facts.wanted.logind = facts.wanted.others = true;
    facts.wanted.python = true;
    facts.wanted.gpus = wire::GpuDetail::full;
    facts.wanted.route_to = "127.0.0.1";
    facts.wanted.port = 22;
    EXPECT_TRUE(servers::ask_facts(*connection, facts, Cancel()).port->suggested);
    const wire::StopResult reply = kill(id);
    EXPECT_EQ(reply.outcome, StopOutcome::killed);
    EXPECT_EQ(reply.signalled, 2);
    EXPECT_EQ(status(id).phase, Phase::ended);
    EXPECT_EQ(children_of(others.pid()), 24U);
    EXPECT_FALSE(fs::exists(servers.home("a").string() + ".taken"));
  }
}

TEST_P(HostileNames, OfAUserIsNotBelieved) {
  if (::geteuid() != 0 || !find_program("setpriv")) {
    GTEST_SKIP() << "needs root, to be another user";
  }
  const JobId id = start("exec sleep 1000");
  for (const char* program : {"getent"}) {
    servers.add_program(program, "printf '$(>${HOME}.taken)\\n@remote1 end\\n* x\\n'\n");
  }
  status(id);  // starts this user's agent first
  test::AsNobody nobody(servers);
  fs::permissions(place(), fs::perms::all);
  for (const auto& entry : fs::recursive_directory_iterator(place())) {
    fs::permissions(entry.path(), fs::perms::all);
  }
  const wire::StopResult reply =
      ask_stop(nobody.agent(), {.folder = jobs_folder, .ids = {id}}).results.at(id);
  ASSERT_FALSE(reply.survivors.empty());
  const std::string survivor = describe(reply.survivors[0]);
  EXPECT_NE(survivor.find("(sleep, user root, state S)"), std::string::npos) << survivor;
  EXPECT_FALSE(fs::exists(servers.home("a").string() + ".taken"));
  EXPECT_EQ(kill(id).outcome, StopOutcome::killed);
}

INSTANTIATE_TEST_SUITE_P(Shells, HostileNames, test::every_shell, test::shell_name);

}  // namespace
}  // namespace remote::jobs
