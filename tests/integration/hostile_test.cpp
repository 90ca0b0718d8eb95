// Servers that answer nonsense, too much, or nothing: commands end in time, name the server, limit their
// memory use, and still show the output of the other servers. Uses real sshd; ForceCommand defines the
// answers of each test.

#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "support/paths.hpp"
#include "support/test_sshd.hpp"
#include "support/waiting.hpp"

namespace remote {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;
using test::TestClient;
using test::TestSshd;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

struct Ended {
  int code = -1;  // as in a shell
  std::string out;
  std::string err;
  long peak_kb = 0;  // peak memory of the program
};

// A server `bad` that answers according to answer(), and a server `good` that works normally.
class Hostile : public testing::Test {
 protected:
  Hostile()
      : folder_("remote hostile "),
        bad_(client_.public_key(), {"ForceCommand " + forced()}),
        good_(client_.public_key()) {
    make_folders(project() / ".remote");
    make_folders(server_folder("bad"));
    make_folders(server_folder("good"));
    write_file_atomic(project() / "file.txt", "one\n");
    honest();
    configure(bad_.port());
  }

  fs::path project() const { return folder_.path() / "proj"; }
  fs::path server_folder(const std::string& name) const { return folder_.path() / (name + "-server"); }
  std::string forced() const { return "sh " + shell_quote((folder_.path() / "answer").string()); }

  // Sets what `bad` does with every command, as a shell script. The original command is in
  // $SSH_ORIGINAL_COMMAND.
  void answer(const std::string& script) { write_file_atomic(folder_.path() / "answer", script + "\n"); }
  void honest() { answer("exec sh -c \"$SSH_ORIGINAL_COMMAND\""); }

  void configure(int bad_port, int timeout_s = 10) {
    std::string text = fmt::format("python: {{manager: system}}\nconnect_timeout: {}\nservers:\n", timeout_s);
    for (const auto& [name, port] : {std::pair{"bad", bad_port}, std::pair{"good", good_.port()}}) {
      text += fmt::format(
          "  {}: {{hostname: 127.0.0.1, port: {}, username: {}, private_key: \"{}\", "
          "known_hosts: \"{}\", remote_path: \"{}\"}}\n",
          name, port, test::own_user(), client_.key().string(), client_.known_hosts().string(),
          server_folder(name).string());
    }
    write_file_atomic(project() / ".remote/configs.yaml", text);
    const Ended trusted = remote({"trust", "--yes"});  // known_hosts is outside the project
    ASSERT_EQ(trusted.code, 0) << trusted.err;
  }

  SubprocessSpec spec(const std::vector<std::string>& words, const std::string& tag) const {
    SubprocessSpec spec;
    spec.argv = {"sh",
                 "-c",
                 "out=$1 err=$2; shift 2; exec \"$@\" >\"$out\" 2>\"$err\"",
                 "sh",
                 (folder_.path() / (tag + ".out")).string(),
                 (folder_.path() / (tag + ".err")).string(),
                 test::remote_binary,
                 "--project",
                 project().string()};
    spec.argv.insert(spec.argv.end(), words.begin(), words.end());
    spec.set_env = {{"HOME", folder_.path().string()}, {"SSH_AUTH_SOCK", ""}};
    return spec;
  }
  Ended ended(Subprocess& process, const std::string& tag) const {
    Ended ended;
    rusage usage{};
    int status = 0;
    const pid_t pid = process.release();
    EXPECT_EQ(::wait4(pid, &status, 0, &usage), pid);
    ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ended.peak_kb = usage.ru_maxrss;
    ended.out = read_file(folder_.path() / (tag + ".out"));
    ended.err = read_file(folder_.path() / (tag + ".err"));
    return ended;
  }
  Ended remote(const std::vector<std::string>& words) const {
    Subprocess process(spec(words, "run"));
    return ended(process, "run");
  }
  // Starts it, and interrupts it like Ctrl-C once `when` holds.
  Ended interrupted(const std::vector<std::string>& words, const std::function<bool()>& when) const {
    Subprocess process(spec(words, "interrupted"));
    EXPECT_TRUE(test::eventually(when));
    process.kill(SIGINT);
    return ended(process, "interrupted");
  }
  // A running job on each server. Their keys: 1 on bad, 2 on good.
  void start_jobs() {
    for (const char* name : {"bad", "good"}) {
      const Ended started = remote({"job-run", "--server", name, "--cmd", "exec sleep 1000"});
      ASSERT_EQ(started.code, 0) << started.err;
    }
    jobs_ = true;
  }
  void TearDown() override {
    if (jobs_) {
      honest();
      configure(bad_.port());
      const Ended killed = remote({"job-kill", "--yes", "--grace", "0"});
      EXPECT_EQ(killed.code, 0) << killed.err;
    }
  }
  static std::string state_of(const Ended& listing, const std::string& server) {
    for (const json& job : json::parse(listing.out)) {
      if (job.at("server") == server) {
        return job.at("state");
      }
    }
    return "none";
  }
  // An error that names the server in a few lines, without terminal control sequences.
  static void expect_named(const Ended& one, const std::string& what = "") {
    EXPECT_THAT(one.err, AnyOf(HasSubstr("bad: "), HasSubstr("on bad"))) << what;
    EXPECT_LT(one.err.size(), 20000U) << what;
    EXPECT_EQ(one.err.find('\033'), std::string::npos) << what << "\n" << one.err;
    EXPECT_LT(one.peak_kb, memory_limit_kb) << what;
  }

