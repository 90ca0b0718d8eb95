#include "agent/provision/provision.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include "agent/fake_host.hpp"
#include "agent/host/descriptor.hpp"
#include "agent/host/files.hpp"
#include "agent/job/variables.hpp"
#include "agent/kept_replies.hpp"
#include "agent/provision/disk_flaw.hpp"
#include "agent/provision/failure.hpp"
#include "agent/provision/find_python.hpp"
#include "agent/provision/lock.hpp"
#include "agent/provision/make_environment.hpp"
#include "agent/provision/prologue.hpp"
#include "agent/provision/python_place.hpp"
#include "agent/provision/steps.hpp"
#include "agent/waiting.hpp"

// The Python environment: prepared state, locks, and the programs that setup and update-packages run.

namespace remote::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A fake Python that logs its arguments and the variables that pip reads.
constexpr const char* logging_python =
    "case $2 in\n"
    "  *'import pip'*) exit ;;\n"
    "  *packaging*) printf 'requirements:' >>\"$HOME/log\"; shift 2; printf ' <%s>' \"$@\" >>\"$HOME/log\"\n"
    "    echo >>\"$HOME/log\"; exit \"$(cat \"$HOME/unmet\" 2>/dev/null || echo 0)\" ;;\n"
    "esac\n"
    "printf '%s\\n' \"$@\" >>\"$HOME/log\"\n"
    "env | grep -E '^(PIP|UV|PIPENV|PWD)' | sort >>\"$HOME/log\"\n"
    "echo installing\n"
    "echo trouble >&2\n"
    "exit \"$(cat \"$HOME/fails\" 2>/dev/null || echo 0)\"\n";

// A login shell that adds `folder` to PATH if it is interactive. The agent asks each shell only once.
void use_shell(test::FakeHost& fake, const fs::path& folder) {
  const fs::path shell = fake.folder() / ("shell of " + folder.filename().string());
  fake.put_program(shell, "[ \"$1\" != -i ] || PATH=" + quote_word(folder.string()) +
                              "\nprintf '\\n@path %s\\n' \"$PATH\"");
  fake.host.environment["SHELL"] = shell.string();
}

class Provision : public ::testing::Test {
 protected:
  Provision() {
    fs::create_directories(project());
    python.manager = wire::PythonManager::venv;
    python.project = "~/my pro'ject";
    python.scripts = "~/my pro'ject/.remote-scripts";
    python.project_key = "0123abcd";
    python.folder = "~/my pro'ject/.venv";
    python.conda = "~/miniconda";
    python.setup_digest = "aa";
    python.packages_digest = "bb";
  }

  fs::path project() const { return fake.home() / "my pro'ject"; }
  fs::path scripts() const { return project() / ".remote-scripts"; }
  fs::path environment() const { return project() / ".venv"; }
  std::string read_home(const char* name) const { return read_file(fake.home() / name).value_or(""); }
  void put_program(const std::string& name, const std::string& text) const {
    fake.put_program(fake.programs() / name, text);
  }
  // Leaves only the programs of coreutils on PATH.
  void hide_programs() {
    for (const char* name : {"env", "grep", "sort", "cat", "sh", "rm", "id", "uname", "mkdir"}) {
      fs::create_symlink(fake.host.find_program(name).string(), fake.programs() / name);
    }
    fake.host.environment["PATH"] = fake.programs();
  }
  wire::PreparedReply ask(const std::string& token = "", const std::string& server = "n1") const {
    return find_prepared(fake.host, {.python = python, .share_token = token, .server = server});
  }

  struct Provisioned {
    std::vector<std::string> steps;
    std::vector<std::string> notes;
    std::string out;
    std::string errors;
    std::string failure;
    std::string hint;
  };
  Provisioned provision(const wire::Provisioning& work) const {
    test::KeptReplies<wire::ProvisionReply> replies;
    answer_provision(fake.host, work, replies);
    Provisioned result;
    for (const wire::ProvisionReply& part : replies.parts()) {
      if (!part.step.empty()) {
        result.steps.push_back(part.step);
      }
      if (!part.note.empty()) {
        result.notes.push_back(part.note);
      }
      result.out += part.out;
      result.errors += part.errors;
    }
    const auto& end = replies.parts().back().end;
    EXPECT_TRUE(end) << "the last part has the end";
    if (end && end->failure) {
      result.failure = end->failure->reason;
      result.hint = end->failure->hint;
    }
    return result;
  }
  Provisioned set_up(const wire::Setup& setup = {}) const {
    return provision({.python = python, .setup = setup});
  }
  Provisioned install(const wire::Packages& packages) const {
    return provision({.python = python, .packages = packages});
  }

  test::FakeHost fake;
  wire::ManagedPython python;
};

// ---- What is prepared

TEST_F(Provision, KnowsWhoSentTheProjectLast) {
  const wire::ProjectSource first{
      .folder_id = std::string(32, 'a'), .user = "ada@laptop", .folder = "/x", .at = 5};
  const auto record = [&](const std::optional<wire::ProjectSource>& source) {
    return record_source(fake.host, {python.scripts, source}).former;
  };
  const auto announce = [&] {
    return find_prepared(fake.host, {.python = python, .server = "n1", .is_sending = true}).source;
  };
  EXPECT_FALSE(announce());
  EXPECT_FALSE(record(first)) << "an announcement records nothing";
  EXPECT_EQ(announce()->user, "ada@laptop");
  EXPECT_FALSE(ask().source) << "nothing is sent";
  wire::ProjectSource second = first;
  second.user = "bob@desk";
  EXPECT_EQ(record(second)->user, "ada@laptop");
  EXPECT_EQ(record(std::nullopt)->user, "bob@desk");
  EXPECT_FALSE(announce());
  EXPECT_FALSE(record(std::nullopt));
}

