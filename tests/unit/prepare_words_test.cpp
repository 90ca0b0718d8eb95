#include "cli/show/prepare_words.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "servers/disk_hints.hpp"
#include "servers/pip_hints.hpp"

namespace remote::cli {
namespace {
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(PackageLine, SaysWhichPackage) {
  for (const auto& [line, words] : std::vector<std::pair<std::string, std::string>>{
           {"Collecting torch==2.6.0 (from -r requirements.txt (line 1))", "collecting torch==2.6.0"},
           {"  Downloading torch-2.6.0-cp311-cp311-linux_x86_64.whl (766.7 MB)",
            "downloading torch 2.6.0 (766.7 MB)"},
           {"  Downloading https://host/a/some-1.0.tar.gz (3 kB)", "downloading some-1.0 (3 kB)"},
           {"  Using cached six-1.17.0-py2.py3-none-any.whl (11 kB)", "from the cache: six 1.17.0 (11 kB)"},
           {"Processing ./wheels/six-1.17.0-py2.py3-none-any.whl", "reading six 1.17.0"},
           {"Requirement already satisfied: six in /usr/lib", "there already: six"},
           {"  Building wheel for apex (setup.py): started", "building apex"},
           {"Installing collected packages: a, b, c", "installing 3 packages: a, b, c"},
           {"Waiting for cache lock: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process "
            "1729 (python3)...",
            "waiting for process 1729 (python3), which installs packages"},
           {"Waiting for cache lock: Could not get lock /var/lib/dpkg/lock-frontend",
            "waiting until another process has installed packages"},
           {"Downloading ", "Downloading "},
           {"something else", "something else"}}) {
    EXPECT_EQ(package_line(line), words);
  }
}

TEST(PackageLine, TakesAnything) {
  for (const char* line :
       {"Collecting  ", "Downloading .whl", "Downloading -.whl x", "Building wheel for  "}) {
    EXPECT_NO_THROW(package_line(line));
  }
}

TEST(SameFailures, TellsTheServerThatFailedFirst) {
  SameFailures failures;
  const auto failure = [](const char* lines) {
    return ServerFailed{0, Error("update-packages", "pip could not install the packages"), lines, "log"};
  };
  EXPECT_EQ(failures.seen_on("a", failure("no such package")), "");
  EXPECT_EQ(failures.seen_on("b", failure("no such package")), "a");
  EXPECT_EQ(failures.seen_on("c", failure("the disk is full")), "");
  EXPECT_EQ(failures.seen_on("f", failure("WARNING: object at 0x7f1\nERROR: no x")), "");
  EXPECT_EQ(failures.seen_on("g", failure("WARNING: object at 0x7f2\nERROR: no x")), "f");
  EXPECT_EQ(failures.seen_on("d", failure("")), "");
  EXPECT_EQ(failures.seen_on("e", failure("")), "");
}

TEST(PipHint, SaysWhatToTry) {
  const auto pip_hint = [](std::string_view err) { return servers::pip_hint(err, false); };
  EXPECT_THAT(pip_hint("ERROR: No matching distribution found for torhc==2\nmore"),
              HasSubstr("is 'torhc==2' the"));
  EXPECT_THAT(pip_hint("NewConnectionError …\nERROR: No matching distribution found for six"),
              HasSubstr("cannot reach the package index"));
  EXPECT_EQ(pip_hint("ERROR: Invalid requirement: 'python=3.10' (from line 1 of requirements.txt)\n"
                     "Hint: = is not a valid operator. Did you mean == ?"),
            "'python=3.10' is a line for conda: remove it from requirements.txt, and set `python: {version: "
            "'3.10'}` in configs.yaml");
  EXPECT_EQ(
      pip_hint("ERROR: Invalid requirement: 'numpy=1.26.4=py310h5f9d8c6_0': Expected end"),
      "'numpy=1.26.4=py310h5f9d8c6_0' is a line for conda: pip takes numpy==1.26.4 in requirements.txt");
  EXPECT_EQ(pip_hint("ERROR: Invalid requirement: 'a>=1 b'"), "");
  EXPECT_THAT(pip_hint("ERROR: ResolutionImpossible: for help"), HasSubstr("contradict"));
  EXPECT_THAT(pip_hint("LookupError: setuptools-scm was unable to detect version for /home/ada/demo."),
              AllOf(HasSubstr("remove .git from .remote/exclude.txt"),
                    HasSubstr("`prologue: export SETUPTOOLS_SCM_PRETEND_VERSION=")));
  EXPECT_THAT(pip_hint("OSError: [Errno 28] No space left on device"), HasSubstr("free some space"));
  EXPECT_THAT(pip_hint("fatal error: Python.h: No such file or directory"), HasSubstr("compiled"));
  EXPECT_EQ(pip_hint("something else"), "");
  EXPECT_THAT(
      pip_hint(
          "ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: '/usr/x'\n"),
      HasSubstr("let remote make one"));
  EXPECT_EQ(servers::pip_hint("ERROR: …: [Errno 13] Permission denied: '/usr/x'", true),
            "the login may not write to /usr/x on the server");
}

TEST(PipHint, NamesTheFullDisk) {
  const std::string full = "OSError: [Errno 28] No space left on device";
  const auto hint = [&](const std::string& err) {
    std::vector<DiskFacts> disks(2);
    disks[0].what = "tmp";
    disks[0].path = "/tmp";
    disks[0].free_bytes = 3U << 20U;
    disks[1].what = "environment";
    disks[1].path = "/home/a/env";
    disks[1].free_bytes = 9U << 20U;
    return servers::pip_hint(err, true, disks);
  };
  EXPECT_EQ(hint(full),
            "free some space in /tmp (3 MB left) on the server, or set TMPDIR in `env` of the server to a "
            "folder with "
            "more space");
  EXPECT_EQ(hint(full + ": '/home/a/env/lib/x.py'"),
            "free some space in /home/a/env (9 MB left) on the server, then run the command again");
  EXPECT_EQ(hint(full + ": '/cache/x'"), "free some space on the server's disk with /cache/x");
}

TEST(DiskHint, FollowsFromErrno) {
  using servers::disk_hint;
  EXPECT_THAT(disk_hint("Error: [Errno 122] Disk quota exceeded: '/home/a/.venv'"), HasSubstr("`quota -s`"));
  EXPECT_THAT(disk_hint("[Errno 28] No space left on device"), HasSubstr("free some space on the server"));
  for (const char* message :
       {"Error: [Errno 38] Function not implemented: 'lib' -> '/p/.venv/lib64'",
        "Operation not supported: /p/.jobs", "cannot write in /p/.jobs/1: Operation not permitted",
        "cannot keep the programs in /p/.jobs/.bin: Operation not permitted",
        "rsync: symlink \"/p/a\" -> \"b\" failed: Operation not permitted",
        "[Errno 1] Operation not permitted: 'lib' -> '/p/.venv/lib64'"}) {
    EXPECT_THAT(disk_hint(message), HasSubstr("lacks modes, links or locks")) << message;
  }
  EXPECT_EQ(disk_hint("it cannot start a process there: Operation not permitted"), "");
  using servers::output_disk_hint;
  EXPECT_EQ(output_disk_hint("OSError: [Errno 38] Function not implemented"), "");
  EXPECT_EQ(output_disk_hint("OSError: [Errno 95] Operation not supported"), "");
  EXPECT_THAT(
      output_disk_hint("rsync: [receiver] failed to set permissions on \"/p\": Operation not supported"),
      HasSubstr("lacks modes, links or locks"));
}

// A keyword somewhere in the output does not justify a hint.
TEST(PipHint, IsGivenOnlyForWhatIsCertain) {
  const std::string closed =
      "  ssh: connect to host 127.0.0.1 port 9: Connection refused\n  fatal: Could not read from remote "
      "repository.\n";
  EXPECT_EQ(servers::pip_hint(closed, true), "");
  const std::pair<const char*, const char*> of_apt[] = {
      {"E: Unable to locate package c5hello\n", "the package's name"},
      {"E: The repository 'file:/srv/debs ./ Release' no longer has a Release file.\n"
       "E: Unable to locate package c5hello\n",
       "one of its package sources"},
      {"W: Failed to fetch http://deb.example/dists/bookworm/InRelease  Temporary failure resolving "
       "'deb.example'\nW: Some index files failed to download. They have been ignored, or old ones used "
       "instead.\nE: Unable to locate package c5hello\n",
       "mirrors"},
      {"E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 42 (unattended-upgr)\n",
       "another process is installing"},
      {"E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem.\n",
       "dpkg --configure -a"},
      {"E: Failed to fetch http://deb.example/x.deb  Temporary failure resolving 'deb.example'\n", "mirrors"},
      {"E: Failed to fetch http://deb.example/x.deb  Cannot initiate the connection to deb.example:80 "
       "(192.0.2.1). - connect (101: Network is unreachable)\n",
       "mirrors"}};
  for (const auto& [line, hint] : of_apt) {
    EXPECT_THAT(servers::pip_hint(line, true), HasSubstr(hint)) << line;
    EXPECT_EQ(servers::decisive_lines(std::string("Reading package lists...\n") + line + "more\n", 5) + "\n",
              std::string_view(line).substr(std::string_view(line).find("E: ")));
  }
  EXPECT_THAT(servers::decisive_lines(closed, 5), HasSubstr("port 9: Connection refused"));
  const std::string ssh =
      "  Running command git clone --filter=blob:none --quiet ssh://git@github.com/me/own.git /tmp/x\n"
      "  git@github.com: Permission denied (publickey).\n  fatal: Could not read from remote repository.\n\n"
      "  error: subprocess-exited-with-error\n";
  for (const bool own : {false, true}) {
    EXPECT_THAT(servers::pip_hint(ssh, own), HasSubstr("no access to that repository"));
  }
  for (const char* harmless :
       {"WARNING: The cache was disabled: Permission denied\nERROR: Invalid requirement: 'a b'",
        "  writing 'No space left on device' to the manual\nERROR: Invalid requirement: 'a b'",
        "NewConnectionError\nerror: Multiple top-level packages discovered in a flat-layout: ['a', 'b'].",
        "conflicting dependencies"}) {
    EXPECT_EQ(servers::pip_hint(harmless, false), "") << harmless;
  }
  EXPECT_EQ(servers::pip_hint("ssh: Could not resolve hostname git.lab: Name or service not known\n", false),
            "the server cannot resolve 'git.lab'");
  EXPECT_EQ(servers::pip_hint("fatal: unable to access 'https://h/x/': Could not resolve host: h\n", false),
            "the server cannot resolve 'h'");
}

TEST(DecisiveLines, AreThoseThatNameTheCause) {
  using servers::decisive_lines;
  std::string application =
      "  error: subprocess-exited-with-error\n  \n"
      "  × Getting requirements to build editable did not run successfully.\n"
      "  │ exit code: 1\n  ╰─> [14 lines of output]\n"
      "      error: Multiple top-level packages discovered in a flat-layout: ['data', 'models'].\n"
      "      \n      To avoid accidental inclusion of unwanted files or directories,\n";
  for (int i = 0; i < 20; ++i) {
    application += "      more about that\n";
  }
  application +=
      "      [end of output]\n  note: This error originates from a subprocess.\n"
      "error: metadata-generation-failed\n× Encountered error while generating package metadata.\n"
      "╰─> See above for output.\nhint: See above for details.\n";
  EXPECT_EQ(decisive_lines(application, 15),
            "error: Multiple top-level packages discovered in a flat-layout: ['data', 'models'].");
  EXPECT_EQ(
      decisive_lines("PackagesNotFoundError: not available from current channels:\n\n  - tourch\n\nmore", 15),
      "PackagesNotFoundError: not available from current channels:\n  - tourch");
  EXPECT_EQ(decisive_lines("a\nx.c:3:10: fatal error: Python.h: No such file\nb", 15),
            "x.c:3:10: fatal error: Python.h: No such file");
  EXPECT_EQ(decisive_lines("ERROR: one\nERROR: two\nERROR: three\n", 2), "ERROR: two\nERROR: three");
  EXPECT_EQ(decisive_lines("nothing\nof use", 15), "");
  EXPECT_EQ(decisive_lines("", 15), "");
}

}  // namespace
}  // namespace remote::cli