  // A debug build uses 15 MB with its libraries; sanitizers multiply that.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr long memory_limit_kb = 1000000;
#else
  static constexpr long memory_limit_kb = 100000;
#endif
  TestClient client_;
  TempFolder folder_;
  TestSshd bad_;
  TestSshd good_;
  bool jobs_ = false;
};

// Answers that are nonsense.
const std::vector<std::pair<std::string, std::string>> nonsense = {
    {"nothing", "exit 0"},
    {"binary", "head -c 200000 /dev/urandom"},
    {"a half line", "printf '@remote1 job 0123'"},
    {"no end", "echo '@remote1 now 1'"},
    {"an escape", "printf '@remote1 error \\033]0;title\\007\\033[31mred\\n'"},
    {"wrong fields", "echo '@remote1 job xyz running'; echo '@remote1 start a b c d'; echo '@remote1 end'"},
    {"numbers", "echo '@remote1 now 99999999999999999999999999'; echo '@remote1 end'"},
    {"only an end", "echo '@remote1 now 1'; echo '@remote1 end'"},
    {"somebody else's",
     "echo '@remote1 now 1'; echo '@remote1 job 0123456789abcdef0123456789abcdef running pid=1'; "
     "echo '@remote1 end'"},
    {"no frames", "printf '\\n@remote-agent here\\nbinary\\033[31m, and no frame'"},
    {"an unknown word", "echo '@remote1 hack /etc/passwd'; echo '@remote1 end'"},
};

TEST_F(Hostile, NonsenseInsteadOfAnswersIsAnErrorOfThatServerAlone) {
  start_jobs();
  for (const auto& [name, script] : nonsense) {
    answer("cat >/dev/null & " + script);
    const Ended listing = remote({"job-list", "--json"});
    EXPECT_EQ(state_of(listing, "good"), "running") << name << listing.err;
    // If an answer does not mention the job, its state stays the same; otherwise it is unknown.
    EXPECT_THAT(state_of(listing, "bad"), AnyOf("unknown", "running")) << name;
    if (state_of(listing, "bad") == "unknown") {
      expect_named(listing, name);
    }
    const Ended kill = remote({"job-kill", "--job", "1", "--yes"});
    EXPECT_EQ(kill.code, 1) << name;
    expect_named(kill, name);
  }
  honest();
  EXPECT_EQ(state_of(remote({"job-list", "--json"}), "bad"), "running");  // no part of it was believed
}

TEST_F(Hostile, NonsenseToALaunchAndAStart) {
  for (const std::size_t which : {1, 4, 5, 7}) {
    const auto& [name, script] = nonsense[which];
    answer("cat >/dev/null & " + script);
    const Ended start = remote({"job-run", "--server", "bad", "--cmd", "true"});
    EXPECT_EQ(start.code, 1) << name << start.err;
    expect_named(start, name);
    const Ended launch = remote({"launch", "--nproc-per-node", "1", "--cmd", "true"});  // probes first
    EXPECT_EQ(launch.code, 1) << name << launch.err;
    expect_named(launch, name);
  }
}

TEST_F(Hostile, NonsenseToPrepareAndRsyncDoesNotHideTheOtherServer) {
  for (const std::size_t which : {0, 1, 4}) {
    const auto& [name, script] = nonsense[which];
    answer("cat >/dev/null & " + script);
    const Ended prepare = remote({"prepare"});
    EXPECT_EQ(prepare.code, 1) << name << prepare.err;
    expect_named(prepare, name);
    EXPECT_THAT(prepare.err, HasSubstr("good: ok")) << name;
    const Ended verify = remote({"rsync", "--verify"});
    EXPECT_EQ(verify.code, 1) << name << verify.err;
    expect_named(verify, name);
    EXPECT_THAT(verify.err, HasSubstr("good: ok")) << name;
  }
  EXPECT_EQ(read_file(server_folder("good") / "file.txt"), "one\n");
}

// Endless answers: without a newline, and with plausible lines.
const std::vector<std::pair<std::string, std::string>> floods = {
    {"zeros", "exec cat /dev/zero"},
    {"lines", "exec yes '@remote1 job 0123456789abcdef0123456789abcdef running pid=1 out=1 err=1'"},
    {"notes", "exec yes '@remote1 note something'"},
    {"a line of ours", "printf '@remote1 '; exec tr '\\0' x </dev/zero"},
    {"empty lines", "exec yes ''"},
    {"the program", "exec yes '@remote1 need'"},
    {"the agent", "exec yes '@remote-agent need x86_64'"},
    {"frames", "printf '\\n@remote-agent here\\n'; exec cat /dev/zero"},
};

TEST_F(Hostile, EndlessOutputIsCutOffAndMemoryStays) {
  start_jobs();
  for (const auto& [name, script] : floods) {
    answer(script);
    const Ended listing = remote({"job-list", "--json"});
    EXPECT_EQ(state_of(listing, "bad"), "unknown") << name;
    EXPECT_EQ(state_of(listing, "good"), "running") << name;
    expect_named(listing, name);
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"job-kill", "--job", "1", "--yes"},
             {"job-run", "--server", "bad", "--cmd", "true"},
             {"job-rsync", "--server", "bad"},
             {"launch", "--server", "bad", "--nproc-per-node", "1", "--cmd", "true"},
             {"prepare"}}) {
      const Ended one = remote(words);
      EXPECT_EQ(one.code, 1) << name << words[0] << one.err;
      expect_named(one, name + " " + words[0]);
    }
  }
}