TEST_F(Provision, TheProjectsFolderIsCreatedForAllToRead) {
  fs::remove_all(project());
  python.project = "~/deep/er/than this";
  const mode_t mask = ::umask(077);
  const wire::PreparedReply reply = ask();
  ::umask(mask);
  EXPECT_FALSE(reply.failure);
  EXPECT_FALSE(reply.has_setup);
  for (const char* name : {"deep", "deep/er", "deep/er/than this"}) {
    struct stat info {};
    ASSERT_EQ(::stat((fake.home() / name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0755U) << name;
  }
}

TEST_F(Provision, AFolderThatCannotBeMadeIsRefusedWithTheReason) {
  const auto refusal = [&](const std::string& project) {
    python.project = project;
    const wire::PreparedReply reply = ask();
    EXPECT_TRUE(reply.failure);
    return reply.failure.value_or(wire::ProvisionFailure());
  };
  const std::string home = fake.home().string();
  const std::string what = "cannot make the project's folder " + home;
  fake.put(fake.home() / "file", "");
  EXPECT_EQ(refusal("~/file/x").reason, what + "/file/x: " + home + "/file is not a folder");
  EXPECT_EQ(refusal("~/file").hint, "choose another remote_path in configs.yaml");
  // As if the disk of the project is not mounted.
  fs::create_symlink("/no/disk", fake.home() / "data");
  for (const char* name : {"/data", "/data/deep/x"}) {
    const wire::ProvisionFailure failure = refusal("~" + std::string(name));
    EXPECT_EQ(failure.reason,
              what + name + ": " + home + "/data is a link to /no/disk, which does not exist");
    EXPECT_EQ(failure.hint, "mount the disk of the link's target, or remove the link");
  }
  if (::geteuid() != 0) {
    fs::create_directory(fake.home() / "closed");
    fs::permissions(fake.home() / "closed", fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_EQ(refusal("~/closed/x").reason, what + "/closed/x: Permission denied");
  }
}

TEST_F(Provision, StampsTellWhatIsDone) {
  fake.put(environment() / ".remote-setup", "aa\nadopted\n");
  fake.put(environment() / ".remote-packages.0123abcd", "bb\n");
  EXPECT_FALSE(ask().has_setup) << "it has no interpreter";
  fake.put_program(environment() / "bin/python", "");
  EXPECT_TRUE(ask().has_setup);
  EXPECT_TRUE(ask().has_packages);
  python.packages_digest = "cc";
  EXPECT_TRUE(ask().has_setup);
  EXPECT_FALSE(ask().has_packages);
  python.packages_digest = "bb";
  python.setup_digest = "cc";
  EXPECT_FALSE(ask().has_setup);
  EXPECT_FALSE(ask().has_packages);
}

// The client cannot read these, so the server's sizes and times decide.
TEST_F(Provision, PackagesAreOldAfterAChangeOfAPlaceOnTheServer) {
  fake.put_program(environment() / "bin/python", logging_python);
  fake.put(environment() / ".remote-setup", "aa\n");
  fake.put(fake.home() / "p/setup.py", "1");
  fake.put(fake.home() / "p/p/deep/x.py", "1");
  python.packages_places = {"~/p", (fake.home() / "none").string()};
  EXPECT_FALSE(ask().has_packages);
  const auto install_again = [&](const std::string& why) {
    EXPECT_FALSE(ask().has_packages) << why;
    EXPECT_EQ(install({.source = PackageSource::requirements}).failure, "");
    EXPECT_TRUE(ask().has_packages) << why;
  };
  install_again("nothing is installed");
  fake.put(fake.home() / "p/p/deep/x.py", "12");
  install_again("a file");
  fake.put(fake.home() / "p/build/lib/x.py", "built");
  fake.put(fake.home() / "p/p.egg-info/PKG-INFO", "built");
  EXPECT_TRUE(ask().has_packages) << "what building it leaves";
  fs::remove(fake.home() / "p/setup.py");
  install_again("a file is gone");
  fake.put(fake.home() / "none", "");
  install_again("a place is new");
  fs::create_symlink("..", fake.home() / "p/p/circle");
  install_again("a link");
}

TEST_F(Provision, TheFirstServerHasTheTokenAndOldOnesAreRemoved) {
  EXPECT_EQ(ask("77", "n1").first, "n1");
  EXPECT_EQ(ask("77", "n2").first, "n1");
  EXPECT_EQ(ask("", "n3").first, "");
  const timespec old_times[2]{{::time(nullptr) - 3700, 0}, {::time(nullptr) - 3700, 0}};
  ::utimensat(AT_FDCWD, (scripts() / "shared.77").c_str(), old_times, AT_SYMLINK_NOFOLLOW);
  fs::create_symlink("n9", scripts() / "shared.66");
  EXPECT_EQ(ask("88", "n2").first, "n2");
  EXPECT_FALSE(fs::is_symlink(scripts() / "shared.77"));
  EXPECT_TRUE(fs::is_symlink(scripts() / "shared.66")) << "it may belong to a call that is running";
}

TEST_F(Provision, MissingPackagesOfTheDistributionAreNoticed) {
  put_program("dpkg-query",
              "for package; do :; done\n"
              "case $package in\n"
              "  libnew) echo 'install ok installed=1.2' | cut -d = -f \"${LIST:-1-2}\" ;;\n"
              "  libtwo) echo 'deinstall ok config-files'; echo 'install ok installed' ;;\n"
              "  libgone) echo 'deinstall ok config-files' ;;\n"
              "  *) exit 1 ;;\n"
              "esac");
  EXPECT_THAT(find_missing_packages(fake.host, {"libnew=1.2", "libtwo"}), IsEmpty());
  EXPECT_THAT(find_missing_packages(fake.host, {"libnew=1.20", "libnew=1", "libgone", "none", "libtwo=1"}),
              ElementsAre("libnew=1.20", "libnew=1", "libgone", "none", "libtwo=1"));
  fake.put(environment() / ".remote-setup", "aa\n");
  fake.put_program(environment() / "bin/python", "");
  python.system_packages = {"libgone"};
  EXPECT_FALSE(ask().has_setup);
}

TEST_F(Provision, OnlyPythonFrom36IsUsed) {
  put_program("python3", "echo Python 3.5.3");
  put_program("python", "exec /usr/bin/python3 \"$@\"");
  hide_programs();
  EXPECT_EQ(find_python(fake.host, "").program, Path(fake.programs() / "python"));
  EXPECT_EQ(find_python(fake.host, "3").program, Path(fake.programs() / "python"));
  EXPECT_EQ(find_python(fake.host, "3.2").program, Path());
  const std::string minor = "3.11";
  put_program("python" + minor, "exit 0");
  EXPECT_EQ(find_python(fake.host, minor).program, Path(fake.programs() / ("python" + minor)));
}

// A pyenv shim for a version that is not installed.
TEST_F(Provision, APythonThatFailsIsPassedOverAndNamedIfThereIsNoOther) {
  const std::string shim = "echo \"pyenv: python3: command not found\" >&2\necho more >&2\nexit 127";
  put_program("python3", shim);
  const fs::path more = fake.folder() / "more";
  fake.put_program(more / "python3", "echo Python 3.9.1");
  fake.host.environment["PATH"] = fake.programs().string() + ":" + more.string();
  FoundPython found = find_python(fake.host, "");
  EXPECT_EQ(found.program, Path(more / "python3"));
  EXPECT_EQ(found.version, "3.9.1");
  fake.put_program(more / "python3", "echo Python 2.7.1; exit 1");
  found = find_python(fake.host, "");
  EXPECT_EQ(found.program, Path());
  EXPECT_EQ(found.refusal, (fake.programs() / "python3").string() + ": pyenv: python3: command not found");
  fs::remove(fake.programs() / "python3");
  EXPECT_EQ(find_python(fake.host, "").refusal, (more / "python3").string() + ": it is Python 2.7.1");
}

TEST_F(Provision, SetupNamesTheShimThatFails) {
  hide_programs();
  use_shell(fake, "/none");
  put_program("python3.12", "echo 'pyenv: python3.12: command not found' >&2\nexit 127");
  EXPECT_EQ(set_up({.new_version = "3.12"}).failure, "there is no Python 3.12 on the PATH of this server; " +
                                                         (fake.programs() / "python3.12").string() +
                                                         ": pyenv: python3.12: command not found");
  put_program("python3", "echo 'pyenv: python3: command not found' >&2\nexit 127");
  EXPECT_THAT(set_up().failure, HasSubstr("python3: pyenv: python3: command not found"));
  const fs::path versions = fake.home() / ".pyenv/versions";
  fake.put_program(versions / "3.11.9/bin/python3", "echo Python 3.11.9; exit 1");
  fake.put_program(versions / "3.12.4/bin/python3", "echo Python 3.12.4");
  EXPECT_THAT(set_up({.new_version = "3.12"}).hint,
              HasSubstr("`prologue: export PATH='" + (versions / "3.12.4/bin").string() + "':$PATH`"));
}

TEST_F(Provision, APythonThatOnlyOtherShellsFindIsNamed) {
  hide_programs();
  const fs::path hidden = fake.folder() / "image";
  fake.put_program(hidden / "python3", "echo Python 3.9.1");
  use_shell(fake, hidden);
  EXPECT_EQ(find_hidden_python(fake.host, ""), Path(hidden / "python3"));
  EXPECT_EQ(find_hidden_python(fake.host, "3.9"), Path(hidden / "python3"));
  const Provisioned result = set_up();
  EXPECT_EQ(result.failure, "there is no Python 3.6 or newer on the PATH of this server");
  EXPECT_THAT(result.hint, HasSubstr("`prologue: export PATH='" + hidden.string() + "':$PATH`"));
  fake.put_program(fake.folder() / "image's own/python3", "echo Python 3.9.1");
  use_shell(fake, fake.folder() / "image's own");
  EXPECT_THAT(set_up().hint, HasSubstr("image'\\''s own':$PATH`"));
}

TEST_F(Provision, AHiddenPythonCanBeInAUsualFolderOrOnThePathOfTheContainer) {
  hide_programs();
  use_shell(fake, "/none");
  EXPECT_EQ(find_hidden_python(fake.host, ""), Path());
  fake.put_program(fake.home() / "miniforge3/bin/python3", "echo Python 3.9.1");
  EXPECT_EQ(find_hidden_python(fake.host, ""), Path(fake.home() / "miniforge3/bin/python3"));
  const fs::path image = fake.folder() / "image";
  fake.put_program(image / "python3", "echo Python 3.9.1");
  fake.put(fake.host.system("/proc/1/environ").string(),
           std::string("A=b\0PATH=", 9) + image.string() + std::string("\0C=d", 4));
  EXPECT_EQ(find_hidden_python(fake.host, ""), Path(image / "python3"));
}

// ---- The prologue

TEST_F(Provision, ThePrologueSetsTheEnvironmentAndLimitsOfPrograms) {
  fake.put_program(fake.programs() / "env python", "");
  const std::string text = "export PATH=\"" + fake.programs().string() +
                           ":$PATH\" ADDED='a\nb'\nunset HOME\nulimit -S -n 77\numask 027\n";
  const Prologue prologue = run_prologue(fake.host, text, {});
  EXPECT_EQ(prologue.host.variable("ADDED"), "a\nb");
  EXPECT_EQ(prologue.host.environment.count("HOME"), 0U);
  test::KeptReplies<wire::ProvisionReply> replies;
  Steps steps(fake.host, text, replies);
  EXPECT_EQ(steps.read({"sh", "-c", "ulimit -S -n; umask; echo \"$ADDED\""}), "77\n0027\na\nb\n");
  EXPECT_THAT(replies.parts(), IsEmpty());
}

TEST_F(Provision, WithoutAPrologueFilesAreReadableForAll) {
  test::KeptReplies<wire::ProvisionReply> replies;
  const mode_t mask = ::umask(077);
  Steps steps(fake.host, " \n", replies);
  EXPECT_EQ(steps.read({"sh", "-c", "umask"}), "0022\n");
  ::umask(mask);
}

TEST_F(Provision, AFailedPrologueIsReported) {
  python.prologue = "echo it broke >&2; echo noise; __failed=7\n";
  const wire::PreparedReply reply = ask();
  ASSERT_TRUE(reply.failure);
  EXPECT_EQ(reply.failure->reason, "the prologue in configs.yaml failed (exit code 7)");
  EXPECT_EQ(reply.errors, "it broke\n");
  const Provisioned setup = set_up();
  EXPECT_EQ(setup.failure, reply.failure->reason);
  EXPECT_EQ(setup.hint, "if it needs files of the project, send the project first");
  EXPECT_EQ(setup.errors, "it broke\n");
  python.prologue = "head -c 200000 /dev/zero >&2; echo the end >&2; __failed=1\n";
  EXPECT_THAT(ask().errors, EndsWith("the end\n"));
  EXPECT_GT(set_up().errors.size(), 200'000U);
  python.prologue = "exit 3\n";
  EXPECT_EQ(set_up().failure, "the prologue in configs.yaml failed (exit code 3)");
  python.prologue = "echo harmless >&2\n";
  EXPECT_EQ(ask().errors, "");
}

TEST_F(Provision, VariablesOfTheServerReachThePrologueAndPrograms) {
  fake.put_program(environment() / "bin/python", logging_python);
  python.variables = {{"SITE", "here"}, {"PIP_PROXY", "http://user:pass@proxy"}, {"LC_ALL", "de_DE.UTF-8"}};
  python.prologue = "[ \"$SITE\" = here ] || __failed=3\nexport PIP_CERT=\"$SITE\"\n";
  EXPECT_FALSE(ask().failure);
  EXPECT_EQ(install({.source = PackageSource::pyproject}).failure, "");
  EXPECT_THAT(read_home("log"), HasSubstr("PIP_PROXY=http://user:pass@proxy\n"));
  EXPECT_THAT(read_home("log"), HasSubstr("PIP_CERT=here\n"));
}

TEST_F(Provision, PackagesInTheHomeDirectoryDoNotCountInAnEnvironmentOfOurs) {
  fake.put_program(environment() / "bin/python", "echo \"<${PYTHONNOUSERSITE-unset}>\" >>\"$HOME/log\"");
  const auto run_python = [&](PackageSource source) {
    fs::remove(fake.home() / "log");
    install({.source = source});
    return read_home("log").substr(0, read_home("log").find('\n'));
  };
  put_program("pipenv", "echo \"<${PYTHONNOUSERSITE-unset}>\" >>\"$HOME/log\"");
  EXPECT_EQ(run_python(PackageSource::pyproject), "<unset>");
  python.is_isolated = true;
  EXPECT_EQ(run_python(PackageSource::pyproject), "<1>");
  EXPECT_EQ(run_python(PackageSource::pipenv), "<unset>") << "pipenv itself may be there";
  python.variables = {{"PYTHONNOUSERSITE", ""}};
  EXPECT_EQ(run_python(PackageSource::pyproject), "<>") << "the user's own value";
}

TEST_F(Provision, PipOfTheUserInstallsIntoAnEnvironmentOfOurs) {
  fake.put_program(environment() / "bin/python", "echo \"<${PIP_USER-unset}>\" >>\"$HOME/log\"");
  python.variables = {{"PIP_USER", "1"}};
  install({.source = PackageSource::pyproject});
  EXPECT_THAT(read_home("log"), HasSubstr("<1>")) << "the user's own Python";
  python.is_isolated = true;
  fs::remove(fake.home() / "log");
  install({.source = PackageSource::pyproject});
  EXPECT_THAT(read_home("log"), HasSubstr("<0>"));
}

TEST_F(Provision, AFailureNamesTheDisksThatProgramsWriteTo) {
  fake.put_program(environment() / "bin/python", logging_python);
  fake.put(fake.home() / "fails", "1");
  python.variables = {{"TMPDIR", fake.home()}};
  test::KeptReplies<wire::ProvisionReply> replies;
  answer_provision(
      fake.host, {.python = python, .packages = wire::Packages{.source = PackageSource::pyproject}}, replies);
  const auto& failure = replies.parts().back().end->failure;
  ASSERT_TRUE(failure);
  ASSERT_EQ(failure->disks.size(), 2U);
  EXPECT_EQ(failure->disks[0].what, "tmp");
  EXPECT_EQ(failure->disks[0].path, fake.home());
  EXPECT_EQ(failure->disks[1].path, environment());
}

TEST_F(Provision, AFolderThatCannotTakeFilesIsTheReasonOfAFailure) {
  const auto explain = [&] { return explain_failure(project(), "venv failed", "apt-get").describe(); };
  EXPECT_EQ(explain().reason, "venv failed");
  EXPECT_EQ(explain().hint, "apt-get");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const wire::ProvisionFailure full = explain();
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(full.reason, "venv failed: File too large: " + project().string());
  EXPECT_EQ(full.hint, "");
  EXPECT_TRUE(fs::is_empty(project()));
}

// ---- Locks

TEST_F(Provision, TheLockIsWaitedForAndClosedToOthers) {
  test::KeptReplies<wire::ProvisionReply> replies;
  const fs::path file = scripts() / "setup.lock";
  fake.put(file, "");
  Descriptor other(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  const PythonPlace place(fake.host, python);
  Steps steps(fake.host, "", replies);
  std::thread holder([&] {
    ::usleep(300'000);  // so that it has to wait
    other.reset();
  });
  {
    const EnvironmentLock lock(steps, place);
    EXPECT_TRUE(lock.has_waited());
    const Descriptor third(::open(file.c_str(), O_RDWR | O_CLOEXEC));
    EXPECT_NE(::flock(third.get(), LOCK_EX | LOCK_NB), 0);
    // Programs keep the lock if the agent is killed.
    EXPECT_THAT(steps.read({"readlink", "/proc/self/fd/7"}).value_or(""), HasSubstr("setup.lock"));
  }
  holder.join();
  ASSERT_FALSE(replies.parts().empty());
  EXPECT_EQ(replies.parts()[0].step, "waiting for another remote that prepares this environment");
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_FALSE(EnvironmentLock(steps, place).has_waited());
}

TEST_F(Provision, TheLockBesideAnEnvironmentIsRemovedUnlessItIsTheUsers) {
  test::KeptReplies<wire::ProvisionReply> replies;
  Steps steps(fake.host, "", replies);
  python.folder = "~/env";
  const fs::path file = fake.home() / "env.lock";
  const auto lock_once = [&] {
    const PythonPlace place(fake.host, python);
    const EnvironmentLock lock(steps, place);
    EXPECT_TRUE(fs::exists(file));
  };
  lock_once();
  EXPECT_FALSE(fs::exists(file));
  fake.put(file, "theirs");
  fs::permissions(file, fs::perms::owner_all);
  lock_once();
  EXPECT_EQ(read_file(file), "theirs");
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_all);
  fs::remove(file);
  fake.put(fake.home() / "target", "");
  fs::create_symlink(fake.home() / "target", file);
  lock_once();
  EXPECT_TRUE(fs::is_symlink(file));
  fs::remove(file);
  // Conda may have to be installed first.
  python.manager = wire::PythonManager::conda;
  {
    const PythonPlace place(fake.host, python);
    const EnvironmentLock lock(steps, place);
    EXPECT_TRUE(fs::exists(fake.home() / "miniconda.lock"));
  }
  EXPECT_FALSE(fs::exists(fake.home() / "miniconda.lock"));
}

// ---- Partial files

TEST_F(Provision, PartialFilesAreRemovedAndLinksKept) {
  const fs::path outside = fake.home() / "outside";
  fake.put(outside / ".rsync-partial/x", "");
  fs::create_symlink(outside, project() / "link");
  fs::create_directories(project() / "b");
  fs::create_symlink(outside / ".rsync-partial", project() / "b/.rsync-partial");
  fake.put(project() / ".rsync-partial/deep/x", "");
  fake.put(project() / "a b/c/.rsync-partial/x", "");
  fake.put(project() / "a b/c/kept", "");
  fake.put(project() / "a b/.rsync-partial.txt", "");
  remove_partials(fake.host, {python.project});
  EXPECT_FALSE(fs::exists(project() / ".rsync-partial"));
  EXPECT_FALSE(fs::exists(project() / "a b/c/.rsync-partial"));
  EXPECT_TRUE(fs::exists(project() / "a b/c/kept"));
  EXPECT_TRUE(fs::exists(project() / "a b/.rsync-partial.txt"));
  EXPECT_TRUE(fs::exists(outside / ".rsync-partial/x"));
  remove_partials(fake.host, {"~/missing"});
}

// ---- Setup

TEST_F(Provision, SetupThatIsDoneIsNotRepeated) {
  fake.put(environment() / ".remote-setup", "aa\n");
  fake.put_program(environment() / "bin/python", "");
  const Provisioned setup = set_up();
  EXPECT_EQ(setup.failure, "");
  EXPECT_THAT(setup.steps, IsEmpty());
}

TEST_F(Provision, SetupNamesWhatIsMissing) {
  hide_programs();
  use_shell(fake, "/none");
  EXPECT_EQ(set_up().failure, "there is no Python 3.6 or newer on the PATH of this server");
  const Provisioned old = set_up({.new_version = "3.2"});
  EXPECT_EQ(old.failure, "there is no Python 3.2 on the PATH of this server");
  EXPECT_EQ(old.hint, "install python3.2 there, set another python.version, or use python: {manager: conda}");
  python.manager = wire::PythonManager::uv;
  EXPECT_EQ(set_up().failure, "uv was not found on this server");
  python.manager = wire::PythonManager::conda;
  python.folder = "~/miniconda/envs/p";
  const Provisioned conda = set_up({.conda_url = "http://127.0.0.1:9/{arch}.sh"});
  EXPECT_EQ(conda.failure, "nothing to download with: neither curl, wget nor python3");
  python.system_packages = {"liba", "libb=2"};
  const Provisioned apt = set_up();
  EXPECT_EQ(apt.failure, "system_packages needs apt-get, which this server lacks");
  EXPECT_EQ(apt.hint, "install liba libb=2 by hand and remove them from the list");
  EXPECT_THAT(apt.steps, ElementsAre("apt-get install liba libb=2"));
  put_program("apt-get", "");
  fs::remove(fake.programs() / "id");
  put_program("id", "echo 1000");
  EXPECT_EQ(set_up().failure, "system_packages needs root or sudo, and there is no sudo");
}

// The lock of the package lists, which apt-get itself does not wait for.
TEST_F(Provision, AnotherAptGetIsWaitedFor) {
  hide_programs();
  use_shell(fake, "/none");
  put_program("id", "echo 0");
  const std::string place = fake.folder().string();
  put_program("apt-get", "[ \"$1\" != update ] || [ -e '" + place + "/free' ] || { >'" + place +
                             "/free'; echo 'E: Could not get lock "
                             "/var/lib/apt/lists/lock. It is held by process 42 (apt-get)' >&2; exit 100; }\n"
                             "[ \"$1\" != update ] || >'" +
                             place + "/updated'\n[ -e '" + place + "/updated' ]");
  python.system_packages = {"liba"};
  const Provisioned result = set_up();
  EXPECT_THAT(result.steps, Contains("Waiting for cache lock: Could not get lock /var/lib/apt/lists/lock. It "
                                     "is held by process 42 (apt-get)"));
  EXPECT_EQ(result.failure, "there is no Python 3.6 or newer on the PATH of this server") << "the next step";
}

TEST_F(Provision, AForeignEnvironmentIsNeverRemoved) {
  fs::create_directories(environment() / "bin");
  const std::string folder = environment().string();
  EXPECT_EQ(set_up().failure, folder + " exists but is not a virtual environment");
  fake.put(environment() / "pyvenv.cfg", "");
  EXPECT_EQ(set_up().failure, folder + " exists but has no working Python with pip");
  fake.put_program(environment() / "bin/python", "case $2 in *version_info*) exit 1 ;; esac");
  python.version = "3.11";
  EXPECT_EQ(set_up().failure, folder + " exists but has a different Python than 3.11");
  python.version = "";
  const Provisioned adopted = set_up();
  EXPECT_EQ(adopted.failure, "");
  EXPECT_THAT(adopted.notes, ElementsAre("took over " + folder + ", which was there already"));
  EXPECT_EQ(read_file(environment() / ".remote-setup"), "aa\nadopted\n");
  EXPECT_THAT(set_up({.is_forced = true}).notes, Contains(HasSubstr("took over")));
}

TEST_F(Provision, AnInterruptedSetupEndsItsPrograms) {
  const fs::path began = fake.folder() / "began";
  fake.put_program(fake.programs() / "python3",
                   "case $2 in *version_info*) exit 0 ;; esac\n"
                   "trap '' TERM\nsleep 1000 &\necho $! >\"" +
                       began.string() + ".new\"\nmv \"" + began.string() + ".new\" \"" + began.string() +
                       "\"\ntrap 'exit 1' TERM\nwait");
  fake.host.cancelled = std::make_shared<std::atomic<bool>>(false);
  std::thread client([&] {
    EXPECT_TRUE(test::eventually([&] { return fs::exists(began); }));
    *fake.host.cancelled = true;
  });
  const Provisioned setup = set_up();
  client.join();
  EXPECT_EQ(setup.failure, "interrupted");
  EXPECT_EQ(read_file(scripts() / "setup.unfinished"), environment().string() + "\n");
  const int child = std::stoi(read_file(began).value_or("0"));
  ASSERT_GT(child, 0);
  EXPECT_TRUE(test::eventually([&] {  // it ignores TERM
    const std::string state = read_file("/proc/" + std::to_string(child) + "/stat").value_or("");
    return state.empty() || state.find(") Z ") != std::string::npos;
  }));
}

// ---- Packages

class ProvisionPackages : public Provision {
 protected:
  ProvisionPackages() {
    hide_programs();
    fake.put_program(environment() / "bin/python", logging_python);
    fake.put(environment() / "pyvenv.cfg", "include-system-site-packages = false\n");
    fake.put(project() / "requirements.txt", "numpy # all\n");
    packages.source = PackageSource::requirements;
    std::erase_if(fake.host.environment, [](const auto& variable) {
      return variable.first.starts_with("PIP") || variable.first.starts_with("UV");
    });
  }
  fs::path stamp() const { return environment() / ".remote-packages.0123abcd"; }

  wire::Packages packages;
};

TEST_F(ProvisionPackages, OptionsArriveExactly) {
  packages.find_links = {"my wheels", "https://host/wheels/", "/abs/it's", "~/w"};
  packages.constraints = {"limits.txt"};
  packages.index_url = "https://user:pass$1@mirror/simple";
  packages.extra_index_urls = {"https://a", "https://b"};
  packages.has_no_index = true;
  const Provisioned result = install(packages);
  EXPECT_EQ(result.failure, "");
  EXPECT_EQ(result.out, "installing\n");
  EXPECT_EQ(result.errors, "trouble\n");
  const std::string home = fake.home();
  const std::string here = project();
  EXPECT_EQ(
      read_home("log"),
      "-m\npip\ninstall\n--progress-bar\noff\n--no-index\n--find-links\n" + here +
          "/my wheels\n--find-links\nhttps://host/wheels/\n--find-links\n/abs/it's\n--find-links\n" + home +
          "/w\n--constraint\n" + here +
          "/limits.txt\n-r\nrequirements.txt\n"
          "PIPENV_PYPI_MIRROR=https://user:pass$1@mirror/simple\n"
          "PIP_DISABLE_PIP_VERSION_CHECK=1\nPIP_EXTRA_INDEX_URL=https://a https://b\n"
          "PIP_FIND_LINKS=" +
          here + "/my wheels https://host/wheels/ /abs/it's " + home +
          "/w\nPIP_INDEX_URL=https://user:pass$1@mirror/simple\nPIP_NO_INDEX=1\nPIP_NO_INPUT=1\nPWD=" + here +
          "\nUV_DEFAULT_INDEX=https://user:pass$1@mirror/simple\nUV_INDEX=https://a https://b\n");
  EXPECT_EQ(read_file(stamp()), "bb\n");
}

TEST_F(ProvisionPackages, AFailedInstallationLeavesNoStamp) {
  fake.put(stamp(), "bb\n");
  fake.put(fake.home() / "fails", "1");
  const Provisioned result = install(packages);
  EXPECT_EQ(result.failure, "pip could not install the packages");
  EXPECT_EQ(result.errors, "trouble\n");
  EXPECT_EQ(read_file(stamp()), "unfinished\n") << "a launch warns of it";
  fs::remove_all(environment());
  EXPECT_EQ(install(packages).failure, "there is no Python environment here");
  fs::remove_all(project());
  const Provisioned missing = install(packages);
  EXPECT_EQ(missing.failure, "there is no folder " + project().string());
  EXPECT_EQ(missing.hint, "send the project there first");
}

TEST_F(ProvisionPackages, AnotherBuildOfAWheelIsInstalledAgain) {
  fake.put(project() / "requirements.txt", "./libs/mine-1.0-py3-none-any.whl\n");
  fake.put(project() / "libs/mine-1.0-py3-none-any.whl", "12345");
  fake.put_program(environment() / "bin/python",
                   "case $2 in\n"
                   "  *rpartition*) [ ! -e \"$HOME/installed\" ] || printf '%s\\n' \"$3\"; exit ;;\n"
                   "  pip) echo \"$*\" >>\"$HOME/log\" ;;\n"
                   "esac\n");
  const Path wheel = project() / "libs/mine-1.0-py3-none-any.whl";
  const std::string digest = "5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5";  // of 12345
  packages.files = {{.name = "libs/mine-1.0-py3-none-any.whl", .sha256 = digest}};
  EXPECT_EQ(install(packages).failure, "");
  EXPECT_THAT(read_home("log"), Not(HasSubstr("--force-reinstall")));
  fake.put(fake.home() / "installed", "");
  fs::remove(stamp());
  EXPECT_EQ(install(packages).failure, "");
  EXPECT_THAT(read_home("log"), HasSubstr("-r requirements.txt\n"));
  EXPECT_THAT(read_home("log"), HasSubstr("--force-reinstall --no-deps " + wheel.string() + "\n"));
}

TEST_F(ProvisionPackages, RequirementsOfTheSystemAreCheckedFirst) {
  fake.put(project() / "requirements.txt",
           "# all\nnumpy>=1 # this\r\n  torch ; python_version > '3'\n\na#b\nx @ https://h/#egg=x\n");
  fake.put(environment() / "pyvenv.cfg", "Include-System-Site-Packages =  TRUE\n");
  const Provisioned met = install(packages);
  EXPECT_THAT(met.steps, ElementsAre("the environment has all packages"));
  EXPECT_EQ(read_home("log"),
            "requirements: <numpy>=1> <torch ; python_version > '3'> <a#b> "
            "<x @ https://h/#egg=x>\n");
  EXPECT_EQ(read_file(stamp()), "bb\n");
  fake.put(fake.home() / "unmet", "1");
  EXPECT_THAT(install(packages).steps, IsEmpty());
  EXPECT_THAT(read_home("log"), HasSubstr("\n-r\nrequirements.txt\n"));
  fs::remove(fake.home() / "log");
  fs::remove(fake.home() / "unmet");
  packages.constraints = {"limits.txt"};
  install(packages);
  EXPECT_THAT(read_home("log"), Not(HasSubstr("requirements:"))) << "pip checks constraints";
  packages.constraints.clear();
  fake.put(environment() / "pyvenv.cfg", "include-system-site-packages = false\n");
  fs::remove(fake.home() / "log");
  install(packages);
  EXPECT_THAT(read_home("log"), Not(HasSubstr("requirements:"))) << "pip decides";
}

TEST_F(ProvisionPackages, APythonOfTheDistributionIsOnlyChecked) {
  python.manager = wire::PythonManager::system;
  python.folder = "~/my pro'ject/.remote-scripts/system";
  fake.put_program(scripts() / "bin/python",
                   "case $2 in *packaging*) exit 1 ;; esac\n"
                   "[ \"$2\" = pip ] || exit 0\n"
                   "echo \"$* $PIP_BREAK_SYSTEM_PACKAGES\" >>\"$HOME/log\"\n"
                   "cat \"$HOME/printed\"\necho problem >&2\nexit \"$(cat \"$HOME/code\")\"");
  const auto check = [&](const std::string& printed, const std::string& code) {
    fake.put(fake.home() / "printed", printed);
    fake.put(fake.home() / "code", code);
    return install(packages);
  };
  const std::string found = "Requirement already satisfied\n" + std::string(200'000, 'x') + "\n";
  const Provisioned good = check(found, "0");
  EXPECT_EQ(good.failure, "");
  EXPECT_EQ(good.out, found + "problem\n");
  EXPECT_EQ(good.errors, "");
  EXPECT_EQ(read_home("log"),
            "-m pip install --dry-run --no-index --progress-bar off -r requirements.txt 1\n");
  for (const auto& [printed, code] :
       std::map<std::string, std::string>{{"Would install x\n", "0"}, {"", "1"}}) {
    const Provisioned bad = check(printed, code);
    EXPECT_THAT(bad.failure, HasSubstr("PEP 668"));
    EXPECT_THAT(bad.hint, HasSubstr("system_site_packages: true"));
    EXPECT_EQ(bad.errors, printed + "problem\n");
  }
}

TEST_F(ProvisionPackages, FilesThatDifferFromTheClientsAreNamed) {
  fake.put(project() / "ü.whl", "12345");
  const std::string digest =
      "5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5";  // of "12345"
  packages.files = {{"ü.whl", "", 5}, {"ü.whl", digest, 0}};
  EXPECT_THAT(install(packages).notes, IsEmpty());
  EXPECT_EQ(read_file(stamp()), "bb\n");
  for (const wire::PackageFile& wrong :
       {wire::PackageFile{"ü.whl", "", 6}, {"ü.whl", std::string(64, '0'), 5}, {"missing", digest, 5}}) {
    packages.files = {{"ü.whl", "", 5}, wrong};
    EXPECT_THAT(install(packages).notes,
                ElementsAre("the packages are those of the project on the server, and its " + wrong.name +
                            " differs from the local copy: send the project, then update again"));
    EXPECT_EQ(read_file(stamp()), "unfinished\n");
  }
}

TEST_F(ProvisionPackages, TheRecordOfPipenvIsRemovedWithIt) {
  fake.put(scripts() / "pipenv", "/x\n");
  install(packages);
  EXPECT_FALSE(fs::exists(scripts() / "pipenv"));
}

TEST_F(ProvisionPackages, PipenvIsInstalledIfItIsMissing) {
  packages.source = PackageSource::pipenv;
  packages.has_lock = true;
  const Provisioned none = install(packages);
  EXPECT_THAT(none.steps, ElementsAre("installing pipenv"));
  EXPECT_EQ(none.failure, "pipenv was installed and cannot be found");
  fake.put_program(fake.home() / ".local/bin/pipenv",
                   "echo \"$* $CI $PIPENV_YES\" >>\"$HOME/log\"\n"
                   "[ \"$1\" != --venv ] || [ ! -e \"$HOME/made\" ] || echo /the/env\n"
                   "[ \"$1\" = --venv ] || : >\"$HOME/made\"\n"
                   "[ \"$1\" != --venv ] || [ -e \"$HOME/made\" ]");
  fs::remove(fake.home() / "log");
  EXPECT_EQ(install(packages).failure, "");
  EXPECT_EQ(read_home("log"), "--venv 1 1\n--python " + (environment() / "bin/python").string() +
                                  " 1 1\nsync 1 1\n--venv 1 1\n");
  EXPECT_EQ(read_file(scripts() / "pipenv"), "/the/env\n");
  packages.has_lock = false;
  fs::remove(fake.home() / "log");
  EXPECT_EQ(install(packages).failure, "");
  EXPECT_EQ(read_home("log"), "--venv 1 1\ninstall --skip-lock 1 1\n--venv 1 1\n");
}

// Another process has just installed the same packages.
TEST_F(ProvisionPackages, AreNotInstalledTwice) {
  const fs::path file = scripts() / "setup.lock";
  fake.put(file, "");
  Descriptor other(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  std::thread holder([&] {
    ::usleep(300'000);  // so that it has to wait
    fake.put(stamp(), "bb\n");
    other.reset();
  });
  const Provisioned result = install(packages);
  holder.join();
  EXPECT_EQ(result.failure, "");
  EXPECT_EQ(read_home("log"), "");
  EXPECT_THAT(result.steps, ElementsAre(HasSubstr("waiting for another remote")));
}

TEST(CondaInstallers, AreChosenByTheMachine) {
  const wire::Setup any = {.conda_url = "http://mirror/Miniconda3-{arch}.sh"};
  EXPECT_EQ(choose_installer("x86_64", any).url, "http://mirror/Miniconda3-x86_64.sh");
  EXPECT_EQ(choose_installer("aarch64", any).url, "http://mirror/Miniconda3-aarch64.sh");
  EXPECT_EQ(choose_installer("aarch64", any).sha256, "");
  const wire::Setup both = {.conda_sha256_x86_64 = "12", .conda_sha256_aarch64 = "34"};
  EXPECT_EQ(choose_installer("x86_64", both).sha256, "12");
  EXPECT_EQ(choose_installer("aarch64", both).sha256, "34");
}

void expect_no_installer(const std::string& machine, const wire::Setup& setup, const std::string& reason,
                         const std::string& hint) {
  try {
    choose_installer(machine, setup);
    ADD_FAILURE() << "an installer for " << machine;
  } catch (const ProvisionError& error) {
    EXPECT_EQ(error.describe().reason, reason);
    EXPECT_EQ(error.describe().hint, hint);
  }
}

TEST(CondaInstallers, AreNotFoundForOtherMachinesOrWithoutTheirDigest) {
  expect_no_installer("riscv64", {}, "there is no Miniconda for this server's architecture, riscv64",
                      "set python: {manager: venv} in configs.yaml");
  for (const auto& [machine, setup] : {std::pair("x86_64", wire::Setup{.conda_sha256_aarch64 = "34"}),
                                       std::pair("aarch64", wire::Setup{.conda_sha256_x86_64 = "12"})}) {
    expect_no_installer(
        machine, setup,
        std::string("miniconda_sha256 in configs.yaml has no digest for this server's architecture, ") +
            machine,
        std::string("add one: miniconda_sha256: {") + machine + ": …}");
  }
}

}  // namespace
}  // namespace remote::agent