TEST_F(Hostile, FollowingAServerThatPrintsWithoutEndIsGivenUp) {
  start_jobs();
  answer("exec cat /dev/zero");
  const Ended tail = remote({"job-tail", "--job", "1"});
  EXPECT_EQ(tail.code, 1) << tail.err;
  EXPECT_THAT(tail.err, HasSubstr("prints without end"));
  expect_named(tail);
  answer("printf '\\n@remote-agent here\\n\\377\\377\\377\\377 and more than a header'");
  const Ended header = remote({"job-tail", "--job", "1"});
  EXPECT_EQ(header.code, 1) << header.err;
  EXPECT_THAT(header.err, HasSubstr("not understood"));
}

// A command's output may be endless, but not the output of the login shell before it.
constexpr const char* endless_command = "case $PWD in */bad-server) exec cat /dev/zero ;; esac; echo hello";

TEST_F(Hostile, EndlessOutputBeforeTheCommandIsGivenUp) {
  answer("exec cat /dev/zero");
  const Ended run = remote({"run", "--server", "bad", "--cmd", "true"});
  EXPECT_EQ(run.code, 1) << run.err;
  EXPECT_THAT(run.err, HasSubstr("prints without end"));
  expect_named(run);
}

TEST_F(Hostile, EndlessOutputOfRunKeepsMemoryAndCanBeInterrupted) {
  const Ended run = interrupted({"run", "--server", "bad", "--cmd", endless_command}, [&] {
    std::error_code error;
    const auto size = fs::file_size(folder_.path() / "interrupted.out", error);
    return !error && size > 50'000'000;
  });
  EXPECT_EQ(run.code, 130) << run.err;
  EXPECT_LT(run.peak_kb, memory_limit_kb);
}

TEST_F(Hostile, JsonOfEndlessOutputIsAnError) {
  const Ended run = remote({"run", "--json", "--cmd", endless_command});
  EXPECT_EQ(run.code, 1);
  const json all = json::parse(run.out);
  EXPECT_THAT(all.at(0).at("error").get<std::string>(), HasSubstr("bad: too much output"));
  EXPECT_EQ(all.at(1).at("stdout"), "hello\n");
}

TEST_F(Hostile, AServerThatHangsAfterLoginIsUnknownAndCtrlCEndsAtOnce) {
  start_jobs();
  const fs::path mark = folder_.path() / "asked";
  answer("echo $$ >>" + shell_quote(mark.string()) + "; exec sleep 1000");
  const Ended listing = remote({"job-list", "--json"});
  EXPECT_EQ(state_of(listing, "bad"), "unknown");
  EXPECT_EQ(state_of(listing, "good"), "running");
  EXPECT_THAT(listing.err, HasSubstr("the state of its jobs is unknown"));
  // sshd kills hanging commands with their connection only when they write, so kill them here.
  const auto end_hanging = [&] {
    for (const std::string& pid : split_words(read_file_if_there(mark).value_or(""))) {
      ::kill(parse_number<pid_t>(pid).value(), SIGTERM);
    }
    fs::remove(mark);
  };
  end_hanging();
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"run", "--cmd", "echo from-$((1+1))"},
                                             {"prepare"},
                                             {"rsync"},
                                             {"job-run", "--server", "bad", "--cmd", "true"},
                                             {"job-tail", "--job", "1"},
                                             {"job-kill", "--job", "1", "--yes"}}) {
    const bool both = words[0] == "run";
    const Ended one = interrupted(words, [&] {
      const bool good_is_done =
          !both || read_file_if_there(folder_.path() / "interrupted.out").value_or("").find("from-2") !=
                       std::string::npos;
      return fs::exists(mark) && good_is_done;
    });
    EXPECT_EQ(one.code, 130) << words[0] << one.err;
    end_hanging();
  }
}

TEST_F(Hostile, ALaunchThatIsInterruptedEndsTheRanksThatDidStart) {
  const fs::path mark = folder_.path() / "asked";
  // Passes everything on, except the start.
  const fs::path relay = folder_.path() / "relay.py";
  std::ofstream(relay) << "import os, subprocess, sys, time\n"
                          "command = ['sh', '-c', os.environ['SSH_ORIGINAL_COMMAND']]\n"
                          "child = subprocess.Popen(command, stdin=subprocess.PIPE)\n"
                          "while data := os.read(0, 65536):\n"
                          "    if b'start_jobs' in data:\n"
                          "        open(sys.argv[1], 'w').write(str(os.getpid()))\n"
                          "        time.sleep(1000)\n"
                          "    child.stdin.write(data)\n"
                          "    child.stdin.flush()\n"
                          "child.stdin.close()\n"
                          "sys.exit(child.wait())\n";
  answer("exec python3 " + shell_quote(relay.string()) + " " + shell_quote(mark.string()));
  const auto started_on_good = [&] {
    std::error_code error;
    for (const auto& job : fs::directory_iterator(server_folder("good") / ".jobs", error)) {
      if (fs::exists(job.path() / "pid")) {
        return true;
      }
    }
    return false;
  };
  const Ended launch = interrupted({"launch", "--nproc-per-node", "1", "--cmd", "exec sleep 1000"},
                                   [&] { return fs::exists(mark) && started_on_good(); });
  EXPECT_EQ(launch.code, 130) << launch.err;
  EXPECT_THAT(launch.err, Not(HasSubstr("follow rank 0")));
  EXPECT_THAT(launch.err, HasSubstr("the launch failed: none of its ranks is running\n"));
  ::kill(parse_number<pid_t>(trim(read_file(mark))).value(), SIGTERM);
  honest();
  const Ended listing = remote({"job-list", "--stopped", "--json"});
  EXPECT_EQ(state_of(listing, "good"), "killed") << launch.err << listing.err;
  jobs_ = true;  // end the job if it still runs
}

// A port that sends `text` to every client, repeatedly if `endless`.
class Talker {
 public:
  Talker(const std::string& text, bool endless) : port_(test::free_port()) {
    SubprocessSpec spec;
    spec.argv = {"python3",
                 "-c",
                 "import socket, sys, threading\n"
                 "s = socket.socket()\n"
                 "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
                 "s.bind(('127.0.0.1', int(sys.argv[1])))\n"
                 "s.listen(16)\n"
                 "print('up', flush=True)\n"
                 "text = sys.argv[2].encode('latin-1', 'surrogateescape')\n"
                 "def talk(c):\n"
                 "  try:\n"
                 "    c.sendall(text)\n"
                 "    while sys.argv[3] == '1': c.sendall(text)\n"
                 "    while c.recv(4096): pass\n"
                 "  except OSError: pass\n"
                 "while True:\n"
                 "  c = s.accept()[0]\n"
                 "  threading.Thread(target=talk, args=(c,), daemon=True).start()\n",
                 std::to_string(port_),
                 text,
                 endless ? "1" : "0"};
    spec.pipe_stdout = true;
    process_.emplace(spec);
    char first = 0;
    EXPECT_EQ(::read(process_->stdout_fd.get(), &first, 1), 1);
  }
  int port() const { return port_; }

 private:
  int port_;
  std::optional<Subprocess> process_;
};

TEST_F(Hostile, AnythingButSshOnThePortIsAClearErrorWithinTheTimeout) {
  struct Case {
    std::string text;
    bool endless;
    std::string said;
  };
  const std::string mute = "no SSH server answered within 1 s";
  for (const Case& one :
       {Case{"", false, mute}, Case{"HTTP/1.1 400 Bad Request\r\n\r\n", false, mute},
        Case{std::string(70000, 'x'), true, "does not speak SSH"}, Case{"noise\r\n", true, mute},
        Case{"SSH-2.0-OpenSSH_9.2\r\n", false,
             "answered 'SSH-2.0-OpenSSH_9.2', and then no key exchange came"},
        Case{"SSH-2.0-odd\r\n\x01\x02garbage\n", true, "packet"},
        Case{"SSH-2.0-" + std::string(5000, 'v') + "\r\n", false, "does not speak SSH"},
        Case{"SSH-1.5-old\r\n", false, "does not speak SSH 2: it says 'SSH-1.5-old'"}}) {
    const std::string name = one.text.substr(0, 20);
    const Talker talker(one.text, one.endless);
    configure(talker.port(), 1);
    const Ended run = remote({"run", "--server", "bad", "--cmd", "true"});
    EXPECT_EQ(run.code, 1) << name;
    expect_named(run, name);
    EXPECT_THAT(run.err, HasSubstr(fmt::format("127.0.0.1:{}", talker.port()))) << name;
    EXPECT_THAT(run.err, HasSubstr(one.said)) << name;
    EXPECT_THAT(run.err, HasSubstr("hint:")) << name;
  }
  const Talker talker("noise without end", true);
  configure(talker.port());
  const Ended both = remote({"run", "--cmd", "echo hello"});
  EXPECT_EQ(both.code, 1);
  EXPECT_THAT(both.out, HasSubstr("hello"));
  expect_named(both);
}

// `rsync` on the server; replaces every PATTERN in the data it sends with REPLACEMENT of the same length.
std::string forging_rsync(const fs::path& source, const std::string& pattern,
                          const std::string& replacement) {
  return "case $SSH_ORIGINAL_COMMAND in *rsync*--server*) ;; *) exec sh -c \"$SSH_ORIGINAL_COMMAND\" ;; "
         "esac\n"
         "echo remote-rsync-begins\ncd " +
         shell_quote(source.string()) +
         "\n"
         "set -- $(printf '%s' \"$SSH_ORIGINAL_COMMAND\" | sed \"s/.*exec //; s/'//g\")\n"
         "exec python3 -c 'import os, subprocess, sys\n"
         "p = subprocess.Popen(sys.argv[3:], stdout=subprocess.PIPE)\n"
         "a, b = sys.argv[1].encode(), sys.argv[2].encode()\n"
         "while True:\n"
         "  d = os.read(p.stdout.fileno(), 65536)\n"
         "  if not d: break\n"
         "  os.write(1, d.replace(a, b))\n"
         "sys.exit(p.wait())' " +
         shell_quote(pattern) + " " + shell_quote(replacement) + " \"$@\"";
}

TEST_F(Hostile, NamesThatLeaveTheFolderBringNothingOutside) {
  start_jobs();
  const fs::path files = server_folder("bad") / "results";
  make_folders(files / "sub");
  write_file_atomic(files / "sub/AA_evil", "evil\n");
  const fs::path to = folder_.path() / "to/here";
  answer(forging_rsync(files, "AA_evil", "../evil"));
  const Ended pull = remote({"job-pull", "--job", "1", "results/", "--to", to.string()});
  EXPECT_EQ(pull.code, 1) << pull.err;
  expect_named(pull);
  for (const fs::path& outside : {to / "evil", to / "../evil", to / "sub/../evil"}) {
    EXPECT_FALSE(fs::exists(outside)) << outside;
  }
  // Without the forgery, the test's rsync does copy files.
  answer(forging_rsync(files, "AA_evil", "AA_good"));
  const Ended honest_pull = remote({"job-pull", "--job", "1", "results/", "--to", to.string()});
  EXPECT_THAT(honest_pull.err, Not(HasSubstr("unsafe"))) << honest_pull.err;
}

TEST_F(Hostile, LinksAreNotWrittenThrough) {
  start_jobs();
  const fs::path outside = folder_.path() / "outside";
  make_folders(outside);
  write_file_atomic(outside / "precious", "precious\n");
  const fs::path files = server_folder("bad") / "results";
  make_folders(files);
  fs::create_symlink(outside, files / "data");
  const fs::path to = folder_.path() / "to";
  ASSERT_EQ(remote({"job-pull", "--job", "1", "results/", "--to", to.string()}).code, 0);
  // Now the link becomes a folder: its files are written to a folder here, not to the link's target.
  fs::remove(files / "data");
  make_folders(files / "data");
  write_file_atomic(files / "data/precious", "overwritten by the server\n");
  const Ended again = remote({"job-pull", "--job", "1", "results/", "--force", "--to", to.string()});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(read_file(outside / "precious"), "precious\n");
  EXPECT_FALSE(fs::is_symlink(to / "data"));
  // Links in a job's outputs are not copied at all.
  std::string id;
  for (const json& job : json::parse(remote({"job-list", "--json"}).out)) {
    if (job.at("server") == "bad") {
      id = job.at("id");
    }
  }
  const fs::path output = server_folder("bad") / ".jobs" / id / "job.out";
  fs::remove(output);
  fs::create_symlink(outside / "precious", output);
  remote({"job-rsync", "--server", "bad"});
  EXPECT_FALSE(fs::is_symlink(fs::symlink_status(project() / ".remote/jobs" / id / "job.out")));
  fs::remove(output);
  write_file_atomic(output, "appended\n");
  EXPECT_EQ(remote({"job-rsync", "--server", "bad"}).code, 0);
  EXPECT_EQ(read_file(outside / "precious"), "precious\n");
  EXPECT_EQ(read_file(project() / ".remote/jobs" / id / "job.out"), "appended\n");
}

}  // namespace
}  // namespace remote
